"""Charts as pictures and pages, and in notebooks: nothing here needs the internet."""

from __future__ import annotations

import base64
from typing import Any

import vl_convert

from fencinglab.charts.library import altair

PPI = 144  # dots an inch; a pixel of a chart is a 72nd
# What the menu of an interactive chart offers: pictures of it, and no editor on the internet.
_MENU = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}


def svg(chart: altair.TopLevelMixin) -> str:
    """The chart as SVG text without scripts and addresses (XML namespaces apart), to stand inside a page."""
    return vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])


def png(chart: altair.TopLevelMixin) -> bytes:
    """The chart as a PNG picture of twice as many dots as it has pixels, so that it is sharp at its natural size."""
    return _png(chart.to_dict())


def _png(spec: dict[str, Any]) -> bytes:
    return vl_convert.vegalite_to_png(spec, ppi=PPI, allowed_base_urls=[])


def html(chart: altair.TopLevelMixin) -> str:
    """The chart as one interactive page that holds all it needs, about 900 KB."""
    return str(chart.to_html(inline=True, embed_options=_MENU))


def files(chart: altair.TopLevelMixin, name: str) -> dict[str, bytes | str]:
    """The chart as files of that name: a PNG and an SVG picture, and an interactive HTML page."""
    return {f"{name}.png": png(chart), f"{name}.svg": svg(chart), f"{name}.html": html(chart)}


def enable() -> None:
    """Let this notebook show charts live, when saved, on code hosts and in HTML: three mime types for each."""
    altair.renderers.register("fencinglab", _mimes)
    altair.renderers.enable("fencinglab")


def _mimes(spec: dict[str, Any], **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The chart in three mime types; and of its picture the words that stand for it, and its natural width."""
    told, picture = spec["description"], _png(spec)
    bundle = {
        "application/vnd.vegalite.v5+json": spec | {"$schema": "https://vega.github.io/schema/vega-lite/v5.json"},
        "image/png": base64.b64encode(picture).decode(),
        "text/plain": told,
    }
    return bundle, {"image/png": {"alt": told, "width": int.from_bytes(picture[16:20]) * 72 // PPI}}
