"""A workload: what a job asks of its workers, and what happens to them. Times are whole microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from fencinglab.errors import UsageError
from fencinglab.logs.mapping import duration_text, parse_duration
from fencinglab.model.fix import Fix
from fencinglab.simulate import laws
from fencinglab.simulate.laws import Law
from fencinglab.simulate.terms import LAWS, TERMS

SECOND = 1_000_000


@dataclass(frozen=True)
class Workload:
    """The parameters of a simulation, which `terms` says in words."""

    lease: int
    renewal: int
    pause: Law
    work: Law
    message: Law
    takeover: Law
    gap: int
    step: int
    skew: int
    crash: float
    restart: int
    repeat: float
    workers: int
    writes: int
    attempts: int

    def length(self, fix: Fix) -> int:
        """How long a lease lasts under the fix."""
        return self.lease * fix.times

    def described(self) -> dict[str, str]:
        """Every parameter as the command line reads it."""
        return {f.name: _text(f.name, getattr(self, f.name)) for f in fields(self)}


TIMES = ("lease", "renewal", "gap", "step", "skew", "restart")
SHARES = ("crash", "repeat")
COUNTS = {"workers": (2, 16), "writes": (1, 8), "attempts": (1, 1000)}
_MAY_BE_ZERO = ("gap", "step", "skew", "restart")


def _text(name: str, value: Any) -> str:
    return duration_text(value) if name in TIMES else f"{value:g}" if name in SHARES else str(value)


def workload(said: Mapping[str, str], seen: Mapping[str, Any] = MappingProxyType({})) -> Workload:
    """The workload in which each parameter is as said, else as seen in a log, else the default.

    A renewal that is not said, and not seen to fit the lease, is a third of the lease. The first parameter that cannot
    be is a UsageError.
    """
    texts = {name: default for name, (_, default) in TERMS.items() if name != "renewal"} | dict(said)
    values = {
        name: seen[name] if name in seen and name not in said else _value(name, text) for name, text in texts.items()
    }
    if "renewal" not in said:
        third = max(1, values["lease"] // 3)
        values["renewal"] = seen["renewal"] if 0 < seen.get("renewal", 0) < values["lease"] else third
    return checked(Workload(**values))


def _value(name: str, text: str) -> Any:
    option = f"--{name}"
    if name in LAWS:
        return laws.parse(text, option)
    if name in TIMES:
        if text.strip().startswith("-"):
            raise UsageError(f"{option} {text}: is below zero, and a time is not; write a time such as 30s")
        return parse_duration(text, option)
    try:
        return float(text) if name in SHARES else int(text)
    except ValueError:
        wanted = "a share such as 0.01" if name in SHARES else "a whole number"
        raise UsageError(f"{option} {text}: write {wanted}") from None


def checked(made: Workload) -> Workload:
    """The same workload, or a UsageError that names the first parameter that cannot be."""
    for name in TIMES:
        value = getattr(made, name)
        if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
            allowed = "zero or more" if name in _MAY_BE_ZERO else "above zero"
            raise UsageError(f"--{name} {duration_text(value)}: must be {allowed}")
        if value > laws.LONGEST:
            raise UsageError(f"--{name} {duration_text(value)}: is longer than {duration_text(laws.LONGEST)}")
    for name in SHARES:
        if not 0 <= getattr(made, name) <= 1:
            raise UsageError(f"--{name} {getattr(made, name):g}: is a share, from 0 to 1")
    for name, (least, most) in COUNTS.items():
        if not least <= getattr(made, name) <= most:
            raise UsageError(f"--{name} {getattr(made, name)}: must be {least} to {most}")
    renewal, lease = duration_text(made.renewal), duration_text(made.lease)
    if made.renewal >= made.lease:
        raise UsageError(
            f"--renewal {renewal}: must be shorter than the lease ({lease}), or it has run out before it is renewed; "
            "a third of it is usual"
        )
    if made.skew > made.lease - made.renewal:
        raise UsageError(
            f"--skew {duration_text(made.skew)}: must not exceed what a renewal leaves of the lease "
            f"({duration_text(made.lease - made.renewal)}), or running workers lose it in spite of renewals"
        )
    return made


DEFAULT = workload({})
