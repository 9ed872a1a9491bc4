"""How fast the search is, beside minicheck on the same model, and whether it finds the large oracle numbers.

    python tests/bench/explore_models.py [--runs 3] [--workers 3] [--writes 2] [--fix unfenced] [--large]

Both search one model: ours by `fencinglab.explore`, minicheck by the flat tuples of tests/explore/peer.py. They run in
turns so that a noisy neighbour disturbs them alike, and must find as many states. Printed are medians: states per CPU
second, their ratio, and the CPU seconds of all thirteen fixes with two workers and two writes. `--large` also counts
the states of three workers, two writes, with and without symmetry; it takes minutes and about 2 GB.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explore"))

import peer

from fencinglab.explore.search import explore, model_of
from fencinglab.model.fix import FIXES

THIRTEEN_GOAL = 2.0  # CPU seconds
LARGE = {  # (fix, symmetric) -> states of three workers with two writes each
    ("fenced", False): 94_687, ("unfenced", False): 127_111, ("client-check", False): 423_361,
    ("two-step-token", False): 6_393_739, ("fenced", True): 15_799, ("unfenced", True): 21_203,
    ("client-check", True): 70_584, ("two-step-token", True): 1_065_685,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run both in turns, print; 1 where a number of states is not what it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--workers", type=int, default=3, metavar="N")
    parser.add_argument("--writes", type=int, default=2, metavar="W")
    parser.add_argument("--fix", default="unfenced", choices=[*peer.FIXES], metavar="NAME")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args(argv)
    size = options.workers, options.writes

    ours, theirs = [], []
    for _ in range(options.runs):
        ours.append(_timed(lambda: explore(model_of(FIXES[options.fix], *size)).states))
        theirs.append(_timed(lambda: _minicheck(options.fix, *size)))
    states = {count for count, _ in ours + theirs}
    rates = [median(count / cpu for count, cpu in runs) for runs in (ours, theirs)]
    ratio = median(a[0] / a[1] / (b[0] / b[1]) for a, b in zip(ours, theirs, strict=True))
    print(f"states: {', '.join(f'{count:,}' for count in states)} ({options.fix}, {size[0]} workers, {size[1]} writes)")
    print(f"ours / minicheck  {ratio:.1f} states per CPU second   goal: >= 1.0")
    print(f"ours {rates[0]:,.0f}/s, minicheck {rates[1]:,.0f}/s")
    thirteen = median(_timed(_thirteen)[1] for _ in range(options.runs))
    print(f"all thirteen fixes, 2 workers, 2 writes: {thirteen:.2f} CPU s   goal: < {THIRTEEN_GOAL}")
    wrong = [*_large()] if options.large else []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(len(states) > 1 or bool(wrong))


def _timed(search: Callable[[], int]) -> tuple[int, float]:
    begun = time.process_time()
    states = search()
    return states, time.process_time() - begun


def _minicheck(name: str, workers: int, writes: int) -> int:
    import minicheck

    found = minicheck.check_safety(peer.protocol(name, workers, writes), max_states=10_000_000)
    return int(found["reachable_states"])


def _thirteen() -> int:
    return sum(explore(model_of(FIXES[name])).states for name in peer.FIXES)


def _large() -> list[str]:
    """The counts that are not what they must be; all are printed."""
    wrong = []
    for (fix, symmetric), expected in LARGE.items():
        states, cpu = _timed(
            lambda fix=fix, symmetric=symmetric: (
                explore(model_of(FIXES[fix], 3, 2), symmetric=symmetric, most=10_000_000).states
            )
        )
        told = f"{fix}{', symmetric' if symmetric else ''}: {states:,} states, {cpu:.1f} CPU s"
        print(told)
        if states != expected:
            wrong.append(f"{told}: expected {expected:,}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
