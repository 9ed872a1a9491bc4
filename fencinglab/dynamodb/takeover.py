"""The paused worker at a receiver: one order of events, by which request files are told apart.

A acquires and stands still, right after its grant or right before its write. Its lease runs out; B acquires and writes.
A goes on and writes. B finishes, A finishes too, and when that lease has run out C asks for what is finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fencinglab.dynamodb.hold import Hold, Told
from fencinglab.dynamodb.mock import Mock
from fencinglab.dynamodb.requests import Requests, begin, places
from fencinglab.dynamodb.sending import tables
from fencinglab.errors import InputError

PAUSES = ("after its grant", "before its write")
NOT_SENT = "not sent"


class Turn(NamedTuple):
    """What a worker did, and what came of it."""

    worker: str
    does: str  # the operation's name
    token: int | None
    decision: str  # of the history's decisions, or not sent: what it read kept the worker from it
    reason: str


class Takeover(NamedTuple):
    """The turns, in their order, and the four that tell."""

    turns: tuple[Turn, ...]
    stale_write: str  # what became of A's write after B's
    second_finish: str  # of A's finish after B's
    reopened: str  # of C's acquire of what is finished
    value: str  # whose result is stored in the end


def takeover(client: Any, file: Requests, pause: str, resource: str = "req-8f23") -> Takeover:
    """Play it on a new item at a receiver whose tables are there, on a logical clock.

    InputError where the file finishes nothing, where `map` names no value that would tell whose result stands, and
    where nobody acquires the item of `start`.
    """
    if not file.of_kind("finish") or "value" not in file.map:
        lacks = "`map` names no value" if file.of_kind("finish") else "no operation is of the kind finish"
        raise InputError(f"{file.name}: {lacks}, so that a takeover cannot be told to its end")
    given = {"resource": resource, "now": 0}
    for place, item in zip(places(file, given), begin(file, given), strict=True):
        if item:
            client.put_item(TableName=place.table, Item=json.loads(item))
    now = [1000]
    a, b, c = (Hold(client, name, resource, lambda: now[0], file, lease=60) for name in "ABC")
    write = [*file.of_kind("write"), *file.of_kind("finish")][0]
    [finish, *_] = file.of_kind("finish")
    turns: list[Turn] = []

    def told(worker: Hold, one: Told | None, name: str) -> str:
        turn = Turn(worker.worker, name, worker.token, one.decision if one else NOT_SENT, one.reason if one else "")
        turns.append(turn)
        return f"{turn.decision} ({turn.reason})" if turn.reason else turn.decision

    taking = a.take()
    grant = next((one for one in taking if file.operations[one.name].kind == "grant"), None)
    if grant is None:
        raise InputError(
            f"{file.name}: what A reads of `start` keeps it from acquiring, so that nothing can be taken over"
        )
    told(a, grant, grant.name)
    ready = _ready(a, taking, write) if pause == PAUSES[1] else None
    now[0] += 61
    told(b, _granted(b, grant.name), grant.name)
    told(b, b.sent(write), write)
    if ready is None:
        ready = _ready(a, taking, write)
    stale = told(a, a.do(write) if ready else None, write)
    told(b, b.sent(finish), finish)
    second = told(a, a.sent(finish), finish)
    value = next((name for name in "AB" if f"{name}'s result" in str((b.look() or {}).get(file.map["value"]))), "")
    now[0] += 61
    reopened = told(c, _granted(c, grant.name), grant.name)
    return Takeover(tuple(turns), stale, second, reopened, value)


def on_a_mock(file: Requests) -> tuple[Takeover, Takeover]:
    """The takeover with either pause, on a mock of its own."""
    with Mock() as mock, tables(mock.client(), file):
        after, before = (takeover(mock.client(), file, pause, f"item-{n}") for n, pause in enumerate(PAUSES))
    return after, before


def side_by_side(files: Iterable[Requests]) -> list[dict[str, str]]:
    """What each file lets through, a row for each pause."""
    return [
        {
            "requests": file.name.removesuffix(".json"), "A pauses": pause, "A writes after B": found.stale_write,
            "A finishes after B": found.second_finish, "C acquires it finished": found.reopened,
            "result of": found.value,
        }
        for file in files
        for pause, found in zip(PAUSES, on_a_mock(file), strict=True)
    ]  # fmt: skip


def _granted(worker: Hold, grant: str) -> Told | None:
    """Let a worker acquire; what it was told of the grant, None where what it read kept it from asking."""
    return {one.name: one for one in worker.take()}.get(grant)


def _ready(worker: Hold, taking: Iterator[Told], write: str) -> bool:
    """Let a worker read all that it reads between its grant and its write; whether that lets it write."""
    for _ in taking:
        pass
    return worker.read_before(write)[1]
