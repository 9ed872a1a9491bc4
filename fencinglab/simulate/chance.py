"""What chance brings to an attempt: a pure function of seed, job and attempt, so the same under every fix.

Each number is addressed by its place (SplitMix64, whose n-th number is a function of n). So a job is the same in any
block, alone or among millions, and what a fix does not need need not be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencinglab.simulate import laws
from fencinglab.simulate.laws import Floats, Ints
from fencinglab.simulate.workload import Workload

NEVER = 1 << 60  # microseconds: later than anything that happens
_TAKEOVER, _WORK, _PAUSE, _PLACE, _CRASH, _CRASHED, _SKEW, _TILT, _TAIL = range(9)
_MESSAGE, _REPEAT, _AGAIN, _SLOTS = 16, 32, 48, 64
_ATTEMPTS = 1024  # addresses kept for the attempts of one job
_GOLDEN, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def uniform(seed: int, jobs: NDArray[np.uint64], attempt: Any, slot: int) -> Floats:
    """One number for each job, above 0 and up to 1."""
    z = jobs * np.uint64(_ATTEMPTS * _SLOTS)
    z += np.asarray(attempt, dtype=np.uint64) * np.uint64(_SLOTS) + np.uint64(slot)
    z *= np.uint64(_GOLDEN)
    z += np.uint64(_mixed(seed))
    z ^= z >> np.uint64(30)
    z *= np.uint64(_MIX1)
    z ^= z >> np.uint64(27)
    z *= np.uint64(_MIX2)
    z ^= z >> np.uint64(31)
    z >>= np.uint64(11)
    return (z + np.uint64(1)).astype(np.float64) * 2.0**-53


def _mixed(seed: int) -> int:
    """The seed as a start that has nothing in common with that of the next seed."""
    z = (seed + 1) * _GOLDEN & _MASK
    z = (z ^ z >> 30) * _MIX1 & _MASK
    z = (z ^ z >> 27) * _MIX2 & _MASK
    return z ^ z >> 31


class Chance(NamedTuple):
    """What chance brings to one attempt of each job, in microseconds."""

    unit: Ints  # processing time before each write
    pause: Ints  # how long the worker stands still
    paused_at: Ints  # after how much processing
    crashed_at: Ints  # after how much processing it crashes; NEVER = it does not
    skew: Ints  # by how much its clock runs ahead
    message: tuple[Ints, ...]  # how long each write travels
    again: tuple[Ints, ...]  # how long after it a second copy arrives; NEVER = there is none
    weight: Floats | None = None  # of the job, where long pauses were drawn on purpose


def drawn(
    workload: Workload, seed: int, jobs: NDArray[np.uint64], attempt: Any, tails: Sequence[float] = ()
) -> Chance:  # fmt: skip
    """What chance brings to this attempt (from 1, one number or one for each job) of these jobs.

    With tails, which are probabilities, long pauses are drawn on purpose: half of them from beyond the time that is
    exceeded with one of these probabilities; and each job has a weight.
    """
    size = jobs.shape

    def number(slot: int) -> Floats:
        return uniform(seed, jobs, attempt, slot)

    writes = workload.writes
    v, weight = _tilted(number, tails) if tails else (number(_PAUSE), None)
    work = laws.beyond(workload.work, number(_WORK))
    unit = work // writes if writes > 1 else work
    whole = unit * writes
    never = np.full(size, NEVER, dtype=np.int64)
    crashed_at = never
    if workload.crash:
        crashed_at = np.where(number(_CRASH) <= workload.crash, _part(number(_CRASHED), whole), NEVER)
    skew = np.zeros(size, dtype=np.int64)
    if workload.skew:
        skew = _skew(workload, number(_SKEW))
    again = (never,) * writes
    if workload.repeat:
        again = tuple(_repeated(workload, number, k, never) for k in range(writes))
    return Chance(
        unit, laws.beyond(workload.pause, v), _part(number(_PLACE), whole), crashed_at, skew,
        tuple(laws.beyond(workload.message, number(_MESSAGE + k)) for k in range(writes)), again, weight,
    )  # fmt: skip


def asked_after(workload: Workload, seed: int, jobs: NDArray[np.uint64], attempt: Any) -> Ints:
    """How long after the lease is free somebody asks for it, to make this attempt; whose clock runs ahead asks earlier.

    A clock is that of the worker who asks.
    """
    after = laws.beyond(workload.takeover, uniform(seed, jobs, attempt, _TAKEOVER))
    if workload.skew:
        after = after - _skew(workload, uniform(seed, jobs, attempt, _SKEW))
    return after


def _skew(workload: Workload, v: Floats) -> Ints:
    """By how much a clock runs ahead: no two are further apart than they may be."""
    return _part(v, np.int64(workload.skew)) - workload.skew // 2


def _part(v: Floats, whole: Any) -> Ints:
    """A uniform part of the whole, from 0 to below it."""
    part: Ints = ((1.0 - v) * whole).astype(np.int64)
    return part


def _repeated(workload: Workload, number: Any, k: int, never: Ints) -> Ints:
    happens = np.flatnonzero(number(_REPEAT + k) <= workload.repeat)
    if not happens.size:
        return never
    later = never.copy()
    later[happens] = laws.beyond(workload.message, number(_AGAIN + k)[happens]) + 1  # never with the first
    return later


def _tilted(number: Any, tails: Sequence[float]) -> tuple[Floats, Floats]:
    """Probabilities of being exceeded, of which half lie in one of the tails, and the weight of each.

    The weight is the density of the plain law over that of the mixture from which it was drawn; at most 2.
    """
    v, on_purpose = number(_PAUSE), number(_TILT) <= 0.5
    which = np.minimum((number(_TAIL) * len(tails)).astype(np.int64), len(tails) - 1)
    v = np.where(on_purpose, v * np.array(tails)[which], v)
    mixture = np.mean([np.where(v <= tail, 1.0 / tail, 0.0) for tail in tails], axis=0)
    return v, np.asarray(1.0 / (0.5 + 0.5 * mixture))
