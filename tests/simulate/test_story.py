"""Simulated jobs as timelines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stories import decisions, timeline_of
from workloads import ROUGH, jobs

from fencinglab.model.fix import FIXES
from fencinglab.model.harm import harms
from fencinglab.model.replay import replay
from fencinglab.model.timeline import parse
from fencinglab.simulate.jobs import simulate
from fencinglab.simulate.workload import DEFAULT


@pytest.mark.parametrize("workload", ROUGH.values(), ids=ROUGH)
def test_a_job_replays_as_it_was_simulated(workload):
    """Under every fix a job's timeline is read back from its text, and its replay does the harms that were counted."""
    size, seed = 4, 21
    for fix in FIXES.values():
        outcome = simulate(workload, fix, seed, jobs(size))
        for job in range(size):
            told = timeline_of(workload, fix, seed, job)
            run = replay(told, fix)
            found = {harm.name for harm in harms(run)}
            finishes = sum(row["kind"] == "finish" and row["decision"] == "accepted" for row in run.rows)
            assert parse(str(told), f"{told.name}.timeline") == told
            assert ("order" in found, "ownership" in found, finishes) == (
                outcome.order[job] > 0, outcome.ownership[job] > 0, outcome.finishes[job],
            ), (fix.name, job)  # fmt: skip
            assert finishes <= 1 or "terminal" in found  # which a write after the finish is too


def test_a_calm_job_is_told_too():
    """A job in which nothing happens is a timeline of one worker that writes and finishes."""
    told = timeline_of(replace(DEFAULT, crash=0, repeat=0), FIXES["fenced"], 1, 0)

    assert told.workers == ("A",)
    assert decisions(told, FIXES["fenced"], 2) == [(1, 0, True, 1), (1, 1, True, 1)]
