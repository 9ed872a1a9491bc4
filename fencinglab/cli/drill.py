"""The verb `drill` of the command line: its options, and what becomes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fencinglab.cli.options import EXITS, classes, fail_on, refuse
from fencinglab.errors import UsageError


def add(verbs: Any) -> None:
    """Add the verb with its options."""
    drill = verbs.add_parser(
        "drill", help="Does the real receiver do it? Concurrent workers with pauses on a DynamoDB.",
        description="Does the real receiver do it? Lets workers acquire, pause, crash and come back on a DynamoDB, "
        "with the requests of a file, and audits what they and its stream recorded. Without --endpoint-url or --aws it "
        "is a mock in this process, and nothing leaves the machine.",
        epilog=EXITS, allow_abbrev=False,
    )  # fmt: skip
    drill.add_argument("--requests", metavar="NAME-or-FILE", help="the requests (default request-status)")
    where = drill.add_mutually_exclusive_group()
    where.add_argument("--mock", action="store_true", help="a mock that decides one request at a time (the default)")
    where.add_argument("--unlocked-mock", action="store_true", help="a mock that is not atomic: the negative control")
    where.add_argument("--endpoint-url", metavar="URL", help="a DynamoDB that runs already, such as on this machine")
    drill.add_argument("--aws", action="store_true", help="AWS itself, with your own credentials and at your cost")
    only = "only this; may be given often; `list` tells all"
    drill.add_argument("--scenario", action="append", default=[], metavar="NAME", help=only)
    drill.add_argument("--workers", type=int, metavar="N", help="that acquire at one moment (default 4)")
    drill.add_argument("--rounds", type=int, metavar="N", help="of that (default 10)")
    drill.add_argument(
        "--seed", type=int, metavar="S", help="another sets workers that begin together otherwise apart (default 1)"
    )
    drill.add_argument("--lease", type=int, metavar="SECONDS", help="how long a lease lasts, 2 or more (default 2)")
    drill.add_argument("--seconds", type=int, metavar="N", help="stop then (default 300)")
    bound = "beyond it every worker ends with the request that it is at (default 20,000)"
    drill.add_argument("--max-requests", type=int, metavar="N", help=bound)
    drill.add_argument("--table", metavar="NAME", help="a table that is there; only its own items are touched")
    fail_on(drill)
    drill.add_argument("--out", metavar="DIR", help="write the stream, the workers' log and the audit of both")
    drill.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def run(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    """Run the drill that the options ask for and print its report; the exit code."""
    from fencinglab import output
    from fencinglab.drill import run as drills
    from fencinglab.drill import scenarios
    from fencinglab.dynamodb import sending, shelf
    from fencinglab.report import drilled

    if options.scenario == ["list"]:
        rest = [name for name in vars(options) if name not in ("verb", "scenario", "quiet")]
        refuse(options, rest, "a drill, and `--scenario list` plays none; leave out one of the two")
        sys.stdout.write(scenarios.listing())
        return 0
    if options.aws and (options.mock or options.unlocked_mock):
        raise UsageError("--aws and a mock are two receivers; name one")
    named = (*drills.LEAST, "seed", "table")
    plan = drills.Plan(tuple(options.scenario), **{n: v for n in named if (v := getattr(options, n)) is not None})
    classes(options.fail_on)
    file = shelf.find("request-status" if options.requests is None else options.requests)
    chosen, _ = drills.choose(file, options.scenario)
    for name in ("workers", "rounds", "seed"):
        if not any(name in one.takes for one in chosen):
            takes = " or ".join(one.name for one in scenarios.SCENARIOS.values() if name in one.takes)
            refuse(options, [name], f"--scenario {takes}; leave it out, or name that too")
    sending.refused(file)
    kind = "aws" if options.aws else "endpoint" if options.endpoint_url else "mock"
    receiver = drills.Receiver("unlocked-mock" if options.unlocked_mock else kind, options.endpoint_url)
    played = drills.drill(file, receiver, plan, show)
    show("")
    out = Path(options.out) if options.out else None
    with drilled.judged(played, out, options.fail_on or "") as judged:
        sys.stdout.write(drilled.report(judged))
        if out:
            print(output.written(drilled.write(judged, out)))
        return judged.exit_code
