"""The request files of data/requests beside the pure model: one schedule, run by both, step by step.

A schedule is a list of moves. `run` sends each as the file's request to a receiver and asks the twin, which is made of
`model.lease` and `model.receiver` alone, what must come of it: decision, reason, and what is held afterwards.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from fencinglab.dynamodb import requests
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import Requests, begin, places
from fencinglab.dynamodb.sending import Answer, read, send
from fencinglab.model.guard import GUARDS
from fencinglab.model.lease import Lease, grant, release, renew
from fencinglab.model.receiver import Held, Mutation, Rules, apply, refusal

WORKERS = "ABC"
LENGTH, FIRST = 60, 40  # seconds of a lease, token before the first grant
JUMPS = (0, 1, 29, 30, 60, 61)  # seconds that pass before a move
MODEL_KINDS = {"write": "write", "finish": "finish", "schedule": "schedule", "retry": "retry", "alert": "alert"}


class Move(NamedTuple):
    """One thing that happens: a worker uses an operation, or a message that was sent arrives again."""

    worker: int
    operation: int
    jump: int  # place in JUMPS
    again: int  # 0 = a new message; n = the n-th of the messages so far arrives once more


class Twin(NamedTuple):
    """How a file reads in the model."""

    guard: str = "latest"
    holder: bool = True  # writes name the owner too: nobody writes after a release
    ids: bool = True  # an operation is accepted once
    forgets: bool = True  # a grant begins a new list of operations, with itself
    terminal_once: bool = True
    finished_is_granted: bool = False
    finish_releases: bool = False
    delay: int = 0  # seconds after a lease ran out before it is granted again
    checks: bool = False  # the worker looks at the item before it writes


TWINS = {
    "request-status": Twin(),
    "late-render": Twin(finish_releases=True),
    "lease-beside-resource": Twin(forgets=False),
    "lease-beside-resource-promised": Twin("promised", holder=False, forgets=False),
    "broken-unconditional": Twin("unguarded", holder=False, ids=False, terminal_once=False),
    "broken-check-then-write": Twin("unguarded", holder=False, ids=False, terminal_once=False, checks=True),
    "broken-finish-twice": Twin(terminal_once=False, finished_is_granted=True),
    "broken-token-read-after": Twin(holder=False),
    "broken-article-acquire": Twin(
        finished_is_granted=True, forgets=False, delay=1
    ),  # it is free one second later: `<`, not `<=`
}


class World(NamedTuple):
    """What the twin holds."""

    lease: Lease = Lease(FIRST)
    held: Held = Held()
    value: str = ""  # of the last accepted write or finish
    due: bool = False  # an alert


def decided(twin: Twin, world: World, kind: str, name: str, sent: dict[str, Any]) -> tuple[World, str]:
    """The world afterwards and why the message was refused; empty = accepted."""
    lease, held, (worker, token, now) = world.lease, world.held, (sent["worker"], sent.get("token"), sent["now"])
    done = held.operations if twin.ids else ()
    if kind == "grant":
        if held.terminal_version and not twin.finished_is_granted and not world.due:
            return world, "terminal"
        new = grant(lease, worker, now, LENGTH, twin.delay)
        if new is None:
            return world, "held"
        operations = (sent["operation"],) if twin.forgets else held.operations
        return world._replace(lease=new, held=held._replace(promised=new.token, operations=operations)), ""
    if kind in ("renew", "release"):
        changed = renew(lease, worker, token, now, LENGTH) if kind == "renew" else release(lease, worker, token)
        if sent["operation"] in done:
            return world, "duplicate"
        if (lease.holder, lease.token) != (worker, token):
            return world, "newer_token" if lease.token > token else "not_held"
        if kind == "renew" and held.terminal_version:
            return world, "terminal"
        if changed is None:
            return world, "expired"
        marked = held._replace(operations=(*held.operations, sent["operation"])) if twin.forgets else held
        return world._replace(lease=changed, held=marked), ""
    mutation = Mutation(
        MODEL_KINDS[kind], worker, sent["value"], token, operation=sent["operation"] if twin.ids else ""
    )
    reason = refusal(held, lease, mutation, now, Rules(GUARDS[twin.guard], twin.terminal_once))
    if twin.holder and lease.holder != worker and reason not in ("duplicate", "newer_token"):
        reason = "not_held"
    if kind == "alert" and not reason and not world.due:
        reason = "duplicate" if held.alerts else "condition"
    if reason:
        return world, reason
    value = mutation.value if sent["brings"] else world.value
    due = name == "fail" or (world.due and kind != "alert")
    freed = Lease(lease.token) if kind == "finish" and twin.finish_releases else lease
    return World(freed, apply(held, mutation), value, due), ""


def run(client: Any, file: Requests, schedule: Sequence[Move], resource: str) -> int:
    """Run the schedule on both sides from a new item; how many messages were compared. AssertionError where they part."""
    twin, world, now = TWINS[file.name.removesuffix(".json")], World(), 1000
    given = {"resource": resource, "lease": LENGTH, "now": now}
    where = places(file, given)
    for place, item in zip(where, begin(file, given), strict=True):
        if item:
            client.put_item(TableName=place.table, Item=json.loads(item))
    names = [use.operation for use in file.program if file.operations[use.operation].kind != "read"]
    known: dict[str, dict[str, Any]] = {w: {} for w in WORKERS}
    messages: list[tuple[str, dict[str, Any]]] = []
    story = []
    for move in schedule:
        now += JUMPS[move.jump]
        worker = WORKERS[move.worker]
        if move.again and messages:
            name, sent = messages[(move.again - 1) % len(messages)]
        else:
            name = names[move.operation % len(names)]
            sent = {**given, **known[worker], "worker": worker, "now": now, "value": f"{worker}{len(story)}"}
            sent["operation"] = f"{worker}/{len(messages)}"
            sent["brings"] = "value" in names_in(file.operations[name].input)
            sent |= _looked(client, file, where, name)
            if name != "acquire" and "token" not in sent:
                continue
            if twin.checks and name != "acquire" and (world.lease.holder, world.lease.token) != (worker, sent["token"]):
                continue  # what the read before the write shows it; `expected` says the same
            messages.append((name, sent))
        kind = file.operations[name].kind
        answer = send(client, file, requests.bind(file, name, sent), sent)
        world, reason = decided(twin, world, kind, name, sent)
        story.append(
            f"{name} {sent['worker']} token {sent.get('token')} at {sent['now']}: {answer.decision} {answer.reason}"
        )
        _same(file, answer, world, reason, read(client, where), story)
        if kind == "grant" and not reason:
            known[sent["worker"]] = {"token": world.lease.token}
    for place in where:  # moto's transactions copy whole tables
        client.delete_item(TableName=place.table, Key=json.loads(place.key))
    return len(story)


def _looked(client: Any, file: Requests, where: Sequence[Any], name: str) -> dict[str, Any]:
    """What a worker has read before it acquires, where its file has it look first."""
    if name != "acquire" or "look" not in file.operations:
        return {}
    lying = dict(zip(where, read(client, where), strict=True))
    [lease] = [json.loads(item) for place, item in lying.items() if item and "lease#" in place.key]
    return requests.learned("look", lease)


def _same(
    file: Requests, answer: Answer, world: World, reason: str, items: Sequence[str | None], story: list[str]
) -> None:
    told = "\n".join(story)
    if answer.decision == "rejected" and answer.stored is None:  # it did not ask for the stored item
        assert answer.reason == "condition", told
        reason = "condition"
    assert (answer.decision, answer.reason) == ("rejected" if reason else "accepted", reason), (
        f"model: {reason}\n{told}"
    )
    stored: dict[str, Any] = {}
    for item in items:
        stored = {**json.loads(item or "{}"), **stored}
    held = {column: next(iter(stored[name].values())) for column, name in file.map.items() if name in stored}
    lease = world.lease
    assert int(held["token"]) == lease.token, told
    assert held.get("holder", "") == lease.holder, told
    assert int(held.get("expires_at", 0)) == lease.expires_at, told
    assert held.get("value", "").rpartition("/")[2].removesuffix(".png") == world.value, told
    if TWINS[file.name[:-5]].terminal_once:
        assert int(held.get("terminal_version", 0)) == world.held.terminal_version, told
        assert (held.get("status") in file.terminal) == (world.held.terminal_version > 0), told


def schedules(seed: int, number: int, length: int = 12) -> list[list[Move]]:
    """Random schedules, the same for the same seed; a third of the moves acquire."""
    rng = random.Random(seed)

    def move() -> Move:
        operation = 0 if rng.random() < 0.34 else rng.randrange(12)
        return Move(rng.randrange(3), operation, rng.randrange(len(JUMPS)), rng.choice((0, 0, 0, rng.randrange(1, 9))))

    return [[move() for _ in range(length)] for _ in range(number)]
