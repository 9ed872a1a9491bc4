"""A judged history is the history, with what the replay knows of each row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import timelines

from fencinglab.history import NAMES
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import unsafe
from fencinglab.model.judged import alike, judged
from fencinglab.model.replay import replay


def rows(name: str, fix: str) -> list[dict[str, object]]:
    """The judged history of a timeline that comes with the package."""
    return judged(replay(shelf.find(name), FIXES[fix]))


def test_each_row_knows_its_place():
    """A row says its place in the order, the event that made it, and its time as a replay prints it."""
    found = rows("report-generation", "unfenced")

    assert [(row["step"], row["event"], row["clock"]) for row in found] == [
        (1, 1, "00:00"), (2, 5, "01:01"), (3, 6, "01:02"), (4, 8, "01:04"), (5, 9, "01:05")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fix", "harmed"),
    [
        ("report-generation", "unfenced", {4: "an older holder's write was accepted after a newer holder's"}),
        ("report-generation", "fenced", {}),
        ("old-token-first", "fenced", {3: "a write was accepted after a newer grant"}),
        ("external-e-mail", "fenced", {4: "an alert, an effect or an order to others was given twice"}),
    ],
)
def test_broken_rows_say_the_worst_harm(name, fix, harmed):
    """A row is broken where something unsafe was accepted, with the worst that it was; no other is."""
    found = rows(name, fix)

    assert {row["step"]: row["harm"] for row in found if row["broken"]} == harmed
    assert all(row["harm"] is None and not row["undecided"] for row in found if not row["broken"])


@settings(deadline=None, max_examples=80)
@given(timelines(), st.sampled_from(sorted(FIXES)))
def test_the_history_stays_what_it_is(timeline, fix):
    """Judging adds columns and changes none; a refused row and a grant are never broken, and no harm means none is."""
    run = replay(timeline, FIXES[fix])
    found = judged(run)

    assert [{name: row[name] for name in NAMES} for row in found] == run.rows
    assert not any(row["broken"] for row in found if row["decision"] == "rejected" or row["kind"] == "grant")
    assert unsafe(run) or not any(row["broken"] for row in found)


def test_alike_runs_stand_together():
    """Fixes that come to the same are one group, in the order of the first; all others are apart."""
    names = ("unfenced", "fenced", "longer-lease", "latest", "fenced-above")
    groups = alike(replay(shelf.find("report-generation"), FIXES[name]) for name in names)

    assert [[run.fix.name for run in group] for group in groups] == [
        ["unfenced", "longer-lease"], ["fenced", "latest"], ["fenced-above"]
    ]  # fmt: skip
