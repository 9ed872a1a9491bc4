"""What a simulated job costs: the simulator against SimPy and against a plain loop over a heap, on the same jobs.

    python tests/bench/simulate_jobs.py [--jobs 200000] [--peers 1500] [--rounds 9] [--workload default|facts]

Interleaved in one process, CPU time, medians of the rounds. The simulator draws its numbers of chance within the time
that is measured; both peers are given theirs as Python ints before. All three must come to the same outcome of each
job, or nothing is printed. The peers run fewer jobs: a job costs them the same however many there are.

    python tests/bench/simulate_jobs.py --coverage    how often intervals hold the true share (p = 3e-4, n = 5000)
    python tests/bench/simulate_jobs.py --blocks      peak memory at an eighth of the jobs and at all: flat above one block
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import heap_jobs
import peers
from workloads import constant

from fencinglab.compare.review import FIXES as COMPARED
from fencinglab.model.fix import FIXES
from fencinglab.simulate.chance import asked_after, drawn
from fencinglab.simulate.jobs import simulate
from fencinglab.simulate.laws import Law
from fencinglab.simulate.measure import BLOCK, Z, measured, wilson
from fencinglab.simulate.workload import DEFAULT, SECOND, Workload

WORKLOADS = {
    "default": DEFAULT,
    "facts": replace(  # two workers and lognormal pauses, no message delay, crash or repetition
        DEFAULT, pause=Law("lognormal", 2.0 * SECOND, 1.5), work=Law("lognormal", 10.0 * SECOND, 0.5), message=constant(0),
        crash=0, repeat=0, workers=2, writes=1,
    ),
}  # fmt: skip
ATTEMPTS = 12  # of which the peers are given the chance; a job that needs more is left out of the peers' jobs


def luck_of(workload: Workload, seed: int, jobs: int) -> list[list[peers.Luck]]:
    """For each job what chance brings to its attempts, as Python ints."""
    numbers = np.arange(jobs, dtype=np.uint64)
    found: list[list[peers.Luck]] = [[] for _ in range(jobs)]
    for attempt in range(1, ATTEMPTS + 1):
        c, asks = drawn(workload, seed, numbers, attempt), asked_after(workload, seed, numbers, attempt)
        columns = [a.tolist() for a in (asks, c.unit, c.pause, c.paused_at, c.crashed_at, c.skew)]
        messages, again = ([a.tolist() for a in part] for part in (c.message, c.again))
        for job in range(jobs):
            own = (column[job] for column in columns)
            found[job].append(peers.Luck(*own, [m[job] for m in messages], [a[job] for a in again]))
    return found


def timed(run: Callable[[], object]) -> tuple[float, object]:
    begun = time.process_time()
    result = run()
    return time.process_time() - begun, result


def compare(workload: Workload, name: str, jobs: int, few: int, rounds: int) -> dict[str, float]:
    """{engine: CPU microseconds a job} under one fix; the outcomes are compared first."""
    from dataclasses import replace

    workload, fix, seed = replace(workload, attempts=ATTEMPTS - 1), FIXES[name], 1
    luck, many = luck_of(workload, seed, few), np.arange(jobs, dtype=np.uint64)

    def simpy() -> list[dict[str, int]]:
        return [peers.Job(workload, fix, lambda attempt, own=own: own[attempt - 1]).run() for own in luck]

    def heap() -> list[dict[str, int]]:
        return [heap_jobs.Job(workload, fix, lambda attempt, own=own: own[attempt - 1]).run() for own in luck]

    outcome = simulate(workload, fix, seed, many[:few])
    mine = [{c: int(getattr(outcome, c)[job]) for c in peers.COUNTED} for job in range(few)]
    for engine, found in (("SimPy", simpy()), ("heap", heap())):
        assert found == mine, f"{engine} comes to another outcome under {name}"
    engines = {
        "simulator": (lambda: simulate(workload, fix, seed, many), jobs),
        "SimPy": (simpy, few),
        "heap": (heap, few),
    }
    times: dict[str, list[float]] = {engine: [] for engine in engines}
    for _ in range(rounds):
        order = list(engines)
        random.Random(len(times["heap"])).shuffle(order)
        for engine in order:
            run, count = engines[engine]
            times[engine].append(timed(run)[0] / count * 1e6)
    return {engine: statistics.median(found) for engine, found in times.items()}


def coverage(share: float = 3e-4, jobs: int = 5000) -> dict[str, float]:
    """How often Wald's and Wilson's intervals at 95 % hold the true share: exact sums over what can be seen."""

    def chance(seen: int) -> float:
        ways = math.lgamma(jobs + 1) - math.lgamma(seen + 1) - math.lgamma(jobs - seen + 1)
        return math.exp(ways + seen * math.log(share) + (jobs - seen) * math.log1p(-share))

    held = {"Wald": 0.0, "Wilson": 0.0}
    for seen in range(jobs // 50):  # beyond that nothing is left to add
        p = seen / jobs
        half, (low, high) = Z * (p * (1 - p) / jobs) ** 0.5, wilson(seen, jobs)
        held["Wald"] += chance(seen) * (p - half <= share <= p + half)
        held["Wilson"] += chance(seen) * (low <= share <= high)
    return held


def peak(jobs: int) -> tuple[float, float]:
    """(MiB, seconds) of a process that measures so many jobs under the eight fixes that a review compares."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import simulate_jobs; simulate_jobs.all_eight({jobs})"
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout), time.monotonic() - begun


def all_eight(jobs: int) -> None:
    """Measure so many jobs, and print the peak of this process in MiB."""
    measured(DEFAULT, [FIXES[name] for name in COMPARED], jobs, 1)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--peers", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workload", choices=WORKLOADS, default="default")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        for name, share in coverage().items():
            print(f"{name:<7} holds the true share in {share:.2%} of samples (p = 3e-4, n = 5,000)")
        return
    if options.blocks:
        for jobs in (options.jobs // 8, options.jobs):
            memory, seconds = peak(jobs)
            print(f"{jobs:>9,} jobs under {len(COMPARED)} fixes: peak {memory:.0f} MiB, {seconds:.1f} s")
        print(f"A block has {BLOCK:,} jobs; below it memory grows with the jobs.")
        return
    print(f"{'fix':<20}{'simulator':>10}{'heap':>9}{'SimPy':>9}   CPU µs a job; SimPy / simulator")
    for name in COMPARED:
        found = compare(WORKLOADS[options.workload], name, options.jobs, options.peers, options.rounds)
        cells = "".join(
            f"{found[engine]:>{wide}.2f}" for engine, wide in (("simulator", 10), ("heap", 9), ("SimPy", 9))
        )
        print(f"{name:<20}{cells}   {found['SimPy'] / found['simulator']:.0f} ×", flush=True)


if __name__ == "__main__":
    main()
