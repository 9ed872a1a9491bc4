"""The simulator beside the search: what holds in every order of events no job breaks, and what does not, some job does.

    python tests/orders.py [--jobs 1000000] [--seed 3]

A line for each fix; exit 1 where the two part. The jobs are harsh: most have pauses, delays, crashes or repetitions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from workloads import exponential, jobs, rough

from fencinglab.explore import hazards, matrix
from fencinglab.model.fix import FIXES, Fix
from fencinglab.simulate.jobs import simulate
from fencinglab.simulate.measure import INVARIANTS
from fencinglab.simulate.running import Outcome
from fencinglab.simulate.workload import SECOND

BLOCK = 100_000
HARSH = rough(pause=exponential(12), message=exponential(3), step=2 * SECOND, gap=2 * SECOND)
NEVER_SEEN = {  # what the search breaks and no simulated job can
    ("identity", "order"): "it takes a stale worker that reads again; here workers read when they are granted",
    ("current-lease", "final"): "it takes a job that nobody finishes, and here such a job has no end",
}


def held() -> dict[str, set[str]]:
    """{fix: the invariants that it holds in every order of events}; where a name is compared, workers come back too."""
    plain = [name for name in FIXES if not name.startswith("holder")]
    cells = [*matrix.cells(plain), *matrix.cells(["holder"], hazards=hazards.chosen(["crash"]))]
    found: dict[str, set[str]] = {cell.fix: set() for cell in cells}
    for cell in cells:
        if cell.status == "holds" and cell.invariant in INVARIANTS:
            found[cell.fix].add(cell.invariant)
    return found


def broken(outcome: Outcome) -> set[str]:
    """The invariants that one of these jobs breaks."""
    found = {
        "order": outcome.order.any(), "ownership": outcome.ownership.any(), "terminal": (outcome.finishes > 1).any(),
        "final": outcome.final.any(),
    }  # fmt: skip
    return {name for name, is_broken in found.items() if is_broken}


def broken_by(fix: Fix, size: int, seed: int) -> set[str]:
    """The invariants that one of so many jobs under the fix breaks."""
    blocks = (jobs(min(BLOCK, size - start), start) for start in range(0, size, BLOCK))
    return set().union(*(broken(simulate(HARSH, fix, seed, block)) for block in blocks))


def expected(name: str, holds: set[str]) -> set[str]:
    """The invariants that jobs must break under the fix: all that it does not hold, but for what none of them can."""
    return {*INVARIANTS} - holds - {invariant for fix, invariant in NEVER_SEEN if fix == name}


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print a line for each fix; 1 where the two part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000_000, help="under each fix")
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args(argv)
    parted = 0
    for name, holds in held().items():
        found, wanted = broken_by(FIXES[name], options.jobs, options.seed), expected(name, holds)
        same = "as in every order" if found == wanted else f"NOT as expected: {', '.join(sorted(found ^ wanted))}"
        parted += found != wanted
        print(f"{name:<22}{options.jobs:,} jobs break {', '.join(sorted(found)) or 'nothing'}: {same}", flush=True)
    for (name, invariant), why in NEVER_SEEN.items():
        print(f"not expected of {name}, {invariant}: {why}")
    return 1 if parted else 0


if __name__ == "__main__":
    sys.exit(main())
