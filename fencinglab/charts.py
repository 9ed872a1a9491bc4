"""The charts of a report: plain rows in, an Altair chart out. The only place that styles.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; each stands with a shape of its
own, and both mean the same in every chart. Text from logs is made inert and cut before it is drawn.
Vega-Lite 5 is the newest that JupyterLab draws: nothing here needs a later one.
"""

from __future__ import annotations

import base64
import os.path
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import altair
import vl_convert

Row = Mapping[str, Any]

BLUE, VERMILLION, SKY, PURPLE = "#0072b2", "#d55e00", "#56b4e9", "#aa3377"
# Neutral colours, each for one purpose, so that a page can replace them in dark mode.
INK, MUTED, GREY, PALE, RULE, PAPER = "#1f2328", "#59636e", "#7d8590", "#b9c0c8", "#e3e6ea", "#ffffff"

WIDTH = 640  # of the plot, pixels: charts with the container's width come out blank in saved notebooks
WINDOW = 120  # mutations in one token chart; more cannot be told apart in this width
NAMES = 16  # grants up to which each is labelled with its holder
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

REJECTIONS = {  # field of report["rejections"]: word and colour, from the bottom of a bar to its top
    "stale": ("stale: a newer token was held", VERMILLION),
    "late": ("late: its own lease had run out", SKY),
    "done": ("the work was already done", GREY),
    "own": ("its own earlier success", BLUE),
    "other": ("another or no known reason", PALE),
}


# --------------------------------------------------------------------------- text from logs


def inert(text: object, limit: int = 60) -> str:
    """The text on one line without control or direction characters, its middle left out beyond `limit` characters."""
    line = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c
        for c in str(text)
    )
    if len(line) <= limit:
        return line
    tail = limit // 3
    return f"{line[: limit - tail - 1]}…{line[-tail:]}"


# --------------------------------------------------------------------------- tokens


def histories(report: Row, top: int) -> list[tuple[list[Row], str | None]]:
    """The rows of the `top` worst resources of the report's timeline, each with the sentence of its worst finding."""
    rows: dict[str, list[Row]] = {}
    for row in report["timeline"]:
        rows.setdefault(row["resource"], []).append(row)
    says: dict[str, str] = {}
    for rule in report["rules"]:
        for row in rule["rows"]:
            if row.get("says"):
                says.setdefault(row["resource"], row["says"])
    return [(found, says.get(resource)) for resource, found in list(rows.items())[:top]]


