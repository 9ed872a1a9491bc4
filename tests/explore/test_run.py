"""A counterexample is a timeline: read, replayed and judged by the replay alone it breaks the same invariant."""

from __future__ import annotations

import pytest

from fencinglab.explore import telling
from fencinglab.explore.hazards import HAZARDS, Hazard
from fencinglab.explore.invariants import ALERTING
from fencinglab.explore.run import breaks, timeline_of
from fencinglab.explore.search import explore, model_of
from fencinglab.explore.steps import ASKED
from fencinglab.model import timeline
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import unsafe
from fencinglab.model.replay import replay


def answer(fix, *, hazards=(), alert="none", writes=2):
    return explore(model_of(FIXES[fix], 2, writes, [Hazard(name) for name in hazards], alert), symmetric=bool(hazards))


def broken(found):
    return [verdict.invariant for verdict in found.verdicts if verdict.status == "violated"]


def assert_replays(found):
    for verdict in (found.of(name) for name in broken(found)):
        invariant = verdict.invariant
        told = timeline_of(found.model, (*verdict.run, *verdict.rescue), "told", "The shortest run")
        again = timeline.parse(str(told), "told.timeline")

        assert breaks(replay(again, found.model.fix), invariant, found.model.program), (invariant, str(again))


@pytest.mark.parametrize("fix", FIXES)
def test_every_counterexample_breaks_the_same_invariant_when_it_is_replayed(fix):
    """Written as text and read back, each shortest run breaks under its fix in the replay what it broke in the search."""
    assert_replays(answer(fix))


@pytest.mark.parametrize("hazard", HAZARDS)
def test_so_does_every_counterexample_with_a_hazard(hazard):
    """The same of every hazard, under every fix."""
    for fix in FIXES:
        assert_replays(answer(fix, hazards=[hazard], writes=1))


@pytest.mark.parametrize("alert", ["before", "after", "with"])
def test_so_does_every_counterexample_about_alerts(alert):
    """The same of every way to raise an alert, with a crash."""
    for fix in ("fenced", "fenced-above", "latest-id", "current-lease", "two-step-token"):
        found = answer(fix, hazards=["crash"] if fix == "latest-id" else [], alert=alert, writes=1)

        assert_replays(found)
        assert {verdict.invariant for verdict in found.verdicts if verdict.status == "not_applicable"} == {
            "polling-stops"
        }


@pytest.mark.parametrize("fix", ["fenced", "latest-id", "client-check", "two-step-holder", "renew-or-abort"])
def test_one_step_earlier_nothing_is_broken(fix):
    """A shortest run breaks its invariant in its last step: without it the replay finds nothing of the kind."""
    found = answer(fix)
    for invariant in {*broken(found)} & {"order", "ownership", "terminal", "late"}:
        told = telling.broken(found, invariant).timeline
        text = str(told).rstrip("\n").rpartition("\n")[0] + "\n"
        shorter = replay(timeline.parse(text), found.model.fix)

        assert not breaks(shorter, invariant, found.model.program), text


@pytest.mark.parametrize("fix", FIXES)
def test_passing_runs_break_nothing(fix):
    """What is shown as a passing run does nothing unsafe in the replay; there are a few."""
    runs = {told.name.removeprefix(f"{fix}-"): told.timeline for told in telling.harmless(answer(fix))}

    assert len(runs) >= 3
    for name, told in runs.items():
        done = {harm.name for harm in unsafe(replay(told, FIXES[fix]))}
        assert done <= ({"final"} if name != "rest" else set()), (name, str(told))


def test_the_order_of_events_is_told_in_plain_sentences():
    """The shortest run against `fenced` is the well-known one, with a pause where the lease runs out."""
    found = telling.broken(answer("fenced"), "ownership")

    assert [str(event) for event in found.timeline.events] == [
        "A acquires", "A pauses", "lease expires", "A resumes", "A reads", "A sends draft-A", "B acquires",
        "A's draft-A arrives",
    ]  # fmt: skip
    assert found.replayed.steps[-1].says == "A wrote with 41 after 42 was granted: accepted by at-or-above"
    assert found.timeline.title == "Under fenced a stale write can be accepted: the shortest run"


# --- where every fix is too late


def test_where_every_fix_comes_too_late():
    """A fix that takes over before the marked event still helps, one that takes over after it does not."""
    for fix, hazards in (("unfenced", []), ("fenced", []), ("holder-id", []), ("latest-id", ["ttl"])):
        found = answer(fix, hazards=hazards, writes=1)
        for invariant in broken(found):
            told = telling.broken(found, invariant)
            place = 1 + [event.line for event in told.timeline.events].index(told.lost_at)
            before, after = (
                [
                    breaks(replay(told.timeline, found.model.fix, then=other, after=at), invariant, found.model.program)
                    for other in FIXES.values()
                ]
                for at in (place - 1, place)
            )

            assert all(after), invariant
            assert not all(before), invariant


def test_a_crash_between_finish_and_alert_is_helped_by_no_fix():
    """No guard brings back an alert that a crashed worker did not raise: nothing is marked."""
    found = answer("latest-id", hazards=["crash"], alert="after", writes=1)

    assert telling.broken(found, "alert-possible").lost_at == 0


def test_what_is_not_broken_has_no_counterexample():
    """Asking for a counterexample to what holds is a slip of the caller, and is said so."""
    with pytest.raises(ValueError, match="order is not violated: holds"):
        telling.broken(answer("fenced"), "order")


def test_every_invariant_has_a_counterexample_somewhere():
    """Between the models above each invariant is broken, so that each way to judge a replay is tried."""
    seen = {*broken(answer("unfenced"))} | {*broken(answer("fenced-above"))}
    seen |= {*broken(answer("latest-id", hazards=["crash"], alert="after", writes=1))}

    assert seen == {*ASKED}
    assert {*ALERTING} <= seen
