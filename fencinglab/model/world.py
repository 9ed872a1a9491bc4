"""The world of a replay: workers and what they remember, the authority's leases, what the receiver holds, and time.

It lives only inside `replay`, which gives frozen values. What happens in it is in `leasing`, `writing` and `happening`:
functions of the world and an event that say in a sentence what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fencinglab.model.event import Event
from fencinglab.model.fix import Fix
from fencinglab.model.lease import Lease, fresh, held_by
from fencinglab.model.receiver import Held, Mutation
from fencinglab.model.rows import Row, State, moment, row
from fencinglab.model.timeline import Timeline


class Decision(NamedTuple):
    """One attempted mutation: its row in the history, and what only a replay knows."""

    row: Row
    grant: int  # under which grant its writer acted, counted over all leases from 1; 0 = none
    newest: int  # the newest grant that covers the resource at this moment
    value: str = ""
    again: bool = False  # the same operation of the same grant was accepted before
    late: bool = False  # the writer's lease had ended and nobody had taken over
    attempt: str = ""  # what was attempted, in words; by which rule it was decided follows in the step's sentence


@dataclass
class Term:
    """A grant as its holder remembers it."""

    lease: str
    token: int
    grant: int
    renewed_at: int
    renewing: bool = True  # until it is released or a renewal is refused


@dataclass
class Worker:
    """A worker, with all that it knows."""

    name: str
    state: str = "running"  # running, paused or crashed
    terms: dict[str, Term] = field(default_factory=dict)  # by lease, the newest last
    known: dict[str, int] = field(default_factory=dict)  # by resource, the identity of the state that it knows
    stored: dict[str, str] = field(default_factory=dict)  # by resource, the key of what it stored since the last grant
    done: list[tuple[str, str]] = field(default_factory=list)  # kind and value of its operations since the last grant
    checked: bool = False  # it has looked at its lease and will not look again before the next write
    skew: int = 0  # seconds by which its clock runs ahead
    fenced: bool = True  # false = an older version, which writes without token, condition or check
    parted: bool = False  # it does not reach the authority

    def idle(self) -> str:
        """The sentence for a worker without a lease."""
        return f"{self.name} holds no lease and does nothing"


@dataclass
class Flight:
    """A mutation from sender to receiver."""

    resource: str
    lease: str
    grant: int
    sent_at: int
    mutation: Mutation
    state: str = "on its way"  # then arrived or lost
    checked: str | None = None  # the reason that a separate check gave; empty = none


class Stored(NamedTuple):
    """Bytes that a worker stored under a key, in a store that compares nothing."""

    key: str
    content: str
    grant: int  # under which its writer acted; 0 = none
    line: int
    final: bool  # whether a finished resource pointed to other bytes under this key


_NONE = Decision({}, 0, 0)  # what stands before the first grant


class World:
    """Everything that a timeline is about, at one logical second."""

    def __init__(self, timeline: Timeline, fix: Fix) -> None:
        self.timeline, self.fix, self.now = timeline, fix, 0
        self.lease_length = timeline.lease_length * fix.times
        self.workers = {name: Worker(name) for name in timeline.workers}
        self.leases = {name: fresh(timeline.first_token) for name in timeline.every_lease()}
        self.granted: dict[str, int] = {}  # the token of each lease's latest grant
        self.held: dict[str, Held] = {}
        self.absent = Held()  # what a resource begins from; after a deletion from an identity that nobody knows
        self.newest = dict.fromkeys(timeline.resources, _NONE)  # the latest grant
        self.marks = dict.fromkeys(timeline.resources, _NONE)  # the latest accepted mutation of the newest writer
        self.accepted: set[tuple[str, int, str, str]] = set()  # resource, grant, kind and value
        self.flights: dict[tuple[str, str], list[Flight]] = {}  # by sender and value
        self.effects: list[str] = []
        self.stored: list[Stored] = []
        self.decisions: list[Decision] = []  # of this step
        self.source = ""
        self._steps = self._rows = self._grants = 0

    # --- who and what

    def lease_named(self, name: str) -> str:
        """The lease's own name, or that of the only one."""
        return name or self.timeline.every_lease()[0]

    def resource_named(self, name: str) -> str:
        """The resource's own name, or that of the only one."""
        return name or self.timeline.resources[0]

    def holds(self, resource: str) -> Held:
        """What the receiver holds of the resource; nothing of one that does not exist."""
        return self.held.get(resource, self.absent)

    def term(self, worker: Worker, resource: str = "", lease: str = "") -> Term | None:
        """The grant that a worker acts under: of this lease, of the resource's own, or the latest that covers it."""
        if lease or resource in worker.terms:
            return worker.terms.get(lease or resource)
        terms = [t for t in worker.terms.values() if not resource or resource in self.timeline.covered(t.lease)]
        return terms[-1] if terms else None

    def lease_over(self, resource: str, term: Term | None) -> str:
        """The lease of the term, or the first that covers the resource."""
        covering = (name for name in self.timeline.every_lease() if resource in self.timeline.covered(name))
        return term.lease if term else next(covering)

    def told_it_holds(self, worker: Worker, term: Term) -> bool:
        """Whether the worker, asking now and by its own clock, is told that its lease runs under its token."""
        lease = self.leases[term.lease]
        return not worker.parted and (held_by(lease, self.now + worker.skew), lease.token) == (worker.name, term.token)

    # --- the history

    def begin(self, event: Event) -> None:
        """A step begins: what is recorded from now on is its doing."""
        self._steps += 1
        self.source = f"{self.timeline.name}.timeline:{event.line or f'step {self._steps}'}"
        self.decisions = []

    def state(self, lease: str, resource: str) -> State:
        """What authority and receiver hold at this moment, as one side of a row."""
        return self.leases[lease] if lease in self.granted else None, self.held.get(resource)

    def record(
        self, resource: str, lease: str, before: State, grant: int,
        *, value: str = "", again: bool = False, late: bool = False, attempt: str = "", **known: object,
    ) -> Decision:  # fmt: skip
        """Keep a decision with its row; a column that is not said is that of an accepted mutation by a holder."""
        self._rows += 1
        given: Row = {
            "resource": resource, "lease": lease, "at": moment(self.now), "sent_at": moment(self.now),
            "protected": True, "outcome": "ok", "decision": "rejected" if known.get("reason") else "accepted",
            "current_token": self.granted.get(lease), "source": self.source,
        }  # fmt: skip
        made = row(self._rows, self.timeline.name, before, self.state(lease, resource), given | known)
        self.decisions.append(Decision(made, grant, self.newest[resource].grant, value, again, late, attempt))
        return self.decisions[-1]

    def change(self, name: str, new: Lease, kind: str, worker: Worker, token: int | None, reason: str = "") -> None:
        """Change a lease, or with a reason refuse to: one row for each resource that it covers."""
        befores = {resource: self.state(name, resource) for resource in self.timeline.covered(name)}
        self.leases[name] = new
        granted = kind == "grant" and not reason
        if granted:
            self._grants += 1
            self.granted[name] = new.token
            worker.terms[name] = Term(name, new.token, self._grants, self.now)
        term = worker.terms.get(name)
        for resource, before in befores.items():
            if granted:
                held = self.holds(resource)
                self.held[resource] = held._replace(promised=max(held.promised, new.token))
                worker.known[resource] = held.version
            decision = self.record(
                resource, name, before, term.grant if term else 0,
                kind=kind, writer=worker.name, token=token, fenced=None if token is None else True,
                reason=reason or None, outcome="failed" if reason else "ok", sent_at=moment(self.now + worker.skew),
            )  # fmt: skip
            if granted:
                self.newest[resource] = decision
