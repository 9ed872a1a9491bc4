"""The search reproduces every oracle number, agrees with an independent checker, and never hides a bound."""

from __future__ import annotations

from itertools import pairwise

import peer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencinglab.errors import UsageError
from fencinglab.explore.hazards import HAZARDS, Hazard
from fencinglab.explore.invariants import ALERTING, SOMETIMES
from fencinglab.explore.search import explore, model_of
from fencinglab.explore.steps import ASKED
from fencinglab.model.fix import FIXES

CORE = ("order", "ownership", "terminal", "final")

# fix -> length of the shortest counterexample to each (None = holds), states; two workers, two writes each
ORACLE = {
    "unfenced": (9, 6, 6, 13, 2149),
    "longer-lease": (9, 6, 6, 13, 2149),
    "renew-or-abort": (9, 6, 6, 12, 3047),
    "client-check": (11, 7, 8, 14, 4439),
    "two-step-token": (11, 7, 8, 16, 27777),
    "two-step-holder": (11, 7, 8, 14, 37033),
    "fenced": (None, 6, 6, None, 1789),
    "fenced-above": (None, 6, 11, None, 1993),
    "fenced-id-per-attempt": (None, 6, 11, None, 1945),
    "fenced-id-per-job": (None, 6, None, 13, 1593),
    "latest": (None, None, 6, None, 1149),
    "holder": (None, None, 6, 14, 1729),
    "holder-id": (None, None, None, 14, 2117),
    "latest-id": (None, None, None, None, 1289),
}


def answer(fix: str, *, hazards=(), alert="none", workers=2, writes=2, **more):
    return explore(model_of(FIXES[fix], workers, writes, hazards, alert), **more)


def statuses(found):
    return {verdict.invariant: verdict.status for verdict in found.verdicts}


@pytest.mark.parametrize("fix", ORACLE)
def test_the_oracle_numbers(fix):
    """Verdicts, shortest lengths and the number of states are those of two independent explorations."""
    found = answer(fix)
    verdicts = [found.of(name) for name in CORE]

    assert (*(verdict.length for verdict in verdicts), found.states) == ORACLE[fix]
    assert {v.status for v in verdicts} <= {"holds", "violated"}
    assert not found.stopped


