"""Workers that acquire at the same moment: each round must have one success and otherwise failed conditions.

    python tests/bench/race.py [--rounds 10000] [--workers 2] [--unlocked] [--served] [--endpoint-url URL]

The lease has just run out when a round begins. Prints how many rounds had not exactly one winner, and how
many tokens were given twice; exit 1 where there is one of either. With --unlocked it is the negative control.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poller import RequestStatus

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.hold import Told
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.sending import tables


def race(receiver: object, rounds: int, workers: int) -> tuple[int, int, int]:
    """Rounds without exactly one winner, tokens given twice, answers that were neither success nor failed condition."""
    now = [1000]
    file = shelf.find("request-status")
    holds = [RequestStatus(receiver, f"w{n}", "req-8f23", lambda: now[0], file=file) for n in range(workers)]
    holds[0].enqueue()
    told: list[Told | None] = [None] * workers
    ready, done = threading.Barrier(workers + 1), threading.Barrier(workers + 1)

    def work(number: int) -> None:
        for _ in range(rounds):
            ready.wait()
            told[number] = holds[number].acquire()
            done.wait()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(workers)]
    for thread in threads:
        thread.start()
    wrong, tokens, odd = 0, Counter[int | None](), 0
    for _ in range(rounds):
        now[0] += 61
        ready.wait()
        done.wait()
        won = [one.token for one in told if one and one.ok]
        wrong += len(won) != 1
        tokens.update(won)
        odd += sum(
            one is None or (one.decision, one.reason) not in (("accepted", ""), ("rejected", "held")) for one in told
        )
    for thread in threads:
        thread.join()
    return wrong, sum(times - 1 for times in tokens.values()), odd


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rounds and print what came of them; 1 where one had not exactly one winner."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--unlocked", action="store_true", help="the mock without its mutex")
    parser.add_argument("--served", action="store_true", help="the mock as a server on loopback")
    parser.add_argument("--endpoint-url")
    options = parser.parse_args(argv)
    with ExitStack() as stack:
        mock = None if options.endpoint_url else stack.enter_context(Mock(atomic=not options.unlocked))
        url = stack.enter_context(mock.served()) if mock and options.served else options.endpoint_url
        receiver = mock.client() if mock and not url else client(url)
        stack.enter_context(tables(receiver, shelf.find("request-status")))
        begun = time.perf_counter()
        wrong, twice, odd = race(receiver, options.rounds, options.workers)
    seconds = time.perf_counter() - begun
    print(f"{options.rounds:,} rounds of {options.workers} workers, {seconds:.0f} s")
    print(f"{wrong:,} without exactly one winner, {twice:,} tokens given twice, {odd:,} answers of another kind")
    return 1 if wrong or twice or odd else 0


if __name__ == "__main__":
    sys.exit(main())
