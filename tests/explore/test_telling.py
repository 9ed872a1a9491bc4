"""A run of a team's own requests is told as a timeline, with what was really decided beside each event."""

from __future__ import annotations

import json
import re

import pytest

from fencinglab.check import files, told
from fencinglab.check.check import Check, check
from fencinglab.dynamodb import shelf
from fencinglab.explore import telling
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.invariants import SOMETIMES
from fencinglab.explore.run import breaks
from fencinglab.inert import WIDTH
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay
from fencinglab.model.timeline import parse


@pytest.fixture(scope="module")
def unconditional():
    """The search over the file whose writes have no condition."""
    return check(shelf.find("broken-unconditional"), most=100_000).answer


@pytest.mark.parametrize("invariant", ["order", "ownership", "terminal", "final", "late"])
def test_the_timeline_breaks_the_same_invariant(unconditional, invariant):
    """Replayed without any guard, which is what the file does, the timeline does the harm that the requests did."""
    found = telling.broken(unconditional, invariant)

    assert found.unsaid == ()
    assert parse(str(found.timeline), f"{found.name}.timeline") == found.timeline
    assert breaks(replay(found.timeline, FIXES["unfenced"]), invariant, unconditional.model.kinds)


def test_each_event_stands_in_its_line(unconditional):
    """Every event of the timeline is one of a step, in the same order; each step has its sentence."""
    found = telling.broken(unconditional, "terminal")
    events = [(line.event, line.line) for line in found.lines if line.event]

    assert events == [(str(event), event.line) for event in found.timeline.events]
    assert sum(bool(line.says) for line in found.lines) == unconditional.of("terminal").length
    assert next(line.decides for line in found.lines if line.decides) == telling.AUTHORITY


def test_passing_runs_do_no_harm(unconditional):
    """Runs to show that something is reachable are told too, but none that does something unsafe, nor ends in it."""
    ends = [
        v._replace(run=unconditional.reached["rest"]) if v.invariant == "final" else v for v in unconditional.verdicts
    ]
    shown, other = (
        {found.title for found in telling.harmless(answer)}
        for answer in (unconditional, unconditional._replace(verdicts=tuple(ends)))
    )

    assert f"In this run {SOMETIMES['rest']}" in shown
    assert f"In this run {SOMETIMES['arrived-stale']}" not in shown
    assert shown - other == {f"In this run {SOMETIMES['rest']}"}
    assert max(map(len, told.screen(unconditional, ["passing"]).splitlines())) <= WIDTH


def test_the_files_have_one_shape(unconditional):
    """A counterexample of requests is a timeline and a drawing like that of the model, and keeps its items."""
    written = files.contents(Check(unconditional))
    one = next(v for v in json.loads(written["check.json"])["invariants"] if v["name"] == "ownership")["counterexample"]

    assert one["timeline"] == written["broken-unconditional-ownership.timeline"]
    assert one["mermaid"] == written["broken-unconditional-ownership.mmd"]
    assert "    A->>receiver: A's record_response is accepted: apiStatus QUEUED → PROCESSING" in one["mermaid"]
    assert re.search(r"fencingToken.*42", one["steps"][-1]["before"][0])
    assert one["steps"][-1]["operation"] == "record_response"


def test_what_cannot_be_said_is_named():
    """Each thing that the language has no words for is named in a sentence, and the rest is still a timeline."""
    answer = check(shelf.find("broken-unconditional"), hazards=[Hazard("lost-reply")], workers=1, most=100_000).answer
    team = answer.model
    [sent, *_] = [move for move in team.of_worker(team.start, team.idle, "A") if move.step.act == "send"]
    [lost] = [m.step for m in team.of_worker(sent.shared, sent.worker, "A") if m.step.act == "arrive, reply lost"]
    found = telling.of_requests(team, (sent.step, lost), "told", "Told")

    assert telling.unsaid(found) == "Not said in the language of timelines: that the reply to A's acquire was lost."
    assert str(found.timeline).endswith("\nA acquires\n")


@pytest.mark.parametrize("invariant", ["order", "ownership", "late"])
def test_the_step_after_which_no_fix_helps_is_marked(unconditional, invariant):
    """A fix that takes over before the marked event still keeps the requests' harm out, one that takes over after it does not."""
    found = telling.broken(unconditional, invariant)
    events, kinds = found.timeline.events, unconditional.model.kinds
    place = next(n for n, event in enumerate(events) if event.line == found.lost_at)

    def helps(after):
        runs = (replay(found.timeline, FIXES["unfenced"], then=fix, after=after) for fix in FIXES.values())
        return not all(breaks(run, invariant, kinds) for run in runs)

    assert helps(place) and not helps(place + 1)
    assert "▸ from here on every fix comes too late" in told.screen(unconditional, [invariant])


def test_where_a_request_was_refused_nothing_is_marked():
    """A guard of the team's own is no fix of the model: what another fix could still do after it refused is not known."""
    answer = check(shelf.find("broken-token-as-text"), most=100_000).answer
    shown = [telling.broken(answer, v.invariant) for v in answer.verdicts if v.status == "violated"]
    refused = [found for found in shown if any(line.refused for line in found.lines)]

    assert refused and {found.lost_at for found in refused} == {0}
    assert any(found.lost_at for found in shown)  # of those in which nothing was
