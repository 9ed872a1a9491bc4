"""Many independent jobs under a fix, all at once as arrays: what came of each.

A job is one resource. A worker that is granted its lease processes, pauses once, and sends its writes; the last one
finishes the job. When a lease is free somebody asks for it, as long as the job is not finished and a worker is idle; a
worker that is refused gives up. Grants happen and writes arrive in the order of their times (on the same microsecond:
the write first). What is on its way when the job is finished still arrives.

Jobs in which nothing happens are settled at once; all others go through the loop of `running`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencinglab.model.fix import Fix
from fencinglab.simulate.chance import NEVER, Chance, asked_after, drawn
from fencinglab.simulate.course import Course, course
from fencinglab.simulate.laws import Ints
from fencinglab.simulate.running import COUNTED, Outcome, Running, Told
from fencinglab.simulate.workload import SECOND, Workload


def simulate(
    workload: Workload, fix: Fix, seed: int, jobs: NDArray[np.uint64], told: Told | None = None,
    first: Chance | None = None,
) -> Outcome:  # fmt: skip
    """The outcome of these jobs, each a function of workload, fix, seed and its number alone.

    `told` is given what happens, to tell one job: (moment, what, details). `first` is what chance brings to the first
    attempts, where it is known already or drawn otherwise.
    """
    chance = first or drawn(workload, seed, jobs, 1)
    planned = course(workload, fix, chance)
    asks = asked_after(workload, seed, jobs, np.int64(2))
    calm = _calm(workload, fix, chance, planned, asks) if told is None else np.zeros(jobs.shape, dtype=bool)
    results = {name: np.zeros(jobs.shape, dtype=np.int64) for name in COUNTED}
    arrival = planned.sends[-1] + chance.message[-1]
    results["finished_at"] = np.where(calm, arrival + workload.step if fix.rules.guard.two_steps else arrival, NEVER)
    results["finishes"] += calm
    results["effects"] += calm
    rest = np.flatnonzero(~calm)
    if rest.size:
        running = Running(workload, fix, seed, jobs[rest], told)
        running.granted(np.arange(rest.size), np.zeros(rest.size, dtype=np.int64), _rows(chance, rest), asks[rest])
        running.run()
        for name, found in running.results.items():
            results[name][rest] = found
    return Outcome(**results, weight=chance.weight)


def _calm(workload: Workload, fix: Fix, chance: Chance, planned: Course, asks: Ints) -> NDArray[np.bool_]:
    """Jobs whose first attempt does all before its lease can have run out, in order and without repetitions."""
    guard = fix.rules.guard
    if guard.name == "above" and workload.writes > 1:
        return np.zeros(asks.shape, dtype=bool)
    safe = np.minimum(planned.then_until, planned.then_until + fix.delay * SECOND + asks)
    calm = planned.sends[-1] < NEVER
    taken = planned.until + fix.delay * SECOND + asks
    calm &= (planned.renewed == NEVER) | ((taken > planned.renewed) & (planned.until > planned.renewed))
    arrived = None
    for send, message, again in zip(planned.sends, chance.message, chance.again, strict=True):
        if arrived is not None:
            calm &= arrived < (send if guard.compares == "version" else send + message)
        arrived = send + message + (workload.step if guard.two_steps else 0)
        calm &= again == NEVER
    assert arrived is not None
    calm &= arrived < safe
    return calm


def _rows(chance: Chance, rows: Ints) -> Chance:
    """What chance brings to some of the jobs."""
    c, message, again = chance, tuple(m[rows] for m in chance.message), tuple(a[rows] for a in chance.again)
    return Chance(c.unit[rows], c.pause[rows], c.paused_at[rows], c.crashed_at[rows], c.skew[rows], message, again)
