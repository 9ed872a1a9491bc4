"""The verb `audit` of the command line: its options, and what becomes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fencinglab.cli.options import EXITS, fail_on
from fencinglab.errors import UsageError


def add(verbs: Any) -> None:
    """Add the verb with its options."""
    audit = verbs.add_parser(
        "audit", help="What happened? Audit a log for writes of workers that had lost their lease.",
        description="What happened? Did a worker that had lost its lease overwrite newer state? Reads DynamoDB Streams "
        "records, JSON log lines, CSV or Parquet; every verdict comes with its rows, and unknown is never a pass.",
        epilog=EXITS, allow_abbrev=False,
    )  # fmt: skip
    audit.add_argument("logs", nargs="+", metavar="LOG", help="files, folders, or - for standard input")
    out = audit.add_argument_group("what it writes")
    out.add_argument(
        "--out",
        metavar="DIR",
        help="write report.json, findings.csv, affected.csv, summary.md, report.html, findings as timelines to replay",
    )
    out.add_argument("--notebook", action="store_true", help="with --out: also the executed notebook")
    out.add_argument(
        "--redact",
        action="store_true",
        help="replace every text of the log by a number, but for the names of its fields",
    )
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
    fail_on(verdict)
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


def run(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    """Audit what the options ask for and print it; the exit code."""
    from dataclasses import replace

    from fencinglab.report import screen
    from fencinglab.report.examine import examine, request_of

    if options.notebook and not options.out:
        raise UsageError("--notebook needs --out DIR to write into")
    told = {k: v for k, v in vars(options).items() if k not in ("verb", "logs", "out", "notebook", "quiet", "save_map")}
    said = {k: str(v) for k, v in (told | {"map": ";".join(options.map)}).items() if v}
    if options.notebook:
        from fencinglab.report import notebook

        notebook.refuse(options.logs, Path(options.out))
    request = replace(request_of(options.logs, said), command=("fencinglab", *words))
    with examine(request, stdin=sys.stdin.buffer, progress=show) as done:
        show("")
        sys.stdout.write(screen.screen(done.report))
        for resource, rows in done.stories():
            sys.stdout.write("\n" + screen.story(rows, resource))
        if options.save_map:
            _save_map(done.log.mappings, options.save_map)
        if options.out:
            _write(request, done, options, said)
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
    from fencinglab import output
    from fencinglab.report import files

    more = {}
    if options.notebook:
        import tempfile

        from fencinglab.report import notebook

        with tempfile.TemporaryDirectory() as work:
            more[notebook.NAME] = notebook.executed(options.logs, said, Path(work))
    print(output.written(files.write(done, Path(options.out), private=not request.redact, more=more)))
