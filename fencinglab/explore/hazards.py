"""Hazards: what may go wrong beside pauses, delays and duplicates, each switched on by name and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fencinglab.errors import UsageError, nearest

HAZARDS = {
    "crash": "a worker crashes, also when it has sent everything, forgets all and starts again",
    "lost-reply": "a reply is lost, and the sender sends the same mutation again",
    "clock-skew": "a worker whose clock runs ahead takes a lease that still runs",
    "release": "a holder that has sent everything gives its lease back before all of it has arrived",
    "ttl": "clean-up deletes the item, at any time, and the token counter with it (of requests either, if apart)",
    "restore": "the authority (with requests the whole table) comes back from a backup with an older token",
    "unfenced-worker": "a worker goes on in a version that presents no token",
}
MOST = 9  # times that a hazard may happen in one run


class Hazard(NamedTuple):
    """A hazard and how often it may happen in one run."""

    name: str
    times: int = 1

    def __str__(self) -> str:
        return self.name if self.times == 1 else f"{self.name} x{self.times}"


def chosen(given: Iterable[str]) -> tuple[Hazard, ...]:
    """The hazards that the texts name, each `crash` or `crash=2`, in the order of HAZARDS; else a UsageError."""
    found: dict[str, int] = {}
    for text in given:
        name, _, times = text.partition("=")
        if name not in HAZARDS:
            near = ", ".join(nearest(name, HAZARDS))
            raise UsageError(
                f"--hazard {text}: `{name}` is no hazard (there are {', '.join(HAZARDS)}); nearest: {near}"
            )
        if "=" in text and not re.fullmatch(f"[1-{MOST}]", times):
            raise UsageError(
                f"--hazard {text}: how often it may happen is 1 to {MOST}; leave the hazard out to switch it off"
            )
        if name in found:
            raise UsageError(
                f"--hazard {text}: `{name}` is named twice; name it once, as `{name}=2` where it may happen twice"
            )
        found[name] = int(times or 1)
    return tuple(Hazard(name, found[name]) for name in HAZARDS if name in found)


def spent(hazards: Sequence[Hazard], shared: Any, name: str) -> Any:
    """What all share, whose `left` says how often each hazard may still happen, once `name` has happened.

    None where it may not happen, or no more.
    """
    for place, (hazard, times) in enumerate(zip(hazards, shared.left, strict=False)):
        if hazard.name == name and times:
            return shared._replace(left=(*shared.left[:place], times - 1, *shared.left[place + 1 :]))
    return None
