"""Times fitted from a log, on simulated jobs whose times are known."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pandas
import pytest
from stories import timeline_of
from workloads import constant, exponential

from fencinglab import history
from fencinglab.audit import audit, fit
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay
from fencinglab.model.timeline import Timeline, parse
from fencinglab.simulate.laws import Law
from fencinglab.simulate.workload import DEFAULT, SECOND

HEAD = "title: x\nworkers: A, B\nresources: report\nfirst token: 1\nlease length: 30 s\n\n"
ONE = """\
A acquires
10 s pass
A pauses
{pause} s pass
B acquires
4 s pass
B writes new
A resumes
A writes old
"""


def fitted(texts: list[str], **other: str | None) -> fit.Fit:
    """The fit of the histories of these events, each on a resource of its own, with other values in the writes' rows."""
    return shown([parse(HEAD + text, "x.timeline") for text in texts], **other)


def shown(timelines: list[Timeline], **other: str | None) -> fit.Fit:
    rows = []
    for number, timeline in enumerate(timelines):
        own = {"resource": f"job-{number}", "lease": f"job-{number}"}
        for row in replay(timeline, FIXES["unfenced"]).rows:
            rows.append(row | own | (other if row["kind"] in ("write", "finish") or "outcome" in other else {}))
    with duckdb.connect() as con:
        audit.load(con, history.read(con, pandas.DataFrame(rows, columns=list(history.NAMES))))
        return fit.fit(con)


def test_the_times_of_one_job():
    """A lease of 30 s that is taken over 3 s after its end; its first holder comes back 6 s after the newer grant."""
    found = fitted([ONE.format(pause=20)])

    assert {name: [value / 1e6 for value in one.values] for name, one in found.times.items()} == {
        "lease": [30, 30], "renewal": [], "work": [5], "pause": [pytest.approx(0), pytest.approx(16, abs=16)], "message": [0, 0],
        "takeover": [2], "late": [7],
    }  # fmt: skip
    assert (found.grants, found.vanished, found.workers) == (2, 0, 2)


def test_times_that_were_simulated_come_back():
    """From histories of simulated jobs the fit has near the work, takeovers and crashes with which they were simulated."""
    made = replace(
        DEFAULT, pause=Law("lognormal", SECOND, 2.0), work=exponential(12), message=constant(0), gap=0, step=0,
        repeat=0, takeover=exponential(3), crash=0.2,
    )  # fmt: skip
    found = shown([timeline_of(made, FIXES["unfenced"], 3, job) for job in range(100)])
    work, takeover = (sum(times.values) / times.seen / SECOND for times in map(found.times.get, ("work", "takeover")))

    assert work == pytest.approx(12, rel=0.25)
    assert takeover == pytest.approx(3, rel=0.25)
    assert found.vanished / found.known == pytest.approx(0.2, rel=0.25)


def test_enough_is_said_with_the_number():
    """A time of fewer observations than needed says so, and one of enough is used."""
    few, many = fitted([ONE.format(pause=20)] * 3), fitted([ONE.format(pause=20 + n) for n in range(25)])

    assert (few.times["late"].seen, few.times["late"].enough) == (3, False)
    assert (many.times["late"].seen, many.times["late"].enough) == (25, True)
    assert many.times["takeover"].values == tuple(n * 1_000_000 for n in range(2, 27))


def test_who_never_comes_back_is_counted():
    """A grant of which nothing is seen after it was superseded has vanished."""
    found = fitted(["A acquires\nA crashes\nlease expires\nB acquires\nB writes x\n"])

    assert (found.grants, found.known, found.vanished) == (2, 2, 1)


def test_work_and_pause_share_the_time_of_a_grant():
    """A pause is no part of the work beside it, or a simulation that takes both from the log would have it twice."""
    calm = "A acquires\n8 s pass\nA writes x\n"
    found = fitted([calm, calm, "A acquires\n8 s pass\nA pauses\n600 s pass\nA resumes\nA writes x\n"])

    assert [value / 1e6 for value in found.times["pause"].values] == [0, 0, 602]
    assert [value / 1e6 for value in found.times["work"].values] == [9, 9, 9]


@pytest.mark.parametrize("end", ["A writes x\nA releases", "A finishes as DONE"])
def test_a_grant_that_ended_has_not_vanished(end):
    """Who gave the lease back or finished before the next grant did not crash, though no more is seen of it."""
    text = f"A acquires\n{end}\n60 s pass\nB acquires\nB writes x\n"

    for found in (fitted([text]), fitted([text], kind="write")):  # a status may be final without a finish of its own
        assert (found.grants, found.known, found.vanished) == (2, 2, 0)


@pytest.mark.parametrize(
    "unknown", [{"token": None, "writer": None}, {"token": None, "writer": "A"}, {"outcome": None}]
)
def test_who_vanished_may_be_open(unknown):
    """Where a write says neither token nor writer, or no refusals are shown, the first holder may have come back unseen."""
    found = fitted(["A acquires\nA crashes\nlease expires\nB acquires\nB writes x\n"], **unknown)

    assert (found.grants, found.known, found.vanished) == (2, 1, 0)


def test_who_asks_in_vain_leaves_nothing_open():
    """A grant that was refused is no write of an unknown token, nor is what another does: the holder before vanished."""
    text = "A acquires\nA crashes\nlease expires\nB acquires\nA restarts\nA acquires\nB writes x\n"

    for found in (fitted([text]), fitted([text], token=None, writer="B")):
        assert (found.grants, found.known, found.vanished) == (2, 2, 1)


def test_a_grant_to_the_same_holder_is_no_takeover():
    """How long it took until somebody else asked is not shown by a holder that is granted its own lease again."""
    found = fitted(["A acquires\nlease expires\n5 s pass\nA acquires\nA writes x\n"])

    assert (found.grants, found.times["takeover"].seen) == (2, 0)


def test_an_empty_history_has_no_times():
    """Without rows there is nothing to take from the log."""
    with duckdb.connect() as con:
        audit.load(con, history.read(con, pandas.DataFrame([], columns=list(history.NAMES))))
        found = fit.fit(con)

    assert not any(one.enough for one in found.times.values())
    assert (found.grants, found.vanished, found.workers) == (0, 0, 0)


def test_many_values_are_kept_as_quantiles():
    """Of very many values quantiles are kept, the least and the greatest among them."""
    with duckdb.connect() as con:
        found = fit._observed(con, "select * from range(10000)")

    assert (found.seen, len(found.values), found.values[0], found.values[-1]) == (10_000, fit.KEPT, 0, 9_999)
