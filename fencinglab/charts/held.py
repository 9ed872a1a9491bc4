"""Token and acceptance history of one resource: the token that the receiver held, and what mutations presented.

The rows are those of an audit's report or of a replay that was judged. Text from logs is made inert and cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencinglab.charts.library import altair
from fencinglab.charts.style import (
    ACCEPTED,
    FINISHED,
    MARKS,
    MUTED,
    NONE_SEEN,
    OPEN,
    REFUSED,
    Chart,
    Row,
    decided,
    framed,
    integer,
    labels,
    layer,
    levels,
    moment,
    ringed,
    text,
    tips,
)  # fmt: skip
from fencinglab.inert import inert

WINDOW = 80  # mutations in one chart; more cannot be told apart in this width
NAMED = 16  # grants up to which each is labelled with its holder

_TOOLTIPS = {
    "step": "step", "at": "receiver's time", "kind": "kind", "writer": "writer", "presented": "token presented",
    "before": "token held before", "decision": "decision", "holder": "holder afterwards",
}  # fmt: skip
_ORDERS = {  # whether all rows have a place in the receiver's order, and whether any has
    (True, True): "step in the receiver's order",
    (False, True): "step in the receiver's order; some have no place in it",
    (False, False): "place in the log (the order is not known)",
}


def window(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that one chart can show: all, or WINDOW of them around the first broken (else undecided) one."""
    places = [i for i, row in enumerate(rows) if row["broken"]] or [i for i, row in enumerate(rows) if row["undecided"]]
    start = max(0, min((places or [0])[0] - WINDOW // 2, len(rows) - WINDOW))
    return rows[start : start + WINDOW]


def tokens(rows: Sequence[Row], title: str | None = None) -> Chart | None:
    """Token and acceptance history of one resource; None where there are no rows.

    Rows of report["timeline"], or of a run that was judged, in order. The line is the token that the receiver held, a
    mark is a mutation at the token that it presented.
    """
    if not rows:
        return None
    held, shown = tokens_held(rows), window(rows)
    title = title or finding(rows)
    first = rows.index(shown[0])
    points = [point_of(row, before, after) for row, (before, after) in zip(shown, held[first:], strict=False)]
    line = _line(points)
    ordered = {_placed(row) for row in shown}
    places = levels(point["token"] for point in (*points, *line))
    written, left_out = labels(places)
    for point in (*points, *line):
        point["token"] = written[point["token"]]
    steps = [point["step"] for point in points]
    place: dict[str, Any] = {
        "x": altair.X(
            "step:Q",
            title=_ORDERS[min(ordered), max(ordered)],
            scale=altair.Scale(domain=[steps[0] - 0.6, steps[-1] + 0.6], nice=False),
            axis=altair.Axis(format="d", grid=False, values=steps if len(steps) <= 20 else altair.Undefined),
        ),
        "y": altair.Y(
            "token:O",
            title="fencing token",
            scale=altair.Scale(domain=[*written.values()]),
            axis=altair.Axis(labelOverlap=True, labelLimit=220),
        ),
    }
    layers = []
    if line:
        held_line = layer(line).mark_line(interpolate="step-after", color=MUTED, strokeWidth=1.4, aria=False)
        layers.append(held_line.encode(**place, detail="part:N", order="step:Q"))
    grants = [point for point in points if point["kind"] == "grant" and point["mark"] == ACCEPTED and point["holder"]]
    if 0 < len(grants) <= NAMED:
        layers += text(grants, "holder", MUTED, 7, -12, halo=True, **place)
    words = {point["mark"] for point in (*points, *ringed(points))}
    size = 34.0 if len(points) > 3 * NAMED else 72.0
    layers += decided(points, words, size, **place, tooltip=tips(_TOOLTIPS))
    resource, times = inert(shown[0]["resource"], 80), [*filter(None, map(moment, shown))]
    part = "" if len(shown) == len(rows) else f", steps {steps[0]}–{steps[-1]}"
    span = f" · {times[0]} to {times[-1]}" if times else ""
    subtitle = [f"{resource} · {len(rows):,} mutation{'s' if len(rows) > 1 else ''}{part}{span}"]
    subtitle += [f"… stands for {left_out}"] if left_out else []
    return framed(layers, title, subtitle, _told(points, resource, title), max(90, min(300, 34 * len(places))))


def tokens_held(rows: Sequence[Row]) -> list[tuple[int | None, int | None]]:
    """The token that the receiver held of the row's resource before and after each row, as far as the rows tell.

    A row that has no place in the order of the others moves nothing, and of before it is known what it says itself.
    """
    found = []
    held: dict[str, int | None] = {}
    some = any(map(_placed, rows))
    for row in rows:
        resource, before = row["resource"], integer(row["before_token"])
        if not some or _placed(row):
            before = held.get(resource) if before is None else before
            held[resource] = before
            if row["decision"] == "accepted":
                left = row["token"] if row["after_token"] is None and row["kind"] == "grant" else row["after_token"]
                held[resource] = None if "delete" in row["kind"] else before if left is None else integer(left)
        found.append((before, held.get(resource)))
    return found


def _placed(row: Row) -> bool:
    return row.get("order_key", "") is not None


def point_of(row: Row, before: int | None, after: int | None) -> dict[str, Any]:
    """The mark of a row and what is shown of it, with the token that was held before and after it."""
    granted = row["kind"] == "grant" and row["decision"] != "rejected"
    token = integer(row["after_token"] if granted and row["token"] is None else row["token"])
    undecided = row["undecided"] or row["decision"] == "unknown"
    finished = row["decision"] == "accepted" and row["kind"] == "finish"
    mark = OPEN if undecided else REFUSED if row["decision"] == "rejected" else FINISHED if finished else ACCEPTED
    return {
        "step": row["step"], "token": NONE_SEEN if token is None else str(token), "mark": mark, "kind": row["kind"],
        "presented": "not known or none" if token is None else str(token), "decision": row["decision"],
        "before": "not known" if before is None else str(before), "held": None if after is None else str(after),
        "at": moment(row) or "not known", "writer": inert(row["writer"] or "not known", 40),
        "holder": inert(row["after_holder"] or "", 14), "broken": bool(row["broken"]),
    }  # fmt: skip


def _line(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The line of the token held: a new part wherever nothing was held, the last one drawn to the edge."""
    line: list[dict[str, Any]] = []
    part, holding = 0, False
    for point in points:
        if point["held"] is not None:
            line.append({"step": point["step"], "token": point["held"], "part": part})
        elif holding:
            line.append(line[-1] | {"step": point["step"]})
            part += 1
        holding = point["held"] is not None
    return [*line, line[-1] | {"step": points[-1]["step"] + 0.6}] if holding else line


def finding(rows: Sequence[Row]) -> str:
    """What the history shows, in a sentence; the first broken row decides it."""
    for row, (before, _) in zip(rows, tokens_held(rows), strict=True):
        if row["broken"]:
            token, who = integer(row["token"]), f"{row['kind']} by {row['writer'] or 'somebody'}"
            where = f"{who} at {row['clock']}" if row.get("clock") else f"step {row['step']}, {who}"
            if token is not None and before is not None and token < before:
                return f"{token} was accepted while {before} was held: {where}"
            if row.get("harm"):
                return f"{row['harm'][0].upper()}{row['harm'][1:]}: {where}"
            if token is None and before is not None:
                return f"A write without a known token was accepted while {before} was held: {where}"
            return f"A rule was broken: {where}"
    undecided = sum(bool(row["undecided"]) for row in rows)
    if undecided:
        return f"Not decided: {undecided:,} of {len(rows):,} mutations, for want of evidence"
    refused = sum(row["decision"] == "rejected" for row in rows)
    words = f"{refused:,} were" if refused > 1 else "1 was" if refused else "none was"
    if any(row["broken"] is None for row in rows):
        return f"Not judged: {len(rows):,} mutation{'s' if len(rows) > 1 else ''}, of which {words} refused"
    return f"No mutation broke a rule; {words} refused"


def _told(points: Sequence[dict[str, Any]], resource: str, title: str) -> str:
    """The chart in words, for those who do not see it."""
    counts = [(mark.word, sum(point["mark"] == mark.word for point in points)) for mark in MARKS]
    listed = ", ".join(f"{count} {word}" for word, count in counts if count)
    broken = [str(point["step"]) for point in points if point["broken"]]
    rings = f" Ringed: step {', '.join(broken[:10])}{' …' if len(broken) > 10 else ''}." if broken else ""
    return f"Fencing tokens of {resource} over the mutations in order. {inert(title, 200)}. Mutations: {listed}.{rings}"
