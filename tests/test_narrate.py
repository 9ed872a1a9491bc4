"""A replay is told so that a tired engineer sees at once what each fix did; its files hold the same."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given, settings
from timelines import replayed, timelines

from fencinglab import narrate
from fencinglab.history import NAMES
from fencinglab.inert import WIDTH
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import Run, replay

ARTICLE = """\
report-generation: A worker pauses, loses its lease, and writes over the newer result
Look for this: the old worker's write is the harm; the last one carries the current token again, and
               a token tells no repetition.
The first token is 41; a lease lasts 60 s.

  00:00  A acquires            A is granted 41 until 01:00
  00:01  A reads               A reads that nothing is written yet
  00:02  A pauses              A stands still
  01:00  lease expires         A's lease (41) runs out; what it protects does not change
  01:01  B acquires            B is granted 42 until 02:01
  01:02  B writes new-result   B wrote with 42: accepted under each fix
  01:03  A resumes             A goes on where it was
  01:04  A writes old-result
         ✕ unfenced  A wrote with 41 after 42 was accepted: accepted, nothing compared
           fenced    A wrote with 41 after 42 was accepted: rejected by at-or-above
         afterwards:
  01:05  B writes new-result   B wrote again with 42: accepted under each fix

unfenced final value: old-result
fenced final value: new-result
repeated current token: accepted
old token before newer token reaches resource: accepted

unfenced  ✕ an older holder's write was accepted after a newer holder's (line 21); what stands in
            the end is not the newest writer's (line 21)
fenced    ● nothing unsafe
"""


def runs(name: str, *fixes: str) -> tuple[list[Run], list[Run]]:
    """The runs of a timeline and of its companions."""
    timeline = shelf.find(name)
    chosen = [FIXES[fix] for fix in fixes or timeline.fixes or narrate.DEFAULT]
    also = [replay(t, fix) for t in shelf.companions(timeline, name) for fix in chosen]
    return [replay(timeline, fix) for fix in chosen], also


def story(name: str, *fixes: str) -> str:
    return narrate.story(*runs(name, *fixes))


def test_the_article_on_one_screen():
    """The article's timeline is told on one screen, in these very words."""
    assert story("report-generation") == ARTICLE


@pytest.mark.parametrize("fixes", [(), tuple(FIXES)], ids=["the timeline's fixes", "all fixes"])
@pytest.mark.parametrize("name", shelf.names())
def test_no_line_is_wider_than_the_screen(name, fixes):
    """Whatever is told fits in 100 columns and has no blanks at its end."""
    lines = story(name, *fixes).splitlines()

    assert [line for line in lines if len(line) > WIDTH or line != line.rstrip()] == []


def test_where_fixes_differ_each_has_its_line():
    """Fixes that come to the same share a line; a time that is another one under a fix stands in front of its line."""
    told = story("short-pause").splitlines()

    assert "  01:33  B acquires" in told
    assert "           unfenced, renewed-often  B is granted 42 until 02:33" in told
    assert "           longer-lease             B is refused: A holds the lease until 05:00" in told
    assert "The first token is 41; a lease lasts 60 s, 300 s under longer-lease." in told
    assert re.search(r"^  05:0\d    longer-lease", story("report-generation", "unfenced", "longer-lease"), re.MULTILINE)


def test_many_fixes_stay_readable():
    """Of many fixes the largest group is called all others."""
    told = story("report-generation", *FIXES)

    assert (
        "           all others    A is granted 41 until 01:00\n           longer-lease  A is granted 41 until 05:00\n"
        in told
    )
    assert "A wrote with 41 after 42 was accepted: rejected [all others]" in told


@pytest.mark.parametrize("name", ["paused-before-acquiring", "killed-for-good"])
def test_a_timeline_that_shows_nothing_says_so(name):
    """Where no stale write is attempted, a line says so, and why."""
    told = " ".join(story(name).split())

    assert "No stale write is attempted here: A " in told
    assert "✕" not in told


def test_a_fix_under_which_nothing_was_tried_says_why():
    """Under a fix that lets nobody take over, the verdict says that, and does not call it protection."""
    told = story("short-pause").splitlines()

    assert "longer-lease   ● nothing unsafe: nobody took over" in told
    assert not [line for line in told if line.startswith("No stale write")]


def test_the_listing_names_everything():
    """Without a name, every timeline and every fix is listed, and the four proposed fixes with their evidence."""
    told = narrate.listing()
    lines = told.splitlines()

    assert all(f"  {name} " in told for name in (*shelf.names(), *FIXES))
    assert [line for line in lines if len(line) > WIDTH or line != line.rstrip()] == []
    assert [line.split()[0] for line in lines[-20:] if re.match(r"  \w.* ● ", line)] == [
        "longer-lease", "renewed-often", "client-check", "fenced"
    ]  # fmt: skip


# --- files


