"""Every stage of the runbook is proved by a run, and needed: without it harm is done."""

from __future__ import annotations

import pytest

from fencinglab import cli
from fencinglab.audit.audit import audit_rows
from fencinglab.model import shelf
from fencinglab.model.render import FIX
from fencinglab.model.runbook import RUNBOOK, Stage, command, prove, run_of


def broken(check: tuple[str, str]) -> set[str]:
    """The unsafe rules that the audit finds broken in the history of this run."""
    return {
        result.rule.name
        for result in audit_rows(run_of(check).rows).results
        if result.broken and result.group == "unsafe"
    }


@pytest.mark.parametrize("proof", prove(), ids=[stage.does for stage in RUNBOOK])
def test_every_stage_is_proved(proof):
    """Without the stage harm is done; with it nothing is unsafe, late completions are refused, one transition stands."""
    assert proof.proved
    assert (proof.rejected > 0, proof.finished) == (True, 1)


@pytest.mark.parametrize(
    ("without", "proof"),
    [
        (("late-render", FIX), ("late-render", FIX)),  # it is not needed
        (("late-render", "unfenced"), ("late-render", "unfenced")),  # it does not help
        (("late-render", "unfenced"), ("late-render-replayed", "latest")),  # three transitions
    ],
)
def test_a_stage_that_proves_nothing_is_seen(without, proof):
    """A stage without which nothing happens, or with which harm is done, is not proved."""
    [found] = prove([Stage("roll-out", "x", without, proof)])

    assert not found.proved


SHOWN = {  # what the audit finds in the histories in which harm is done
    ("late-render-shared-key", FIX): set(),  # the bytes change behind a pointer that no row of the job changes
    ("late-render", "unfenced"): {"token_went_back", "terminal_twice"},
    ("late-render-mixed-fleet", "latest-id-terminal"): {"unfenced_write", "terminal_twice"},
    ("late-render-three-workers", "unfenced"): {"token_went_back", "terminal_twice"},
    ("late-render-rolled-back", "unfenced"): {"token_went_back", "terminal_twice"},
    ("late-render-replayed", "latest"): {"terminal_twice"},
    ("late-render-operator", "unfenced"): {"token_went_back", "stale_write_accepted", "terminal_twice"},
}


@pytest.mark.parametrize("stage", RUNBOOK, ids=[stage.does for stage in RUNBOOK])
def test_the_audit_judges_both_histories(stage):
    """The history of each proof holds; that of each harm is violated, but for the bytes that no history shows."""
    assert broken(stage.without) == SHOWN[stage.without]
    assert broken(stage.proof) == set()
    assert audit_rows(run_of(stage.proof).rows).verdict == "holds"


def test_the_operators_replay():
    """The old completion is refused before and after; the same bytes are accepted under the operator's own grant."""
    finishes = [row for row in run_of(("late-render-operator", FIX)).rows if row["kind"] == "finish"]

    assert [(row["writer"], row["token"], row["decision"], row["reason"]) for row in finishes] == [
        ("A", 41, "rejected", "newer_token"),
        ("operator", 43, "accepted", None),
        ("A", 41, "rejected", "newer_token"),
    ]


def test_every_timeline_of_the_job_is_in_the_runbook():
    """Each timeline of the render job proves a stage or shows why it is needed."""
    told = {name for stage in RUNBOOK for name, _ in (stage.without, stage.proof)}

    assert told == {name for name in shelf.names() if name.startswith("late-render")}


def test_a_check_can_be_typed(capsys):
    """What stands in a proof is a command, and it is answered."""
    for stage in RUNBOOK:
        assert cli.main(command(stage.proof).split()[1:]) == 0
        assert "● nothing unsafe" in capsys.readouterr().out
