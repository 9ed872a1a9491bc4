"""Which events can never happen in an order of events, whatever fix is tried: a slip in the file.

A worker that is refused under one fix may be granted under another; that is no slip. But nobody writes before asking
for a lease, resumes without a pause, or receives what was never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fencinglab.errors import nearest
from fencinglab.model.event import FORMS, MUTATIONS, Event


class Fault(NamedTuple):
    """An event that can never happen, why, and a legal one near it."""

    event: Event
    says: str
    instead: str


@dataclass
class _Life:
    """What is certain about a worker under every fix."""

    state: str = "running"
    since: int = 0  # the line that made it so
    asked: set[str] = field(default_factory=set)  # the leases that it asked for since it last started
    fenced: bool = True
    parted: bool = False


class _Turn(NamedTuple):
    """An event after which a worker is another than before: a field that must be one of `before` becomes `after`."""

    name: str
    before: tuple[object, ...]
    after: object
    otherwise: str  # what can be said when the field is not as needed
    instead: str  # the act that could stand there


_TURNS = {
    "pause": _Turn("state", ("running",), "paused", "", ""),
    "resume": _Turn("state", ("paused",), "running", "is not paused", "pause"),
    "crash": _Turn("state", ("running", "paused"), "crashed", "", ""),
    "restart": _Turn("state", ("crashed",), "running", "has not crashed", "crash"),
    "part": _Turn("parted", (False,), True, "is cut off already", "rejoin"),
    "rejoin": _Turn("parted", (True,), False, "is not cut off", "part"),
    "downgrade": _Turn("fenced", (True,), False, "runs without fencing already", "upgrade"),
    "upgrade": _Turn("fenced", (False,), True, "runs with fencing already", "downgrade"),
}
_ANY_TIME = ("part", "rejoin", "ahead", "behind")  # what happens to a worker also while it stands still
_LONGEST = 99_999  # seconds: more than a day, and few enough to renew in every one of them
_UNLEASED = (*MUTATIONS, "poll", "effect", "store", "send")  # what a version without fencing does without a lease
_LEASED = (*_UNLEASED, "renew", "release", "check")
_FLIGHTS = {  # act -> what a message must be, what it is afterwards
    "arrive": ("on its way", "arrived"),
    "repeat": ("arrived", "arrived"),
    "duplicate": ("on its way", "on its way"),
    "lose": ("on its way", "lost"),
    "inspect": ("on its way", "on its way"),
}


def first_fault(
    events: Iterable[Event], workers: Sequence[str], resources: Sequence[str], leases: Sequence[str]
) -> Fault | None:
    """The first event that can never happen, or None."""
    known = {"worker": workers, "resource": resources, "lease": leases}
    lives = {name: _Life() for name in workers}
    messages: dict[tuple[str, str], list[str]] = {}
    for event in events:
        fault = _misnamed(event, known)
        if not fault and event.act in _FLIGHTS:
            fault = _not_flying(event, messages.get((event.worker, event.value), []))
        elif not fault and event.worker:
            fault = _cannot(event, lives[event.worker], leases)
        if fault:
            return fault
        if event.act in ("send", "duplicate"):
            messages.setdefault((event.worker, event.value), []).append("on its way")
    return None


def _misnamed(event: Event, known: Mapping[str, Sequence[str]]) -> Fault | None:
    for slot, names in known.items():
        name = getattr(event, slot)
        if name and name not in names:
            [near] = nearest(name, names, 1)
            return Fault(event, f"`{name}` is no {slot} here ({', '.join(names)})", str(event.but(**{slot: near})))
        if not name and len(names) > 1 and f"{{{slot}}}" in FORMS[event.act]:
            says = f"it names no {slot} and there are {len(names)} ({', '.join(names)})"
            return Fault(event, says, str(event.but(**{slot: names[0]})))
    if event.act in ("pass", "ahead", "behind") and not 0 < event.number <= _LONGEST:
        return Fault(event, f"seconds are 1 to {_LONGEST}", str(event.but(number=20)))
    return None


def _cannot(event: Event, life: _Life, leases: Sequence[str]) -> Fault | None:
    who = event.worker
    turn = _TURNS.get(event.act)
    stands_still = life.state != "running" and event.act not in _ANY_TIME
    if stands_still and not (turn and life.state in turn.before):
        back = "resume" if life.state == "paused" else "restart"
        return Fault(event, f"{who} {life.state} in line {life.since} and did not {back}", str(Event(back, who)))
    if turn:
        if getattr(life, turn.name) not in turn.before:
            return Fault(event, f"{who} {turn.otherwise}", str(Event(turn.instead, who)))
        setattr(life, turn.name, turn.after)
        if turn.name == "state":
            life.since = event.line
        if turn.after == "crashed":
            life.asked.clear()
    if event.act == "acquire":
        life.asked.add(event.lease or leases[0])
    lacks = event.lease not in life.asked if event.lease else not life.asked
    if event.act in _LEASED and lacks and (life.fenced or event.act not in _UNLEASED):
        lease = event.lease or (event.resource if event.resource in leases else leases[0])
        acquire = Event("acquire", who, lease="" if len(leases) == 1 else lease)
        return Fault(event, f"{who} has acquired no lease before", str(acquire))
    return None


def _not_flying(event: Event, copies: list[str]) -> Fault | None:
    needs, makes = _FLIGHTS[event.act]
    if needs not in copies:
        first = "arrive" if event.act == "repeat" and copies else "send"
        instead = Event(first, event.worker, value=event.value)
        what = f"no {event.value} of {event.worker}"
        return Fault(event, f"{what} is on its way" if needs == "on its way" else f"{what} has arrived", str(instead))
    copies[copies.index(needs)] = makes
    return None
