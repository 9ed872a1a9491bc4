"""Lease lengths against what they cost, each fix a line: duplicates, dead time and wasted work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencinglab.charts.library import altair
from fencinglab.charts.style import BLUE, PAPER, VERMILLION, WIDTH, Row, heading, layer, whole
from fencinglab.inert import inert
from fencinglab.simulate.measure import RARE

_PANELS = {  # field of a point: axis, factor
    "duplicates": ("jobs finished twice (%)", 100),
    "dead": ("dead time (s a job)", 1),
    "wasted": ("wasted work (s a job)", 1),
}
_COLOURS, _SHAPES = (VERMILLION, BLUE), ("square", "circle")  # of the first fix and of the one that is recommended
_HEIGHT = 110


def tradeoff(points: Sequence[Row]) -> altair.VConcatChart | None:
    """The three costs of each lease length: rows of the `sweep` of a review; None where there are none.

    A point is filled unless another length of its fix is better in one and worse in none, beyond chance. Bars are
    intervals at 95 %, which a mean of fewer than `RARE` jobs does not have.
    """
    if not points:
        return None
    fixes = [*dict.fromkeys(point["fix"] for point in points)]
    panels = [_panel(points, fixes, name, name == [*_PANELS][-1]) for name in _PANELS]
    best = {fix: [f"{p['lease']:g}" for p in points if p["fix"] == fix and p["efficient"]] for fix in fixes}
    told = "; ".join(f"{fix}: {', '.join(leases)} s" if leases else f"{fix}: none" for fix, leases in best.items())
    title = f"Lease lengths that no other beats: {told}"
    jobs = points[0]["jobs"]
    key = ", ".join(f"{sign} {fix}" for sign, fix in zip("□○", fixes, strict=False))
    key += "; filled: no other length is better in one and worse in none, beyond chance"
    key += f"; bars: 95 %, {jobs:,} jobs a point"
    return altair.VConcatChart(
        vconcat=panels, title=heading(title, [key]), spacing=12, **whole(f"{inert(title, 170)}. {key}.")
    )


def _panel(points: Sequence[Row], fixes: Sequence[str], name: str, last: bool) -> altair.LayerChart:
    axis, factor = _PANELS[name]
    leases = sorted({point["lease"] for point in points})
    rows = [
        {
            "fix": point["fix"], "lease": point["lease"] * (1 + 0.03 * fixes.index(point["fix"])),
            "value": point[name]["value"] * factor, "low": point[name]["low"] * factor,
            "high": point[name]["high"] * factor, "efficient": "yes" if point["efficient"] else "no",
            "sure": name == "duplicates" or point[name]["seen"] >= RARE,
        }
        for point in points
    ]  # fmt: skip

    def by_fix(channel: Any, values: Sequence[str]) -> Any:
        scale = altair.Scale(domain=fixes, range=[*values[: len(fixes)]])
        return channel("fix:N", scale=scale, sort=fixes, legend=None)

    colour = by_fix(altair.Color, _COLOURS)
    inside = altair.condition("datum.efficient == 'yes'", by_fix(altair.Fill, _COLOURS), altair.value(PAPER))
    x = altair.X(
        "lease:Q", title="lease (s)" if last else None,
        scale=altair.Scale(type="log", domain=[leases[0] / 1.2, leases[-1] * 1.2], nice=False),
        axis=altair.Axis(values=leases, format="~g", grid=False, labels=last),
    )  # fmt: skip
    y = altair.Y("value:Q", title=axis, axis=altair.Axis(tickCount=4), scale=altair.Scale(zero=True))
    drawn = layer(rows)
    layers = [
        layer([row for row in rows if row["sure"]]).mark_rule(strokeWidth=1, aria=False).encode(
            x=x, y=altair.Y("low:Q", title=axis), y2="high:Q", color=colour
        ),
        drawn.mark_line(strokeWidth=1.5, aria=False).encode(x=x, y=y, color=colour),
        drawn.mark_point(size=70, opacity=1, strokeWidth=1.8, aria=False).encode(
            x=x, y=y, fill=inside,
            shape=by_fix(altair.Shape, _SHAPES), stroke=by_fix(altair.Stroke, _COLOURS),
            tooltip=[altair.Tooltip("fix:N"), altair.Tooltip("value:Q", title=axis)],
        ),
    ]  # fmt: skip
    return altair.LayerChart(layer=layers, width=WIDTH, height=_HEIGHT)
