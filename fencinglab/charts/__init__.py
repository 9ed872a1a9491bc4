"""The charts: plain rows in, an Altair chart out. The only place that styles.

`tokens` draws the token and acceptance history of one resource, `rejections` what was refused over time, `lanes` who
held which lease when and what each sent, `multiples` the lanes of one order of events under several fixes, `tradeoff`
what lease lengths cost, `matrix` which fix holds which invariant.
"""

from fencinglab.charts.actors import lanes, multiples
from fencinglab.charts.grid import matrix
from fencinglab.charts.held import NAMED, WINDOW, tokens, window
from fencinglab.charts.picture import enable, files, html, png, svg
from fencinglab.charts.refused import REJECTIONS, rejections
from fencinglab.charts.style import (
    BLUE,
    BROKEN,
    GREY,
    INK,
    MARKS,
    MUTED,
    NONE_SEEN,
    PALE,
    PAPER,
    PURPLE,
    RULE,
    SKY,
    VERMILLION,
    WIDTH,
    Chart,
    Row,
)  # fmt: skip
from fencinglab.charts.tradeoff import tradeoff

__all__ = (
    "BLUE", "BROKEN", "GREY", "INK", "MARKS", "MUTED", "NAMED", "NONE_SEEN", "PALE", "PAPER", "PURPLE", "REJECTIONS",
    "RULE", "SKY", "VERMILLION", "WIDTH", "WINDOW", "Chart", "Row", "enable", "files", "html", "lanes", "matrix",
    "multiples", "png", "rejections", "svg", "tokens", "tradeoff", "window",
)  # fmt: skip
