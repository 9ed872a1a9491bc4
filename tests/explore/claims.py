"""Hold request files to what they claim, under every hazard that they claim, one at a time; and each condition of a
good file to be needed, or to be called redundant by it.

    python tests/explore/claims.py [NAME ...] [--workers 2] [--no-hazards]

Without a name all that come with fencinglab, which takes some minutes. Prints for each search its states, its
requests and its seconds, and each claim that is not met; 1 where there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from fencinglab.check.check import check
from fencinglab.dynamodb import shelf
from fencinglab.explore.hazards import chosen
from fencinglab.explore.needed import Needed
from fencinglab.explore.search import MOST_STATES, Answer


def main(argv: Sequence[str] | None = None) -> int:
    """Search, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-hazards", action="store_true")
    options = parser.parse_args(argv)
    missed = 0
    for name in options.names or shelf.names():
        file = shelf.find(name)
        for hazard in ("", *(() if options.no_hazards else file.claims.hazards)):
            begun = time.process_time()
            good = not hazard and not file.claims.breaks
            found = check(
                file, workers=options.workers, hazards=chosen([hazard] if hazard else []), conditions=good,
                most=MOST_STATES,
            )  # fmt: skip
            spent = time.process_time() - begun
            print(
                f"{name}{f' with {hazard}' if hazard else ''}: {found.answer.states:,} states, "
                f"{found.calls:,} requests, {spent:.1f} CPU s",
                flush=True,
            )
            lines = [*unmet(found.answer, file.claims.holds, () if hazard else file.claims.breaks)]
            for line in lines + ([*undeclared(found.needed, file.claims.redundant)] if good else []):
                print(f"  {line}", flush=True)
                missed += 1
    return int(missed > 0)


def unmet(answer: Answer, holds: Sequence[str], breaks: Sequence[str]) -> Iterator[str]:
    """A line for each claim that the search does not bear out."""
    for wanted, names in (("holds", holds), ("violated", breaks)):
        for name in names:
            verdict = answer.of(name)
            if verdict.status != wanted:
                yield f"{name}: claimed {wanted}, found {verdict.status} {verdict.length or ''} {verdict.missing or ''}"


def undeclared(needs: Iterable[Needed], redundant: Collection[str]) -> Iterator[str]:
    """A line for each condition whose removal is not caught though the file does not call it redundant, or the reverse."""
    for need in needs:
        named = f"{need.operation}: {need.condition}"
        if bool(need.breaks) == (named in redundant):
            yield f"{named}: without it {', '.join(need.breaks) or 'nothing breaks, and the file does not say so'}"


if __name__ == "__main__":
    sys.exit(main())
