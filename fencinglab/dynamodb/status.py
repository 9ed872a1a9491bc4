"""A worker's hold on one request: the operations of `data/requests/request-status.json`, sent one by one.

Every condition is in the request file and nowhere else. A worker asks again only under the same operation id, and a
lost reply is answered by reading back: an operation that stands in the item was accepted, whatever the sender heard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

from fencinglab.dynamodb import requests, shelf
from fencinglab.dynamodb.requests import Item, Place, Requests, places
from fencinglab.dynamodb.sending import Answer, read, send, why

SUCCEEDED, FAILED = "SUCCEEDED", "FAILED"
FINAL = {SUCCEEDED: "finish", FAILED: "fail"}  # a failure leaves an alert due


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


class RequestStatus:
    """What one worker may do to one request, as long as it holds it."""

    def __init__(
        self, client: Any, worker: str, resource: str, clock: Callable[[], int], *,
        file: Requests | None = None, operations: Iterator[str] | None = None, tries: int = 2, **given: Any,
    ) -> None:  # fmt: skip
        """`clock` gives seconds, `operations` the ids to use, `tries` how often a lost message is sent.

        `given` replaces what the file gives, such as `lease=30`.
        """
        self.file = file or shelf.find("request-status")
        self.client, self.worker, self.clock, self.tries = client, worker, clock, tries
        self.known: dict[str, Any] = {"worker": worker, "resource": resource, **given}
        self.token: int | None = None  # of the latest grant, also when it is void by now
        self._ids = operations or ids(worker)

    @property
    def place(self) -> Place:
        """Where the request's item lies."""
        return places(self.file, self.known)[0]

    def enqueue(self) -> Told:
        """Create the request under a token floor of its own: its tokens begin above all that were issued before."""
        for name in self.file.creates:
            told = self._do(name)
            if not told.ok:
                break
        return told

    def acquire(self) -> Told:
        """Take the request where nobody holds it or the lease ran out, under a new token."""
        told = self._do("acquire")
        if told.ok and told.item:
            replied = {**self.known, **requests.learned("acquire", told.item)}
            self.token = requests.token(self.file, replied)
            return told._replace(token=self.token)
        return told

    def renew(self) -> Told:
        """More time under the same token, as long as the lease runs."""
        return self._do("renew")

    def schedule_next_poll(self, delay: int, backoff: int = 0) -> Told:
        """Say in how many seconds the request is looked at next."""
        return self._do("schedule_next_poll", delay=delay, backoff=backoff)

    def record_response(self, status: str, value: str) -> Told:
        """Store an answer that is not final: its status, and the hash of its content."""
        return self._do("record_response", status=status, value=value)

    def decide_retry(self, decision: str, delay: int) -> Told:
        """Store whether the business asks again, and when; the item and its token stay."""
        return self._do("decide_retry", decision=decision, delay=delay)

    def finish(self, status: str, value: str) -> Told:
        """The one transition into SUCCEEDED or FAILED; a failure leaves an alert due in the same step."""
        return self._do(FINAL[status], value=value)

    def raise_alert(self, alert: str) -> Told:
        """Record that the alert that was due has been sent under this id."""
        return self._do("raise_alert", alert=alert)

    def release(self) -> Told:
        """Give the request back; its token stays in the item."""
        return self._do("release")

    def look(self) -> Item | None:
        """The item as it is stored now."""
        [item] = read(self.client, [self.place])
        return None if item is None else dict(json.loads(item))

    def _do(self, name: str, **given: Any) -> Told:
        """Send one operation, again under its id while its fate is unknown, and read back in between."""
        operation, sent = next(self._ids), list[Sent]()
        for _ in range(self.tries):
            bindings = {**self.known, **given, "now": self.clock(), "operation": operation}
            if self.token is not None:
                bindings["token"] = self.token
            request = requests.bind(self.file, name, bindings)
            answer = send(self.client, self.file, request, bindings)
            sent.append(Sent(bindings["now"], answer.decision, answer.reason, answer.outcome))
            if answer.decision == "accepted":
                self.known |= requests.learned(name, answer.reply)
            if answer.outcome != "unknown":
                break
            if (item := self._looked()) and self._done(item, operation):
                answer = Answer("accepted", "found by reading back", "ok", item)
                break
        stored = answer.stored
        if answer.decision == "rejected":
            if stored is None and (stored := self._looked()) is not None:  # not every receiver sends the item along
                answer = answer._replace(reason=why(self.file, request, bindings, {0: stored}))
            if stored and self._done(stored, operation):
                answer = answer._replace(reason="duplicate", outcome="ok")
        presented = None if self.file.operations[name].kind == "grant" else self.token
        known = answer.reply or stored or None
        return Told(
            name, operation, presented, answer.decision, answer.reason, answer.outcome, known, tuple(sent)
        )  # fmt: skip

    def _done(self, item: Item, operation: str) -> bool:
        """Whether the item shows that this operation was done to it."""
        contents = [next(iter(value.values())) for value in item.values()]
        return any(content == operation or (isinstance(content, list) and operation in content) for content in contents)

    def _looked(self) -> Item | None:
        """The stored item, empty where there is none; None where it could not be read."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self.look() or {}
        except (BotoCoreError, ClientError):
            return None


def remove_expired(client: Any, file: Requests, now: int) -> tuple[str, ...]:
    """What a clean-up by time to live removes at this second: the keys of the items whose `ttl` has passed.

    An item without the attribute stays, as with DynamoDB's own; most mocks have no clean-up of their own.
    """
    passed = {
        "ConditionExpression": "#ttl <= :now", "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
    }  # fmt: skip
    removed = []
    for name in (table["TableName"] for table in file.tables):
        for page in client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            for item in page["Items"]:
                if "ttl" in item and int(item["ttl"]["N"]) <= now:
                    key = requests.key_of(file, name, item)
                    client.delete_item(TableName=name, Key=key, **passed)
                    removed.append(requests.frozen(key))
    return tuple(removed)