@pytest.mark.parametrize(("workers", "writes"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("fix", peer.FIXES)
def test_the_plainest_search_agrees(fix, workers, writes):
    """A naive search of a model written from the text alone finds the same lengths and as many states."""
    found = answer(fix, workers=workers, writes=writes)
    states, lengths = peer.searched(fix, workers, writes)

    assert found.states == states
    assert {name: found.of(name).length for name in CORE} == lengths


@pytest.mark.parametrize("fix", peer.FIXES)
def test_minicheck_agrees(fix):
    """An independent model checker finds as many states, the same verdicts and the same lengths."""
    minicheck = pytest.importorskip("minicheck")
    writes = 1 if "two-step" in fix else 2
    theirs = minicheck.check_safety(peer.protocol(fix, 2, writes))
    ours = answer(fix, writes=writes)

    assert theirs["reachable_states"] == ours.states
    for name, found in theirs["properties"].items():
        assert found["holds"] == (ours.of(name).status != "violated"), name
        assert found["holds"] or len(found["counterexample"]) - 1 == ours.of(name).length, name


@pytest.mark.parametrize("fix", ["fenced", "unfenced", "latest-id", "client-check", "identity"])
def test_symmetry_changes_no_verdict(fix):
    """Leaving out what differs only by names changes neither a verdict nor a length, and half the states go."""
    whole, half = answer(fix), answer(fix, symmetric=True)

    assert [(v.invariant, v.status, v.length) for v in whole.verdicts] == [
        (v.invariant, v.status, v.length) for v in half.verdicts
    ]
    assert half.states * 2 == whole.states + 1  # all but the first state have a twin


@pytest.mark.parametrize("hazard", HAZARDS)
def test_symmetry_changes_no_verdict_with_a_hazard(hazard):
    """Nor with two hazards, a crash among them: a worker that crashed is told apart from one that never began."""
    given = [Hazard(hazard), Hazard("restore" if hazard == "crash" else "crash")]
    for fix in ("latest-id", "holder-id", "unfenced"):
        whole, half = (answer(fix, writes=1, hazards=given, symmetric=symmetric) for symmetric in (False, True))

        assert [(*v[:2], v.length) for v in whole.verdicts] == [(*v[:2], v.length) for v in half.verdicts], fix
        assert half.states < whole.states


def test_three_workers_with_symmetry():
    """With three workers a sixth of the states is left: 15,799 of 94,687 under `fenced`."""
    assert answer("fenced", workers=3, symmetric=True).states == 15_799


# --- what a pass means


def test_a_pass_without_a_test_is_empty():
    """One worker alone never meets a newer grant: order, ownership and final value hold of nothing."""
    found = answer("unfenced", workers=1)

    assert statuses(found) | {"late": "-"} == {
        "order": "empty", "ownership": "empty", "terminal": "violated", "final": "empty", "alert-once": "not_applicable",
        "late": "-", "alert-possible": "not_applicable", "polling-stops": "not_applicable", "can-finish": "holds",
    }  # fmt: skip
    assert found.of("order").missing == ("two-grants", "overtaken")


@pytest.mark.parametrize("fix", FIXES)
def test_a_search_that_stops_decides_no_pass(fix):
    """At a bound nothing holds any more: what was broken before is violated, all else undecided, and it says why."""
    found = answer(fix, most=300)

    assert found.stopped == "stopped at the bound of 300 states; `--max-states` raises it"
    assert {*statuses(found).values()} <= {"violated", "undecided", "not_applicable"}
    whole = statuses(answer(fix))
    assert all(whole[name] == "violated" for name, status in statuses(found).items() if status == "violated")


@pytest.mark.parametrize("invariant", ASKED)
def test_every_invariant_is_broken_and_held(invariant):
    """For every invariant there is a fix that breaks it and one that holds it, both put to the test."""
    alert = "after" if invariant in ALERTING else "none"
    crash = [Hazard("crash")] if invariant == "alert-possible" else []
    held_by = {"alert-once": ("latest-id", "with", []), "alert-possible": ("latest-id", "with", crash)}
    fix, how, hazards = held_by.get(invariant, ("current-lease" if invariant == "late" else "latest-id", alert, []))
    broken = {"can-finish": "fenced-above", "late": "unfenced"}.get(invariant, "unfenced")

    assert (
        answer(broken, alert=alert, hazards=crash, writes=1 if alert == "after" else 2).of(invariant).status
        == "violated"
    )
    assert answer(fix, alert=how, hazards=hazards, symmetric=True).of(invariant).status == "holds"


def test_every_sometimes_is_reached_and_some_by_two_workers_only():
    """Some model reaches all that must be reachable; one worker with one write what needs neither a second, nor a guard."""
    reached = answer("unfenced", alert="with").reached | answer("fenced").reached
    alone = answer("unfenced", workers=1, writes=1).reached

    assert {*reached} == {*SOMETIMES} - {"asked-again"}  # of a finished job, which only requests can be asked for
    assert {*alone} == {"arrived-late", "finish-again", "one-lease-twice", "rest", "unheld"}


# --- hazards


@pytest.mark.parametrize(
    ("hazard", "harmed", "kept"),
    [
        ("crash", "holder-id", "latest-id"),  # a name cannot tell the lease before the crash from that after it
        ("ttl", "latest-id", "token-floor"),
        ("restore", "latest-id", "token-floor"),
        ("unfenced-worker", "latest-id", "latest-id-strict"),
    ],
)
def test_a_hazard_harms_under_one_fix_and_not_under_another(hazard, harmed, kept):
    """Stale writes are kept out by a fix until the hazard is switched on, and by another with it too."""
    found = [answer(harmed, writes=1), *(answer(fix, writes=1, hazards=[Hazard(hazard)]) for fix in (harmed, kept))]

    assert [one.of("ownership").status for one in found] == ["holds", "violated", "holds"]


@pytest.mark.parametrize(("hazard", "sooner"), [("clock-skew", 1), ("lost-reply", 0), ("release", 0)])
def test_what_can_happen_anyway_breaks_nothing_more(hazard, sooner):
    """A lease taken early ends like one that ran out, a step sooner; a lost reply is a second copy, a release an end."""
    without, found = (answer("fenced", writes=1, hazards=given) for given in ([], [Hazard(hazard)]))

    assert statuses(found) == statuses(without)
    assert found.of("ownership").length == without.of("ownership").length - sooner


@pytest.mark.parametrize("hazard", HAZARDS)
def test_more_of_a_hazard_is_a_larger_world(hazard):
    """A hazard adds states, and more the more often it may happen; nothing that is broken is mended by it."""
    answers = [answer("fenced", writes=1, hazards=[Hazard(hazard, n)] if n else []) for n in (0, 1, 2)]

    none, once, twice = (found.states for found in answers)

    assert none < once <= twice
    assert once < twice or hazard == "clock-skew"  # of two workers only the second can be early
    for a, b in pairwise(answers):
        assert {n for n, s in statuses(a).items() if s == "violated"} <= {
            n for n, s in statuses(b).items() if s == "violated"
        }


def test_a_finish_that_carries_the_alert_is_the_only_one_that_keeps_both():
    """Before the finish an alert doubles after a crash, after it one is lost; in the same step neither happens."""
    crash = [Hazard("crash")]
    found = {
        alert: statuses(answer("latest-id", writes=1, alert=alert, hazards=crash, symmetric=True))
        for alert in ("before", "after", "with")
    }

    assert {alert: (of["alert-once"], of["alert-possible"]) for alert, of in found.items()} == {
        "before": ("violated", "holds"), "after": ("violated", "violated"), "with": ("holds", "holds")
    }  # fmt: skip


# --- the same every time, and refusals


@settings(max_examples=25, deadline=None)
@given(
    fix=st.sampled_from(sorted(FIXES)),
    hazard=st.sampled_from(sorted(HAZARDS)),
    alert=st.sampled_from(["none", "with"]),
    symmetric=st.booleans(),
)
def test_the_same_every_time(fix, hazard, alert, symmetric):
    """Two searches of one model give the same answer, to the step of every run."""
    first, second = (
        answer(fix, writes=1, hazards=[Hazard(hazard)], alert=alert, symmetric=symmetric) for _ in range(2)
    )

    assert first[1:] == second[1:]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"workers": 0}, "--workers 0: a search needs 1 to 8; with more than 3 it takes hours"),
        ({"workers": 9}, "--workers 9: a search needs 1 to 8; with more than 3 it takes hours"),
        ({"writes": 0}, "--writes 0: a search needs 1 to 9; with more than 3 it takes hours"),
        ({"alert": "never"}, "--alert never: is none of none, before, after, with"),
        ({"most": 0}, "--max-states 0: a search needs at least 1"),
    ],
)
def test_a_bound_of_nothing_is_refused(given, sentence):
    """A number that bounds everything away is refused with what is allowed."""
    with pytest.raises(UsageError) as caught:
        answer("fenced", **given)

    assert str(caught.value) == sentence
