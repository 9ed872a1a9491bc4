"""Text from a log made harmless before anybody reads it: on a screen, in a page, in a chart, in a sentence."""

from __future__ import annotations

import textwrap
import unicodedata

WIDTH = 100  # columns of a screen
_MARK = "\N{REPLACEMENT CHARACTER}"
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format and direction characters, lone surrogates, line ends


def inert(text: object, width: int) -> str:
    """The text on one line without hidden characters, its middle left out beyond `width` characters."""
    line = "".join(_MARK if unicodedata.category(c) in _HIDDEN else c for c in _bounded(text, width))
    if len(line) <= width:
        return line
    tail = width // 3
    return f"{line[: width - tail - 1]}…{line[-tail:]}"


def _bounded(text: object, width: int) -> str:
    """Enough of both ends of a text that may have many megabytes."""
    whole = str(text)
    return whole if len(whole) <= 2 * width else whole[:width] + whole[-width:]


def wrapped(head: str, text: object, indent: int | None = None, cut: bool = False) -> list[str]:
    """The text after the head in lines no wider than the screen, the further ones below its first or at `indent`.

    Words stay whole, however long, unless they may be `cut`. Of no text there is no line.
    """
    below = " " * (len(head) if indent is None else indent)
    return textwrap.wrap(
        inert(text, 2_000), WIDTH, initial_indent=head, subsequent_indent=below, break_long_words=cut,
        break_on_hyphens=False,
    )  # fmt: skip
