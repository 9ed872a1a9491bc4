"""The charts of a report: plain rows in, an Altair chart out. The only place that styles.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; each stands with a shape of its own, the same
in every chart. Text from logs is made inert and cut. JupyterLab draws Vega-Lite 5: nothing here needs a later one.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import altair
import vl_convert

from fencinglab.inert import inert

Row = Mapping[str, Any]
Chart = altair.LayerChart

BLUE, VERMILLION, SKY, PURPLE = "#0072b2", "#d55e00", "#56b4e9", "#aa3377"
# Neutral colours, each for one purpose, so that a page can replace them in dark mode.
INK, MUTED, GREY, PALE, RULE, PAPER = "#1f2328", "#59636e", "#7d8590", "#b9c0c8", "#e3e6ea", "#ffffff"

WIDTH = 640  # of the plot, pixels: charts with the container's width come out blank in saved notebooks
WINDOW = 80  # mutations in one token chart; more cannot be told apart in this width
NAMED = 16  # grants up to which each is labelled with its holder
DIGITS = 12  # tokens up to this length are written in full
NONE_SEEN = "none seen"  # the lane of mutations whose token is not known, or that presented none


class Mark(NamedTuple):
    """How one kind of mutation is drawn."""

    word: str
    shape: str
    fill: str
    stroke: str


MARKS = (
    Mark("accepted", "circle", BLUE, BLUE),
    Mark("refused", "M-1,-1L1,1M-1,1L1,-1", "transparent", VERMILLION),
    Mark("finished", "square", GREY, GREY),
    Mark("not decided", "circle", PAPER, INK),
    Mark("broke a rule", "circle", "transparent", PURPLE),  # a ring around one of the others
)
ACCEPTED, REFUSED, FINISHED, OPEN, BROKEN = (mark.word for mark in MARKS)


REJECTIONS = {  # field of report["rejections"]: word in the title, in the legend, colour; from the bottom of a bar up
    "stale": ("stale", "stale: a newer token was held", VERMILLION),
    "late": ("late", "late: its own lease had run out", SKY),
    "done": ("already done", "the work was already done", GREY),
    "own": ("after their own success", "its own earlier success", BLUE),
    "other": ("for another reason", "another or no known reason", PALE),
}

_TOOLTIPS = {
    "step": "step", "at": "receiver's time (UTC)", "kind": "kind", "writer": "writer", "presented": "token presented",
    "before": "token held before", "decision": "decision", "holder": "holder afterwards",
}  # fmt: skip

_STYLE = {
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "title": {
        "anchor": "start", "frame": "group", "offset": 14, "limit": WIDTH + 20, "color": INK, "fontSize": 13,
        "fontWeight": 600, "subtitleColor": MUTED, "subtitleFontSize": 11, "subtitlePadding": 4,
    },
    "axis": {
        "labelColor": MUTED, "titleColor": MUTED, "domainColor": GREY, "tickColor": GREY, "gridColor": RULE,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "titlePadding": 8,
    },
    "legend": {"labelColor": INK, "labelFontSize": 11, "labelLimit": 220, "offset": 10, "symbolSize": 110},
}  # fmt: skip


# --------------------------------------------------------------------------- tokens


def window(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that one chart can show: all, or WINDOW of them around the first broken (else undecided) one."""
    places = [i for i, row in enumerate(rows) if row["broken"]] or [i for i, row in enumerate(rows) if row["undecided"]]
    start = max(0, min((places or [0])[0] - WINDOW // 2, len(rows) - WINDOW))
    return rows[start : start + WINDOW]


def tokens(rows: Sequence[Row], title: str | None = None) -> Chart | None:
    """Token and acceptance history of one resource: rows of report["timeline"] in order; None where there are none.

    The line is the token that the receiver held, a mark is a mutation at the token that it presented.
    """
    if not rows:
        return None
    held, shown = _held(rows), window(rows)
    title = title or _finding(rows, held)
    first = rows.index(shown[0])
    points = [_point(row, before, after) for row, (before, after) in zip(shown, held[first:], strict=False)]
    rings = [point | {"mark": BROKEN} for point in points if point["broken"]]
    line = _line(points)
    ordered = all(row.get("order_key", "") is not None for row in shown)
    levels = _levels(point["token"] for point in (*points, *line))
    labels, left_out = _labels(levels)
    for point in (*points, *rings, *line):
        point["token"] = labels[point["token"]]
    steps = [point["step"] for point in points]
    place: dict[str, Any] = {
        "x": altair.X(
            "step:Q",
            title="step in the receiver's order" if ordered else "place in the log (the order is not known)",
            scale=altair.Scale(domain=[steps[0] - 0.6, steps[-1] + 0.6], nice=False),
            axis=altair.Axis(format="d", grid=False, values=steps if len(steps) <= 20 else altair.Undefined),
        ),
        "y": altair.Y(
            "token:O",
            title="fencing token",
            scale=altair.Scale(domain=list(labels.values())),
            axis=altair.Axis(labelOverlap=True, labelLimit=220),
        ),
    }
    layers = []
    if line:
        held_line = _layer(line).mark_line(interpolate="step-after", color=MUTED, strokeWidth=1.4, aria=False)
        layers.append(held_line.encode(**place, detail="part:N", order="step:Q"))
    grants = [point for point in points if point["kind"] == "grant" and point["mark"] == ACCEPTED and point["holder"]]
    if 0 < len(grants) <= NAMED:
        for colour, halo in ((PAPER, 3), (MUTED, 0)):  # the first is a halo, readable where the line crosses a name
            names = _layer(grants).mark_text(
                dx=7, dy=-12, align="left", fontSize=10, fill=colour, stroke=colour, strokeWidth=halo, aria=False
            )
            layers.append(names.encode(**place, text="holder:N"))
    present = [mark.word for mark in MARKS if any(point["mark"] == mark.word for point in (*points, *rings))]
    tooltip = [altair.Tooltip(name, type="nominal", title=words) for name, words in _TOOLTIPS.items()]
    size = 34.0 if len(points) > 3 * NAMED else 72.0
    for marked, area, stroke in ((points, size, 1.8), (rings, 4.5 * size, 2.4)):
        if marked:
            marks = _layer(marked).mark_point(size=area, strokeWidth=stroke, opacity=1, aria=False)
            layers.append(marks.encode(**place, **_by_mark(present), tooltip=tooltip))
    resource, times = inert(shown[0]["resource"], 80), [inert(row["at"], 60) for row in shown if row["at"]]
    part = "" if len(shown) == len(rows) else f", steps {steps[0]}–{steps[-1]}"
    span = f" · {times[0]} to {times[-1]}" if times else ""
    subtitle = [f"{resource} · {len(rows):,} mutation{'s' if len(rows) > 1 else ''}{part}{span}"]
    subtitle += [f"… stands for {left_out}"] if left_out else []
    return _framed(layers, title, subtitle, _told(points, resource, title), max(90, min(300, 34 * len(levels))))


def _held(rows: Sequence[Row]) -> list[tuple[int | None, int | None]]:
    """The token that the receiver held before and after each row, as far as the rows tell."""
    found = []
    held: int | None = None
    for row in rows:
        before = held if row["before_token"] is None else _integer(row["before_token"])
        held = before
        if row["decision"] == "accepted":
            left = row["token"] if row["after_token"] is None and row["kind"] == "grant" else row["after_token"]
            held = None if "delete" in row["kind"] else before if left is None else _integer(left)
        found.append((before, held))
    return found


def _integer(token: object) -> int | None:
    """A token as the report writes it (a number, or text where it is long), exact."""
    return None if token is None else int(str(token))


def _point(row: Row, before: int | None, after: int | None) -> dict[str, Any]:
    token = _integer(row["after_token"] if row["kind"] == "grant" and row["token"] is None else row["token"])
    undecided = row["undecided"] or row["decision"] == "unknown"
    finished = row["decision"] == "accepted" and row["kind"] == "finish"
    mark = OPEN if undecided else REFUSED if row["decision"] == "rejected" else FINISHED if finished else ACCEPTED
    return {
        "step": row["step"], "token": NONE_SEEN if token is None else str(token), "mark": mark, "kind": row["kind"],
        "presented": "not known or none" if token is None else str(token), "decision": row["decision"],
        "before": "not known" if before is None else str(before), "held": None if after is None else str(after),
        "at": row["at"] or "not known", "writer": inert(row["writer"] or "not known", 40),
        "holder": inert(row["after_holder"] or "", 14), "broken": row["broken"],
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


def _levels(seen: Iterable[str]) -> list[str]:
    """The distinct tokens, highest first, and last the lane of those that are not known."""
    return sorted(set(seen), key=lambda token: -1 if token == NONE_SEEN else int(token), reverse=True)


def _labels(levels: Sequence[str]) -> tuple[dict[str, str], str]:
    """{token: label}, exact, and the leading digits that the labels leave out because all long tokens share them."""
    digits = [level for level in levels if level != NONE_SEEN]
    longest, shortest = max(map(len, digits), default=0), min(map(len, digits), default=0)
    common = next((n for n in range(shortest - 4) if len({d[: n + 1] for d in digits}) > 1), max(0, shortest - 4))
    if longest <= DIGITS or longest != shortest or common < 4:
        return {level: level for level in levels}, ""
    return {level: level if level == NONE_SEEN else "…" + level[common:] for level in levels}, digits[0][:common]


def _by_mark(present: Sequence[str]) -> dict[str, Any]:
    """Shape, fill and stroke by the kind of mark, with one legend of the kinds present."""
    legend = altair.Legend(title=None, orient="bottom", direction="horizontal", values=present, symbolStrokeWidth=2)

    def channel(kind: Any, field: str) -> Any:
        scale = altair.Scale(domain=[mark.word for mark in MARKS], range=[getattr(mark, field) for mark in MARKS])
        return kind("mark:N", scale=scale, legend=legend)

    channels = {"shape": altair.Shape, "fill": altair.Fill, "stroke": altair.Stroke}
    return {field: channel(kind, field) for field, kind in channels.items()}


def _finding(rows: Sequence[Row], held: Sequence[tuple[int | None, int | None]]) -> str:
    """What the history shows, in a sentence; the first broken row decides it."""
    for row, (before, _) in zip(rows, held, strict=True):
        if row["broken"]:
            token, where = _integer(row["token"]), f"step {row['step']}, {row['kind']} by {row['writer'] or 'somebody'}"
            if token is not None and before is not None and token < before:
                return f"{token} was accepted after {before}: {where}"
            if token is None and before is not None:
                return f"A write without a known token was accepted while {before} was held: {where}"
            return f"A rule was broken: {where}"
    undecided = sum(bool(row["undecided"]) for row in rows)
    if undecided:
        return f"Not decided: {undecided:,} of {len(rows):,} mutations, for want of evidence"
    refused = sum(row["decision"] == "rejected" for row in rows)
    return f"No mutation broke a rule; {refused:,} {'was' if refused == 1 else 'were'} refused"


def _told(points: Sequence[dict[str, Any]], resource: str, title: str) -> str:
    """The chart in words, for those who do not see it."""
    counts = [(mark.word, sum(point["mark"] == mark.word for point in points)) for mark in MARKS]
    listed = ", ".join(f"{count} {word}" for word, count in counts if count)
    broken = [str(point["step"]) for point in points if point["broken"]]
    rings = f" Ringed: step {', '.join(broken[:10])}{' …' if len(broken) > 10 else ''}." if broken else ""
    return f"Fencing tokens of {resource} over the mutations in order. {inert(title, 200)}. Mutations: {listed}.{rings}"


# --------------------------------------------------------------------------- rejections


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
    chart = _layer(bars).mark_rect(stroke=PAPER, strokeWidth=0.5, aria=False).encode(
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
    return _framed([chart], title, [span], f"Refused requests over time. {title}. {span}.", 170)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _long(span: timedelta) -> str:
    seconds = span.total_seconds()
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} second{'s' if round(seconds) != 1 else ''}"


# --------------------------------------------------------------------------- frame, pictures, notebooks


def _layer(rows: Sequence[Row]) -> altair.Chart:
    return altair.Chart(altair.InlineData(values=[dict(row) for row in rows]))


def _framed(layers: Sequence[altair.Chart], title: str, subtitle: list[str], told: str, height: int) -> Chart:
    lines = textwrap.wrap(inert(title, 170), 86) or [""]
    return Chart(
        layer=list(layers), width=WIDTH, height=height, background=PAPER, padding=12, description=told, config=_STYLE,
        title=altair.Title(lines, subtitle=subtitle),
    )  # fmt: skip


def svg(chart: Chart) -> str:
    """The chart as SVG text without scripts and addresses (XML namespaces apart), to stand inside a page."""
    return vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])


def png(chart: Chart) -> bytes:
    """The chart as a PNG picture at 144 dots per inch, to be shown at its natural size."""
    return vl_convert.vegalite_to_png(chart.to_dict(), ppi=144, allowed_base_urls=[])


def enable() -> None:
    """Let this notebook show charts live, when saved, on code hosts and in HTML: three mime types for each."""
    altair.renderers.register("fencinglab", _mimes)
    altair.renderers.enable("fencinglab")


def _mimes(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
    picture = vl_convert.vegalite_to_png(spec, ppi=144, allowed_base_urls=[])
    return {
        "application/vnd.vegalite.v5+json": spec | {"$schema": "https://vega.github.io/schema/vega-lite/v5.json"},
        "image/png": base64.b64encode(picture).decode(),
        "text/plain": spec["description"],
    }
