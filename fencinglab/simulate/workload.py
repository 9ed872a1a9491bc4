"""A workload: what a job asks of its workers, and what happens to them. Times are whole microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from fencinglab.errors import UsageError
from fencinglab.logs.mapping import duration_text, parse_duration
from fencinglab.model.fix import Fix
from fencinglab.simulate import laws
from fencinglab.simulate.laws import Law
from fencinglab.simulate.terms import LAWS

SECOND = 1_000_000
_PAUSE, _WORK = Law("lognormal", 0.2 * SECOND, 2.0), Law("lognormal", 10.0 * SECOND, 0.5)
_MESSAGE, _TAKEOVER = Law("exponential", 0.02 * SECOND), Law("exponential", 2.0 * SECOND)


@dataclass(frozen=True)
class Workload:
    """The parameters of a simulation, which `terms` says in words; the defaults were made for no team in particular."""

    lease: int = 30 * SECOND
    renewal: int = 10 * SECOND
    pause: Law = _PAUSE
    work: Law = _WORK
    message: Law = _MESSAGE
    takeover: Law = _TAKEOVER
    gap: int = SECOND // 100
    step: int = SECOND // 200
    skew: int = 0
    crash: float = 0.001
    restart: int = 60 * SECOND
    repeat: float = 0.01
    workers: int = 3
    writes: int = 2
    attempts: int = 30

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
DEFAULT = Workload()


def _text(name: str, value: Any) -> str:
    return duration_text(value) if name in TIMES else f"{value:g}" if name in SHARES else str(value)


def workload(said: Mapping[str, str], seen: Mapping[str, Any] = MappingProxyType({})) -> Workload:
    """The workload in which each parameter is as said, else as seen in a log; the first that cannot be is a UsageError.

    A renewal that is not said, and not seen to fit the lease, is a third of the lease.
    """
    made = replace(DEFAULT, **{**seen, **{name: _value(name, text) for name, text in said.items()}})
    if "renewal" not in said and not 0 < seen.get("renewal", 0) < made.lease:
        made = replace(made, renewal=max(1, made.lease // 3))
    return checked(made)


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
