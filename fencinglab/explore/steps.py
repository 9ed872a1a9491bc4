"""The steps of the model: what each worker, each message and everybody may do next. Nothing here searches.

A state has three parts: what all share (the receiver, how many grants there were, which hazards are left), what each
worker is and has sent, and what has happened so far (`invariants`). A step changes the shared part and one worker.
A pause is no step: a worker that does nothing is paused. A lease may run out at any moment, so no duration appears.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fencinglab.explore.hazards import Hazard, spent
from fencinglab.explore.invariants import ALERTING, INVARIANTS, Effect, Past
from fencinglab.explore.receive import Receiver, Reply, Request, State
from fencinglab.explore.world import NAMES, Move, Step
from fencinglab.model.fix import Fix

IDLE, LEASED = -2, -1  # places before the program; from 0 on a place is the next operation of the program
ALERTS = {  # when a worker raises an alert -> how its program ends
    "none": ("finish",), "before": ("alert", "finish"), "after": ("finish", "alert"), "with": ("finish+alert",),
}  # fmt: skip


class Message(NamedTuple):
    """A mutation on its way."""

    number: int  # its place in the program
    copies: int  # 2 = it may still arrive twice, 1 = once, 0 = it is gone
    checked: int  # deliveries that were checked and are not written yet
    token: int | None
    grant: int  # under which grant it was sent, counted from 1
    version: int = 0
    old: bool = False  # sent before its sender crashed


class Worker(NamedTuple):
    """A worker, with what it knows and what it sent."""

    place: int = IDLE
    token: int = 0
    grant: int = 0
    checked: bool = False
    fenced: bool = True
    version: int = 0  # the identity of the state that it knows
    messages: tuple[Message, ...] = ()
    again: bool = False  # it crashed and started again: others may still know its name


class Shared(NamedTuple):
    """What all share."""

    held: State  # of the receiver
    grants: int = 0
    left: tuple[int, ...] = ()  # how often each hazard may still happen


NOBODY = Worker()
ASKED = tuple(name for name in INVARIANTS if name != "polling-stops")  # nobody is granted a finished job here


class Model(NamedTuple):
    """Workers that run one program against one receiver under a fix."""

    fix: Fix
    workers: int
    program: tuple[str, ...]  # kinds of mutations in the order of sending; `finish+alert` is both in one
    hazards: tuple[Hazard, ...]
    receiver: Receiver

    @property
    def names(self) -> tuple[str, ...]:
        """The workers by name."""
        return tuple(NAMES[: self.workers])

    @property
    def start(self) -> Shared:
        """What all share in the beginning."""
        return Shared(self.receiver.start, 0, tuple(hazard.times for hazard in self.hazards))

    @property
    def title(self) -> str:
        """Under what the search is made, in words."""
        return f"under {self.fix.name}"

    @property
    def searched(self) -> str:
        """How large the world is, in words."""
        sends = ", ".join(kind.replace("+", " with ") for kind in self.program)
        workers = f"{self.workers} worker{'s' * (self.workers > 1)}"
        return f"every order of events of {workers}, each with {len(self.program)} of these: {sends}"

    @property
    def always(self) -> str:
        """What may happen without any hazard."""
        return "pauses, delays, duplicates, a lease that runs out at any moment"

    @property
    def idle(self) -> Worker:
        """What a worker is in the beginning."""
        return NOBODY

    @property
    def asked(self) -> tuple[str, ...]:
        """The invariants that this model has anything to say of."""
        alerting = any("alert" in kind for kind in self.program)
        return tuple(name for name in ASKED if alerting or name not in ALERTING)

    def finishing(self, number: int) -> bool:
        """Whether this operation of the program finishes the job."""
        return self.program[number].startswith("finish")

    # --- what may happen next

    def common(self, shared: Shared) -> Iterator[Move]:
        """The steps that are no worker's."""
        holder = self.receiver.holder(shared.held)
        if holder:
            finished = self.receiver.finished(shared.held)
            yield self._happens(shared, "expire", Effect("unheld") if not finished else None)
        if shared.grants and (less := spent(self.hazards, shared, "ttl")):
            yield self._happens(less, "delete", Effect("deleted", shared.grants))
        if shared.grants and (less := spent(self.hazards, shared, "restore")):
            first = self.receiver.token(self.receiver.start)
            for token in range(first, self.receiver.token(shared.held)):
                yield self._happens(less, "restore", None, token)

    def of_worker(self, shared: Shared, worker: Worker, name: str) -> Iterator[Move]:
        """The steps of a worker and of what it sent."""
        yield from self._own(shared, worker, name)
        for place, message in enumerate(worker.messages):
            yield from self._arrivals(shared, worker, name, place, message)
        yield from self._mishaps(shared, worker, name)

    def rests(self, shared: Shared, worker: Worker) -> bool:
        """Whether nothing more is to come of the worker: done, or idle when the job is finished, nothing on its way."""
        stands = worker.place == len(self.program) or (worker.place == IDLE and self.receiver.finished(shared.held))
        return stands and not any(message.copies or message.checked for message in worker.messages)

    def at_rest(self, shared: Shared, past: Past) -> tuple[frozenset[str], frozenset[str]]:
        """Where nothing is to come any more: the invariants that are broken, and which `sometimes` it is."""
        finished = self.receiver.finished(shared.held)
        lost = ALERTING[0] in self.asked and finished and not past.alerts
        broken = {"final": past.last < past.tried, "alert-possible": lost}
        return frozenset(name for name, is_so in broken.items() if is_so), frozenset(["rest"] if finished else [])

    def rescue(self, shared: Shared) -> tuple[bool, tuple[Step, ...]]:
        """Whether it is finished, or some undisturbed attempts, one after another, finish it; and the first of them.

        Nothing else happens meanwhile: each lease runs out, a fresh worker asks, its writes arrive in order, once.
        """
        if self.receiver.finished(shared.held):
            return True, ()
        name = NAMES[self.workers]
        first: tuple[Step, ...] = ()
        shared = shared._replace(left=())  # nothing else goes wrong meanwhile
        for _ in range(shared.grants + 2):
            shared, steps, finished = self._attempt(shared, name)
            first = first or steps
            if finished:
                return True, first
        return False, first

    # --- how

    def _own(self, shared: Shared, worker: Worker, name: str) -> Iterator[Move]:
        if worker.place == IDLE:
            yield from self._acquires(shared, worker, name)
        elif worker.place == LEASED:
            _, reply = self._ask(shared, Request("read", name))
            yield Move(Step("read", name), shared, worker._replace(place=0, version=reply.version))
        elif worker.place < len(self.program):
            if self.fix.client_check and worker.fenced and not worker.checked:
                holds = self._holds(shared, worker, name)
                seen = worker._replace(checked=True) if holds else worker._replace(place=len(self.program))
                yield Move(Step("check", name, accepted=holds), shared, seen)
            else:
                yield self._sends(shared, worker, name)
        if self.fix.aborts and IDLE < worker.place < len(self.program) and not self._holds(shared, worker, name):
            gone = worker._replace(place=len(self.program), checked=False)
            yield Move(Step("renew", name, accepted=False), shared, gone)

    def _acquires(self, shared: Shared, worker: Worker, name: str) -> Iterator[Move]:
        after, reply = self._ask(shared, Request("acquire", name))
        act = "acquire"
        if not reply.accepted and (less := spent(self.hazards, shared, "clock-skew")):
            after, reply = self._ask(less, Request("acquire", name, ahead=True))
            act = "acquire early"
        if reply.accepted:
            granted = after._replace(grants=shared.grants + 1)
            leased = worker._replace(place=LEASED, token=reply.token, grant=granted.grants)
            yield Move(Step(act, name, grant=granted.grants), granted, leased, Effect("granted", granted.grants))

    def _sends(self, shared: Shared, worker: Worker, name: str) -> Move:
        token = worker.token if worker.fenced else None
        sent = Message(worker.place, 2, 0, token, worker.grant, worker.version)
        after = worker._replace(place=worker.place + 1, checked=False, messages=(*worker.messages, sent))
        return Move(Step("send", name, worker.place, grant=worker.grant), shared, after)

    def _arrivals(self, shared: Shared, worker: Worker, name: str, place: int, message: Message) -> Iterator[Move]:
        two_steps = self.fix.rules.guard.two_steps and message.token is not None
        if message.copies:
            for left in range(message.copies):
                yield self._arrives(shared, worker, name, place, message._replace(copies=left), two_steps)
            less = None if message.old else spent(self.hazards, shared, "lost-reply")
            if less:
                yield self._arrives(less, worker, name, place, message, two_steps, lost=True)
        if message.checked:
            less_checked = message._replace(checked=message.checked - 1)
            yield self._decided(shared, worker, name, place, less_checked, "apply")

    def _arrives(
        self, shared: Shared, worker: Worker, name: str, place: int, left: Message, two_steps: bool, lost: bool = False
    ) -> Move:
        """A copy arrives; `left` is what is left of the message."""
        if two_steps:
            _, reply = self._ask(shared, self._request(left, name, "check"))
            if reply.accepted:
                step = Step("inspect", name, left.number, left.copies > 0, None, left.grant)
                changed = self._with(worker, place, left._replace(checked=left.checked + 1))
                return Move(step, shared, changed, Effect("checked", left.grant))
        return self._decided(shared, worker, name, place, left, "arrive, reply lost" if lost else "arrive")

    def _decided(self, shared: Shared, worker: Worker, name: str, place: int, left: Message, act: str) -> Move:
        """The receiver's decision; a worker that hears of it knows the state from then on."""
        after, reply = self._ask(shared, self._request(left, name, "put" if act == "apply" else "decide"))
        changed = self._with(worker, place, left)
        if reply.accepted and not left.old and act != "arrive, reply lost":
            changed = changed._replace(version=reply.version)
        late = left.grant == shared.grants and self.receiver.holder(shared.held) != name
        effect = Effect(
            "wrote" if reply.accepted else "refused", left.grant, left.grant < shared.grants, late,
            self.program[left.number],
        )  # fmt: skip
        step = Step(act, name, left.number, left.copies > 0, reply.accepted, left.grant, reply.reason)
        return Move(step, after, changed, effect)

    def _mishaps(self, shared: Shared, worker: Worker, name: str) -> Iterator[Move]:
        works = IDLE < worker.place < len(self.program)
        if worker.place != IDLE and (less := spent(self.hazards, shared, "crash")):
            flying = tuple(m._replace(old=True) for m in worker.messages if m.copies or m.checked)
            yield Move(Step("crash", name), less, Worker(fenced=worker.fenced, messages=flying, again=True))
        sent_all = worker.place == len(self.program)
        if sent_all and self._holds(shared, worker, name) and (less := spent(self.hazards, shared, "release")):
            after, _ = self._ask(less, Request("release", name, worker.token))
            free = Effect("unheld") if not self.receiver.finished(shared.held) else None
            yield Move(Step("release", name), after, worker, free)
        if works and worker.fenced and (less := spent(self.hazards, shared, "unfenced-worker")):
            yield Move(Step("downgrade", name), less, worker._replace(fenced=False, checked=False))

    def _attempt(self, shared: Shared, name: str) -> tuple[Shared, tuple[Step, ...], bool]:
        """What all share after one undisturbed attempt, its steps, and whether it finished the job."""
        steps: list[Step] = []
        if self.receiver.holder(shared.held):
            ended = self._happens(shared, "expire", None)
            shared, steps = ended.shared, [ended.step]
        moves = [*self._acquires(shared, NOBODY, name)]
        while moves:
            arriving = [move for move in moves if move.effect or move.step.act == "inspect"]
            step, shared, worker, _ = (arriving or moves)[0]
            steps.append(step)
            if step.accepted and step.act in ("arrive", "apply") and self.finishing(step.number):
                return shared, tuple(steps), True
            moves = [*self.of_worker(shared, worker, name)]
        return shared, tuple(steps), False

    def _happens(self, shared: Shared, act: str, effect: Effect | None, number: int = 0) -> Move:
        after, _ = self._ask(shared, Request(act, number=number))
        return Move(Step(act, number=number), after, NOBODY, effect)

    def _request(self, message: Message, name: str, act: str) -> Request:
        kind = self.program[message.number].split("+")[0]
        same = [number for number in range(message.number + 1) if self.program[number].split("+")[0] == kind]
        return Request(act, name, message.token, len(same), message.version, kind)

    def _with(self, worker: Worker, place: int, left: Message) -> Worker:
        """The worker with what is left of one of its messages; an old one that is gone is forgotten."""
        kept = () if left.old and not left.copies and not left.checked else (left,)
        return worker._replace(messages=worker.messages[:place] + kept + worker.messages[place + 1 :])

    def _holds(self, shared: Shared, worker: Worker, name: str) -> bool:
        """Whether the worker is told that its lease runs under its grant."""
        return self.receiver.holder(shared.held) == name and self.receiver.token(shared.held) == worker.token

    def _ask(self, shared: Shared, request: Request) -> tuple[Shared, Reply]:
        held, reply = self.receiver.step(shared.held, request)
        return shared._replace(held=held), reply
