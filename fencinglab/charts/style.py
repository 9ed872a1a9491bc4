"""What all charts share: colours, marks, widths, how a token is written, and the frame around what is drawn.

Blue, vermillion and sky are of Okabe and Ito's colours, purple is of Paul Tol's: colour-blind readers tell them apart.
Each stands with a shape of its own, the same in every chart. JupyterLab draws Vega-Lite 5, and nothing here needs more.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple

from fencinglab.charts.library import altair
from fencinglab.inert import inert
from fencinglab.model.rows import elapsed

Row = Mapping[str, Any]
Chart = altair.LayerChart

BLUE, VERMILLION, SKY, PURPLE = "#0072b2", "#d55e00", "#56b4e9", "#aa3377"
# Neutral colours, each for one purpose, so that a page can replace them in dark mode.
INK, MUTED, GREY, PALE, RULE, PAPER = "#1f2328", "#59636e", "#7d8590", "#b9c0c8", "#e3e6ea", "#ffffff"

WIDTH = 640  # of the plot, pixels: charts with the container's width come out blank in saved notebooks
DIGITS = 12  # tokens up to this length are written in full
NONE_SEEN = "none seen"  # the place of mutations whose token is not known, or that presented none


class Mark(NamedTuple):
    """How one kind of mutation, or of cell in a matrix, is drawn."""

    word: str
    shape: str
    fill: str
    stroke: str


CROSS = "M-1,-1L1,1M-1,1L1,-1"
MARKS = (
    Mark("accepted", "circle", BLUE, BLUE),
    Mark("refused", CROSS, "transparent", VERMILLION),
    Mark("finished", "square", GREY, GREY),
    Mark("not decided", "circle", PAPER, INK),
    Mark("broke a rule", "circle", "transparent", PURPLE),  # a ring around one of the others
)
ACCEPTED, REFUSED, FINISHED, OPEN, BROKEN = (mark.word for mark in MARKS)

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


# --------------------------------------------------------------------------- tokens and times as they are written


def integer(token: object) -> int | None:
    """A token as a report or a history writes it (a number, or text where it is long), exact."""
    return None if token is None else int(str(token))


def levels(seen: Iterable[str]) -> list[str]:
    """The distinct tokens, highest first, and last the lane of those that are not known."""
    return sorted(set(seen), key=lambda token: -1 if token == NONE_SEEN else int(token), reverse=True)


def labels(tokens: Sequence[str]) -> tuple[dict[str, str], str]:
    """{token: label}, exact, and the leading digits that the labels leave out because all long tokens share them."""
    digits = [token for token in tokens if token != NONE_SEEN]
    longest, shortest = max(map(len, digits), default=0), min(map(len, digits), default=0)
    common = next((n for n in range(shortest - 4) if len({d[: n + 1] for d in digits}) > 1), max(0, shortest - 4))
    if longest <= DIGITS or longest != shortest or common < 4:
        return {token: token for token in tokens}, ""
    return {token: token if token == NONE_SEEN else "…" + token[common:] for token in tokens}, digits[0][:common]


def moment(row: Row, field: str = "at") -> str:
    """A time of the row as text: from second 0 where it is of a replay, else UTC; empty = not known."""
    at = row.get(field)
    if isinstance(at, datetime):
        return elapsed(at) if row.get("clock") else f"{at.isoformat()}Z"
    return inert(at or "", 60)


# --------------------------------------------------------------------------- layers and frames


def layer(rows: Sequence[Row]) -> altair.Chart:
    """A layer with these rows in it."""
    return altair.Chart(altair.InlineData(values=[dict(row) for row in rows]))


def by_mark(words: Set[str], marks: Sequence[Mark] = MARKS, field: str = "mark") -> dict[str, Any]:
    """Shape, fill and stroke by the word in this field of a row, with one legend of the marks with these words."""
    present = [mark.word for mark in marks if mark.word in words]
    legend = altair.Legend(title=None, orient="bottom", direction="horizontal", values=present, symbolStrokeWidth=2)

    def channel(kind: Any, part: str) -> Any:
        scale = altair.Scale(domain=[mark.word for mark in marks], range=[getattr(mark, part) for mark in marks])
        return kind(f"{field}:N", scale=scale, legend=legend)

    channels = {"shape": altair.Shape, "fill": altair.Fill, "stroke": altair.Stroke}
    return {part: channel(kind, part) for part, kind in channels.items()}


def ringed(points: Iterable[Row]) -> list[Row]:
    """The mutations that broke a rule, once more: a ring around the mark of each."""
    return [{**point, "mark": BROKEN} for point in points if point["broken"]]


def decided(points: Sequence[Row], words: Set[str], size: float, **more: Any) -> list[altair.Chart]:
    """The marks of the mutations and the rings around them; `words` are the marks that the legend lists."""
    return [
        layer(drawn).mark_point(size=area, strokeWidth=stroke, opacity=1, aria=False).encode(**by_mark(words), **more)
        for drawn, area, stroke in ((points, size, 1.8), (ringed(points), 4.5 * size, 2.4)) if drawn
    ]  # fmt: skip


def tips(fields: Mapping[str, str]) -> list[altair.Tooltip]:
    """What is shown of a row where the pointer rests on it: {field: word}."""
    return [altair.Tooltip(field, type="nominal", title=words) for field, words in fields.items()]


def text(
    rows: Sequence[Row], field: str, colour: str, dx: int, dy: int, halo: bool = False, **place: Any
) -> list[altair.Chart]:
    """The text in this field beside the place of each row; with a halo it stays readable where a line crosses it."""
    shades = [(PAPER, 3), (colour, 0)] if halo else [(colour, 0)]
    marks = [
        layer(rows).mark_text(
            dx=dx, dy=dy, align="left", fontSize=10, fill=shade, stroke=shade, strokeWidth=wide, aria=False
        )
        for shade, wide in shades
    ]
    return [mark.encode(**place, text=f"{field}:N") for mark in marks]


def heading(title: str, subtitle: Sequence[str] = ()) -> altair.Title:
    """A title in lines that fit the width."""
    return altair.Title(textwrap.wrap(inert(title, 170), 86) or [""], subtitle=[*subtitle])


def whole(told: str) -> dict[str, Any]:
    """What the outermost chart is given: the style, and the words for those who do not see it."""
    return {"background": PAPER, "padding": 12, "description": told, "config": _STYLE}


def framed(
    layers: Sequence[altair.Chart], title: str, subtitle: Sequence[str], told: str, height: int, **shared: Any
) -> Chart:
    """The layers as one chart of the fixed width; `shared` are the encodings that they have in common."""
    chart = Chart(layer=[*layers], width=WIDTH, height=height, title=heading(title, subtitle), **whole(told))
    return chart.encode(**shared)
