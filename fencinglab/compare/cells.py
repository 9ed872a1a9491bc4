"""The numbers of a design review as they are written, on a screen and on a page, values with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencinglab.explore.invariants import MARKS


def percent(share: float, digits: int = 3) -> str:
    """A share in percent, with so many digits that count; what is very small as a power of ten."""
    value = share * 100
    if value == 0 or value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1e}" if value < 1e-4 else f"{value:.{digits}g}"


def interval(found: Mapping[str, Any], rare: Mapping[str, Any] | None = None) -> str:
    """`2.43 % (2.2–2.7)`; of what was never seen the most that it can be; ~ before what long pauses showed."""
    if rare and rare["fits"]:
        return f"~{percent(rare['value'])} % ({percent(rare['low'], 2)}–{percent(rare['high'], 2)})"
    if not found["seen"]:
        return f"none (up to {percent(found['high'], 2)} %)"
    return f"{percent(found['value'])} % ({percent(found['low'], 2)}–{percent(found['high'], 2)})"


def mean(found: Mapping[str, Any], sign: str = "") -> str:
    """`0.43 (0.41–0.46)`, or `+0.22 (+0.18 to +0.26)` of a difference."""
    between = " to " if sign else "–"
    return f"{found['value']:{sign}.2f} ({found['low']:{sign}.2f}{between}{found['high']:{sign}.2f})"


def invariant(row: Mapping[str, Any], name: str) -> str:
    """`●`, or `✕ 9` with the steps of the shortest run that breaks it."""
    cell = row["safety"].get(name, {"status": "undecided", "length": None})
    return f"✕ {cell['length']}" if cell["status"] == "violated" else MARKS[cell["status"]]


def seconds(value: float | None) -> str:
    """`10.9`, or `never`."""
    return "never" if value is None else f"{value:.3g}"
