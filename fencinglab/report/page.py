"""What a reader opens: report.html, and what it shares with other pages.

The page is one file without script and without any address: it opens anywhere, offline, and nothing in a
log can act in it. Every text is escaped, made inert and cut; only the charts, drawn by `charts`, go in as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from fencinglab import charts
from fencinglab.inert import inert
from fencinglab.report.screen import STATUS

ROWS = 6  # evidence rows a rule on the page; report.json has more, findings.csv all of them
DRAWN = 3  # resources whose history is drawn
TEXT, NAME, LONG = 240, 100, 4000  # characters of one text, of one name, of one command or line of a snippet

VERDICT = {"violated": "✕", "holds": "●", "inconclusive": "○"}
CLASSES = {
    "unsafe": "a stale or double effect was accepted, or the sequence that excludes one is broken",
    "window": "two holders could act",
    "cost": "safe, but work or time was lost",
    "evidence": "the log is not whole",
}


def html(report: Mapping[str, Any]) -> str:
    """The report as one HTML page that needs neither script nor network."""
    return rendered(
        "report/report.html.j2", report,
        histories=[_picture(rows, title) for rows, title in histories(report, DRAWN)],
        refused=drawn(charts.rejections(report["rejections"])),
        violated={c: [r for r in report["rules"] if r["class"] == c and r["status"] == "violated"] for c in CLASSES},
        by_name={rule["name"]: rule for rule in report["rules"]},
        command_line=report["command"], STATUS=STATUS, VERDICT=VERDICT, CLASSES=CLASSES, ROWS=ROWS, charts=charts,
    )  # fmt: skip


def rendered(template: str, *data: Mapping[str, Any], **more: Any) -> str:
    """A template of this package filled in: every text escaped, made inert and cut."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=_shown,
        loader=jinja2.FunctionLoader(lambda name: files("fencinglab").joinpath(name).read_text(encoding="utf-8")),
    )  # fmt: skip
    environment.filters |= {"count": _count, "verbatim": _verbatim, "statement": _statement, "prose": _prose, "id": _id}
    return environment.get_template(template).render(*data, **more)


def histories(report: Mapping[str, Any], top: int) -> list[tuple[list[charts.Row], str | None]]:
    """The timeline of each of the `top` worst resources, with the sentence of its worst finding (None without one)."""
    rows: dict[str, list[charts.Row]] = {}
    for row in report["timeline"]:
        rows.setdefault(row["resource"], []).append(row)
    says: dict[str, str] = {}
    for row in (row for rule in report["rules"] for row in rule["rows"] if row.get("says")):
        says.setdefault(row["resource"], row["says"])
    return [(found, says.get(resource)) for resource, found in list(rows.items())[:top]]


def readable(value: Any) -> Any:
    """The same data with every text in it inert, to print and to tabulate in a notebook."""
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return inert(value, LONG) if isinstance(value, str) else value


def _picture(rows: Sequence[charts.Row], title: str | None) -> dict[str, Any]:
    return {"rows": charts.window(rows), "resource": rows[0]["resource"], "of": len(rows)} | drawn(
        charts.tokens(rows, title)
    )


def drawn(chart: Any) -> dict[str, Any]:
    """The chart as markup, with its alt text; both empty where there was nothing to draw."""
    if chart is None:
        return {"svg": "", "alt": ""}
    return {"svg": Markup(charts.svg(chart)), "alt": chart.description}


def _shown(value: Any) -> Any:
    """What the template writes for a value; it goes through here before it is escaped."""
    if value is None:
        return "–"
    if isinstance(value, str) and not isinstance(value, Markup):
        return inert(value, TEXT)
    return value


def _count(number: int) -> str:
    return f"{number:,}"


def _verbatim(text: str) -> Markup:
    """A command or a snippet: its lines stay, and it is not cut where that would break it."""
    return Markup("\n").join(escape(inert(line, LONG)) for line in text.split("\n"))


def _statement(text: str) -> str:
    """A line of prose as a sentence: first letter large, one full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _prose(text: str) -> Markup:
    """The text with what stands in backquotes as code."""
    parts = [escape(part) for part in inert(text, TEXT).split("`")]
    if len(parts) % 2 == 0:  # a backquote without its other half is text
        return escape(inert(text, TEXT))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def _id(text: str | None) -> Markup:
    """A name from the log, which may break at the parts of a path."""
    name = escape("–" if text is None else inert(text, NAME))
    return name.replace("/", Markup("/<wbr>")).replace(":", Markup("<wbr>:"))
