"""The command line. Each verb answers one question; errors are one sentence and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import fencinglab
from fencinglab.cli import audit, check, compare, drill, replay
from fencinglab.cli.options import Parser, progress
from fencinglab.errors import FencinglabError
from fencinglab.inert import inert

VERBS = {"audit": audit, "replay": replay, "check": check, "compare": compare, "drill": drill}


def parser() -> Parser:
    """The parser of all verbs."""
    top = Parser(
        prog="fencinglab", description="Which writes had no right to be made, and which could be.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"fencinglab {fencinglab.__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    for verb in VERBS.values():
        verb.add(verbs)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser().parse_args(words)
        if options.verb is None:
            parser().print_help()
            return 0
        code: int = VERBS[options.verb].run(options, words, progress(getattr(options, "quiet", True)))
        sys.stdout.flush()
        return code
    except FencinglabError as error:
        print(f"fencinglab: {inert(error, 2000)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("fencinglab: stopped; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
