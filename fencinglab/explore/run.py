"""A run as a timeline: what the search found, in the language of `fencinglab.model.timeline`, replayed and judged.

The search knows no pauses and no times; a timeline does. So a worker that acts again after its lease has run out
pauses before, where a fix renews every worker stands still while time passes, and a delay is waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fencinglab.explore.search import Run
from fencinglab.explore.steps import Model
from fencinglab.explore.world import NAMES, Step
from fencinglab.model import replay, timeline
from fencinglab.model.event import Event
from fencinglab.model.fix import FIXES, Fix
from fencinglab.model.harm import harms
from fencinglab.model.timeline import Timeline

RESOURCE = "report"
LEASE_LENGTH = 60  # seconds
_OWN = ("acquire", "acquire early", "read", "check", "renew", "send", "release", "crash", "downgrade")
_VALUES = {"finish": "DONE", "alert": "overdue"}
_ARRIVALS = ("arrive", "arrive, reply lost", "inspect", "apply")


def breaks(run: replay.Run, invariant: str, program: Sequence[str]) -> bool:
    """Whether a replayed run breaks the invariant, judged by the replay alone."""
    found = {harm.name for harm in harms(run)}
    held = run.final.get(RESOURCE)
    if invariant == "can-finish":
        return held is None or not held.terminal_version
    if invariant == "alert-possible":
        return held is not None and held.terminal_version > 0 and not held.alerts and not run.flying
    if invariant == "alert-once":
        return "terminal" in found if "finish+alert" in program else _alerts(run) > 1
    return invariant in found


def _alerts(run: replay.Run) -> int:
    """How many alerts were accepted since the item began to exist."""
    count = 0
    for row in run.rows:
        if row["kind"] == "ttl_delete":
            count = 0
        count += row["kind"] == "alert" and row["decision"] == "accepted"
    return count


def timeline_of(model: Model, run: Run, name: str, title: str) -> Timeline:
    """The run as a timeline, read back from its own text, so that every event has its line."""
    events = [event for told in events_of(model.fix, model.program, run) for event in told]
    token = model.receiver.token(model.receiver.start) + 1
    return written(events, name, title, model.names, token, (model.fix.name,))


def events_of(fix: Fix, program: Sequence[str], run: Sequence[Step | None]) -> list[list[Event]]:
    """The events of each step of a run of the program, whose kinds these are; none of a step that is None."""
    telling = _Telling(fix, program, run)
    return [[*telling.events(place)] for place in range(len(run))]


def written(
    events: Sequence[Event], name: str, title: str, names: tuple[str, ...], token: int, fixes: tuple[str, ...] = ()
) -> Timeline:
    """The events as a timeline, read back from its own text; an InputError where they can never happen."""
    workers = tuple(name for name in NAMES if any(event.worker == name for event in events)) or names
    made = Timeline(name, title, workers, (RESOURCE,), token, LEASE_LENGTH, tuple(events), fixes=fixes)
    return timeline.parse(str(made), f"{name}.timeline")


class _Telling:
    """The events of a run, with what a timeline must say beside the steps."""

    def __init__(self, fix: Fix, program: Sequence[str], run: Sequence[Step | None]) -> None:
        self.fix, self.program, self.run = fix, program, run
        self.paused = set[str]()
        self.leased = set[str]()  # workers with a lease that they know of
        self.attempts = Counter[str]()
        self.values: dict[tuple[str, int, int], str] = {}  # sender, grant and number -> the value sent
        self.arrived = set[tuple[str, int, int]]()
        self.early = 0

    def events(self, place: int) -> Iterator[Event]:
        """The events of the step in this place; the places are asked for in their order."""
        step = self.run[place]
        if step is None:
            return
        if step.act in _OWN:
            yield from self._wakes(step.worker)
        yield from self._arrival(place, step) if step.act in _ARRIVALS else self._other(place, step)

    def _wakes(self, worker: str) -> Iterator[Event]:
        if worker in self.paused:
            self.paused.remove(worker)
            yield Event("resume", worker)

    def _later(self, place: int, worker: str) -> bool:
        """Whether the worker does something itself after this step."""
        return any(step.worker == worker and step.act in _OWN for step in self._after(place))

    def _after(self, place: int) -> Iterator[Step]:
        return (step for step in self.run[place + 1 :] if step is not None)

    def _other(self, place: int, step: Step) -> Iterator[Event]:
        who, fix = step.worker, self.fix
        match step.act:
            case "expire":
                for name in sorted(self.leased - self.paused):
                    if fix.renews or self._later(place, name):
                        self.paused.add(name)
                        yield Event("pause", name)
                yield Event("expire")
                if fix.delay:
                    yield Event("pass", number=fix.delay)
            case "acquire" | "acquire early":
                if step.act == "acquire early":
                    self.early += 1
                    yield Event("ahead", who, number=30 + (LEASE_LENGTH * fix.times + fix.delay) * (self.early + 1))
                if step.accepted is not False:
                    self.leased.add(who)
                self.attempts[who] += 1
                yield Event("acquire", who)
            case "send":
                kind, value = self._named(step)
                self.values[who, step.grant, step.number] = value
                yield Event("send", who, kind="" if kind == "write" else kind, value=value)
            case "crash":
                self.leased.discard(who)
                yield Event("crash", who)
                if self._later(place, who):
                    yield Event("restart", who)
            case "delete":
                yield Event("delete", resource=RESOURCE)
            case _:  # read, check, renew, release, downgrade, restore
                yield Event(step.act, who, number=step.number if step.act == "restore" else 0)

    def _named(self, step: Step) -> tuple[str, str]:
        """The kind of what is sent, and a value that tells its sender's attempts apart."""
        program = self.program
        kind = program[step.number].split("+")[0]
        attempt = f"{step.worker}{self.attempts[step.worker] if self.attempts[step.worker] > 1 else ''}"
        if kind != "write":
            return kind, f"{_VALUES.get(kind, kind)}-{attempt}"
        return kind, f"draft{step.number + 1 if program.count('write') > 1 else ''}-{attempt}"

    def _arrival(self, place: int, step: Step) -> Iterator[Event]:
        """A copy arrives; one that is checked apart is doubled before, if a further one will arrive."""
        who, key = step.worker, (step.worker, step.grant, step.number)
        value, lost = self.values[key], step.act == "arrive, reply lost"
        if self.fix.rules.guard.two_steps:
            deliveries = [s for s in self._after(place) if (s.worker, s.grant, s.number) == key]
            if step.act != "apply" and any(s.act in ("arrive", "inspect", "arrive, reply lost") for s in deliveries):
                yield Event("duplicate", who, value=value)
            if step.act != "apply":
                yield Event("inspect", who, value=value)
            if step.act != "inspect":
                yield Event("arrive", who, value=value, lost=lost)
            return
        yield Event("repeat" if key in self.arrived else "arrive", who, value=value, lost=lost)
        self.arrived.add(key)


def lost_at(told: Timeline, fix: Fix, invariant: str, program: Sequence[str]) -> int:
    """The line of the event after which every fix is too late: whichever takes over from `fix` then, the invariant is
    broken; 0 = no fix helps at all. `program` are the kinds of a worker's operations.
    """
    for place in range(len(told.events), -1, -1):
        runs = (replay.replay(told, fix, then=other, after=place) for other in FIXES.values())
        if not all(breaks(run, invariant, program) for run in runs):
            return told.events[place].line if place < len(told.events) else 0
    return 0
