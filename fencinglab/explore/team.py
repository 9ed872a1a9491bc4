"""A team's own requests as a world to search: each step sends the real request to a receiver and reads the result.

A worker goes through the program of its request file: it sends a request, waits for the reply, and stops where it is
refused after its grant. A request may be on its way for any time, and a copy of it may arrive later; what it says of
the time is what its sender's clock said. Time is a few ticks: a lease that runs out is one. What no request and no
mapped column looks at is left out of the items, so that equal is equal; a receiver is asked once for each items and
request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.parse import NO_ACQUIRE
from fencinglab.dynamodb.placeholders import Unbound
from fencinglab.dynamodb.requests import READ, Items, Requests
from fencinglab.dynamodb.sending import Step as Sent
from fencinglab.errors import InputError, UsageError
from fencinglab.explore import program
from fencinglab.explore.hazards import Hazard, spent
from fencinglab.explore.invariants import ALERTING, ENDING, INVARIANTS, Effect, Past
from fencinglab.explore.sender import Message, Sender, Shared, frozen, plain
from fencinglab.explore.standing import Standing
from fencinglab.explore.weaker import unfenced
from fencinglab.explore.world import NAMES, Move, Step

Receiver = Callable[[Requests, Items, str, dict[str, Any]], Sent]  # items, operation, bindings -> what comes of it


class Team:
    """Workers that send the requests of a file to one receiver."""

    def __init__(
        self, file: Requests, receiver: Receiver, start: Items, workers: int = 2, hazards: Iterable[Hazard] = (),
        optional: bool = False,
    ) -> None:  # fmt: skip
        if not 1 <= workers < len(NAMES):
            raise UsageError(
                f"--workers {workers}: a search needs 1 to {len(NAMES) - 1}; with more than 2 it takes long"
            )
        self.file, self.hazards, self.names = file, tuple(hazards), tuple(NAMES[:workers])
        self._ask, self.stands = receiver, Standing(file)
        self.idle = Sender()
        self.program = program.tried(file, self.hazards, optional)
        self.left_out = tuple(use.operation for use in file.program if use not in self.program)
        self.kinds = tuple(file.operations[use.operation].kind for use in self.program)
        if "grant" not in self.kinds:
            raise InputError(f"{file.name}: {NO_ACQUIRE}")
        self.words = program.words(self.program)
        self.loose = unfenced(file)
        self._known: dict[tuple[Items, str, str], Sent] = {}
        self.start = Shared(self.stands.seen(start), 0, 0, tuple(hazard.times for hazard in self.hazards))
        for column in ("token", "expires_at"):
            self.stands.number(start, column)

    @property
    def asked(self) -> tuple[str, ...]:
        """The invariants that these requests have anything to say of."""
        silent = {*(() if "alert" in self.kinds else ALERTING), *(ENDING if self.endless else ())}
        return tuple(name for name in INVARIANTS if name not in silent)

    @property
    def endless(self) -> bool:
        """Whether there is no job to be finished: no operation finishes one, and no status is final."""
        return "finish" not in self.kinds and not self.file.terminal

    @property
    def title(self) -> str:
        """Under what the search is made, in words."""
        return f"with {self.file.name}{f' and the rest of {self.file.rest}' if self.file.rest else ''}"

    @property
    def searched(self) -> str:
        """How large the world is, in words."""
        names = ", ".join(f"{use.operation}{'?' * use.optional}" for use in self.program)
        out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        count = len(self.names)
        return f"every order of events of {count} worker{'s' * (count > 1)}: {names}{out}"

    @property
    def always(self) -> str:
        """What may happen without any hazard."""
        more = any(hazard.name == "crash" for hazard in self.hazards)
        once = "" if more else ", and no worker takes the lease twice (`--hazard crash` lifts that)"
        ends = "a lease that runs out at any moment"
        ends = ends if "expires_at" in self.file.map else "no lease that runs out, for `map` names no expires_at"
        return f"pauses, delays, one late copy a worker, {ends}; a worker that is refused after its grant stops{once}"

    @property
    def calls(self) -> int:
        """How many different requests on different items the receiver has been asked."""
        return len(self._known)

    @property
    def asked_for(self) -> Iterator[tuple[str, Items, str, Sent]]:
        """What the receiver has been asked: the operation, the items, the text of the request; and what came of it."""
        return ((operation, items, text, sent) for (items, operation, text), sent in self._known.items())

    def with_file(self, file: Requests) -> Team:
        """The same workers with other requests; what the receiver was asked before is known to both.

        What is looked at in an item stays what it was: what counts as equal must not change with a condition.
        """
        other = copy(self)
        other.file, other.loose = file, unfenced(file)
        return other

    def read_as(self, file: Requests) -> Team:
        """The same workers, who look at all that the requests of this file look at; the receiver is asked anew."""
        other = copy(self)
        other.stands, other._known = Standing(file), {}
        other.start = self.start._replace(items=other.stands.seen(files.begin(file)))
        return other

    def decision(self, items: Items, message: Message) -> str:
        """What the receiver would make of a request that a worker has sent."""
        operation = self.program[message.place].operation
        return self._sent(items, operation, dict(message.bindings), message.fenced).decision

    # --- what may happen next

    def common(self, shared: Shared) -> Iterator[Move]:
        """A lease runs out; an item is deleted, and the protected one comes to be again where the file says how."""
        if "expires_at" in self.file.map and self.stands.runs(shared.items, shared.now):
            after = shared._replace(now=self.stands.later(shared.items, shared.now))
            yield Move(
                Step("expire"), after, self.idle, None if self.stands.finished(shared.items) else Effect("unheld")
            )
        if shared.grants and (less := spent(self.hazards, shared, "ttl")):
            for place in self.stands.removable(shared.items):
                gone = less._replace(items=(*less.items[:place], None, *less.items[place + 1 :]), issued=None)
                effect = None if place else Effect("deleted", shared.grants)
                yield Move(Step("delete", number=place), gone, self.idle, effect)
        if shared.backup is not None and (less := spent(self.hazards, shared, "restore")):
            token = self.stands.number(shared.backup, "token") or 0
            yield Move(
                Step("restore", number=token), less._replace(items=shared.backup, issued=None, backup=None), self.idle
            )
        if shared.items[0] is None and self.file.creates:
            yield Move(Step("create"), self._created(shared), self.idle)

    def of_worker(self, shared: Shared, worker: Sender, name: str) -> Iterator[Move]:
        """The steps of a worker and of what it sent."""
        if worker.waiting:
            yield from self._arrives(shared, worker, name, worker.waiting)
        elif not worker.stopped:
            for place in self._open(worker):
                yield from self._sends(shared, worker, name, place)
        if worker.copy:
            after, sent, effect = self._decided(shared, name, worker.copy)
            step = self._step("copy arrives", name, worker.copy, sent)
            yield Move(step, after, worker._replace(copy=None), effect)
        if worker.place and (less := spent(self.hazards, shared, "crash")):
            again = worker.over(start=worker.start + 1, copy=worker.copy or worker.waiting)
            yield Move(Step("crash", name), less, again)
        if worker.grant and worker.fenced and (less := spent(self.hazards, shared, "unfenced-worker")):
            yield Move(Step("downgrade", name), less, worker._replace(fenced=False))

    def rests(self, shared: Shared, worker: Sender) -> bool:
        """Whether nothing more is to come of the worker: it stopped, or would be refused for good."""
        if worker.waiting or worker.copy:
            return False
        return worker.stopped or (
            worker.place == 0 and self.stands.finished(shared.items) and not self._alone(shared, "grant")[0]
        )

    def at_rest(self, shared: Shared, past: Past) -> tuple[frozenset[str], frozenset[str]]:
        """What is broken where nothing is to come any more; the value of a job counts once that is finished."""
        finished = self.endless or self.stands.finished(shared.items)
        broken = {
            "final": finished and past.last < past.tried,
            "alert-possible": past.due and not past.alerts and not self._alone(shared, "alert")[0],
        }
        return frozenset(name for name, is_so in broken.items() if is_so), frozenset(["rest"] if finished else [])

    def rescue(self, shared: Shared) -> tuple[bool, tuple[Step, ...]]:
        """Whether it is finished, or an undisturbed worker finishes it from here; and its steps."""
        done = self.endless or self.stands.finished(shared.items)
        return (True, ()) if done else self._alone(shared, "finish")

    # --- how

    def _sends(self, shared: Shared, worker: Sender, name: str, place: int) -> Iterator[Move]:
        bound = self._bound(shared, worker, name, self.words[place])
        clocks = [(shared, shared.now, "send")]
        if self.kinds[place] == "grant" and (less := spent(self.hazards, shared, "clock-skew")):
            clocks.append((less, shared.now + self.stands.lease + 1, "send early"))
        for after, now, act in clocks:
            message = Message(place, frozen(bound | {"now": now}), worker.grant, worker.fenced)
            yield Move(Step(act, name, place, grant=worker.grant), after, worker._replace(waiting=message))

    def _arrives(self, shared: Shared, worker: Sender, name: str, message: Message) -> Iterator[Move]:
        after, sent, effect = self._decided(shared, name, message)
        heard = self._heard(after, worker, message, sent)
        step = self._step("arrive", name, message, sent)
        yield Move(step, after, heard._replace(waiting=None), effect)
        if worker.copy is None and self.kinds[message.place] != READ:
            yield Move(step._replace(again=True), after, heard._replace(waiting=None, copy=message), effect)
        if less := spent(self.hazards, after, "lost-reply"):
            yield Move(step._replace(act="arrive, reply lost"), less, worker, effect)

    def _heard(self, after: Shared, worker: Sender, message: Message, sent: Sent) -> Sender:
        """The worker once it has heard the decision. Refused, it gives up; before it holds a lease it may ask again."""
        place, operation = message.place, self.program[message.place].operation
        reply = None if sent.reply is None else json.loads(sent.reply)
        bindings = {**dict(message.bindings), **files.learned(operation, reply)}
        refused = sent.decision != "accepted" and sent.reason != "duplicate"
        if refused or not files.expected(self.file, operation, reply, plain(bindings)):
            return worker.over(stopped=worker.grant > 0)
        knows = {n: v for n, v in bindings.items() if n in self.stands.used}
        grant, token = worker.grant, worker.token
        if self.kinds[place] == "grant":
            grant = after.grants
        if grant and (self.kinds[place] == "grant" or operation in self.file.token_from):
            token = self._token(plain(bindings))
        following = program.following(self.kinds, place)
        if self.kinds[place] == "grant" and self.stands.finished(after.items) and "alert" in self.kinds:
            following = self.kinds.index("alert")  # the reply shows that nothing else is left to do
        after_it = worker._replace(place=following, grant=grant, token=token, knows=frozen(knows))
        if following == len(self.program) or not self._open(after_it):
            return worker.over(stopped=True)
        return after_it

    def _open(self, worker: Sender) -> list[int]:
        """The places from which the worker may choose for which it has learned what the operation needs."""
        known = {name for name, _ in worker.knows} | ({"token"} if worker.token is not None else set())
        places = program.choices(self.program, self.kinds, worker.place)
        return [at for at in places if program.needs(self.file, self.program[at].operation) <= known]

    def _bound(self, shared: Shared, worker: Sender, name: str, word: str) -> dict[str, Any]:
        """What a worker binds for its next operation."""
        token = {} if worker.token is None else {"token": worker.token}
        return {
            **dict(worker.knows), "worker": name, "now": shared.now, "operation": f"{name}{worker.start}/{word}",
            "value": f"{word}-{name}{worker.start}", **token,
        }  # fmt: skip

    def _decided(self, shared: Shared, name: str, message: Message) -> tuple[Shared, Sent, Effect | None]:
        """What the receiver makes of the request, and what that means."""
        operation, kind = self.program[message.place].operation, self.kinds[message.place]
        sent = self._sent(shared.items, operation, dict(message.bindings), message.fenced)
        after = shared._replace(items=sent.items)
        accepted, finished = sent.decision == "accepted", self.stands.finished(shared.items)
        if kind == READ:
            return after, sent, None
        undone = kind != "finish" and self.stands.undone(shared.items, after.items)
        if kind == "grant":
            if not accepted:
                return after, sent, Effect("asked", after=finished)
            backup = shared.items if spent(self.hazards, shared, "restore") else None
            issued, newer = self._issued(shared, name, message, sent)
            granted = after._replace(grants=shared.grants + 1, issued=issued, backup=backup)
            done = finished and not self._alert_accepted(granted, name, message, sent)
            return granted, sent, Effect("granted", granted.grants, after=done, undone=undone, reissued=not newer)
        late = message.grant == shared.grants and not self.stands.runs(shared.items, shared.now)
        stale = message.grant < shared.grants
        if kind in ("renew", "release"):
            return after, sent, Effect("touched", message.grant, stale, late, undone=undone) if accepted else None
        if kind == "finish" and accepted and self._alert_accepted(after, name, message, sent):
            kind += "+due"
        again = finished and kind in ("schedule", "retry")
        what = "wrote" if accepted else "refused"
        return after, sent, Effect(what, message.grant, stale, late, kind, again, undone)

    def _issued(self, shared: Shared, name: str, message: Message, sent: Sent) -> tuple[int | None, bool]:
        """The highest token once this grant is made, and whether it issued a newer one: its holder's own may stay."""
        reply = None if sent.reply is None else json.loads(sent.reply)
        learned = files.learned(self.program[message.place].operation, reply)
        token, before = self._token(plain({**dict(message.bindings), **learned})), shared.issued
        if token is None or before is None:
            return (before if token is None else token), True
        return max(before, token), token > before or self.stands.column(shared.items, "holder") == name

    def _alert_accepted(self, shared: Shared, name: str, message: Message, sent: Sent) -> bool:
        """Whether the alert that is left to the worker that has just been heard would be accepted now."""
        sender = Sender(grant=message.grant, token=dict(message.bindings).get("token"))
        heard = self._heard(shared, sender, message, sent)
        place = next((at for at in range(heard.place, len(self.kinds)) if self.kinds[at] == "alert"), None)
        if heard.stopped or place is None:  # its program has none, or had it before
            return False
        move = next(self._sends(shared, heard, name, place))
        waiting: Message = move.worker.waiting
        return self._sent(shared.items, self.program[place].operation, dict(waiting.bindings)).decision == "accepted"

    def _alone(self, shared: Shared, wanted: str) -> tuple[bool, tuple[Step, ...]]:
        """Whether one more worker, undisturbed, gets an operation of this kind accepted from here; and its steps."""
        shared = shared._replace(now=self.stands.later(shared.items, shared.now), left=())
        if shared.items[0] is None and self.file.creates:
            shared = self._created(shared)
        name, worker, steps = NAMES[len(self.names)], Sender(), list[Step]()
        while not worker.stopped and worker.place < len(self.program):
            places = self._open(worker)
            if not places:
                break
            place = next((p for p in places if self.kinds[p] == wanted), places[-1])
            sending = next(self._sends(shared, worker, name, place))
            message: Message = sending.worker.waiting
            shared, sent, _ = self._decided(shared, name, message)
            steps += [sending.step, self._step("arrive", name, message, sent)]
            if sent.decision == "accepted" and self.kinds[place] == wanted:
                return True, tuple(steps)
            if sent.decision != "accepted":
                return False, tuple(steps)
            worker = self._heard(shared, worker, message, sent)
        return False, tuple(steps)

    def _created(self, shared: Shared) -> Shared:
        """The item made anew by the operations that the file names."""
        bound: dict[str, Any] = {"worker": "creator", "now": shared.now, "operation": f"creator/{shared.grants}"}
        items = shared.items
        for operation in self.file.creates:
            sent = self._sent(items, operation, bound | {"value": ""})
            items = sent.items
            bound |= files.learned(operation, None if sent.reply is None else json.loads(sent.reply))
        return shared._replace(items=items)

    def _sent(self, items: Items, operation: str, bindings: dict[str, Any], fenced: bool = True) -> Sent:
        """What comes of the request, asked once."""
        bindings, file = plain(bindings), self.file if fenced else self.loose
        key = items, operation, files.bind(file, operation, bindings).text
        if key not in self._known:
            made = self._ask(file, items, operation, bindings)
            self._known[key] = made._replace(items=self.stands.seen(made.items))
        return self._known[key]

    def _step(self, act: str, name: str, message: Message, sent: Sent) -> Step:
        accepted = sent.decision == "accepted"
        return Step(act, name, message.place, accepted=accepted, grant=message.grant, reason=sent.reason)

    def _token(self, bindings: dict[str, Any]) -> int | None:
        try:
            return files.token(self.file, bindings)
        except Unbound:
            return None
