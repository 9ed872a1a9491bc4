"""Findings as timelines: what a log's accepted stale write becomes, and that its replay accepts the same."""

from __future__ import annotations

import duckdb
import pandas
import pytest
from hypothesis import Phase, given, settings
from timelines import takeovers

from fencinglab import history
from fencinglab.audit import audit, evidence, timelines
from fencinglab.model import shelf, timeline
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay

STALE = ("report-generation", "delayed-message", "authority-restored", "stale-terminal", "C07")


def told(rows: list[dict]) -> tuple[list[dict], list[timelines.Told]]:
    """The resources that the audit of these rows names, worst first, and what was told of them."""
    with duckdb.connect() as con:
        audit.judge(con, history.read(con, pandas.DataFrame(rows, columns=list(history.NAMES), dtype=object)))
        affected = evidence.resources(con, audit.assess(con, audit.Declared()))
        return affected, timelines.worst(con, affected)


def retold(one: timelines.Told) -> list[dict]:
    """The history that a replay of the written file leaves."""
    return replay(timeline.parse("\n".join(one.lines({})) + "\n"), FIXES["unfenced"]).rows


def same(rows: list[dict], found: list[timelines.Told]) -> None:
    """What is told ends with the finding's own write: of its kind, from its writer, accepted below a granted token."""
    for one in found:
        *before, wrote = retold(one)
        row = rows[one.row_ids[-1]]
        kept = row["writer"] if not wrote["writer"].startswith("worker-") else wrote["writer"]
        assert (wrote["kind"], wrote["writer"], wrote["decision"]) == (row["kind"], kept, "accepted")
        assert wrote["token"] < max(other["after_token"] or 0 for other in before)


def test_a_replayed_stale_write_is_told_and_replays_to_itself(monkeypatch):
    """Whatever stale write a shipped timeline leads to without a fix is told, and its own replay accepts it again."""
    monkeypatch.setattr(timelines, "WORST", 1000)
    rows = [
        row | {"resource": f"{name}/{row['resource']}", "lease": f"{name}/{row['lease']}"}
        for name in (*shelf.names(), *shelf.incidents())
        for row in replay(shelf.find(name), FIXES["unfenced"]).rows
    ]
    affected, found = told(rows)

    assert [one.resource for one in found] == [row["resource"] for row in affected if row["stale"]]
    assert len(found) > 25
    same(rows, found)


@settings(max_examples=15, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(takeovers())
def test_any_told_stale_write_replays_to_itself(made):
    """The same of timelines drawn at random: not all can be told, and what is told is true."""
    rows = replay(made, FIXES["unfenced"]).rows
    same(rows, told(rows)[1])


def test_a_writer_that_no_grant_names_is_not_told():
    """A stale write by a name that was granted nothing is found, and is no timeline: nobody knows which holder it was."""
    rows = replay(shelf.find("report-generation"), FIXES["unfenced"]).rows
    affected, found = told([row | ({"writer": "host-1"} if row["kind"] != "grant" else {}) for row in rows])

    assert affected[0]["stale"] == 1
    assert found == []


@pytest.mark.parametrize("name", STALE)
def test_the_audit_finds_it_again(name):
    """The timelines by which the rest is judged have a stale write, and an audit of what is told finds the same one."""
    [one] = told(replay(shelf.find(name), FIXES["unfenced"]).rows)[1]
    again = told(retold(one))[1]

    assert [other.row_ids[-1] for other in again] == [len(retold(one)) - 1]


def test_a_fix_is_tried_on_it():
    """The article's stale write, told from its history, is refused by the fence, and without it accepted."""
    [one] = told(replay(shelf.find("report-generation"), FIXES["unfenced"]).rows)[1]
    last = {name: replay(one.timeline, FIXES[name]).rows[-1] for name in ("fenced", "unfenced")}

    assert (last["fenced"]["decision"], last["unfenced"]["decision"]) == ("rejected", "accepted")
    assert (last["fenced"]["writer"], int(last["fenced"]["token"])) == ("A", 41)


def test_a_token_that_skipped_is_said():
    """Where the log's tokens have gaps, those of the timeline have none, and it says which they were."""
    rows = [dict(row) for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows]
    for row in rows:
        for column in ("token", "before_token", "after_token", "current_token"):
            row[column] = 70 if row[column] == 42 else row[column]
    [one] = told(rows)[1]

    assert one.timeline.assumed.endswith("tokens are counted up from 41, in the log they are 41, 70")
    assert [int(row["token"]) for row in retold(one) if row["kind"] == "write"] == [42, 41]


def test_grants_that_the_log_does_not_show_are_assumed():
    """A log of writes alone gives a timeline too; its grants have no source."""
    rows = [row for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows if row["kind"] == "write"]
    for row in rows:
        row |= dict.fromkeys(n for n in history.NAMES if n.startswith(("before_", "after_"))) | {"current_token": None}
    [one] = told(rows)[1]

    acquired = [mark for event, mark in zip(one.timeline.events, one.row_ids, strict=True) if event.act == "acquire"]
    assert acquired == [None, None]


HOSTILE = ["A\nB acquires", "# x", "<script>", "lease", "\u202ename", "x" * 5000, "", "ä"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_words_of_the_language(name):
    """A name that is no word of the language becomes a number; line ends, markup and comments in it do nothing."""
    rows = [dict(row) for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows]
    for row in rows:
        row |= {c: name for c in ("writer", "before_holder", "after_holder") if row[c] == "A"}
        row |= {"resource": name, "lease": name, "source": f"{name}:{row['source'].rpartition(':')[2]}"}
    found = told(rows)[1]

    assert len(found) == (name != "")
    for one in found:
        lines = one.lines({n: row["source"] for n, row in enumerate(rows)})
        assert timeline.parse("\n".join(lines)) == timeline.parse(str(one.timeline))
        assert max(map(len, lines)) < 250
        assert not [line for line in lines if "\u202e" in line or "\n" in line]


def test_no_more_than_the_bound():
    """Of many resources only the worst few are told, and of many rows only the last."""
    rows = []
    for number in range(8):
        rows += [row | {"resource": f"job-{number}", "lease": f"job-{number}"}
                 for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows]  # fmt: skip
    busy = shelf.find("report-generation")
    writes = [event for event in busy.events if event.act == "write"]
    events = [*busy.events[:1], *[writes[0].but(worker="A", value=f"v{n}") for n in range(200)], *busy.events[1:]]
    long = replay(timeline.parse(str(busy).split("\n\n")[0] + "\n\n" + "\n".join(map(str, events))), FIXES["unfenced"])
    [one] = told(long.rows)[1]

    assert len(told(rows)[1]) == timelines.WORST
    assert sum(mark is not None for mark in one.row_ids) <= timelines.ROWS
