"""The course of one attempt as far as nobody disturbs it: when it sends, until when its lease runs, when it ends.

Times are microseconds from the grant on. A worker processes, stands still once, and goes on. It renews every so often
while it runs; a renewal that fell due while it stood still is made `gap` after it woke up, so that a write within that
time goes first. Where two things fall on the same microsecond, a crash comes before a renewal, a renewal before a look
at the lease, and that before a write; a pause comes before all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencinglab.model.fix import Fix
from fencinglab.simulate.chance import NEVER, Chance
from fencinglab.simulate.laws import Ints
from fencinglab.simulate.workload import Workload


class Course(NamedTuple):
    """One attempt of each job."""

    sends: tuple[Ints, ...]  # when each write is sent; NEVER = it is not
    looks: tuple[Ints, ...]  # when its sender looked at the lease before
    end: Ints  # when it ends by itself: the last write is sent, or it crashes or gives up
    crashes: NDArray[np.bool_]  # whether it ends so
    until: Ints  # when the lease runs out, by the true clock, unless `renewed` is made
    renewed: Ints  # the first renewal after the pause; NEVER = none is made, or it is refused
    then_until: Ints  # when the lease runs out after that
    refused: Ints  # when that renewal is refused, because the lease has run out; NEVER = it is not


def real(chance: Chance, processed: Ints) -> Ints:
    """When so much has been processed."""
    moment: Ints = processed + np.where(processed >= chance.paused_at, chance.pause, 0)
    return moment


def processed(paused_at: Ints, pause: Ints, moment: Ints) -> Ints:
    """How much has been processed at a moment."""
    done: Ints = np.minimum(moment, paused_at) + np.maximum(moment - paused_at - pause, 0)
    return done


def course(workload: Workload, fix: Fix, chance: Chance) -> Course:
    """The course of the attempt under the fix."""
    done = chance.unit * workload.writes
    sends = [real(chance, chance.unit * k) for k in range(1, workload.writes + 1)]
    cut = np.full(done.shape, NEVER, dtype=np.int64)  # from then on nothing is sent
    if workload.crash:
        cut = np.where(chance.crashed_at < NEVER, real(chance, chance.crashed_at), NEVER)
    crash = cut
    last = np.minimum(sends[-1], crash - 1)
    until, renewed, then_until, refused = held(workload, fix, chance.paused_at, chance.pause, last)
    if fix.renews and fix.aborts:
        cut = np.minimum(cut, refused)
    looks = [*sends]
    if fix.client_check:
        gap = np.minimum(workload.gap, chance.unit)
        looks = [real(chance, chance.unit * k - gap) for k in range(1, workload.writes + 1)]
        lost = np.where(renewed < NEVER, then_until, until)
        for look in reversed(looks):
            cut = np.minimum(cut, np.where(look >= lost, look, NEVER))
    end = np.minimum(sends[-1], cut)
    sends = [np.where(send < cut, send, NEVER) for send in sends]
    skew = chance.skew
    return Course(
        (*sends,), (*looks,), end, (end == crash) & (crash == cut), until + skew, renewed, then_until + skew, refused
    )


def held(workload: Workload, fix: Fix, paused_at: Ints, pause: Ints, last: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """`until`, `renewed`, `then_until` and `refused` as in Course, by the worker's own clock.

    `last` is the last moment at which it may renew.
    """
    length, every = workload.length(fix), workload.renewal
    never = np.full(paused_at.shape, NEVER, dtype=np.int64)
    if not fix.renews:
        until = np.full(paused_at.shape, length, dtype=np.int64)
        return until, never, until, never
    before = np.minimum(np.maximum(paused_at - 1, 0), np.maximum(last, 0)) // every * every
    due, wakes = before + every, paused_at + pause
    first = np.where(due >= wakes, due, wakes + workload.gap)
    made = first <= last  # never before the pause: then the next one would be due after the last moment
    until = before + length
    kept = made & (first < until)
    then_until = np.where(kept, first + np.maximum(last - first, 0) // every * every + length, until)
    return until, np.where(kept, first, NEVER), then_until, np.where(made & ~kept, first, NEVER)
