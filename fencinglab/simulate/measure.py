"""What a fix costs: shares and means over many jobs, each with its interval and its number of jobs.

Jobs are simulated in blocks, so memory does not grow with their number. The same numbers of chance meet every fix, so
differences between fixes are taken job by job. Intervals are those of Wilson at 95 % for shares and normal ones for
means. What hardly ever happens is estimated a second time with long pauses drawn on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencinglab.errors import UsageError
from fencinglab.model.fix import Fix
from fencinglab.simulate import laws
from fencinglab.simulate.chance import NEVER, drawn
from fencinglab.simulate.jobs import simulate
from fencinglab.simulate.laws import Floats
from fencinglab.simulate.running import Outcome
from fencinglab.simulate.workload import SECOND, Workload

Z = 1.959963984540054  # of an interval at 95 %
BLOCK = 1 << 14  # jobs at a time: larger ones take more memory and no less time
MOST = 1_000_000_000  # jobs
RARE = 10  # seen less often than so, a share is estimated a second time, and the interval of a mean says nothing
_BINS = 64  # of a doubling: a percentile is exact to about one percent
_OCTAVES = 51

SHARES: dict[str, tuple[str, Callable[[Outcome], NDArray[np.bool_]]]] = {
    "stale": ("a stale write arrived", lambda o: o.stale > 0),
    "ownership": ("a stale write was accepted", lambda o: o.ownership > 0),
    "order": ("an older write was accepted after a newer one", lambda o: o.order > 0),
    "terminal": ("the job was finished more than once", lambda o: o.finishes > 1),
    "final": ("what stands in the end is not the newest writer's", lambda o: o.final > 0),
    "late": ("a late write was accepted", lambda o: o.late > 0),
    "effects": ("an effect outside was caused more than once", lambda o: o.effects > 1),
    "rejected_stale": ("a stale write was refused", lambda o: o.rejected_stale > 0),
    "rejected_late": ("finished work was refused because it was late", lambda o: o.rejected_late > 0),
    "rejected_good": ("a write of the holder was refused", lambda o: o.rejected_good > 0),
    "reassigned": ("the lease was reassigned", lambda o: o.reassigned > 0),
    "needless": ("it was reassigned while its holder still went on", lambda o: o.needless > 0),
    "unfinished": ("the job was not finished", lambda o: o.finished_at >= NEVER),
}  # fmt: skip
INVARIANTS = ("order", "ownership", "terminal", "final")  # of the shares: what must hold always
WATCHED = ("stale", *INVARIANTS)  # what is estimated a second time where it is rare
MEANS: dict[str, tuple[str, Callable[[Outcome], Floats]]] = {  # seconds or times a job
    "dead": ("seconds in which a holder did not work before its lease was reassigned", lambda o: o.dead / 1e6),
    "wasted": ("seconds of processing that came to nothing", lambda o: o.wasted / 1e6),
    "lost": ("dead and wasted seconds together", lambda o: (o.dead + o.wasted) / 1e6),
    "reassignments": ("reassignments", lambda o: o.reassigned.astype(np.float64)),
    "needless_reassignments": ("needless reassignments", lambda o: o.needless.astype(np.float64)),
}  # fmt: skip


class Share(NamedTuple):
    """In how many of the jobs it happened, and between which shares the true one lies."""

    seen: int
    jobs: int
    low: float
    high: float
    value: float  # the share that was seen


class Mean(NamedTuple):
    """A mean over jobs with its interval, which is not to be believed where fewer than RARE jobs make it."""

    value: float
    low: float
    high: float
    jobs: int
    seen: int  # jobs in which it was not 0


class Rare(NamedTuple):
    """A share estimated with long pauses drawn on purpose, with what tells whether to believe it."""

    value: float
    low: float
    high: float
    jobs: int
    seen: int  # jobs in which it happened
    effective: float  # how many jobs of equal weight they are worth
    weights: float  # the mean weight of all jobs, which is 1 but for chance
    fits: bool | None  # whether weights and plain sampling agree with it; None = too few to tell


class Cost(NamedTuple):
    """A fix over all jobs."""

    fix: Fix
    shares: dict[str, Share]
    means: dict[str, Mean]
    against: dict[str, Mean]  # the same means minus those of the first fix, job by job
    rare: dict[str, Rare]
    median: float | None  # seconds until a job is finished; None = none is
    slow: float | None  # 95 % are finished by then; None = fewer ever are


def wilson(count: int, jobs: int) -> tuple[float, float]:
    """Wilson's interval at 95 % of a share."""
    share, z2 = count / jobs, Z * Z
    middle = (share + z2 / 2 / jobs) / (1 + z2 / jobs)
    half = Z * math.sqrt(share * (1 - share) / jobs + z2 / 4 / jobs / jobs) / (1 + z2 / jobs)
    return (0.0 if count == 0 else max(0.0, middle - half)), (1.0 if count == jobs else min(1.0, middle + half))


