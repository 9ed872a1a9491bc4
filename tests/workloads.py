"""Workloads for tests of the simulator: rough ones, in which everything that can happen does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fencinglab.simulate.laws import Law
from fencinglab.simulate.workload import DEFAULT, SECOND, Workload


def constant(microseconds: int) -> Law:
    """Always the same time."""
    return Law("constant", float(microseconds))


def exponential(seconds: float) -> Law:
    return Law("exponential", seconds * SECOND)


def rough(**other) -> Workload:
    """A workload in which everything that can happen does."""
    return replace(
        DEFAULT,
        **{
            "lease": 9 * SECOND, "renewal": 3 * SECOND, "pause": exponential(8), "work": exponential(6),
            "message": exponential(1), "takeover": exponential(1), "gap": SECOND // 3, "step": SECOND // 2,
            "crash": 0.15, "repeat": 0.3, "restart": 20 * SECOND, "workers": 2, "writes": 2, "attempts": 8,
        } | other
    )  # fmt: skip


ROUGH = {
    "two workers": rough(),
    "clocks apart": rough(skew=6 * SECOND, workers=3),
    "three writes": rough(skew=5 * SECOND, writes=3),
    "one write": rough(workers=4, writes=1),
}


def jobs(size: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + size, dtype=np.uint64)