def written(name: str, *fixes: str) -> dict[str, str]:
    return {
        path: text if isinstance(text, str) else "".join(text)
        for path, text in narrate.contents(*runs(name, *fixes)).items()
    }


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_trace_is_a_row_a_step_and_fix():
    """trace.csv has every event under every fix with its sentence, decision, token and harm."""
    trace = rows(written("report-generation")["trace.csv"])

    assert len(trace) == 18
    assert trace[7] == {
        "timeline": "report-generation", "fix": "unfenced", "line": "21", "second": "64", "time": "01:04",
        "event": "A writes old-result", "decision": "accepted", "token": "41", "harm": "order, ownership, final",
        "says": "A wrote with 41 after 42 was accepted: accepted, nothing compared",
    }  # fmt: skip


def test_the_comparison_is_a_row_a_fix_and_resource():
    """comparison.csv has for each fix what stands in the end, the harms by class, and what the fix improves and leaves."""
    found = rows(written("late-but-not-stale")["comparison.csv"])

    assert [(row["fix"], row["final_value"], row["unsafe"], row["window"], row["cost"]) for row in found] == [
        ("fenced", "result", "", "late", ""), ("latest", "result", "", "late", ""), ("holder", "", "final", "", "wasted")
    ]  # fmt: skip
    assert found[0]["leaves"] == FIXES["fenced"].leaves


def test_the_json_holds_both_and_the_facts():
    """replay.json has the facts, the trace and the comparison of the CSV files, and the timeline as text."""
    files = written("report-generation")
    whole = json.loads(files["replay.json"])

    assert whole["schema"] == "fencinglab.replay/1"
    assert whole["facts"] == ARTICLE.split("\n\n")[2].splitlines()
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in whole["trace"]] == rows(
        files["trace.csv"]
    )
    assert [row["fix"] for row in whole["comparison"]] == ["unfenced", "fenced"]
    assert whole["timeline"].startswith("title: A worker pauses")


def test_the_history_of_each_fix_is_json_lines():
    """history/FIX.jsonl has the history's columns, a row an attempted mutation, times in UTC, exact whole numbers."""
    history = [json.loads(line) for line in written("report-generation")["history/fenced.jsonl"].splitlines()]

    assert [*history[0]] == [*NAMES]
    assert [(row["kind"], row["token"], row["decision"]) for row in history] == [
        ("grant", 41, "accepted"), ("grant", 42, "accepted"), ("write", 42, "accepted"),
        ("write", 41, "rejected"), ("write", 42, "accepted"),
    ]  # fmt: skip
    assert (history[0]["at"], history[0]["before_holder"]) == ("2026-03-02T09:00:00Z", "")
    assert history[1]["before_image"] == "8427403880667741382"


@settings(max_examples=40, deadline=None)
@given(timelines(size=12))
def test_any_timeline_can_be_told(timeline):
    """Whatever a timeline is about, it is told twice in the same words and files, and no line of a word of its own is lost."""
    of = [replay(timeline, FIXES[name]) for name in ("unfenced", "latest-id-terminal", "renew-or-abort")]

    told = narrate.story(of)

    assert told == narrate.story(of)
    assert all(str(event) in told for event in timeline.events)
    assert [*narrate.contents(of)] == [
        "trace.csv", "comparison.csv", "replay.json", *(f"history/{run.fix.name}.jsonl" for run in of)
    ]  # fmt: skip


def test_turns_are_the_rows_of_the_article():
    """The article's events are five turns, each with what came of its last event under each fix."""
    rows = narrate.turns([replay(shelf.find("report-generation"), FIXES[fix]) for fix in ("unfenced", "fenced")])

    assert [[*row] for row in rows] == [["step", "event", "unfenced", "fenced"]] * 5
    assert [(row["event"], row["fenced"]) for row in rows] == [
        ("A acquires; A reads", "A reads that nothing is written yet"),
        ("A pauses; lease expires", "A's lease (41) runs out; what it protects does not change"),
        ("B acquires; B writes new-result", "B wrote with 42: accepted by at-or-above"),
        ("A resumes; A writes old-result", "A wrote with 41 after 42 was accepted: rejected by at-or-above"),
        ("B writes new-result", "B wrote again with 42: accepted by at-or-above"),
    ]


def test_what_is_tried_afterwards_is_a_turn_of_its_own():
    """Also where the same worker goes on, what is tried after the end stands apart."""
    rows = narrate.turns([replayed("A acquires; A writes x; afterwards:; A writes x", "fenced")])

    assert [row["event"] for row in rows] == ["A acquires; A writes x", "A writes x"]


@settings(deadline=None, max_examples=60)
@given(timelines())
def test_turns_leave_no_event_out(timeline):
    """Every event stands in exactly one turn, in order, and the turns are counted from 1."""
    run = replay(timeline, FIXES["fenced"])
    rows = narrate.turns([run])

    assert "; ".join(row["event"] for row in rows) == "; ".join(str(step.event) for step in run.told)
    assert [row["step"] for row in rows] == [*range(1, len(rows) + 1)]
