"""Two request files side by side: what tells them apart is one decision at the end of one common run."""

from __future__ import annotations

import json

import pytest

from fencinglab.check import files, told
from fencinglab.check.check import beside
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.inert import WIDTH


@pytest.fixture(scope="module")
def two():
    """A file whose writes compare tokens as text, and one whose writes compare nothing."""
    return beside(shelf.find("broken-token-as-text"), shelf.find("broken-unconditional"), workers=1, most=100_000)


def test_only_the_last_decision_differs(two):
    """Both make the same steps, and all are decided alike until one is refused in one of them only."""
    first, second = two.apart.first, two.apart.second
    words = [[(step.act, step.worker, step.number, step.again) for step in run] for run in (first, second)]

    assert words[0] == words[1]
    assert [step.accepted for step in first][:-1] == [step.accepted for step in second][:-1]
    assert (first[-1].accepted, second[-1].accepted) == (False, True)


def test_files_that_decide_alike_are_not_told_apart():
    """A file beside itself, in whatever names its operations have, is told apart by nothing; a bound is said."""
    text = (shelf.FOLDER / "broken-finish-twice.json").read_text(encoding="utf-8")
    renamed = text.replace('"finish":', '"complete":').replace('"finish"]', '"complete"]')
    first, second = shelf.find("broken-finish-twice"), parse(renamed, "broken-finish-twice.json")
    long = beside(first, second._replace(name="m" * 60), workers=1, most=20)
    found = beside(first, second, workers=1, most=100_000)
    bounded = beside(first, second, workers=1, most=20)

    assert (found.apart.first, found.apart.pairs) == ((), found.answers[0].states)
    assert f"No run was found that tells them apart: in all {found.apart.pairs} pairs of states" in told.beside(found)
    assert "tells them apart: the search stopped at the bound of 20 pairs of states." in told.beside(bounded)
    assert "first broken-finish-twice.json" in told.beside(found)
    assert told.beside(bounded).count("bound       stopped at the bound of 20 states") == 2
    assert max(map(len, told.beside(long).splitlines())) <= WIDTH
    assert bounded.apart.stopped == "stopped at the bound of 20 pairs of states"


def test_both_verdicts_stand_side_by_side(two):
    """A row an invariant, marked where the verdicts differ; the run; lines that fit; and all of it as JSON."""
    text = told.beside(two)
    written = files.of_two(two)
    whole = json.loads(written["check.json"])

    assert "≠ terminal        unsafe  ● holds                    ✕ 7 steps\n" in text
    assert "  ownership       unsafe  ○ empty                    ○ empty\n" in text
    assert "broken-unconditional.json: a late copy of A's record_response is accepted\n" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert [file["exit_code"] for file in whole["files"]] == [3, 1]
    assert whole["apart"]["timeline"] == written["apart.timeline"]
    assert whole["apart"]["other"] == "a late copy of A's record_response is accepted"
