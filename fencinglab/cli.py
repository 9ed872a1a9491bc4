"""The command line. Each verb answers one question; errors are one sentence and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import fencinglab
from fencinglab import comparing, drilling
from fencinglab.errors import FencinglabError, UsageError
from fencinglab.inert import inert

if TYPE_CHECKING:
    from fencinglab.model.replay import Run

EXITS = "exit codes: 0 nothing unsafe and everything decided, 1 violated, 2 unusable input or usage, 3 inconclusive"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """The parser of all verbs."""
    top = _Parser(
        prog="fencinglab", description="Which writes had no right to be made, and which could be.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"fencinglab {fencinglab.__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    audit = verbs.add_parser(
        "audit", help="What happened? Audit a log for writes of workers that had lost their lease.",
        description="What happened? Did a worker that had lost its lease overwrite newer state? Reads DynamoDB Streams "
        "records, JSON log lines, CSV or Parquet; every verdict comes with its rows, and unknown is never a pass.",
        epilog=EXITS, allow_abbrev=False,
    )  # fmt: skip
    audit.add_argument("logs", nargs="+", metavar="LOG", help="files, folders, or - for standard input")
    out = audit.add_argument_group("what it writes")
    out.add_argument(
        "--out", metavar="DIR", help="write report.json, findings.csv, affected.csv, summary.md, report.html"
    )
    out.add_argument("--notebook", action="store_true", help="with --out: also the executed notebook")
    out.add_argument("--redact", action="store_true", help="replace every identity by a number, everywhere")
    out.add_argument("--save-map", metavar="FILE", help="write the mapping as TOML, to give to --map later")
    out.add_argument("--quiet", action="store_true", help="no progress on the terminal")
    what = audit.add_argument_group("what the log means")
    what.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="COLUMN=FIELD",
        help="which field fills a column, or a TOML file; COLUMN=none takes one away",
    )
    what.add_argument("--format", metavar="NAME", help="instead of what is detected from the content")
    what.add_argument("--terminal", metavar="A,B", help="the statuses that nothing leaves, or none")
    what.add_argument("--rising", metavar="A,B", help="fields that may only rise")
    what.add_argument("--protect", metavar="A,B", help="fields that only the holder may change, beside the mapped ones")
    what.add_argument("--order", metavar="lines", help="the lines of each file are in the receiver's order")
    what.add_argument(
        "--retention", metavar="TIME", help="how long a finished item must stay before TTL removes it, such as 7d"
    )
    what.add_argument("--skew", metavar="TIME", help="how far clocks may differ, such as 500ms (default 0s)")
    some = audit.add_argument_group("which records")
    some.add_argument("--since", metavar="TIME", help="from this time on (UTC)")
    some.add_argument("--until", metavar="TIME", help="before this time (UTC)")
    some.add_argument("--key-prefix", metavar="TEXT", help="resources whose key begins so")
    some.add_argument("--resource", metavar="KEY", help="one resource, and its story as a list")
    verdict = audit.add_argument_group("what counts")
    verdict.add_argument("--fail-on", metavar="CLASS", help="exit 1 for window or cost too")
    verdict.add_argument(
        "--require",
        metavar="order",
        help="the weaker requirement: a stale write before the newer holder's first write is no failure",
    )
    verdict.add_argument("--require-exercised", action="store_true", help="exit 3 when a core rule had no case")
    verdict.add_argument("--skip", metavar="RULE,…", help="rules that do not apply here")
    verdict.add_argument(
        "--accept", metavar="REASON,…", help="exit 0 in spite of unknown, set-aside, broken-chain; the verdict stays"
    )
    replay = verbs.add_parser(
        "replay", help="What does this order of events do? Replay a timeline under several fixes.",
        description="What does this order of events do? Replays a timeline, one event a line, and says what each fix "
        "would have done at each step and which result stands in the end. Without a name it lists timelines and fixes.",
        epilog="exit codes: 0 replayed, 2 a name, a fix or a file that cannot be used", allow_abbrev=False,
    )  # fmt: skip
    replay.add_argument(
        "timeline", nargs="?", metavar="NAME-or-FILE", help="a timeline or an incident by name, or a file of your own"
    )
    replay.add_argument("--fix", action="append", metavar="NAME", help="a fix to try; may be given often")
    replay.add_argument(
        "--out", metavar="DIR", help="write trace.csv, comparison.csv, replay.json, the histories and the chart"
    )
    _check_options(verbs)
    comparing.add(verbs)
    drilling.add(verbs, EXITS)
    return top


def _check_options(verbs: Any) -> None:
    check = verbs.add_parser(
        "check", help="What can happen? Try every order of events under a fix.",
        description="What can happen? Tries every order of pauses, delays, duplicates and expiries under a fix, and "
        "prints the shortest run that breaks an invariant. Whatever bounds the search is printed with the answer.",
        epilog=EXITS, allow_abbrev=False,
    )  # fmt: skip
    check.add_argument(
        "requests", nargs="?", metavar="REQUESTS", help="a request file of your own, or one that comes with fencinglab"
    )
    check.add_argument("--fix", metavar="NAME", help="instead: a fix of the model; `fencinglab replay` lists them")
    check.add_argument("--conditions", action="store_true", help="with REQUESTS: what breaks without each condition")
    check.add_argument("--optional", action="store_true", help="with REQUESTS: also optional renewals and schedules")
    check.add_argument("--endpoint-url", metavar="URL", help="with REQUESTS: a DynamoDB of your own, not the mock")
    _bounds(check)
    check.add_argument("--symmetry", action="store_true", help="count states that differ only by worker names once")
    check.add_argument("--max-states", type=int, metavar="N", help="stop there; then nothing holds (default 5,000,000)")
    check.add_argument("--fail-on", metavar="CLASS", help="exit 1 for window or cost too")
    check.add_argument(
        "--show", action="append", default=[], metavar="WHAT", help="the run that breaks this invariant, or passing"
    )
    check.add_argument(
        "--out", metavar="DIR", help="write check.json and every counterexample as a timeline and Mermaid"
    )
    check.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def _bounds(verb: Any) -> None:
    """The options that say how large a world is searched."""
    verb.add_argument("--workers", type=int, default=2, metavar="N", help="how many workers (default 2)")
    verb.add_argument("--writes", type=int, metavar="W", help="writes of each, the last finishes (default 2)")
    comparing.hazards(verb)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser().parse_args(words)
        if options.verb is None:
            parser().print_help()
            return 0
        if options.verb == "check":
            return _check(options)
        if options.verb == "drill":
            return drilling.drill(options, _progress(options.quiet))
        if options.verb == "compare":
            return comparing.compare(options, words, _progress(options.quiet))
        return _replay(options) if options.verb == "replay" else _audit(options, words)
    except FencinglabError as error:
        print(f"fencinglab: {inert(error, 2000)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("fencinglab: stopped; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141


def _replay(options: argparse.Namespace) -> int:
    from fencinglab import narrate, output
    from fencinglab.model import fix, incident, shelf
    from fencinglab.model.replay import replay

    if options.timeline is None:
        if options.fix or options.out:
            raise UsageError("--fix and --out need the timeline that is to be replayed; `fencinglab replay` lists them")
        sys.stdout.write(narrate.listing())
        return 0
    timeline = shelf.find(options.timeline)
    there = [timeline.in_place] if timeline.in_place else []
    fixes = [fix.named(name) for name in options.fix or (*there, *timeline.fixes) or narrate.DEFAULT]
    fixes = [*dict.fromkeys(fixes)]
    companions = [replay(t, f) for t in shelf.companions(timeline, options.timeline) for f in fixes]
    runs = [replay(timeline, f) for f in fixes]
    sys.stdout.write(narrate.story(runs, companions))
    sys.stdout.writelines(narrate.conclusion(told) for told in incident.incidents() if told.timeline == timeline)
    if options.out:
        drawn = _drawn(runs)
        print(output.written(output.place({**narrate.contents(runs, companions), **drawn}, Path(options.out))))
        if not drawn:
            print("No charts: they need the set-up; type `python3 lab.py --version` once, then this again.")
    sys.stdout.flush()
    return 0


def _drawn(runs: Sequence[Run]) -> dict[str, bytes | str]:
    """The lanes of the runs as files by name; none where the libraries that draw are not installed."""
    if not (find_spec("altair") and find_spec("vl_convert")):
        return {}
    from fencinglab import charts
    from fencinglab.model.judged import judged

    alone = charts.lanes(judged(runs[0]), runs[0].told) if len(runs) == 1 else None
    return charts.files(alone or charts.multiples(runs), "lanes")


def _check(options: argparse.Namespace) -> int:
    from fencinglab import output, told
    from fencinglab.explore import hazards, search
    from fencinglab.model import fix

    fail_on, show = _classes(options.fail_on), _progress(options.quiet)
    chosen = hazards.chosen(options.hazard)
    most = search.MOST_STATES if options.max_states is None else options.max_states
    if (options.requests is None) == (options.fix is None):
        raise UsageError("check needs either a request file or --fix NAME, such as `fencinglab check --fix fenced`")
    foreign = ("writes", "alert", "symmetry") if options.requests else ("conditions", "optional", "endpoint_url")
    for name in foreign:
        if getattr(options, name) not in (None, False, "none"):
            word = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{word} belongs to {'--fix NAME' if options.requests else 'a request file'}; leave it out"
            )
    if options.requests:
        return _check_requests(options, chosen, most, fail_on)
    writes = 2 if options.writes is None else options.writes
    model = search.model_of(fix.named(options.fix), options.workers, writes, chosen, options.alert)
    answer = search.explore(
        model, symmetric=options.symmetry, most=most, progress=lambda states: show(f"{states:,} states")
    )
    show("")
    sys.stdout.write(told.screen(answer, options.show))
    if options.out:
        print(output.written(output.place(told.contents(answer), Path(options.out))))
    sys.stdout.flush()
    return told.exit_code(answer, fail_on)


def _check_requests(options: argparse.Namespace, chosen: Any, most: int, fail_on: Sequence[str]) -> int:
    from fencinglab import output, told
    from fencinglab.check import check
    from fencinglab.dynamodb import shelf

    show = _progress(options.quiet)
    found = check(
        shelf.find(options.requests), workers=options.workers, hazards=chosen, optional=options.optional,
        conditions=options.conditions, most=most,
        endpoint_url=options.endpoint_url, progress=show,
    )  # fmt: skip
    show("")
    sys.stdout.write(told.screen(found.answer, options.show))
    if found.needed:
        sys.stdout.write(told.why(found.needed))
    print(f"The receiver was asked {found.calls:,} different requests.")
    if options.out:
        print(output.written(output.place(told.contents(found.answer), Path(options.out))))
    sys.stdout.flush()
    return told.exit_code(found.answer, fail_on)


def _classes(given: str | None) -> tuple[str, ...]:
    """The classes that --fail-on names; one that there is not is a UsageError."""
    named = tuple(given.split(",")) if given else ()
    for name in named:
        if name not in ("unsafe", "window", "cost"):
            raise UsageError(f"--fail-on {given}: `{name}` is none of window, cost")
    return named


def _audit(options: argparse.Namespace, words: Sequence[str]) -> int:
    from dataclasses import replace

    from fencinglab import screen
    from fencinglab.examine import examine, request_of

    if options.notebook and not options.out:
        raise UsageError("--notebook needs --out DIR to write into")
    told = {k: v for k, v in vars(options).items() if k not in ("verb", "logs", "out", "notebook", "quiet", "save_map")}
    said = {k: str(v) for k, v in (told | {"map": ";".join(options.map)}).items() if v}
    if options.notebook:
        from fencinglab import notebook

        notebook.refuse(options.logs, said)
    request = replace(request_of(options.logs, said), command=("fencinglab", *words))
    with examine(request, stdin=sys.stdin.buffer, progress=_progress(options.quiet)) as done:
        _progress(options.quiet)("")
        sys.stdout.write(screen.screen(done.report))
        for resource, rows in done.stories():
            sys.stdout.write("\n" + screen.story(rows, resource))
        if options.save_map:
            _save_map(done.log.mappings, options.save_map)
        if options.out:
            _write(request, done, options, said)
        sys.stdout.flush()
        return int(done.report["exit_code"])


def _save_map(mappings: dict[str, Any], target: str) -> None:
    from fencinglab.logs import mapping

    if len(mappings) > 1:
        raise UsageError(
            f"--save-map {target}: {' and '.join(mappings)} have mappings of their own; save each with its log alone"
        )
    mapping.save(next(iter(mappings.values())), target)
    print(f"The mapping is in {target}: use it by --map {target}")


def _write(request: Any, done: Any, options: argparse.Namespace, said: dict[str, str]) -> None:
    from fencinglab import files, output

    more = {}
    if options.notebook:
        import tempfile

        from fencinglab import notebook

        with tempfile.TemporaryDirectory() as work:
            more["audit.ipynb"] = notebook.executed(options.logs, said, Path(work))
    print(output.written(files.write(done, Path(options.out), private=not request.redact, more=more)))


def _progress(quiet: bool) -> Any:
    """A function that shows one line of progress on a terminal, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}{'…' if text else ''}")
        sys.stderr.flush()

    return show


if __name__ == "__main__":
    sys.exit(main())
