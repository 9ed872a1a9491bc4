"""Fixes against invariants: what holds in every order of events, and how many steps the shortest run to harm has."""

from __future__ import annotations

from collections.abc import Sequence

from fencinglab.charts.library import altair
from fencinglab.charts.style import (
    BLUE,
    CROSS,
    GREY,
    INK,
    PAPER,
    RULE,
    VERMILLION,
    Chart,
    Mark,
    Row,
    by_mark,
    framed,
    layer,
    tips,
)  # fmt: skip
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.inert import inert

_MARKS = {  # of a cell, by its status
    "holds": Mark("holds", "circle", BLUE, BLUE),
    "violated": Mark("violated, in so many steps", CROSS, "transparent", VERMILLION),
    "empty": Mark("not put to the test", "circle", PAPER, GREY),
    "undecided": Mark("not decided", "square", PAPER, INK),
}
_ROW = 24  # pixels


def matrix(cells: Sequence[Row], searched: str) -> Chart | None:
    """A row a fix and a column an invariant, in the order of the cells: rows of a matrix; None where there are none.

    `searched` says within which bounds. An invariant that no fix is asked about has no column.
    """
    shown = [
        {
            "fix": cell["fix"], "invariant": f"{cell['invariant']} ({INVARIANTS[cell['invariant']].group})",
            "status": _MARKS[cell["status"]].word, "states": f"{cell['states']:,}",
            "length": str(cell["length"]) if cell["status"] == "violated" else "",
        }
        for cell in cells
        if cell["status"] in _MARKS
    ]  # fmt: skip
    if not shown:
        return None
    fixes, invariants = ([*dict.fromkeys(row[name] for row in shown)] for name in ("fix", "invariant"))
    place = {
        "x": altair.X(
            "invariant:N", sort=invariants, title=None, scale=altair.Scale(domain=invariants),
            axis=altair.Axis(orient="top", labelAngle=-25, domain=False, ticks=False, labelLimit=140),
        ),
        "y": altair.Y(
            "fix:N", sort=fixes, title=None, scale=altair.Scale(domain=fixes),
            axis=altair.Axis(domain=False, ticks=False, labelLimit=200, grid=True, gridColor=RULE),
        ),
    }  # fmt: skip
    by_status = by_mark({row["status"] for row in shown}, [*_MARKS.values()], "status")
    tooltip = tips({name: name for name in ("fix", "invariant", "status", "length", "states")})
    marks = layer(shown).mark_point(size=64, strokeWidth=1.8, opacity=1, aria=False)
    lengths = layer([row for row in shown if row["length"]]).mark_text(
        dx=9, align="left", fill=INK, fontSize=11, aria=False
    )
    held = [fix for fix in fixes if "unsafe" not in _violated(shown, fix)]
    title = f"Nothing unsafe was found in any order of events: {', '.join(held) or 'under none of the fixes'}"
    told = "; ".join(f"{fix}: {_violated(shown, fix)}" for fix in fixes)
    layers = [marks.encode(**by_status, tooltip=tooltip), lengths.encode(text="length:N")]
    return framed(
        layers, title, [inert(searched, 110)], f"{title}. Violated, in steps: {told}.", _ROW * len(fixes), **place
    )


def _violated(shown: Sequence[Row], fix: str) -> str:
    return ", ".join(f"{r['invariant']} {r['length']}" for r in shown if r["fix"] == fix and r["length"]) or "nothing"
