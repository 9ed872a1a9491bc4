"""Refused requests over time, late told from stale."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from fencinglab.charts.library import altair
from fencinglab.charts.style import BLUE, INK, PALE, PAPER, SKY, VERMILLION, Chart, Row, framed, layer

REJECTIONS = {  # field of report["rejections"]: word in the title, in the legend, colour; from the bottom of a bar up
    "stale": ("stale", "stale: a newer token was held", VERMILLION),
    "late": ("late", "late: its own lease had run out", SKY),
    "done": ("already done", "the work was already done", PALE),
    "own": ("after their own success", "its own earlier success", BLUE),
    "other": ("for another reason", "another or no known reason", INK),
}


def rejections(rows: Sequence[Row]) -> Chart | None:
    """Refused requests over time, late told from stale: rows of report["rejections"]; None where there are none."""
    totals = {kind: sum(row[kind] for row in rows) for kind in REJECTIONS}
    if not any(totals.values()):
        return None
    times = [datetime.fromisoformat(row["at"]) for row in rows]
    length = max((times[-1] - times[0]) / 59, timedelta(seconds=1))  # a sixtieth of the time, as in the report
    bars, top = [], max(sum(row[kind] for kind in REJECTIONS) for row in rows)
    for row, at in zip(rows, times, strict=True):
        low, ends = 0, {"from": _milliseconds(at), "to": _milliseconds(at + length)}
        for kind, (_, reason, _) in REJECTIONS.items():
            if count := row[kind]:
                bars.append(ends | {"low": low, "high": low + count, "count": count, "reason": reason})
                low += count
    clock = "%m-%d" if length > timedelta(hours=1) else "%H:%M" if length > timedelta(seconds=5) else "%H:%M:%S"
    _, reasons, colours = zip(*REJECTIONS.values(), strict=True)
    legend = altair.Legend(title=None, orient="bottom", direction="horizontal", columns=3, symbolType="square")
    domain = [_milliseconds(times[0] - length), _milliseconds(max(times[-1], times[0] + 20 * length) + 2 * length)]
    chart = layer(bars).mark_rect(stroke=PAPER, strokeWidth=0.5, aria=False).encode(
        x=altair.X(
            "from:T", title="receiver's time (UTC)", scale=altair.Scale(type="utc", domain=domain),
            axis=altair.Axis(format=clock, grid=False, tickCount=8, labelOverlap=True, labelSeparation=8),
        ),
        x2="to:T",
        y=altair.Y("low:Q", title="refused requests", axis=altair.Axis(tickCount=min(5, top), format="d")),
        y2="high:Q",
        color=altair.Color("reason:N", scale=altair.Scale(domain=reasons, range=colours), legend=legend),
        tooltip=[
            altair.Tooltip("reason:N", title="reason"), altair.Tooltip("count:Q", title="requests"),
            altair.Tooltip("from:T", title="from (UTC)", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
        ],
    )  # fmt: skip
    counts = [f"{totals[kind]:,} {word}" for kind, (word, _, _) in REJECTIONS.items() if totals[kind]]
    title = "Refused: " + ", ".join(counts)
    span = f"{times[0]:%Y-%m-%d %H:%M:%S} to {times[-1]:%Y-%m-%d %H:%M:%S} UTC, a bar is {_long(length)}"
    return framed([chart], title, [span], f"Refused requests over time. {title}. {span}.", 170)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _long(span: timedelta) -> str:
    seconds = span.total_seconds()
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} second{'s' if round(seconds) != 1 else ''}"
