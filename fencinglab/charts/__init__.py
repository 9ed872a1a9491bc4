"""The charts: plain rows in, an Altair chart out. The only place that styles.

`tokens` draws the token and acceptance history of one resource, `rejections` what was refused over time, `lanes` who
held which lease when and what each sent, `multiples` the lanes of one order of events under several fixes, `tradeoff`
what lease lengths cost, `matrix` which fix holds which invariant.
"""

from fencinglab.charts.actors import lanes, multiples
from fencinglab.charts.grid import matrix
from fencinglab.charts.held import tokens, window
from fencinglab.charts.picture import enable, files, png, svg
from fencinglab.charts.refused import rejections
from fencinglab.charts.style import Row
from fencinglab.charts.tradeoff import tradeoff

__all__ = (
    "Row", "enable", "files", "lanes", "matrix", "multiples", "png", "rejections", "svg", "tokens", "tradeoff",
    "window",
)  # fmt: skip