def window(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that one chart can show: all, or WINDOW of them around the first broken (else undecided) one."""
    if len(rows) <= WINDOW:
        return rows
    places = [i for i, row in enumerate(rows) if row["broken"]] or [i for i, row in enumerate(rows) if row["undecided"]]
    start = max(0, min((places or [0])[0] - WINDOW // 2, len(rows) - WINDOW))
    return rows[start : start + WINDOW]


def tokens(rows: Sequence[Row], title: str | None = None) -> altair.LayerChart | None:
    """Token and acceptance history of one resource: rows of report["timeline"] in order; None where there are none.

    The line is the token that the receiver held, a mark is a mutation at the token that it presented.
    """
    if not rows:
        return None
    held = _held(rows)
    title = title or _finding(rows, held)
    shown = window(rows)
    first = rows.index(shown[0])
    points = [_point(row, before, after) for row, (before, after) in zip(shown, held[first:], strict=False)]
    line = _segments(points)
    levels = _levels([*(p["token"] for p in points), *(p["held"] for p in line)])
    names, cut = _token_names(levels)
    for point in (*points, *line):
        for field in ("token", "held"):
            if field in point:
                point[field] = names.get(point[field], point[field])
    rings = [point | {"mark": BROKEN} for point in points if point["broken"]]
    words = [mark.word for mark in MARKS if any(p["mark"] == mark.word for p in (*points, *rings))]
    ordered = all(row.get("order_key", "") is not None for row in shown)
    x = altair.X(
        "step:Q",
        title="step in the receiver's order" if ordered else "place in the log (the receiver's order is not known)",
        scale=altair.Scale(domain=[points[0]["step"] - 0.6, points[-1]["step"] + 0.6], nice=False),
        axis=altair.Axis(format="d", tickMinStep=1, grid=False),
    )
    y = altair.Y(
        "token:O",
        title=f"fencing token (… is {cut})" if cut else "fencing token",
        scale=altair.Scale(domain=[names.get(level, level) for level in levels]),
        axis=altair.Axis(labelOverlap=True, labelLimit=220),
    )
    legend = altair.Legend(
        title=None, orient="bottom", direction="horizontal", values=words, symbolSize=110, symbolStrokeWidth=2
    )

    def scale(field: str) -> altair.Scale:
        return altair.Scale(domain=[mark.word for mark in MARKS], range=[getattr(mark, field) for mark in MARKS])

    encoding = {
        "x": x, "y": y, "tooltip": _tooltips(points[0]),
        "shape": altair.Shape("mark:N", scale=scale("shape"), legend=legend),
        "fill": altair.Fill("mark:N", scale=scale("fill"), legend=legend),
        "stroke": altair.Stroke("mark:N", scale=scale("stroke"), legend=legend),
    }  # fmt: skip
    size = 34 if len(points) > NAMES * 3 else 72
    layers: list[altair.Chart] = [
        _layer(line).mark_line(interpolate="step-after", color=MUTED, strokeWidth=1.4, aria=False)
        .encode(x=x, y=y.copy(), detail="segment:N", order="step:Q") if line else None,  # type: ignore[list-item]
        _layer(points).mark_point(size=size, strokeWidth=1.8, opacity=1, aria=False).encode(**encoding),
        _layer(rings).mark_point(size=size * 4.5, strokeWidth=2.4, opacity=1, aria=False).encode(**encoding) if rings else None,  # type: ignore[list-item]
    ]  # fmt: skip
    grants = [point for point in points if point["kind"] == "grant" and point["mark"] == ACCEPTED and point["holder"]]
    if len(grants) <= NAMES:
        text = _layer(grants).mark_text(dx=7, dy=-9, align="left", fontSize=10, color=MUTED, aria=False)
        layers.append(text.encode(x=x, y=y.copy(), text="holder:N"))
    resource = inert(shown[0]["resource"], 80)
    part = "" if len(shown) == len(rows) else f", steps {points[0]['step']}–{points[-1]['step']}"
    count = f"{len(rows):,} mutation{'s' if len(rows) > 1 else ''}"
    times = [row["at"] for row in shown if row["at"]]
    span = f" · {inert(times[0])} to {inert(times[-1])}" if times else ""
    chart = altair.layer(*(layer for layer in layers if layer is not None))
    return _framed(
        chart,
        title,
        f"{resource} · {count}{part}{span}",
        _told(points, resource, title),
        height=max(90, min(300, 34 * len(levels))),
    )


def _held(rows: Sequence[Row]) -> list[tuple[int | None, int | None]]:
    """The token that the receiver held before and after each row, as far as the rows tell."""
    found = []
    held: int | None = None
    for row in rows:
        before = _integer(row["before_token"])
        before = held if before is None else before
        held = before
        if row["decision"] == "accepted":
            after = _integer(row["after_token"])
            granted = _integer(row["token"]) if row["kind"] == "grant" else None
            gone = row["kind"] in ("delete", "ttl_delete")
            held = next((token for token in (after, granted, before) if token is not None), None) if not gone else None
        found.append((before, held))
    return found


def _integer(token: object) -> int | None:
    """A token as the report writes it (a number, or text where it is long), exact."""
    return None if token is None else int(str(token))


def _point(row: Row, before: int | None, after: int | None) -> dict[str, Any]:
    token = _integer(row["after_token"] if row["kind"] == "grant" and row["token"] is None else row["token"])
    open_ = row["undecided"] or row["decision"] == "unknown"
    finished = row["decision"] == "accepted" and row["kind"] == "finish"
    mark = OPEN if open_ else REFUSED if row["decision"] == "rejected" else FINISHED if finished else ACCEPTED
    return {
        "step": row["step"], "token": NONE_SEEN if token is None else str(token), "mark": mark, "kind": row["kind"],
        "presented": "not known or none" if token is None else str(token),
        "before": "not known" if before is None else str(before), "held": None if after is None else str(after),
        "decision": row["decision"], "writer": inert(row["writer"] or "not known", 40),
        "holder": inert(row["after_holder"] or "", 14), "at": row["at"] or "not known", "broken": row["broken"],
    }  # fmt: skip


def _segments(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The line of the token held: a new segment wherever nothing was held, the last one drawn to the edge."""
    line: list[dict[str, Any]] = []
    segment, open_ = 0, False
    for point in points:
        if point["held"] is not None:
            line.append({"step": point["step"], "token": point["held"], "held": point["held"], "segment": segment})
        elif open_:
            line.append(line[-1] | {"step": point["step"]})
            segment += 1
        open_ = point["held"] is not None
    if open_:
        line.append(line[-1] | {"step": points[-1]["step"] + 0.6})
    return line


def _levels(seen: Iterable[str]) -> list[str]:
    """The distinct tokens, highest first, and last the lane of those that are not known."""
    distinct = set(seen)
    levels = sorted((int(token) for token in distinct - {NONE_SEEN}), reverse=True)
    return [*map(str, levels), *([NONE_SEEN] if NONE_SEEN in distinct else [])]


def _token_names(levels: Sequence[str]) -> tuple[dict[str, str], str]:
    """{token: label} and the leading digits that the labels leave out because all long tokens begin with them."""
    digits = [level for level in levels if level != NONE_SEEN]
    common = os.path.commonprefix(digits)[: min(map(len, digits), default=0) - 4]
    if not digits or max(map(len, digits)) <= DIGITS or len(common) < 4 or len({len(d) for d in digits}) > 1:
        return {d: d for d in digits}, ""
    return {d: "…" + d.removeprefix(common) for d in digits}, common


def _finding(rows: Sequence[Row], held: Sequence[tuple[int | None, int | None]]) -> str:
    """What the history shows, in a sentence; the first broken row decides it."""
    for row, (before, _) in zip(rows, held, strict=True):
        if row["broken"]:
            token, step = _integer(row["token"]), row["step"]
            if token is not None and before is not None and token < before:
                return (
                    f"{token} was accepted after {before}: step {step}, {row['kind']} by {row['writer'] or 'somebody'}"
                )
            if token is None and before is not None:
                return f"A {row['kind']} without a known token was accepted while {before} was held: step {step}"
            return f"Step {step} broke a rule: {row['kind']} by {row['writer'] or 'somebody'}"
    undecided = sum(bool(row["undecided"]) for row in rows)
    if undecided:
        return f"Not decided: {undecided:,} of {len(rows):,} mutations, for want of evidence"
    refused = sum(row["decision"] == "rejected" for row in rows)
    return f"No mutation broke a rule, {refused:,} {'was' if refused == 1 else 'were'} refused"


def _told(points: Sequence[dict[str, Any]], resource: str, title: str) -> str:
    """The chart in words, for those who do not see it."""
    counted = [(mark.word, sum(p["mark"] == mark.word for p in points)) for mark in MARKS[:-1]]
    listed = ", ".join(f"{count} {word}" for word, count in counted if count)
    broken = [str(p["step"]) for p in points if p["broken"]]
    rings = f" Ringed: step {', '.join(broken[:10])}{' …' if len(broken) > 10 else ''}." if broken else ""
    return f"Fencing tokens of {resource} in the receiver's order. {inert(title, 200)}. Mutations: {listed}.{rings}"


def _tooltips(point: Row) -> list[altair.Tooltip]:
    titles = {
        "step": "step", "at": "receiver's time (UTC)", "kind": "kind", "writer": "writer", "presented": "token presented",
        "before": "token held before", "decision": "decision", "holder": "holder afterwards",
    }  # fmt: skip
    return [
        altair.Tooltip(f"{name}:{'Q' if name == 'step' else 'N'}", title=title)
        for name, title in titles.items()
        if name in point
    ]


# --------------------------------------------------------------------------- rejections


def rejections(rows: Sequence[Row]) -> altair.LayerChart | None:
    """Refused requests over time, late told from stale: rows of report["rejections"]; None where nothing was refused."""
    totals = {kind: sum(row[kind] for row in rows) for kind in REJECTIONS}
    if not any(totals.values()):
        return None
    times = [datetime.fromisoformat(row["at"]) for row in rows]
    width, end = _bar(times)
    words = [word for word, _ in REJECTIONS.values()]
    bars = []
    for row, at in zip(rows, times, strict=True):
        low = 0
        for kind, (word, _) in REJECTIONS.items():
            if row[kind]:
                ends = {"from": _milliseconds(at), "to": _milliseconds(at + width), "low": low, "high": low + row[kind]}
                bars.append(ends | {"reason": word, "count": row[kind]})
                low += row[kind]
    title = _refused(totals)
    span = f"{times[0]:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC, a bar is {_long(width)}"
    legend = altair.Legend(title=None, orient="bottom", direction="horizontal", columns=3, symbolType="square")
    chart = (
        _layer(bars)
        .mark_rect(stroke=PAPER, strokeWidth=0.5, aria=False)
        .encode(
            x=altair.X(
                "from:T",
                title="receiver's time (UTC)",
                scale=altair.Scale(type="utc", domain=[_milliseconds(times[0] - width), _milliseconds(end + width)]),
                axis=altair.Axis(grid=False, tickCount=8, labelOverlap=True, labelSeparation=8),
            ),
            x2="to:T",
            y=altair.Y("low:Q", title="refused requests", axis=altair.Axis(tickMinStep=1, format="d")),
            y2="high:Q",
            color=altair.Color(
                "reason:N", scale=altair.Scale(domain=words, range=[c for _, c in REJECTIONS.values()]), legend=legend
            ),
            tooltip=[
                altair.Tooltip("reason:N", title="reason"),
                altair.Tooltip("count:Q", title="requests"),
                altair.Tooltip("from:T", title="from (UTC)", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
            ],
        )
    )
    return _framed(altair.layer(chart), title, span, f"Refused requests over time. {title}. {span}.", height=170)


def _bar(times: Sequence[datetime]) -> tuple[timedelta, datetime]:
    """The length of one bar, a sixtieth of the time as in the report, and where the last one ends."""
    length = max((times[-1] - times[0]) / 59, timedelta(seconds=1))
    return length, max(times[-1] + length, times[0] + 20 * length)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _long(span: timedelta) -> str:
    seconds = span.total_seconds()
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} second{'s' if round(seconds) != 1 else ''}"


def _refused(totals: Mapping[str, int]) -> str:
    words = {
        "stale": "stale",
        "late": "late",
        "done": "already done",
        "own": "after their own success",
        "other": "for another reason",
    }
    return "Refused: " + ", ".join(f"{totals[kind]:,} {word}" for kind, word in words.items() if totals[kind])


# --------------------------------------------------------------------------- frame, pictures, notebooks


def _layer(rows: Sequence[Row]) -> altair.Chart:
    return altair.Chart(altair.InlineData(values=[dict(row) for row in rows]))


def _framed(chart: altair.LayerChart, title: str, subtitle: str, told: str, height: int) -> altair.LayerChart:
    heading = altair.Title(
        textwrap.wrap(inert(title, 170), 86) or [""], subtitle=subtitle, anchor="start", frame="group", offset=14, limit=WIDTH + 20,
        fontSize=13, fontWeight=600, color=INK, subtitleFontSize=11, subtitleColor=MUTED, subtitlePadding=4,
    )  # fmt: skip
    return (
        chart.properties(width=WIDTH, height=height, title=heading, description=told, background=PAPER)
        .configure(font="Helvetica, Arial, sans-serif", padding=12)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED, titleColor=MUTED, titleFontWeight="normal", labelFontSize=11, titleFontSize=11, titlePadding=8,
            domainColor=GREY, tickColor=GREY, gridColor=RULE,
        )
        .configure_legend(labelColor=INK, labelFontSize=11, labelLimit=220, offset=10, symbolSize=90)
    )  # fmt: skip


def svg(chart: altair.LayerChart) -> str:
    """The chart as SVG text without scripts and addresses (XML namespaces apart), to stand inside a page."""
    return vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])


def png(chart: altair.LayerChart) -> bytes:
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
        "text/plain": spec.get("description", "chart"),
    }
