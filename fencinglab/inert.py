"""Text from a log made harmless before anybody reads it: on a screen, in a page, in a chart, in a sentence."""

from __future__ import annotations

import unicodedata

_MARK = "\N{REPLACEMENT CHARACTER}"
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format and direction characters, lone surrogates, line ends


def inert(text: object, width: int) -> str:
    """The text on one line without hidden characters, its middle left out beyond `width` characters."""
    line = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _HIDDEN else c for c in _bounded(text, width)
    )
    if len(line) <= width:
        return line
    tail = width // 3
    return f"{line[: width - tail - 1]}…{line[-tail:]}"


def _bounded(text: object, width: int) -> str:
    """Enough of both ends of a text that may have many megabytes."""
    whole = str(text)
    return whole if len(whole) <= 2 * width else whole[:width] + whole[-width:]
