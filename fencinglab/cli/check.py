"""The verb `check` of the command line: its options, and what becomes of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fencinglab.cli.options import EXITS, classes, fail_on, give, hazards, refuse
from fencinglab.errors import UsageError

if TYPE_CHECKING:
    from fencinglab.dynamodb.requests import Requests


def add(verbs: Any) -> None:
    """Add the verb with its options."""
    check = verbs.add_parser(
        "check", help="What can happen? Try every order of events under a fix, or with your own requests.",
        description="What can happen? Tries every order of pauses, delays, duplicates and expiries, under a fix of the "
        "model or with your own requests, and prints the shortest run that breaks an invariant; of requests that break "
        "one also the smallest repair. Whatever bounds the search is printed with the answer.",
        epilog=EXITS, allow_abbrev=False,
    )  # fmt: skip
    check.add_argument(
        "requests", nargs="*", metavar="REQUESTS",
        help="a request file of your own, or one that comes with fencinglab; of two both verdicts side by side and the "
        "shortest run that tells them apart, with the exit code of the first",
    )  # fmt: skip
    check.add_argument(
        "--rest", metavar="FILE", help="with REQUESTS of some operations: take the others from this file"
    )
    check.add_argument(
        "--fix", action="append", metavar="NAME", help="instead: a fix of the model; `fencinglab replay` lists them"
    )
    check.add_argument("--example", action="store_true", help="print a request file with comments to start from")
    check.add_argument("--conditions", action="store_true", help="with REQUESTS: what breaks without each condition")
    check.add_argument("--optional", action="store_true", help="with REQUESTS: also optional renewals and schedules")
    check.add_argument("--endpoint-url", metavar="URL", help="with REQUESTS: a DynamoDB of your own, not the mock")
    check.add_argument("--workers", type=int, metavar="N", help="how many workers (default 2)")
    check.add_argument(
        "--writes", type=int, metavar="W", help="with --fix: writes of each, the last finishes (default 2)"
    )
    hazards(check)
    check.add_argument("--symmetry", action="store_true", help="count states that differ only by worker names once")
    check.add_argument("--max-states", type=int, metavar="N", help="stop there; then nothing holds (default 5,000,000)")
    fail_on(check)
    check.add_argument(
        "--show", action="append", default=[], metavar="WHAT", help="the run that breaks this invariant, or passing"
    )
    check.add_argument(
        "--out",
        metavar="DIR",
        help="write a page, JSON, counterexamples as timelines and Mermaid, and a test for your CI",
    )
    check.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def run(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    """Check what the options ask for and print it; the exit code."""
    from fencinglab.check import files, told
    from fencinglab.check.check import Check
    from fencinglab.explore import hazards as going_wrong
    from fencinglab.explore import search
    from fencinglab.model import fix

    if options.example:
        return _example(options)
    failing = classes(options.fail_on)
    bounds: dict[str, Any] = {
        "workers": 2 if options.workers is None else options.workers,
        "hazards": going_wrong.chosen(options.hazard),
        "most": search.MOST_STATES if options.max_states is None else options.max_states,
    }
    if bool(options.requests) == (options.fix is not None):
        raise UsageError("check needs either a request file or --fix NAME, such as `fencinglab check --fix fenced`")
    if options.fix and len(options.fix) > 1:
        names = ", ".join(options.fix)
        raise UsageError(f"--fix {names}: check takes one fix; `compare --matrix` sets several side by side")
    if options.requests:
        refuse(options, ("writes", "alert", "symmetry"), "--fix NAME; leave it out")
    else:
        refuse(options, ("rest", "conditions", "optional", "endpoint_url"), "a request file; leave it out")
    if len(options.requests) > 2:
        raise UsageError(f"check takes one request file, or two to set side by side, not {len(options.requests)}")
    if len(options.requests) == 2:
        return _two(options, bounds, failing, show)
    told.named(options.show)  # before a search that may take long
    if options.requests:
        return _requests(options, bounds, failing, show)
    writes = 2 if options.writes is None else options.writes
    alert = "none" if options.alert is None else options.alert
    model = search.model_of(fix.named(options.fix[0]), bounds["workers"], writes, bounds["hazards"], alert)
    answer = search.explore(
        model, symmetric=options.symmetry, most=bounds["most"], progress=lambda states: show(f"{states:,} states")
    )
    show("")
    give(told.screen(answer, options.show), options.out, lambda: files.contents(Check(answer)))
    return told.exit_code(answer, failing)


def _example(options: argparse.Namespace) -> int:
    from fencinglab.check import files

    if options.requests:
        raise UsageError(f"{options.requests[0]}: --example checks no request file; leave out one of the two")
    rest = [name for name in vars(options) if name not in ("verb", "requests", "example", "out", "quiet")]
    refuse(options, rest, "a check, and --example makes none; leave out one of the two")
    give("" if options.out else files.example(), options.out, lambda: {"requests.json": files.example()})
    return 0


def _requests(
    options: argparse.Namespace, bounds: dict[str, Any], failing: Sequence[str], show: Callable[[str], None]
) -> int:
    from fencinglab.check import files, keep, told
    from fencinglab.check.check import check

    found = check(
        _files(options)[0], optional=options.optional, conditions=options.conditions, repaired=True,
        endpoint_url=options.endpoint_url, progress=show, **bounds,
    )  # fmt: skip
    show("")
    text = told.screen(found.answer, options.show) + (told.why(found.needed) if found.needed else "")
    text += told.mended(found.repair) if found.repair else ""
    text += told.asked(found)

    def contents() -> dict[str, Any]:
        [file] = options.requests
        kept = keep.contents(file, options.rest or "", optional=options.optional, **bounds)
        return files.contents(found, kept)

    give(text, options.out, contents)
    return told.exit_code(found.answer, failing)


def _files(options: argparse.Namespace) -> list[Requests]:
    """The request files that are named."""
    from fencinglab.dynamodb import shelf

    found = [shelf.find(name, options.rest or "") for name in options.requests]
    if options.rest and not any(file.taken for file in found):
        raise UsageError(f"--rest {options.rest}: {found[0].name} lacks nothing; leave it out")
    return found


def _two(
    options: argparse.Namespace, bounds: dict[str, Any], failing: Sequence[str], show: Callable[[str], None]
) -> int:
    from fencinglab.check import files, told
    from fencinglab.check.check import beside

    alone = f"one request file; leave it out, or leave out {options.requests[1]}"
    refuse(options, ("conditions", "show"), alone)
    first, second = _files(options)
    found = beside(
        first, second, optional=options.optional, endpoint_url=options.endpoint_url, progress=show, **bounds,
    )  # fmt: skip
    show("")
    text = told.beside(found) + told.counted(found.calls)
    give(text, options.out, lambda: files.of_two(found))
    return told.exit_code(found.answers[0], failing)
