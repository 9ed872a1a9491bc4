"""What several verbs share: options, what they take, and the line of progress."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from fencinglab.errors import UsageError

EXITS = "exit codes: 0 nothing unsafe and everything decided, 1 violated, 2 unusable input or usage, 3 inconclusive"


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence; `-5s` is a value to it, so that its verb can say why not."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Refuse the words of a command."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


def hazards(verb: Any) -> None:
    """The options that say what may go wrong in it."""
    verb.add_argument(
        "--hazard",
        action="append",
        default=[],
        metavar="NAME[=TIMES]",
        help="what else may go wrong; may be given often",
    )
    verb.add_argument("--alert", metavar="WHEN", help="before, after or with the finish (default none)")


def fail_on(verb: Any) -> None:
    """The option that widens what a failure is."""
    verb.add_argument("--fail-on", metavar="CLASS", help="exit 1 for window or cost too")


def classes(given: str | None) -> tuple[str, ...]:
    """The classes that --fail-on names; one that there is not is a UsageError."""
    named = tuple(given.split(",")) if given else ()
    for name in named:
        if name not in ("unsafe", "window", "cost"):
            raise UsageError(f"--fail-on {given}: `{name}` is none of window, cost")
    return named


def refuse(options: argparse.Namespace, names: Iterable[str], what: str) -> None:
    """Raise a UsageError for the first of these options that was given: it belongs to `what`, which says what to do.

    An option that can be refused has no default, so that one that was not given is None, False or an empty list.
    """
    for name in names:
        given = getattr(options, name)
        if given is None or given is False or given == []:
            continue
        value = "" if given is True else f" {given[0] if isinstance(given, list) else given}"
        raise UsageError(f"--{name.replace('_', '-')}{value} belongs to {what}")


def give(text: str, out: str | None, contents: Callable[[], Mapping[str, Any]]) -> None:
    """Print the answer and, with --out, write its files and say which."""
    from fencinglab import output

    sys.stdout.write(text)
    if out:
        print(output.written(output.place(contents(), Path(out))))


def progress(quiet: bool) -> Callable[[str], None]:
    """A function that shows one line of progress on a terminal, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}{'…' if text else ''}")
        sys.stderr.flush()

    return show
