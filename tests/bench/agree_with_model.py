"""Thousands of random schedules, on a DynamoDB and in the pure model side by side; they must agree at every step.

    python tests/bench/agree_with_model.py [--schedules 1000] [--seed 1] [--endpoint-url URL] [--only NAME]

Each schedule is twelve moves of three workers over one request file of data/requests that has a twin in
tests/twins.py: acquires, writes, repetitions of earlier messages, and time that passes in between. Without
an endpoint it is the mock. Exit 1 with the whole story of the first message on which they part.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import twins

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.sending import tables


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print a line for each file; 1 where the two part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--schedules", type=int, default=1000, help="for each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--endpoint-url")
    parser.add_argument("--only", action="append", choices=sorted(twins.TWINS))
    options = parser.parse_args(argv)
    for name in options.only or twins.TWINS:
        file, begun, messages = shelf.find(name), time.perf_counter(), 0
        with nullcontext() if options.endpoint_url else Mock() as mock:
            receiver = mock.client() if mock else client(options.endpoint_url)
            with tables(receiver, file):
                for number, schedule in enumerate(twins.schedules(options.seed, options.schedules)):
                    try:
                        messages += twins.run(receiver, file, schedule, f"r-{number}")
                    except AssertionError as parted:
                        print(f"{name}: schedule {number} of seed {options.seed}: they part\n{parted}")
                        return 1
        seconds = time.perf_counter() - begun
        print(f"{name}: agree on {options.schedules:,} schedules, {messages:,} messages, {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
