"""Altair, loaded without the check of internationalised addresses that its schema library brings along.

Building the grammar of that check takes most of the time of the import, and no chart holds such an address.
"""

from __future__ import annotations

import sys

_UNUSED = "rfc3987_syntax"
_absent = _UNUSED not in sys.modules
if _absent:
    sys.modules[_UNUSED] = None  # type: ignore[assignment]  # its import fails, which jsonschema allows for
try:
    import altair as altair
finally:
    if _absent:
        del sys.modules[_UNUSED]
