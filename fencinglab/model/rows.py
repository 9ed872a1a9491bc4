"""One attempted mutation as a row of the history, from what authority and receiver held before and after it.

Hashes are plain and the same in every run: a replay holds nothing that needs a key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from fencinglab.history import ABSENT, NAMES, NOBODY, ORDER_DIGITS
from fencinglab.model.lease import Lease
from fencinglab.model.receiver import Held

BASE = datetime(2026, 3, 2, 9)  # second 0, UTC
ASKED = ("grant", "renew", "release")  # the kinds of row that the authority decides, and no receiver

Row = dict[str, Any]
State = tuple[Lease | None, Held | None]  # of the lease once it was granted, of the resource where it exists


def moment(second: int) -> datetime:
    """The time of a logical second."""
    return BASE + timedelta(seconds=second)


def clock(second: int) -> str:
    """The second as it is printed: 01:05, or 2:01:05 after an hour."""
    minutes, seconds = divmod(second, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes:02}:{seconds:02}"


def elapsed(at: datetime) -> str:
    """The time as it is printed, from second 0; a clock that runs behind may show one before."""
    second = round((at - BASE).total_seconds())
    return clock(second) if second >= 0 else f"-{clock(-second)}"


def row(number: int, scope: str, before: State, after: State, known: Row) -> Row:
    """A row with every column: its place in the order, both sides, what else is known; KeyError for another name."""
    sides = {f"before_{k}": v for k, v in _side(before).items()} | {f"after_{k}": v for k, v in _side(after).items()}
    order = {"order_key": str(number).zfill(ORDER_DIGITS), "order_scope": scope, "at_precision": 0}
    made = dict.fromkeys(NAMES) | order | sides | known
    if unknown := made.keys() - {*NAMES}:
        raise KeyError(f"not a history column: {sorted(unknown)}")
    return made


def _side(state: State) -> Row:
    """The columns of one side. Where there is no resource yet, nobody holds it and nothing else is known."""
    lease, held = state
    if held is None:
        return {"image": ABSENT, "holder": NOBODY}
    return {
        "token": lease.token if lease else None,
        "holder": lease.holder if lease else NOBODY,
        "expires_at": moment(lease.expires_at) if lease and lease.holder else None,
        "status": held.status,
        "terminal": held.terminal_version > 0,
        "terminal_version": held.terminal_version,
        "version": held.version,
        "value": f"{_hash(held.value):016x}",
        "image": _hash(repr(held)),
    }


def _hash(text: str) -> int:
    """A number above 0 with 64 bits; 0 would say that there is no item."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) or 1
