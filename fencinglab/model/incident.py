"""Incidents: public failure reports told as timelines, and for every fix whether it would have prevented the harm.

The timelines and what readers of the reports concluded lie in `data/incidents`. Here each fix is tried by replay,
beside what was in place, and set next to that conclusion.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fencinglab.model import shelf
from fencinglab.model.event import Event
from fencinglab.model.fix import FIXES, Fix, named
from fencinglab.model.harm import CLASSES, harms
from fencinglab.model.replay import replay
from fencinglab.model.timeline import Timeline

TABLE = "incidents.toml"
VERDICTS = {
    "unsafe": "finds what was unsafe",
    "window": "finds that two could have acted, and nothing unsafe",
    "cost": "finds that work or time was lost, and nothing unsafe",
    "unknown": "cannot decide it",
    "not visible": "sees nothing of it",
}  # of an audit of what happened
RESULTS = {
    "prevents": "no harm as bad is done",
    "puts off": "until the next holder asks as much later as the fix makes it wait",
    "does not prevent": "harm as bad is done",
    "idle": "there is no such harm in this model, with or without it",
}


class Incident(NamedTuple):
    """What happened as a timeline, and what an audit and the readers of the report say of it."""

    timeline: Timeline
    verdict: str  # one of VERDICTS: what an audit of its history, or of its log, says
    judged: str  # the verdict that readers of the report reached
    helps: tuple[str, ...]  # the fixes that they expected to help
    does_not_help: tuple[str, ...]  # and not to help
    because: dict[str, str]  # fix, or `verdict` -> why replay or audit say otherwise than they did
    not_seen: str  # what no log of this shape can show; empty = nothing that matters
    beyond: str  # what was proposed and is no fix of FIXES

    @property
    def name(self) -> str:
        """`C07-leader-not-told`."""
        return self.timeline.name


class Row(NamedTuple):
    """One incident under one fix."""

    incident: str
    title: str
    verdict: str  # one of VERDICTS
    fix: str
    result: str  # a name of RESULTS, by replay
    judged: str  # helps, does not help, or empty where nobody said
    because: str  # why the two differ; empty where they do not


def incidents() -> tuple[Incident, ...]:
    """All incidents, in order of their numbers; FileNotFoundError where the package's data are missing."""
    table = tomllib.loads((shelf.INCIDENTS / TABLE).read_text(encoding="utf-8"))
    return tuple(_incident(entry) for entry in table["incident"])


def _incident(entry: dict[str, Any]) -> Incident:
    return Incident(
        timeline=shelf.find(entry["name"]),
        verdict=entry["verdict"],
        judged=entry.get("judged", entry["verdict"]),
        helps=tuple(entry["helps"]),
        does_not_help=tuple(entry["does_not_help"]),
        because=entry.get("because", {}),
        not_seen=entry.get("not_seen", ""),
        beyond=entry.get("beyond", ""),
    )


def rows(of: Iterable[Incident] = (), fixes: Iterable[str] = tuple(FIXES)) -> tuple[Row, ...]:
    """Incidents × fixes, the fixes of one incident together and in the order given; of all incidents where none is."""
    return tuple(_row(incident, named(name)) for incident in tuple(of) or incidents() for name in fixes)


def _row(incident: Incident, fix: Fix) -> Row:
    timeline = incident.timeline
    judged = "helps" if fix.name in incident.helps else "does not help" if fix.name in incident.does_not_help else ""
    because = incident.because.get(fix.name, "")
    return Row(timeline.name, timeline.title, incident.verdict, fix.name, result(timeline, fix), judged, because)


def result(timeline: Timeline, fix: Fix) -> str:
    """Whether the fix, beside what was in place, prevents the harm of the timeline: a name of RESULTS."""
    there = harms(replay(timeline, named(timeline.in_place or "unfenced")))
    if not there:
        return "idle"
    as_bad = CLASSES[: CLASSES.index(there[0].group) + 1]
    if _done(timeline, fix, as_bad):
        return "does not prevent"
    return "puts off" if _done(_later(timeline, fix), fix, as_bad) else "prevents"


def _done(timeline: Timeline, fix: Fix, classes: Sequence[str]) -> bool:
    """Whether harm of these classes is done under the fix."""
    return any(harm.group in classes for harm in harms(replay(timeline, fix)))


def _later(timeline: Timeline, fix: Fix) -> Timeline:
    """The same events, in which whoever asks after the first asks as much later as the fix makes it wait."""
    wait = timeline.lease_length * (fix.times - 1) + fix.delay
    first = next(place for place, event in enumerate(timeline.events) if event.act == "acquire")
    events: list[Event] = []
    for place, event in enumerate(timeline.events):
        waits = wait and event.act == "acquire" and place > first
        events += [Event("pass", number=wait), event] if waits else [event]
    return replace(timeline, events=tuple(events))
