"""Replay: what each event of a timeline does under a fix, and the history that authority and receiver leave.

There are no sleeps and no clocks. An event takes one logical second; `lease expires` and `20 s pass` let time pass, in
which running workers renew where the fix says so. The authority judges an expiry by the clock of the worker that asks,
as a conditional request does; the receiver by the true one.
"""

from __future__ import annotations

from typing import NamedTuple

from fencinglab.model import happening, leasing, writing
from fencinglab.model.event import MUTATIONS, Event
from fencinglab.model.fix import Fix
from fencinglab.model.receiver import Held
from fencinglab.model.rows import Row
from fencinglab.model.timeline import Timeline
from fencinglab.model.world import Decision, Stored, World

_ACTS = {
    "acquire": leasing.acquire,
    "renew": leasing.renew,
    "release": leasing.release,
    "check": leasing.check,
    "expire": leasing.expire,
    "pass": leasing.elapse,
    "read": writing.read,
    **dict.fromkeys(MUTATIONS, writing.mutate),
    "poll": writing.poll,
    "effect": writing.effect,
    "store": writing.store,
    "send": writing.send,
    "arrive": writing.arrive,
    "repeat": writing.repeat,
    "duplicate": writing.duplicate,
    "lose": writing.lose,
    "inspect": writing.inspect,
    "pause": happening.pause,
    "resume": happening.resume,
    "crash": happening.crash,
    "restart": happening.restart,
    "part": happening.part,
    "rejoin": happening.rejoin,
    "ahead": happening.skew,
    "behind": happening.skew,
    "downgrade": happening.downgrade,
    "upgrade": happening.upgrade,
    "delete": happening.delete,
    "restore": happening.restore,
}


class Step(NamedTuple):
    """One event under one fix: when, what came of it in a sentence, and what was decided."""

    event: Event
    at: int  # logical second
    says: str
    decisions: tuple[Decision, ...] = ()


class Run(NamedTuple):
    """A timeline under a fix."""

    timeline: Timeline
    fix: Fix
    steps: tuple[Step, ...]
    afterwards: tuple[Step, ...]  # what was tried when all the rest had been taken
    final: dict[str, Held]  # what the receiver holds in the end, by resource
    effects: tuple[str, ...]  # what happened outside, in order
    flying: int  # mutations still on their way
    stored: tuple[Stored, ...]  # what was stored beside the receiver, in order

    @property
    def told(self) -> tuple[Step, ...]:
        """All steps, those afterwards too."""
        return (*self.steps, *self.afterwards)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All decisions, in the order in which they were made."""
        return tuple(decision for step in self.told for decision in step.decisions)

    @property
    def rows(self) -> list[Row]:
        """The history: a row an attempted mutation, with every column of `fencinglab.history.NAMES`."""
        return [decision.row for decision in self.decisions]


def replay(timeline: Timeline, fix: Fix, *, then: Fix | None = None, after: int = 0) -> Run:
    """The run of the timeline under the fix: the same for the same two, to the byte.

    Another fix may take over: `then`, `after` so many events. Steps and harms are told by line; of a timeline that was
    built and not read, read what `str` gives first.
    """
    fix, then = timeline.tried(fix), then and timeline.tried(then)
    world = World(timeline, fix)
    steps = tuple(_step(world, event) for event in timeline.events[:after])
    world.fix = then or fix
    steps += tuple(_step(world, event) for event in timeline.events[after:])
    final, effects, stored = dict(world.held), tuple(world.effects), tuple(world.stored)
    flying = sum(flight.state == "on its way" for copies in world.flights.values() for flight in copies)
    afterwards = tuple(_step(world, event) for event in timeline.afterwards)
    return Run(timeline, fix, steps, afterwards, final, effects, flying, stored)


def _step(world: World, event: Event) -> Step:
    """What the event does; afterwards it is a second later, or as late as the event says."""
    world.begin(event)
    begun = world.now
    says = _ACTS[event.act](world, event)
    at = world.now if event.act == "expire" else begun
    if event.act != "pass":
        world.now += 1
    return Step(event, at, says, tuple(world.decisions))
