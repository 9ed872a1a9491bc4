"""The item of the request-status article: what a worker may do to one request, by name.

The operations are those of `data/requests/request-status.json`; a retry keeps the item and its token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

from fencinglab.dynamodb import requests, shelf
from fencinglab.dynamodb.hold import Hold, Told
from fencinglab.dynamodb.requests import Requests

SUCCEEDED, FAILED = "SUCCEEDED", "FAILED"
FINAL = {SUCCEEDED: "finish", FAILED: "fail"}  # a failure leaves an alert due


class RequestStatus(Hold):
    """One worker's hold on one request."""

    def __init__(
        self, client: Any, worker: str, resource: str, clock: Callable[[], int], *,
        file: Requests | None = None, operations: Iterator[str] | None = None, tries: int = 2, **given: Any,
    ) -> None:  # fmt: skip
        """As a Hold; without `file` by the request-status file that comes with the package."""
        file = file or shelf.find("request-status")
        super().__init__(client, worker, resource, clock, file, operations=operations, tries=tries, **given)

    def enqueue(self) -> Told:
        """Create the request under a token floor of its own: its tokens begin above all that were issued before."""
        return self.create()

    def acquire(self) -> Told:
        """Take the request where nobody holds it or the lease ran out, under a new token."""
        return self.do("acquire")

    def renew(self) -> Told:
        """More time under the same token, as long as the lease runs."""
        return self.do("renew")

    def schedule_next_poll(self, delay: int, backoff: int = 0) -> Told:
        """Say in how many seconds the request is looked at next."""
        return self.do("schedule_next_poll", delay=delay, backoff=backoff)

    def record_response(self, status: str, value: str) -> Told:
        """Store an answer that is not final: its status, and the hash of its content."""
        return self.do("record_response", status=status, value=value)

    def decide_retry(self, decision: str, delay: int) -> Told:
        """Store whether the business asks again, and when; the item and its token stay."""
        return self.do("decide_retry", decision=decision, delay=delay)

    def finish(self, status: str, value: str) -> Told:
        """The one transition into SUCCEEDED or FAILED; a failure leaves an alert due in the same step."""
        return self.do(FINAL[status], value=value)

    def raise_alert(self, alert: str) -> Told:
        """Record that the alert that was due has been sent under this id."""
        return self.do("raise_alert", alert=alert)

    def release(self) -> Told:
        """Give the request back; its token stays in the item."""
        return self.do("release")


def remove_expired(client: Any, file: Requests, now: int, keys: Collection[str] | None = None) -> tuple[str, ...]:
    """What a clean-up by time to live removes at this second: the keys of the items whose `ttl` has passed.

    An item without the attribute stays, as with DynamoDB's own; most mocks have no clean-up of their own. With `keys`
    no other item is looked at.
    """
    passed = {
        "ConditionExpression": "#ttl <= :now", "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
    }  # fmt: skip
    removed = []
    for name in (table["TableName"] for table in file.tables):
        for page in client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            for item in page["Items"]:
                key = requests.frozen(requests.key_of(file, name, item))
                if "ttl" in item and int(item["ttl"]["N"]) <= now and (keys is None or key in keys):
                    client.delete_item(TableName=name, Key=json.loads(key), **passed)
                    removed.append(key)
    return tuple(removed)
