"""The page of a design review, to be attached to one: compare.html. It opens anywhere, without script or network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencinglab import charts
from fencinglab.audit.fit import ENOUGH
from fencinglab.compare.cells import BEATEN, FEW, assumed, interval, invariants, mean, seconds
from fencinglab.report.page import drawn, rendered
from fencinglab.simulate.measure import INVARIANTS

ROWS = 6  # mutations a guard on the page; compare.json has more


def html(review: Mapping[str, Any]) -> str:
    """The review as one HTML page."""
    return rendered(
        "compare/compare.html.j2", {name: value for name, value in review.items() if name != "command"},
        command_line=review["command"], drawn=drawn(charts.tradeoff(review["sweep"])),
        interval=interval, invariants=invariants, mean=mean, seconds=seconds, assumed=assumed(review), beaten=BEATEN,
        few=FEW, enough=ENOUGH, charts=charts, INVARIANTS=INVARIANTS, ROWS=ROWS,
    )  # fmt: skip
