"""What one worker may do to one resource, as long as it holds it: the operations of a request file, sent one by one.

Every condition is in the request file and nowhere else. A worker asks again only under the same operation id, and a
lost reply is answered by reading back: an operation that stands in the item was accepted, whatever the sender heard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

from fencinglab.dynamodb import requests
from fencinglab.dynamodb.placeholders import Unbound, names_in
from fencinglab.dynamodb.requests import Item, Place, Request, Requests, places, singles_sent
from fencinglab.dynamodb.sending import Answer, members, read, send, why
from fencinglab.errors import InputError

TRIES = 2  # how often a message is sent whose fate is unknown


class Sent(NamedTuple):
    """One message of an operation; a repetition is another one."""

    at: int  # the sender's clock, in seconds
    decision: str
    reason: str
    outcome: str


class Told(NamedTuple):
    """What a worker knows of its operation in the end."""

    name: str
    operation: str  # its id
    token: int | None  # the token that it presented, or was granted
    decision: str  # the receiver's word on the last message, or what reading back showed
    reason: str  # told apart when refused: held, not_held, newer_token, expired, terminal, duplicate
    outcome: str  # ok also where a refusal shows the operation as done: it was the sender's own success
    item: Item | None  # the item afterwards where it is known; when refused, the stored item
    messages: tuple[Sent, ...]
    request: Request  # as it was sent
    bindings: dict[str, Any]  # what was filled in

    @property
    def ok(self) -> bool:
        """Whether the sender knows that its operation was done."""
        return self.outcome == "ok"


def ids(worker: str) -> Iterator[str]:
    """Ids of operations that no other process gives, also not the same worker after a restart."""
    run, number = uuid4().hex[:8], 0
    while True:
        number += 1
        yield f"{worker}/{run}/{number}"


def took(file: Requests, told: Iterable[Told]) -> bool:
    """Whether a worker has acquired that was told this of `Hold.take`."""
    return [one.name for one in told if one.ok] == [*file.taking]


class Hold:
    """One worker's hold on one resource."""

    def __init__(
        self, client: Any, worker: str, resource: str, clock: Callable[[], int], file: Requests, *,
        operations: Iterator[str] | None = None, **given: Any,
    ) -> None:  # fmt: skip
        """`clock` gives seconds, `operations` the ids; `given` replaces what the file gives, such as `lease=30`."""
        self.file, self.client, self.worker, self.clock = file, client, worker, clock
        self.known: dict[str, Any] = {"worker": worker, "resource": resource, **given}
        self.token: int | None = None  # of the latest grant, also when it is void by now
        self._ids = operations or ids(worker)

    @property
    def place(self) -> Place:
        """Where the protected item lies."""
        return places(self.file, self.known)[0]

    def create(self) -> Told:
        """Let the item come to be, by the operations that the file names for it; the first refusal ends it.

        InputError where it names none.
        """
        if not self.file.creates:
            raise InputError(f"{self.file.name}: says not how an item comes to be; name its operations in `creates`")
        for name in self.file.creates:
            told = self.do(name)
            if not told.ok:
                break
        return told

    def take(self) -> Iterator[Told]:
        """Acquire, with the reads around it; what is refused or shows not what it expects ends it."""
        for name in self.file.taking:
            told = self.do(name)
            yield told
            if not self._may_go_on(told):
                return

    def use(self, name: str, **given: Any) -> Iterator[Told]:
        """Send one operation, with what must go before it; one that is refused or shows not what it expects ends it.

        That is each operation whose reply it names and that was not heard of yet, and the reads that stand before it.
        """
        for earlier in self._unheard(name):
            for told in self.use(earlier):
                yield told
            if told.name != earlier or not told.ok:
                return
        reads, ready = self.read_before(name)
        yield from reads
        if ready:
            yield self.do(name, **given)

    def read_before(self, name: str) -> tuple[list[Told], bool]:
        """The reads that stand before an operation, sent, and whether they show what they expect, so that it may be."""
        reads = list[Told]()
        for read_first in self.file.reads_before(name):
            reads.append(self.do(read_first))
            if not self._may_go_on(reads[-1]):
                return reads, False
        return reads, True

    def _may_go_on(self, told: Told) -> bool:
        """Whether an operation was done, and shows what it expects where it is a read."""
        return told.ok and requests.expected(self.file, told.name, told.item, self._bindings(told.operation))

    def _unheard(self, name: str) -> list[str]:
        """The operations of the program whose replies this one names and that told this worker nothing yet."""
        named = names_in(self.file.operations[name].input) - self.known.keys()
        silent = {one.partition(".")[0] for one in named if "." in one}
        silent -= {name, *self.file.taking, *self.file.reads_before(name)}
        return [use.operation for use in self.file.program if use.operation in silent]

    def sent(self, name: str, **given: Any) -> Told | None:
        """What came of the operation itself; None where a read before it kept the worker from sending it."""
        last = [*self.use(name, **given)][-1]
        return last if last.name == name else None

    def do(self, name: str, **given: Any) -> Told:
        """Send one operation, again under its id while its fate is unknown, and read back in between."""
        operation, sent = next(self._ids), list[Sent]()
        for _ in range(TRIES):
            bindings = {**self._bindings(operation), **given}
            request = requests.bind(self.file, name, bindings)
            answer = send(self.client, self.file, request, bindings)
            sent.append(Sent(bindings["now"], answer.decision, answer.reason, answer.outcome))
            if answer.outcome != "unknown":
                break
            done = next((item for item in self._lying(request).values() if _done(item, operation)), None)
            if done is not None:
                answer = Answer("accepted", "found by reading back", "ok", done)
                break
        stored = answer.stored
        if answer.decision == "rejected":
            if stored is None and (lying := self._lying(request)):  # not every receiver sends the item along
                answer = answer._replace(reason=why(self.file, request, bindings, lying))
                stored = lying[0]
            if stored and _done(stored, operation):
                answer = answer._replace(reason="duplicate", outcome="ok")
        presented = None if self.file.operations[name].kind == "grant" else self.token
        known = answer.reply or stored or None
        told = Told(
            name, operation, presented, answer.decision, answer.reason, answer.outcome, known, tuple(sent),
            request, bindings,
        )  # fmt: skip
        return self._learn(told)

    def repeat(self, told: Told) -> Told:
        """Send the very same request once more, as a queue does that delivers a message twice."""
        answer = send(self.client, self.file, told.request, told.bindings)
        sent = Sent(told.bindings["now"], answer.decision, answer.reason, answer.outcome)
        return told._replace(
            decision=answer.decision, reason=answer.reason, outcome=answer.outcome,
            item=answer.reply or answer.stored, messages=(sent,),
        )  # fmt: skip

    def look(self) -> Item | None:
        """The item as it is stored now."""
        [item] = read(self.client, [self.place])
        return None if item is None else dict(json.loads(item))

    def _bindings(self, operation: str) -> dict[str, Any]:
        known = {"value": f"{self.worker}'s result", **self.known, "now": self.clock(), "operation": operation}
        return known if self.token is None else {**known, "token": self.token}

    def _learn(self, told: Told) -> Told:
        """Keep what a reply tells, and the token of a new grant from the reply that the file finds it in."""
        if told.ok:
            self.known |= requests.learned(told.name, told.item)
        if told.ok and told.name in self.file.taking:
            try:
                self.token = requests.token(self.file, self.known)
            except Unbound:
                return told
        return told._replace(token=self.token) if told.ok and told.name in self.file.of_kind("grant") else told

    def _lying(self, request: Request) -> dict[int, Item]:
        """The items of its single requests by number, empty where there is none; nothing where none can be read."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = read(self.client, [single.place for single in singles_sent(self.file, request)])
        except (BotoCoreError, ClientError):
            return {}
        return {number: json.loads(item or "{}") for number, item in enumerate(found)}


def _done(item: Item, operation: str) -> bool:
    """Whether the item shows that this operation was done to it."""
    return any(operation in members(value) for value in item.values())