def share(seen: int, jobs: int) -> Share:
    """The share of the jobs in which it was seen, with its interval."""
    return Share(seen, jobs, *wilson(seen, jobs), seen / jobs)


def enough(jobs: int, precision: float | None = None) -> int:
    """The same number of jobs; a UsageError where it cannot be, or is too few for that precision.

    A precision is the smallest share that must be told from none.
    """
    if not 1 <= jobs <= MOST:
        raise UsageError(f"--jobs {jobs}: must be 1 to {MOST:,}")
    if precision is None:
        return jobs
    if not 0 < precision < 1:
        raise UsageError(f"--precision {precision:g}: is a share, above 0 and below 1")
    needed = math.ceil(Z * Z * (1 / precision - 1))
    if jobs < needed:
        raise UsageError(
            f"--jobs {jobs}: too few for --precision {precision:g}: none seen in {jobs:,} still allows a share of "
            f"{wilson(0, jobs)[1]:.2g}; it takes {needed:,}"
        )
    return jobs


def measured(
    workload: Workload, fixes: Sequence[Fix], jobs: int, seed: int, progress: Callable[[int], None] = lambda _: None
) -> tuple[Cost, ...]:
    """What each fix costs over the same jobs; differences are against the first of them."""
    plain = _tallied(workload, fixes, jobs, seed, (), progress)
    rare = [tally.fix for tally in plain if any(tally.counts[name] < RARE for name in WATCHED)]
    tails = tails_for(workload, rare)
    tilted = {t.fix.name: t for t in _tallied(workload, rare, jobs, seed, tails, progress)} if tails else {}
    return tuple(_cost(tally, tilted.get(tally.fix.name)) for tally in plain)


def tails_for(workload: Workload, fixes: Iterable[Fix]) -> list[float]:
    """With which probabilities a pause outlasts a lease under these fixes, each once; empty where none ever does.

    Whole, and as far as the work, a renewal or the clocks leave it: were only those drawn on purpose that outlast the
    whole lease, the shorter ones that do as much harm would be missed, and the share come out too low.
    """
    longest = {workload.length(fix) + fix.delay * SECOND for fix in fixes}
    used = [0, workload.renewal, *laws.beyond(workload.work, np.array([0.9, 0.5, 0.1, 0.01]))]
    chances = {
        workload.pause.survival(time - less - ahead)
        for time in longest
        for less in used
        for ahead in {0, workload.skew}
    }
    return sorted(chance for chance in chances if 0 < chance < 1)


