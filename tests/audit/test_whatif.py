"""What-if: each guard over a log's own order, against replays of the same events under that guard."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pandas
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from timelines import takeovers, timelines

from fencinglab import history
from fencinglab.audit import audit, whatif
from fencinglab.model import shelf
from fencinglab.model.event import MUTATIONS
from fencinglab.model.fix import FIXES, Fix
from fencinglab.model.guard import GUARDS
from fencinglab.model.replay import replay
from fencinglab.model.timeline import parse

BASE = Fix("base", "", "")  # no measure at all but a guard
OPEN = {
    "identity",
    "two-step-token",
    "two-step-holder",
}  # a log does not say which state a writer knew, or when it was checked


def judged(con: duckdb.DuckDBPyConnection, rows: list[dict]) -> dict[str, list[int]]:
    """{guard: what it would have decided on each mutation, in order}."""
    frame = pandas.DataFrame(rows, columns=list(history.NAMES), dtype=object)  # a float is no token
    audit.judge(con, history.read(con, frame))
    whatif.judge_guards(con)
    names = whatif.guards(con)
    found = con.execute("select * from whatif order by row_id").fetchall()
    return {name: [values[place] for values in found] for place, name in enumerate(names, 1)}  # row_id stands first


def mutations(run) -> list[dict]:
    return [row for row in run.rows if row["kind"] in MUTATIONS]


def disagreements(timeline) -> list[tuple]:
    """(guard, source, what-if, replay) wherever a guard run over the log decides other than a replay under it."""
    timeline = replace(timeline, in_place="")  # each guard stands for itself
    with duckdb.connect() as con:
        found = judged(con, replay(timeline, BASE).rows)
    wrong = []
    for name in GUARDS:
        run = replay(timeline, BASE._replace(guard=name))
        for told, row in zip(found[name], mutations(run), strict=True):
            if told >= 0 and told != (row["decision"] == "accepted"):
                wrong.append((name, row["source"], told, row["decision"]))
            if told < 0 and name not in OPEN:
                wrong.append((name, row["source"], told, "could be told"))
    return wrong


@pytest.mark.parametrize("name", [*shelf.names(), *shelf.incidents()])
def test_what_if_agrees_with_replay(name):
    """On every timeline and incident each guard decides what a replay of the same events under it decides, where it can be told."""
    assert disagreements(shelf.find(name)) == []


@settings(max_examples=8, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(st.one_of(takeovers(), timelines()))
def test_what_if_agrees_with_replay_on_any_timeline(timeline):
    """The same on timelines drawn at random, in most of which workers take over from each other."""
    assert disagreements(timeline) == []


def test_every_guard_has_its_column():
    """The text has a column for every guard of the model, and no other."""
    with duckdb.connect() as con:
        found = judged(con, replay(shelf.find("report-generation"), BASE).rows)

    assert set(found) == set(GUARDS)


def counted(rows: list[dict]) -> dict[str, whatif.WhatIf]:
    with duckdb.connect() as con:
        judged(con, rows)
        return {found.guard: found for found in whatif.counted(con)}


def test_counts_of_the_article():
    """On the article's run the fence refuses the one stale write that was accepted, and no other."""
    found = counted(replay(shelf.find("report-generation"), FIXES["unfenced"]).rows)

    assert found["at-or-above"] == whatif.WhatIf("at-or-above", 3, 1, 1, 0, 0, 0, 0, 0, 0)
    assert found["unguarded"].refuses_stale == 0


def test_a_guard_that_shuts_good_writes_out_is_seen():
    """`above` refuses a holder's second write, which the log accepted: a good write refused."""
    found = counted(replay(shelf.find("second-write"), FIXES["unfenced"]).rows)

    assert found["above"].refuses_good > 0
    assert found["latest"].refuses_good == 0


def test_what_a_fence_refused_would_pass_without_it():
    """Over the log of a fenced receiver, no guard at all would have accepted what was refused; the row says so."""
    with duckdb.connect() as con:
        judged(con, replay(shelf.find("report-generation"), FIXES["fenced"]).rows)
        [row] = [row for row in whatif.rows(con, "unguarded", 10) if row["decision"] == "rejected"]

    assert (row["would"], row["writer"], int(row["token"])) == ("accept", "A", 41)


def test_without_the_token_nothing_is_told():
    """A mutation whose token is not known is counted as open; what may follow from its token is open too."""
    rows = [dict(row) for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows]
    writes = [row for row in rows if row["kind"] in MUTATIONS]
    writes[0] |= {"token": None, "fenced": None}
    found = counted(rows)

    assert found["at-or-above"].open >= 1
    assert found["at-or-above"].refuses_stale + found["at-or-above"].open >= 1


def test_without_an_order_no_mark_is_told():
    """Rows without an order leave the marks open, and the newest token where the row itself says it."""
    rows = [
        row | {"order_key": None, "order_scope": None}
        for row in replay(shelf.find("report-generation"), FIXES["unfenced"]).rows
    ]
    found = counted(rows)

    assert found["at-or-above"].decided == 0
    assert found["latest"].refuses_stale == 1


def test_what_carries_no_token_passes_every_guard():
    """A version without fencing presents nothing: every guard lets its writes pass, and they are counted."""
    found = counted(replay(shelf.find("mixed-versions"), FIXES["latest-id"]).rows)

    assert all(one.without_token > 0 for one in found.values())
    assert found["latest"].refuses_stale == 0


REISSUED = """title: A token that was issued twice
workers: A
resources: job
first token: 41
lease length: 60 s

A acquires
A sends old
lease expires
authority is restored to 40
A acquires
A's old arrives
"""


def test_a_token_that_was_issued_twice_tells_no_identity():
    """Where a token was issued twice, a write that carries it may know the state of either grant: it cannot be told."""
    timeline = parse(REISSUED)
    with duckdb.connect() as con:
        found = judged(con, replay(timeline, BASE).rows)

    assert found["identity"] == [-1]
    assert disagreements(timeline) == []
