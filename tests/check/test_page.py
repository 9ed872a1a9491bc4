"""The page of a check opens anywhere, says what was found, and nothing that a file contains can act in it."""

from __future__ import annotations

import json

import pytest
from pages import acting

from fencinglab.check import page
from fencinglab.check.check import Check, check
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.search import explore, model_of
from fencinglab.model.fix import FIXES

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&`--><svg onload=alert(2)>{{ 7*7 }}"


@pytest.fixture(scope="module")
def hostile():
    """A check of a broken file whose item and sentence are made to do harm, with everything that it can say."""
    raw = json.loads((shelf.FOLDER / "broken-unconditional.json").read_text(encoding="utf-8"))
    raw["says"], raw["given"]["resource"] = HOSTILE, HOSTILE
    return check(parse(json.dumps(raw), f"{HOSTILE}.json"), workers=1, conditions=True, repaired=True, most=100_000)


def test_nothing_acts_and_nothing_is_fetched(hostile):
    """No script, no handler, no address; hostile text is text."""
    text = page.html(hostile, "assert '<b>' == 1")

    assert acting(text) == []
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text and "\u202e" not in text
    assert "assert &#39;&lt;b&gt;&#39; == 1" in text


def test_it_says_all_that_was_found(hostile):
    """The sentence, each invariant, each run with its lanes, why each condition is there, and the repair."""
    text = page.html(hostile)
    violated = [v.invariant for v in hostile.answer.verdicts if v.status == "violated"]

    assert "Violated: with" in text and "it can be finished twice, after 7 steps." in text
    assert all(f"<td>{name}</td>" in text for name in INVARIANTS)
    assert text.count("<svg") >= len(violated)
    assert 'id="conditions"' in text and 'id="repair"' in text
    assert "attribute_not_exists(terminalVersion)" in text
    assert "A&#39;s DONE-A arrives again" in text
    assert "<code>--hazard crash</code> lifts that" in text
    assert 'id="keep"' not in text


def test_of_a_model_and_of_a_pass():
    """A fix of the model has the same page; where nothing is violated there are no runs and no repair."""
    broken = page.html(Check(explore(model_of(FIXES["fenced"]))))
    held = page.html(Check(explore(model_of(FIXES["latest-id"], writes=1))))

    assert "<h3>Under fenced a stale write can be accepted: the shortest run</h3>" in broken
    assert 'class="verdict holds"' in held
    assert 'id="repair"' not in broken + held


def test_a_page_of_a_search_that_stopped_does_not_say_that_all_was_tried():
    """At a bound the page says that not every order of events was tried, and why."""
    text = page.html(Check(explore(model_of(FIXES["latest-id"]), most=50)))

    assert "Not every order of events within these bounds was tried: the search stopped at the bound of 50" in text
    assert "Every order of events within these bounds was tried" not in text