class _Tally:
    """Sums over the blocks, for one fix."""

    def __init__(self, fix: Fix) -> None:
        self.fix, self.jobs = fix, 0
        self.counts = dict.fromkeys(SHARES, 0)
        self.values = {name: np.zeros(3) for name in MEANS}  # of these as `_sums` has them
        self.apart = {name: np.zeros(3) for name in MEANS}  # from the first fix
        self.weighted = {name: np.zeros(3) for name in WATCHED}  # of the jobs in which it happened
        self.weights = np.zeros(3)
        self.times = np.zeros(_BINS * _OCTAVES, dtype=np.int64)

    def add(self, outcome: Outcome, base: dict[str, Floats]) -> dict[str, Floats]:
        """Add a block; `base` are the values of the first fix, and of the first fix itself nothing. Returns them."""
        self.jobs += outcome.stale.size
        for name, (_, happened) in SHARES.items():
            which = happened(outcome)
            self.counts[name] += int(np.count_nonzero(which))
            if outcome.weight is not None and name in WATCHED:
                self.weighted[name] += _sums(outcome.weight[which])
        if outcome.weight is not None:
            self.weights += _sums(outcome.weight)
            return base
        values = {name: value(outcome) for name, (_, value) in MEANS.items()}
        for name, value in values.items():
            self.values[name] += _sums(value)
            self.apart[name] += _sums(value - base.get(name, value))
        done = outcome.finished_at[outcome.finished_at < NEVER]
        bins = (np.log2(np.maximum(done, 1)) * _BINS).astype(np.int64)
        self.times += np.bincount(np.minimum(bins, self.times.size - 1), minlength=self.times.size)
        return base or values

    def percentile(self, part: float) -> float | None:
        """Seconds by which this part of all jobs is finished; None = fewer ever are."""
        upto = self.times.cumsum()
        place = int(np.searchsorted(upto, part * self.jobs))
        return None if place >= upto.size else float(2 ** ((place + 0.5) / _BINS) / 1e6)


def _sums(values: Floats) -> Floats:
    """Their sum, the sum of their squares, and how many are not 0."""
    return np.array([values.sum(), (values * values).sum(), np.count_nonzero(values)])


def _tallied(
    workload: Workload, fixes: Sequence[Fix], jobs: int, seed: int, tails: Sequence[float],
    progress: Callable[[int], None],
) -> list[_Tally]:  # fmt: skip
    tallies = [_Tally(fix) for fix in fixes]
    for start in range(0, jobs, BLOCK):
        block = np.arange(start, min(start + BLOCK, jobs), dtype=np.uint64)
        first = drawn(workload, seed, block, 1, tails)
        base: dict[str, Floats] = {}
        for tally in tallies:
            base = tally.add(simulate(workload, tally.fix, seed, block, first=first), base)
        progress(min(start + BLOCK, jobs))
    return tallies


def _cost(tally: _Tally, tilted: _Tally | None) -> Cost:
    shares = {name: share(count, tally.jobs) for name, count in tally.counts.items()}
    rare = {}
    if tilted:
        found = {n: _rare(tilted, n, shares[n]) for n in WATCHED if shares[n].seen < RARE and tilted.counts[n]}
        rare = {name: one for name, one in found.items() if _better(one, shares[name])}
    means = {name: _mean(sums, tally.jobs) for name, sums in tally.values.items()}
    means = {name: mean._replace(low=max(0.0, mean.low)) for name, mean in means.items()}
    against = {name: _mean(sums, tally.jobs) for name, sums in tally.apart.items()}
    return Cost(tally.fix, shares, means, against, rare, tally.percentile(0.5), tally.percentile(0.95))


def _better(rare: Rare, plain: Share) -> bool:
    """Whether the estimate says more than plain sampling does."""
    return rare.low > 0 and rare.high - rare.low < plain.high - plain.low


def _mean(sums: Floats, jobs: int) -> Mean:
    mean, square = float(sums[0]) / jobs, float(sums[1]) / jobs
    error = math.sqrt(max(0.0, square - mean * mean) / max(jobs - 1, 1))
    return Mean(mean, mean - Z * error, mean + Z * error, jobs, int(sums[2]))


def _rare(tally: _Tally, name: str, plain: Share) -> Rare:
    total, squares, _ = map(float, tally.weighted[name])
    jobs, value = tally.jobs, total / tally.jobs
    error = math.sqrt(max(0.0, squares / jobs - value * value) / jobs)
    weights = _mean(tally.weights, jobs)
    margin = (weights.high - weights.low) / 2 / Z
    even = abs(weights.value - 1) <= 4 * margin + 1e-12
    seen = tally.counts[name]
    agrees = plain.low <= value + 2 * error and value - 2 * error <= plain.high
    fits = None if seen < RARE else even and agrees
    return Rare(
        value, max(0.0, value - Z * error), value + Z * error, jobs, seen, total**2 / squares, weights.value, fits
    )
