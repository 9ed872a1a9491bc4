"""Small worlds and the logs they leave: tables whose items are leased, services that decide, workers that pause.

    python tests/worlds.py [FOLDER]     writes the logs of data/ (or of FOLDER)

A world is a `Table` (its accepted writes become DynamoDB Streams records) or a `Service` (it logs every
request that it decides). A *story* is a generator that acts in a world and yields the seconds that pass;
`run` lets several happen at once. `stream`, `lines` and `csv` write what was recorded as text. Everything
is seeded, time begins at `BASE`, and no clock is read: the same seed gives the same bytes.

At the end: `FILES`, the logs of data/, and `HEALTHY`, further logs that no audit may accuse.
"""

from __future__ import annotations

import calendar
import csv as csv_format
import heapq
import io
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

Item = dict[str, Any]
Record = dict[str, Any]
Event = dict[str, Any]
Story = Iterator[float]
Condition = Callable[[Item], bool]

BASE = calendar.timegm((2026, 3, 2, 9, 0, 0))
HOUR, DAY = 3600, 86_400
REGION, ACCOUNT = "eu-central-1", "123456789012"  # the account of AWS's own examples
LABEL = "2026-02-27T08:15:00.000"
FINAL = ("DONE", "COMPLETED", "EXPORTED", "SUCCEEDED", "FAILED")


def run(world: Table | Service, *stories: Story) -> None:
    """Let the stories happen in one world, each beginning some seconds after the one before."""
    waiting: list[tuple[float, int, Story]] = []
    begin = world.now
    for number, story in enumerate(stories):
        begin += world.rng.randrange(4_000, 30_000) / 1000
        heapq.heappush(waiting, (begin, number, story))
    while waiting:
        world.now, number, story = heapq.heappop(waiting)
        for seconds in story:
            heapq.heappush(waiting, (world.now + seconds, number, story))
            break


def plus_one(old: int | None) -> int:
    return (old or 0) + 1


# --------------------------------------------------------------------------- a table and its stream


class Table:
    """A DynamoDB table: conditional writes on items, and a stream record for each that changed something."""

    def __init__(self, name: str, key: str, seed: int) -> None:
        self.name, self.key, self.rng, self.now = name, key, random.Random(f"{name} {seed}"), float(BASE)
        self.items: dict[str, Item] = {}
        self.records: list[Record] = []
        self.stream_label(LABEL)

    def stream_label(self, label: str) -> None:
        """Begin a new stream, as when streaming is switched off and on: other label, other sequence."""
        self.arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{self.name}/stream/{label}"
        self.sequence = 10**20 + self.rng.randrange(10**18)

    def put(self, item: Item, when: Condition | None = None) -> bool:
        """PutItem: whether it was accepted."""
        return self._decide(item[self.key], when, lambda _: dict(item))

    def update(self, key: str, changes: Item, when: Condition | None = None) -> bool:
        """UpdateItem: a value None removes the attribute, a function makes the new value from the old."""

        def changed(old: Item) -> Item:
            new = {self.key: key, **old}
            new |= {name: value(old.get(name)) if callable(value) else value for name, value in changes.items()}
            return {name: value for name, value in new.items() if value is not None}

        return self._decide(key, when, changed)

    def delete(self, key: str, when: Condition | None = None) -> bool:
        """DeleteItem."""
        return self._decide(key, when, lambda _: None)

    def ttl(self, key: str) -> None:
        """The item's time to live has passed: the service removes it."""
        self._decide(key, None, lambda _: None, by_service=True)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{self.rng.getrandbits(32):08x}"

    def _decide(
        self, key: str, when: Condition | None, change: Callable[[Item], Item | None], by_service: bool = False
    ) -> bool:
        """Check and write in one step; a write that changes nothing leaves no record, nor does a refused one."""
        old = self.items.get(key)
        if when is not None and not when(old or {}):
            return False
        new = change(old or {})
        if new != old:
            self._record(key, old, new, by_service)
            self.items.pop(key, None)
            if new is not None:
                self.items[key] = new
        return True

    def _record(self, key: str, old: Item | None, new: Item | None, by_service: bool) -> None:
        self.sequence += self.rng.randrange(100, 10**7)
        images = {"NewImage": new, "OldImage": old}
        typed_images = {name: typed(image) for name, image in images.items() if image is not None}
        record: Record = {
            "eventID": f"{self.rng.getrandbits(128):032x}",
            "eventName": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "dynamodb": {
                "ApproximateCreationDateTime": int(self.now),
                "Keys": typed({self.key: key}),
                **typed_images,
                "SequenceNumber": str(self.sequence),
                "SizeBytes": sum(map(_size, images.values())) + _size({self.key: key}),
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
            "eventSourceARN": self.arn,
        }
        if by_service:
            record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        self.records.append(record)


def typed(item: Item) -> Item:
    """The item as DynamoDB writes it: `{"fencingToken": {"N": "42"}}`."""
    return {name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in item.items()}


def _size(item: Item | None) -> int:
    return sum(len(n) + (len(v) if isinstance(v, str) else len(str(v)) // 2 + 1) for n, v in (item or {}).items())


# --------------------------------------------------------------------------- a worker on a table

STORES = ("version", "writtenToken", "writtenBy", "operationId", "updatedAt")


class Worker:
    """A process that leases items of a table: every write is conditional on owner and token.

    `stores` names what each of its writes leaves in the item beside the change itself.
    """

    status = "status"

    def __init__(
        self, table: Table, name: str, *, stores: Sequence[str] = STORES, token: str = "fencingToken", lease: int = 60
    ) -> None:
        self.table, self.name, self.stores, self.token, self.lease = table, name, stores, token, lease
        self.held: dict[str, Any] = {}  # the tokens it was granted, also those that are void by now

    def acquire(self, key: str) -> bool:
        """Take the lease where nobody holds it or it ran out, under a new token; nothing finished is leased again."""
        return self.take(key, when=self._free)

    def take(self, key: str, when: Condition | None = None) -> bool:
        """Take the lease under the given condition only."""
        token = self.next_token(self.table.items.get(key, {}).get(self.token))
        changes = {"leaseOwner": self.name, "leaseExpiresAt": self._until(), self.token: token}
        taken = self.table.update(key, changes | self.marks(token), when)
        if taken:
            self.held[key] = token
        return taken

    def next_token(self, old: Any) -> Any:
        return plus_one(old)

    def write(self, key: str, when: Condition = lambda item: True, **changes: Any) -> bool:
        """Change the item if the lease is still this worker's."""
        return self.overwrite(key, lambda item: self.holds(item) and when(item), **changes)

    def overwrite(self, key: str, when: Condition | None = None, **changes: Any) -> bool:
        """Change the item without asking whose it is, storing the token that this worker was granted."""
        return self.table.update(key, changes | self.marks(self.held[key]), when)

    def renew(self, key: str) -> bool:
        return self.write(key, leaseExpiresAt=self._until())

    def release(self, key: str) -> bool:
        return self.write(key, leaseOwner=None, leaseExpiresAt=None)

    def finish(self, key: str, status: str, **changes: Any) -> bool:
        """The one transition into a final status."""
        return self.write(key, lambda item: item[self.status] not in FINAL, **{self.status: status} | changes)

    def holds(self, item: Item) -> bool:
        return item.get("leaseOwner") == self.name and item[self.token] == self.held.get(item[self.table.key])

    def marks(self, token: Any) -> Item:
        """What a write that presents this token stores."""
        given = {
            "version": plus_one, "writtenToken": token, "writtenBy": self.name,
            "operationId": self.table.new_id("op"), "updatedAt": int(self.table.now),
        }  # fmt: skip
        return {name: given[name] for name in self.stores}

    def _free(self, item: Item) -> bool:
        over = "leaseOwner" not in item or item["leaseExpiresAt"] < int(self.table.now)
        return over and item.get(self.status) not in FINAL

    def _until(self) -> int:
        return int(self.table.now) + self.lease


def new_hash(table: Table) -> str:
    """What a result is known by."""
    return f"{table.rng.getrandbits(64):016x}"


def enqueue(table: Table, key: str, **more: Any) -> None:
    """Create a job that nobody has leased yet."""
    table.put({table.key: key, "status": "QUEUED", "createdAt": int(table.now), **more})


# --------------------------------------------------------------------------- how a stream is archived


def stream(records: Sequence[Record], wrapping: str = "lines") -> str:
    """The records as text in one of WRAPPINGS."""
    return WRAPPINGS[wrapping](records)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _batches(records: Sequence[Record], size: int = 10) -> list[Sequence[Record]]:
    return [records[i : i + size] for i in range(0, len(records), size)]


def as_get_records(records: Sequence[Record]) -> str:
    """What `aws dynamodbstreams get-records` prints: no ARN, times as text."""
    found = []
    for record in records:
        moment = datetime.fromtimestamp(record["dynamodb"]["ApproximateCreationDateTime"], UTC).isoformat()
        given = {name: value for name, value in record.items() if name != "eventSourceARN"}
        found.append(given | {"dynamodb": record["dynamodb"] | {"ApproximateCreationDateTime": moment}})
    return json.dumps({"Records": found, "NextShardIterator": "AAAAAAAAAAE"}, indent=4) + "\n"


def as_failure_destination(records: Sequence[Record]) -> str:
    """What Lambda writes to S3 when a batch failed for good; the records are in `payload`."""
    first, last = (records[i]["dynamodb"]["SequenceNumber"] for i in (0, -1))
    batch = {
        "shardId": "shardId-00000001772442000000-a1b2c3d4", "startSequenceNumber": first, "endSequenceNumber": last,
        "batchSize": len(records), "streamArn": records[0]["eventSourceARN"],
    }  # fmt: skip
    context = {"condition": "RetryAttemptsExhausted", "approximateInvokeCount": 3}
    inside = {"requestContext": context, "DDBStreamBatchInfo": batch, "payload": {"Records": list(records)}}
    return _json({"version": "1.0"} | inside)


WRAPPINGS: dict[str, Callable[[Sequence[Record]], str]] = {
    "lines": lambda records: "".join(_json(r) + "\n" for r in records),
    "lambda": lambda records: _json({"Records": list(records)}),
    "lambda lines": lambda records: "".join(_json({"Records": list(b)}) + "\n" for b in _batches(records)),
    "array": lambda records: _json(list(records)),
    "array lines": lambda records: "".join(_json(list(b)) + "\n" for b in _batches(records)),
    "concatenated": lambda records: "".join(map(_json, records)),
    "pretty": lambda records: json.dumps({"Records": list(records)}, indent=2) + "\n",
    "pretty records": lambda records: "".join(json.dumps(r, indent=2) + "\n" for r in records),
    "get-records": as_get_records,
    "failure destination": as_failure_destination,
    "time window": lambda records: "".join(
        _json({
            "Records": list(b), "window": {"start": "2026-03-02T09:00:00Z", "end": "2026-03-02T09:05:00Z"}, "state": {},
            "shardId": "shard123456789", "eventSourceARN": b[0]["eventSourceARN"],
            "isFinalInvokeForWindow": False, "isWindowTerminatedEarly": False,
        }) + "\n" for b in _batches(records)
    ),
}  # fmt: skip


def view(records: Iterable[Record], kind: str) -> list[Record]:
    """The records as a stream of this StreamViewType carries them."""
    left_out = {"NEW_IMAGE": {"OldImage"}, "OLD_IMAGE": {"NewImage"}, "KEYS_ONLY": {"NewImage", "OldImage"}}[kind]
    return [
        r | {"dynamodb": {n: v for n, v in r["dynamodb"].items() if n not in left_out} | {"StreamViewType": kind}}
        for r in records
    ]


def untyped(records: Iterable[Record]) -> list[Record]:
    """The records with images that somebody unmarshalled: `42` instead of `{"N": "42"}`."""

    def plain(item: Item) -> Item:
        return {n: int(v["N"]) if "N" in v else v["S"] for n, v in item.items()}

    return [
        r | {"dynamodb": {n: plain(v) if isinstance(v, dict) else v for n, v in r["dynamodb"].items()}} for r in records
    ]


def lowered(records: Iterable[Record]) -> list[Record]:
    """The records with lower-cased names, as Athena and Glue give them; attribute names and type tags too."""

    def low(value: Any) -> Any:
        return {n.lower(): low(v) for n, v in value.items()} if isinstance(value, dict) else value

    return [low(r) for r in records]


def redelivered(records: Sequence[Record], seed: int = 1) -> list[Record]:
    """The records with some batches delivered again later, as Lambda does after an error."""
    rng, out = random.Random(seed), []
    for batch in _batches(records, 7):
        out += [*batch, *(batch if rng.random() < 0.4 else ())]
    return out


def split(records: Sequence[Record], files: int, seed: int = 1) -> list[list[Record]]:
    """The records dealt out to several files in any order, so that each item is in many."""
    rng = random.Random(seed)
    dealt: list[list[Record]] = [[] for _ in range(files)]
    for record in rng.sample(records, len(records)):
        rng.choice(dealt).append(record)
    return dealt


# --------------------------------------------------------------------------- a service and its log lines


def clock(seconds: float) -> str:
    """The time as loggers write it: `2026-03-02T09:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Service:
    """A service that leases resources to workers, decides each of their requests and logs it, numbered in its order.

    `guard` says with which token a write's is compared: the highest `accepted` so far, the latest
    `granted`, or None for a service that compares nothing. `punctual`: it refuses late writes too.
    """

    def __init__(
        self, seed: int, *, resource: str = "jobId", guard: str | None = "accepted", punctual: bool = False,
        lease: int = 30, issued: int = 0,
    ) -> None:  # fmt: skip
        self.rng, self.now = random.Random(f"service {seed}"), float(BASE)
        self.resource, self.guard, self.punctual, self.lease, self.issued = resource, guard, punctual, lease, issued
        self.leases: dict[str, Item] = {}  # lease -> granted, holder, until
        self.state: dict[str, Item] = {}  # resource -> accepted, status
        self.events: list[Event] = []

    def log(self, event: str, resource: str, worker: str, **fields: Any) -> None:
        """One line; a field that is None is left out."""
        line = {"time": clock(self.now), "seq": len(self.events) + 1, "event": event, self.resource: resource}
        line |= {"worker": worker} | fields
        self.events.append({name: value for name, value in line.items() if value is not None})

    def acquire(self, resource: str, worker: str, lease: str | None = None) -> int:
        """The new token, 0 where the lease is another's or the work is done."""
        held = self._lease(lease or resource)
        done = self._state(resource)["status"] in FINAL
        if done or (held["holder"] and held["until"] >= self.now):
            reason = "already completed" if done else f"held by {held['holder']}"
            self.log("acquire_lease", resource, worker, lease=lease, decision="rejected", reason=reason)
            return 0
        token, until = held["granted"] + 1, self.now + self.lease
        held |= {"holder": worker, "until": until, "granted": token}
        given = {"lease": lease, "token": token, "leaseExpiresAt": clock(until), "decision": "accepted"}
        self.log("acquire_lease", resource, worker, **given)
        return token

    def write(self, resource: str, worker: str, token: int, event: str = "write_result", **given: Any) -> bool:
        """Decide one write; `status` moves the resource, `lease` names the lease that issued the token."""
        status, operation, lease = given.pop("status", None), given.pop("operation", None), given.pop("lease", None)
        held, state = self._lease(lease or resource), self._state(resource)
        compared = {"accepted": state["accepted"], "granted": held["granted"], None: 0}[self.guard]
        reason = None
        if token < compared:
            reason = "newer token"
        elif status in FINAL and state["status"] in FINAL:
            reason = "already completed"
        elif self.punctual and event != "release_lease" and held["until"] < self.now:
            reason = "lease expired"
        operation = operation or f"op-{self.rng.getrandbits(32):08x}"
        fields = {"lease": lease, "token": token, **given, "status": status, "operationId": operation}
        if reason:
            fields |= {"decision": "rejected", "reason": reason, "storedToken": compared or None}
            self.log(event, resource, worker, **fields)
            return False
        if event == "renew_lease":
            held["until"] = self.now + self.lease
            fields["leaseExpiresAt"] = clock(held["until"])
        if event == "release_lease":
            held["holder"] = None
        state["accepted"] = max(state["accepted"], token)
        state["status"] = status or state["status"]
        self.log(event, resource, worker, **fields, decision="accepted")
        return True

    def renew(self, resource: str, worker: str, token: int) -> bool:
        return self.write(resource, worker, token, "renew_lease")

    def release(self, resource: str, worker: str, token: int) -> bool:
        return self.write(resource, worker, token, "release_lease")

    def complete(self, resource: str, worker: str, token: int, operation: str | None = None) -> bool:
        return self.write(resource, worker, token, "complete_job", status="DONE", operation=operation)

    def _lease(self, name: str) -> Item:
        return self.leases.setdefault(name, {"granted": self.issued, "holder": None, "until": 0.0})

    def _state(self, resource: str) -> Item:
        return self.state.setdefault(resource, {"accepted": 0, "status": None})


def lines(events: Iterable[Event]) -> str:
    """The events as JSON lines."""
    return "".join(json.dumps(event) + "\n" for event in events)


def csv(events: Sequence[Event], columns: Sequence[str] | None = None) -> str:
    """The events as CSV with every value in quotes, tokens too."""
    names = columns or list(dict.fromkeys(name for event in events for name in event))
    text = io.StringIO()
    table = csv_format.DictWriter(text, names, extrasaction="ignore", quoting=csv_format.QUOTE_ALL, lineterminator="\n")
    table.writeheader()
    table.writerows(events)
    return text.getvalue()


# --------------------------------------------------------------------------- the report-generation story


def report_generation(fenced: bool) -> list[Event]:
    """A reads its input under token 41 and pauses; B takes over with 42 and writes; A returns with its old result."""
    service = Service(41, resource="reportId", guard="accepted" if fenced else None, issued=40)

    def story() -> Story:
        report, a, b = "report-7", "worker-A", "worker-B"
        old = service.acquire(report, a)
        yield 1.5
        service.log("read_input", report, a, token=old)
        yield 0.5
        service.log("worker_paused", report, a)
        yield 35
        service.log("lease_expired", report, a)
        yield 2
        new = service.acquire(report, b)
        yield 4
        service.write(report, b, new, result="new-result")
        yield 6
        service.log("worker_resumed", report, a)
        yield 0.25
        service.write(report, a, old, result="old-result")
        yield 3
        service.write(report, b, new, result="new-result")

    run(service, story())
    return service.events


# --------------------------------------------------------------------------- the request-status story


class Poller(Worker):
    """A worker that asks an API for the status of a request and keeps what it learns in the request's item."""

    status = "apiStatus"

    def respond(self, request: str, status: str) -> bool:
        """Store an answer that is not final."""
        return self.write(request, apiStatus=status, responseHash=new_hash(self.table), attempt=plus_one)

    def schedule(self, request: str, seconds: int) -> bool:
        """Say when to ask again."""
        return self.write(request, nextPollAt=int(self.table.now) + seconds)

    def back_off(self, request: str, seconds: int) -> bool:
        """The API said 429: wait longer before asking again."""
        return self.write(request, nextPollAt=int(self.table.now) + seconds, backoffSeconds=seconds, attempt=plus_one)

    def conclude(self, request: str, status: str) -> bool:
        """Store the final answer, once: there must be no terminal version yet."""
        return self.write(
            request, lambda item: "terminalVersion" not in item, apiStatus=status, responseHash=new_hash(self.table),
            attempt=plus_one, terminalVersion=1, nextPollAt=None, ttl=int(self.table.now) + 7 * DAY,
        )  # fmt: skip

    def alert(self, request: str) -> bool:
        return self.write(request, lambda item: "alertId" not in item, alertId=self.table.new_id("alert"))


def request(table: Table, key: str) -> None:
    """A conversion was uploaded; from now on somebody has to ask what became of it."""
    now = int(table.now)
    table.put({
        "requestId": key, "apiStatus": "QUEUED", "attempt": 0, "nextPollAt": now, "createdAt": now, "updatedAt": now,
        "version": 1, "writtenBy": "uploader",
    })  # fmt: skip


def answered_at_once(table: Table, key: str, poller: Poller) -> Story:
    request(table, key)
    yield 5
    poller.acquire(key)
    yield 2
    poller.conclude(key, "SUCCEEDED")
    yield 1
    poller.release(key)


def rate_limited(table: Table, key: str, first: Poller, second: Poller) -> Story:
    """Two schedulers take turns: the API refuses the first one's call, the second asks after the backoff."""
    request(table, key)
    yield 5
    first.acquire(key)
    yield 1
    first.back_off(key, 64)
    yield 1
    first.release(key)
    yield 66
    second.acquire(key)
    yield 2
    second.conclude(key, "SUCCEEDED")
    yield 1
    second.release(key)


def long_running(table: Table, key: str, poller: Poller) -> Story:
    """One worker keeps the request over several answers and renews in time; its token stays the same."""
    request(table, key)
    yield 5
    poller.acquire(key)
    for _ in range(2):
        yield 20
        poller.respond(key, "PROCESSING")
        yield 10
        poller.renew(key)
    yield 20
    poller.conclude(key, "SUCCEEDED")
    yield 1
    poller.release(key)


def retried(table: Table, key: str, poller: Poller) -> Story:
    """The call fails and is made again by the same worker: the attempt counts up, the token does not."""
    request(table, key)
    yield 5
    poller.acquire(key)
    for _ in range(2):
        yield 4
        poller.respond(key, "RETRYING")
    yield 8
    poller.conclude(key, "SUCCEEDED")
    yield 1
    poller.release(key)


def crashed(table: Table, key: str, first: Poller, second: Poller) -> Story:
    """A worker dies with the lease; another takes over when it has run out."""
    request(table, key)
    yield 5
    first.acquire(key)
    yield 70
    second.acquire(key)
    yield 3
    second.respond(key, "PROCESSING")
    yield 1
    second.schedule(key, 30)
    yield 1
    second.release(key)
    yield 30
    second.acquire(key)
    yield 3
    second.conclude(key, "SUCCEEDED")
    yield 1
    second.release(key)


def two_schedulers_at_once(table: Table, key: str, first: Poller, second: Poller) -> Story:
    """Both try to acquire; one gets a token, the other a failed condition, which no stream shows."""
    request(table, key)
    yield 5
    first.acquire(key)
    second.acquire(key)
    yield 3
    first.conclude(key, "SUCCEEDED")
    second.acquire(key)
    yield 1
    first.release(key)


def failed_with_alert(table: Table, key: str, poller: Poller) -> Story:
    request(table, key)
    yield 5
    poller.acquire(key)
    yield 3
    poller.conclude(key, "FAILED")
    yield 1
    poller.alert(key)
    poller.alert(key)  # a second time: refused
    yield 1
    poller.release(key)


def paused_in_a_call(table: Table, key: str, stale: Poller, second: Poller, third: Poller, fenced: bool) -> Story:
    """A worker hangs in its call and outlives its lease; the request is finished by another; then the call returns.

    Unfenced, the worker writes as its old release did: no condition, no token, no version. The request is
    open again, is polled again, and can never finish, since it has a terminal version already.
    """
    request(table, key)
    yield 5
    stale.acquire(key)
    attempt = table.items[key]["attempt"] + 1
    yield 90
    second.acquire(key)
    yield 3
    second.respond(key, "PROCESSING")
    yield 15
    second.conclude(key, "SUCCEEDED")
    yield 1
    second.alert(key)
    yield 1
    second.release(key)
    yield 12
    now = int(table.now)
    returned = {"apiStatus": "PROCESSING", "responseHash": new_hash(table), "attempt": attempt, "nextPollAt": now + 30}
    if fenced:
        stale.write(key, **returned)  # refused
        return
    table.update(key, returned | {"updatedAt": now})
    yield 31
    third.acquire(key)
    yield 3
    third.conclude(key, "SUCCEEDED")  # refused
    yield 1
    third.release(key)


def request_status(fenced: bool) -> list[Record]:
    """A morning of one request table that several schedulers poll, and the clean-up a week later."""
    table = Table("request-status", "requestId", 8)
    cron, actions, queue = (Poller(table, n) for n in ("wp-cron/web-1", "action-scheduler/web-2", "queue-worker/q-4"))
    function, recovery = (Poller(table, n) for n in ("lambda/poller", "recovery/deploy-118"))
    run(
        table,
        answered_at_once(table, "req-1a07", cron),
        rate_limited(table, "req-2c9e", actions, queue),
        long_running(table, "req-3d41", queue),
        crashed(table, "req-4b6f", cron, recovery),
        failed_with_alert(table, "req-5e88", function),
        two_schedulers_at_once(table, "req-6f15", actions, cron),
        retried(table, "req-7a52", function),
        paused_in_a_call(table, "req-8f23", cron, function, queue, fenced),
        failed_with_alert(table, "req-9c30", actions),
        rate_limited(table, "req-aa4d", queue, function),
        answered_at_once(table, "req-bd71", recovery),
    )
    for key in ("req-1a07", "req-6f15", "req-5e88", "req-2c9e"):
        table.now = max(table.now, table.items[key]["ttl"]) + table.rng.randrange(20 * 60, 3 * HOUR)
        table.ttl(key)
    return table.records


# --------------------------------------------------------------------------- leader election, a shared item


def leader_election() -> list[Record]:
    """Nodes elect leaders through one item an election: no work, no status, only leases and terms (`epoch`)."""
    table = Table("leaders", "election", 3)
    a, b, c = (Worker(table, f"node-{n}", token="epoch", lease=15) for n in "abc")

    def leads(node: Worker, election: str, beats: int) -> Story:
        node.acquire(election)
        for _ in range(beats):
            yield 5
            node.renew(election)

    def steps_down() -> Story:
        yield from leads(a, "billing", 6)
        b.acquire("billing")  # refused: a is alive
        yield 2
        a.release("billing")
        yield 4
        yield from leads(b, "billing", 4)

    def dies() -> Story:
        yield from leads(c, "thumbnails", 5)
        yield 21
        yield from leads(a, "thumbnails", 5)
        c.renew("thumbnails")  # refused: its term is over

    def sleeps_and_comes_back() -> Story:
        yield from leads(b, "reports", 3)
        yield 40
        yield from leads(b, "reports", 3)
        yield 25
        yield from leads(c, "reports", 2)

    run(table, steps_down(), dies(), sleeps_and_comes_back())
    return table.records


def shared_item() -> list[Record]:
    """Orders that export workers lease; a CRM and a clean-up job write their own attributes of the same items."""
    table = Table("orders", "orderId", 5)
    one, two = Worker(table, "export-1"), Worker(table, "export-2")

    def crm_sync(order: str) -> None:
        table.update(order, {"crmSyncedAt": int(table.now)})

    def clean_up(order: str) -> None:
        table.update(order, {"draftNote": None, "previewPath": None})

    def exported(order: str, worker: Worker, rival: Worker) -> Story:
        enqueue(table, order, version=1, draftNote="to be checked", previewPath=f"previews/{order}.png")
        yield 3
        crm_sync(order)
        yield 3
        worker.acquire(order)
        rival.acquire(order)  # refused
        yield 5
        worker.write(order, status="EXPORTING")
        crm_sync(order)
        yield 20
        worker.renew(order)
        yield 20
        worker.finish(order, "EXPORTED", resultHash=new_hash(table))
        yield 1
        worker.release(order)
        yield 30
        crm_sync(order)
        clean_up(order)

    def taken_over(order: str, first: Worker, second: Worker) -> Story:
        enqueue(table, order, version=1, draftNote="to be checked")
        yield 4
        first.acquire(order)
        yield 6
        first.write(order, status="EXPORTING")
        yield 80
        crm_sync(order)  # nobody's lease is running
        yield 5
        second.acquire(order)
        yield 5
        crm_sync(order)
        first.finish(order, "EXPORTED", resultHash="late")  # refused
        second.finish(order, "EXPORTED", resultHash=new_hash(table))
        yield 1
        second.release(order)
        yield 60
        clean_up(order)
        yield HOUR
        table.delete(order, when=lambda item: item["status"] in FINAL)

    run(
        table,
        exported("order-1001", one, two), taken_over("order-1002", one, two), exported("order-1003", two, one),
        taken_over("order-1004", two, one), exported("order-1005", one, two),
    )  # fmt: skip
    return table.records


# --------------------------------------------------------------------------- no written token


def no_written_token(stores: Sequence[str]) -> list[Record]:
    """Jobs whose writes are conditional but do not say by which token; one stale worker writes without asking.

    It overwrites the checkpoint from which the new holder goes on. Nothing in its record differs from a
    write of the holder, unless the others raise a `version` with every write.
    """
    table = Table("import-jobs", "jobId", 6)
    one, two, three = (Worker(table, f"importer-{n}", stores=stores) for n in (1, 2, 3))
    first_version = {"version": 1} if "version" in stores else {}

    def imported(job: str, worker: Worker) -> Story:
        enqueue(table, job, **first_version)
        yield 4
        worker.acquire(job)
        yield 10
        worker.write(job, status="RUNNING", resultHash=new_hash(table))
        yield 20
        worker.renew(job)
        yield 10
        worker.finish(job, "DONE", resultHash=new_hash(table))
        yield 1
        worker.release(job)

    def put_back(job: str, first: Worker, second: Worker) -> Story:
        enqueue(table, job, **first_version)
        yield 4
        first.acquire(job)
        yield 5
        first.release(job)
        yield 8
        yield from continued(job, second)

    def taken_over(job: str, first: Worker, second: Worker, overwritten: bool) -> Story:
        enqueue(table, job, **first_version)
        yield 4
        first.acquire(job)
        yield 10
        first.write(job, status="RUNNING", resultHash=new_hash(table))
        yield 75
        second.acquire(job)
        yield 8
        second.write(job, resultHash=new_hash(table))
        yield 6
        if overwritten:  # by the first worker, which was asleep
            table.update(job, {"resultHash": new_hash(table), "updatedAt": int(table.now)})
        yield 12
        yield from continued(job, second)

    def continued(job: str, worker: Worker) -> Story:
        if not worker.holds(table.items[job]):
            worker.acquire(job)
        yield 6
        worker.finish(job, "DONE", resultHash=new_hash(table))
        yield 1
        worker.release(job)

    run(
        table,
        imported("job-31", one), taken_over("job-32", two, three, overwritten=False), imported("job-33", two),
        taken_over("job-34", one, two, overwritten=True), put_back("job-35", three, one), imported("job-36", three),
    )  # fmt: skip
    return table.records


# --------------------------------------------------------------------------- an application log as a table


def workers() -> list[Event]:
    """A job service that refuses late writes as well as stale ones; most of its refusals are lost races.

    A lease has a key of its own, one a job; the service writes its log in the order of its decisions.
    """
    service = Service(9, guard="granted", punctual=True)

    def worked_through(job: str, worker: str, rival: str) -> Story:
        token = service.acquire(job, worker)
        yield 1
        service.acquire(job, rival)
        yield 9
        service.write(job, worker, token, status="RUNNING")
        yield 15
        service.renew(job, worker, token)
        service.acquire(job, rival)
        yield 12
        service.complete(job, worker, token)
        yield 0.5
        service.release(job, worker, token)
        service.acquire(job, rival)

    def crashes(job: str, worker: str, second: str) -> Story:
        service.write(job, worker, service.acquire(job, worker), status="RUNNING")
        yield 20
        service.acquire(job, second)
        yield 15
        token = service.acquire(job, second)
        yield 5
        service.write(job, second, token, status="RUNNING")
        yield 5
        service.complete(job, second, token)
        yield 0.5
        service.release(job, second, token)

    def too_slow(job: str, worker: str) -> Story:
        token = service.acquire(job, worker)
        yield 10
        service.write(job, worker, token, status="RUNNING")
        yield 28
        service.complete(job, worker, token)  # refused: its lease has run out, though nobody took over
        yield 3
        token = service.acquire(job, worker)
        yield 8
        service.complete(job, worker, token)
        yield 0.5
        service.release(job, worker, token)

    run(
        service,
        worked_through("job-101", "worker-1", "worker-2"), crashes("job-102", "worker-3", "worker-1"),
        worked_through("job-103", "worker-2", "worker-4"), too_slow("job-104", "worker-4"),
        crashes("job-105", "worker-1", "worker-2"), worked_through("job-106", "worker-3", "worker-1"),
    )  # fmt: skip
    return [event | {"leaseKey": f"leases/{event['jobId']}"} for event in service.events]


WORKERS_CSV = (
    "time", "worker", "event", "jobId", "leaseKey", "token", "leaseExpiresAt", "status", "operationId", "decision",
    "reason", "storedToken",
)  # fmt: skip


# --------------------------------------------------------------------------- what goes wrong: ownership


class TextWorker(Worker):
    """A worker of a table that keeps its tokens as text, and so compares them as text."""

    def next_token(self, old: Any) -> str:
        return str(int(old or 8) + 1)  # the sequence began above a floor of 8

    def not_newer(self, item: Item) -> bool:
        return str(item["writtenToken"]) <= str(self.held[item["jobId"]])


def broken_takeover() -> list[Record]:
    """Report jobs, one flaw each, in what a worker may do after (or before) another one took over."""
    table = Table("report-jobs", "jobId", 12)
    a, b = Worker(table, "worker-a"), Worker(table, "worker-b")

    def begun(job: str, *workers: Worker) -> Story:
        """The job is leased by the workers in turn, each when the lease before has run out."""
        enqueue(table, job, version=1)
        for worker in workers:
            yield 70
            worker.acquire(job)
        yield 5

    def result(worker: Worker, job: str) -> bool:
        return worker.write(job, status="RUNNING", resultHash=new_hash(table))

    def old_result_over_new(job: str) -> Story:
        yield from begun(job, a, b)
        result(b, job)
        yield 5
        a.overwrite(job, resultHash=new_hash(table))
        yield 5
        result(b, job)

    def old_token_before_the_new_one_is_seen(job: str) -> Story:
        yield from begun(job, a)
        result(a, job)
        yield 70
        b.acquire(job)
        yield 5
        a.overwrite(job, resultHash=new_hash(table))
        yield 5
        result(b, job)

    def one_token_for_two(job: str) -> Story:
        """Both read the counter, both write counter + 1; the second takes the lease and the first does not notice."""
        yield from begun(job, a)
        b.held[job] = a.held[job]
        b.overwrite(job, leaseOwner=b.name, leaseExpiresAt=int(table.now) + 60)
        yield 5
        a.overwrite(job, status="RUNNING", resultHash=new_hash(table))
        yield 5
        b.overwrite(job, resultHash=new_hash(table))

    def old_copy_put_back(job: str) -> Story:
        """The stale worker puts the item as it remembers it, with its own lease in it."""
        yield from begun(job, a)
        remembered = dict(table.items[job])
        yield 70
        b.acquire(job)
        yield 5
        result(b, job)
        yield 5
        table.put(remembered | a.marks(a.held[job]) | {"version": remembered["version"] + 1, "status": "RUNNING"})

    def granted_too_early(job: str) -> Story:
        """A scheduler whose clock is ahead gives the job away while the lease still runs."""
        yield from begun(job, a)
        b.take(job)
        yield 5
        result(b, job)

    def written_too_late(job: str) -> Story:
        """Nobody took over, and the condition looks at the token only."""
        yield from begun(job, a)
        yield 100
        result(a, job)

    def renewed_by_an_orphan(job: str) -> Story:
        """The work is given back, but the thread that renews the lease was not stopped."""
        yield from begun(job, a)
        result(a, job)
        yield 5
        a.release(job)
        yield 5
        a.overwrite(job, leaseExpiresAt=int(table.now) + 60)

    def lease_of_another_released(job: str) -> Story:
        yield from begun(job, a, b)
        a.overwrite(job, leaseOwner=None, leaseExpiresAt=None)

    def set_by_hand(job: str) -> Story:
        """A support tool sets the status: no condition, no token, no version."""
        yield from begun(job, a)
        result(a, job)
        yield 5
        table.update(job, {"status": "PAUSED"})
        yield 5
        result(a, job)

    def nine_is_more_than_ten(job: str) -> Story:
        first, second = TextWorker(table, "worker-a"), TextWorker(table, "worker-b")
        yield from begun(job, first)
        result(first, job)
        yield 70
        second.acquire(job)
        yield 5
        result(second, job)
        yield 5
        first.overwrite(job, first.not_newer, resultHash=new_hash(table))

    stories = (
        old_result_over_new, old_token_before_the_new_one_is_seen, one_token_for_two, old_copy_put_back,
        granted_too_early, written_too_late, renewed_by_an_orphan, lease_of_another_released, set_by_hand,
        nine_is_more_than_ten,
    )  # fmt: skip
    run(table, *(story(story.__name__.replace("_", "-")) for story in stories))
    return table.records


# --------------------------------------------------------------------------- what goes wrong: finishing


def broken_render() -> list[Record]:
    """Document previews: a late completion overwrites the artifact, and other ways to finish more than once."""
    table = Table("previews", "documentId", 14)
    a, b = Worker(table, "renderer-a"), Worker(table, "renderer-b")

    def rendered(worker: Worker, document: str, version: int = 1) -> Item:
        """What the finishing write changes; it gives the lease back as well."""
        artifact = f"previews/{document}/{worker.name}.png"
        lease = {"leaseOwner": None, "leaseExpiresAt": None}
        return {"status": "COMPLETED", "artifactKey": artifact, "terminalVersion": version} | lease

    def leased(document: str, *workers: Worker) -> Story:
        """The preview is leased by the workers in turn, each when the lease before has run out."""
        if document not in table.items:
            enqueue(table, document, version=1, attempt=1)
        for worker in workers:
            yield 70
            worker.acquire(document)
        yield 5

    def finished(document: str, *workers: Worker) -> Story:
        yield from leased(document, *workers)
        workers[-1].write(document, **rendered(workers[-1], document))
        yield 5

    def completed_late(document: str) -> Story:
        """A completes after B did: the artifact is A's again."""
        yield from finished(document, a, b)
        a.overwrite(document, **rendered(a, document, version=2))

    def completion_replayed(document: str) -> Story:
        """The same completion is delivered again after the alert, and accepted again."""
        yield from finished(document, a)
        operation = table.items[document]["operationId"]
        a.overwrite(document, alertId=table.new_id("alert"))
        yield 5
        table.update(document, rendered(a, document) | a.marks(a.held[document]) | {"operationId": operation})

    def two_alerts(document: str) -> Story:
        yield from finished(document, a)
        a.overwrite(document, alertId=table.new_id("alert"))
        yield 5
        a.overwrite(document, alertId=table.new_id("alert"))

    def reopened(document: str) -> Story:
        """A reports progress on a preview that B has completed."""
        yield from finished(document, a, b)
        a.overwrite(document, status="RENDERING")

    def polled_for_ever(document: str) -> Story:
        """Nothing tells the scheduler that the preview is there: it leases and schedules it again."""
        yield from finished(document, a)
        b.take(document)
        yield 5
        b.write(document, nextPollAt=int(table.now) + 60)

    def attempts_forgotten(document: str) -> Story:
        """The worker counts attempts in its memory, and was restarted."""
        yield from leased(document, a)
        a.write(document, status="RENDERING", attempt=2)
        yield 5
        a.write(document, attempt=1, status="RETRYING")
        yield 5
        a.write(document, **rendered(a, document))

    def removed_while_rendering(document: str) -> Story:
        enqueue(table, document, version=1, attempt=1, ttl=int(table.now) + HOUR)
        yield from leased(document, a)
        yield HOUR + 900
        table.ttl(document)

    def removed_too_soon(document: str) -> Story:
        """Finished, but gone before the seven days in which a delivery may be replayed."""
        yield from finished(document, a)
        a.overwrite(document, ttl=int(table.now) + DAY)
        yield DAY + 900
        table.ttl(document)

    def removed_in_time(document: str) -> Story:
        yield from finished(document, a)
        a.overwrite(document, ttl=int(table.now) + 7 * DAY)
        yield 7 * DAY + 900
        table.ttl(document)

    def requested_again(document: str) -> Story:
        """A clean-up deletes the finished item and the token's counter with it; the next request begins at 1."""
        yield from finished(document, a, b)
        table.delete(document)
        yield 60
        yield from finished(document, a)

    stories = (
        completed_late, completion_replayed, two_alerts, reopened, polled_for_ever, attempts_forgotten,
        removed_while_rendering, removed_too_soon, removed_in_time, requested_again,
    )  # fmt: skip
    run(table, *(story(story.__name__.replace("_", "-")) for story in stories))
    return table.records


# --------------------------------------------------------------------------- what goes wrong: refusals, two leases


def broken_workers() -> list[Event]:
    """Render jobs at a service that compares tokens only with those it has seen, and what its refusals say."""
    service = Service(15)

    def goes_on_after_refusal(job: str) -> Story:
        old = service.acquire(job, "worker-a")
        yield 40
        new = service.acquire(job, "worker-b")
        yield 5
        service.complete(job, "worker-b", new)
        yield 5
        service.complete(job, "worker-a", old)
        yield 5
        service.complete(job, "worker-a", old)

    def refused_as_late(job: str) -> Story:
        token = service.acquire(job, "worker-a")
        yield 45
        service.punctual = True
        service.complete(job, "worker-a", token)
        service.punctual = False

    def delivered_twice(job: str) -> Story:
        token = service.acquire(job, "worker-b")
        yield 10
        service.complete(job, "worker-b", token)
        yield 10
        service.complete(job, "worker-b", token)

    def reply_lost(job: str) -> Story:
        """The completion was accepted, but its reply never came: the worker sends the same operation again."""
        token = service.acquire(job, "worker-a")
        yield 10
        service.complete(job, "worker-a", token, operation="op-reply-lost")
        yield 8
        service.complete(job, "worker-a", token, operation="op-reply-lost")

    def not_seen_yet(job: str) -> Story:
        """B holds the newer token, but has not written when A's old one arrives."""
        old = service.acquire(job, "worker-a")
        yield 40
        new = service.acquire(job, "worker-b")
        yield 2
        service.write(job, "worker-a", old, result="old-result")
        yield 2
        service.write(job, "worker-b", new, result="new-result")

    def two_leases(report: str) -> Story:
        """Two jobs with leases of their own write one report: their tokens do not compare."""
        service.leases["lease-daily"] = {"granted": 6, "holder": None, "until": 0.0}
        service.leases["lease-monthly"] = {"granted": 8, "holder": None, "until": 0.0}
        daily = service.acquire(report, "worker-a", lease="lease-daily")
        yield 2
        service.write(report, "worker-a", daily, lease="lease-daily", result="daily-figures")
        yield 2
        monthly = service.acquire(report, "worker-b", lease="lease-monthly")
        yield 2
        service.write(report, "worker-b", monthly, lease="lease-monthly", result="monthly-figures")

    stories = (goes_on_after_refusal, refused_as_late, delivered_twice, reply_lost, not_seen_yet, two_leases)
    run(service, *(story(story.__name__.replace("_", "-")) for story in stories))
    return service.events


# --------------------------------------------------------------------------- what goes wrong: the archive itself


def broken_archive() -> list[Record]:
    """Healthy jobs whose records were not kept well: a hole, a stream switched off and on, a clock, a unit."""
    table = Table("export-jobs", "jobId", 17)
    a, b = Worker(table, "worker-a"), Worker(table, "worker-b")

    def worked(job: str, *workers: Worker) -> Story:
        enqueue(table, job, version=1)
        for worker in workers:
            yield 70
            worker.acquire(job)
            yield 5
            worker.write(job, status="RUNNING", resultHash=new_hash(table))
        yield 5
        workers[-1].finish(job, "DONE", resultHash=new_hash(table))
        yield 1
        workers[-1].release(job)

    def expires_in_milliseconds(job: str) -> Story:
        """One worker writes expiry times in milliseconds: to the others its lease runs for fifty thousand years."""
        enqueue(table, job, version=1)
        yield 5
        a.acquire(job)
        yield 70
        b.acquire(job)
        yield 2
        b.write(job, leaseExpiresAt=(int(table.now) + 60) * 1000)
        yield 5
        b.finish(job, "DONE", resultHash=new_hash(table))

    def of(job: str) -> list[Record]:
        return [r for r in table.records if r["dynamodb"]["Keys"]["jobId"]["S"] == job]

    run(
        table,
        worked("a-record-is-missing", a, b), worked("stamped-an-hour-early", a, b),
        expires_in_milliseconds("expires-in-milliseconds"),
    )  # fmt: skip
    table.records.remove(of("a-record-is-missing")[3])
    of("stamped-an-hour-early")[4]["dynamodb"]["ApproximateCreationDateTime"] -= HOUR

    def switched_off_and_on(job: str) -> Story:
        enqueue(table, job, version=1)
        yield 5
        a.acquire(job)
        yield 5
        a.write(job, status="RUNNING", resultHash=new_hash(table))
        table.stream_label("2026-03-02T10:00:00.000")
        yield 5
        a.finish(job, "DONE", resultHash=new_hash(table))
        yield 1
        a.release(job)

    run(table, switched_off_and_on("stream-off-and-on"))
    return table.records


# --------------------------------------------------------------------------- healthy, without a file in data/


class Case(NamedTuple):
    """A log that no audit may accuse."""

    files: dict[str, str]  # name -> text
    options: tuple[str, ...]
    exit_code: int  # 0, or 3 where the log cannot prove it
    unknown: tuple[str, ...] = ()  # core rules that stay open


def jobs(stores: Sequence[str] = STORES, token_of: Callable[[Table], Any] | None = None) -> list[Record]:
    """Jobs with lease and state in one item: worked through, put back, taken over, and a late write refused.

    `token_of` makes tokens that are not numbers.
    """
    table = Table("jobs", "jobId", 21)
    a, b, c = (Worker(table, f"worker-{n}", stores=stores) for n in "abc")
    if token_of:
        for worker in (a, b, c):
            worker.next_token = lambda _: token_of(table)  # type: ignore[method-assign]

    def lease_and_work(job: str, worker: Worker) -> Story:
        worker.acquire(job)
        yield 10
        worker.write(job, status="RUNNING", resultHash=new_hash(table))
        yield 20
        worker.renew(job)
        yield 20

    def finish(job: str, worker: Worker) -> Story:
        worker.finish(job, "DONE", resultHash=new_hash(table), ttl=int(table.now) + DAY)
        yield 1
        worker.release(job)

    def worked_through(job: str, worker: Worker, rival: Worker) -> Story:
        enqueue(table, job)
        yield 5
        yield from lease_and_work(job, worker)
        rival.acquire(job)  # refused
        yield from finish(job, worker)

    def put_back(job: str, first: Worker, second: Worker) -> Story:
        enqueue(table, job)
        yield 5
        yield from lease_and_work(job, first)
        first.release(job)
        yield 15
        yield from lease_and_work(job, second)
        yield from finish(job, second)

    def taken_over(job: str, first: Worker, second: Worker) -> Story:
        enqueue(table, job)
        yield 5
        yield from lease_and_work(job, first)
        yield 70
        yield from lease_and_work(job, second)
        first.write(job, status="FAILED")  # refused
        yield from finish(job, second)

    run(
        table,
        worked_through("job-1", a, b), put_back("job-2", b, c), taken_over("job-3", a, c),
        worked_through("job-4", c, a), taken_over("job-5", b, a),
    )  # fmt: skip
    for job in sorted(table.items):
        table.now = max(table.now, table.items[job]["ttl"]) + 900
        table.ttl(job)
    return table.records


_DONE = ("--terminal", "DONE,FAILED")
_STALE_OPEN = ("token_went_back", "stale_write_accepted", "unfenced_write")
_ORDER_OPEN = ("token_shared", "holder_without_token", *_STALE_OPEN)
_ALL_OPEN = (*_ORDER_OPEN, "terminal_twice", "terminal_left")


def _one(
    text: str, exit_code: int = 0, unknown: Sequence[str] = (), options: Sequence[str] = _DONE, name: str = "log.jsonl"
) -> Case:
    return Case({name: text}, tuple(options), exit_code, tuple(unknown))


def uuid_token(table: Table) -> str:
    return str(UUID(int=table.rng.getrandbits(128), version=4))


HEALTHY: dict[str, Callable[[], Case]] = {
    "a written token is stored": lambda: _one(stream(jobs())),
    "no written token is stored": lambda: _one(stream(jobs(stores=())), 3, _STALE_OPEN),
    "a version is stored, no written token": lambda: _one(stream(jobs(stores=("version",))), 3, _STALE_OPEN),
    "completed items are removed by TTL": lambda: _one(stream(jobs()), options=(*_DONE, "--retention", "1d")),
    "tokens are quoted in JSON lines": lambda: _one(lines({n: str(v) for n, v in e.items()} for e in workers())),
    "tokens are quoted in CSV": lambda: _one(csv(workers()), name="log.csv"),
    "failed acquires in JSON lines": lambda: _one(lines(workers())),
    "tokens are UUIDs": lambda: _one(stream(jobs(token_of=uuid_token)), 3, _ORDER_OPEN),
    "NEW_IMAGE": lambda: _one(stream(view(jobs(), "NEW_IMAGE"))),
    "OLD_IMAGE": lambda: _one(stream(view(jobs(), "OLD_IMAGE")), 3, _ALL_OPEN),
    "KEYS_ONLY": lambda: _one(stream(view(jobs(), "KEYS_ONLY")), 3, _ALL_OPEN),
    "images are not typed": lambda: _one(stream(untyped(jobs()))),
    "names are in lower case": lambda: _one(stream(lowered(jobs()))),
    "one item over several files": lambda: Case(
        {f"{n}.jsonl": stream(part) for n, part in enumerate(split(jobs(), 4))}, _DONE, 0
    ),
    "records are delivered again": lambda: _one(stream(redelivered(jobs()))),
    **{f"wrapped: {w}": (lambda w=w: _one(stream(jobs(), w), name="log.json")) for w in WRAPPINGS},
}


# --------------------------------------------------------------------------- the files of data/

FILES: dict[str, Callable[[], str]] = {
    "report-generation.jsonl": lambda: lines(report_generation(fenced=False)),
    "report-generation-fenced.jsonl": lambda: lines(report_generation(fenced=True)),
    "request-status.jsonl": lambda: stream(request_status(fenced=True)),
    "request-status-unfenced.jsonl": lambda: stream(request_status(fenced=False)),
    "leader-election.jsonl": lambda: stream(leader_election()),
    "shared-item.jsonl": lambda: stream(shared_item()),
    "no-written-token.jsonl": lambda: stream(no_written_token(("updatedAt",))),
    "no-written-token-version.jsonl": lambda: stream(no_written_token(("version", "updatedAt"))),
    "workers.csv": lambda: csv(workers(), WORKERS_CSV),
    "broken-takeover.jsonl": lambda: stream(broken_takeover()),
    "broken-render.jsonl": lambda: stream(broken_render()),
    "broken-workers.jsonl": lambda: lines(broken_workers()),
    "broken-archive.jsonl": lambda: stream(broken_archive()),
}


def write(folder: Path) -> None:
    """Write every file of FILES into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        (folder / name).write_text(make(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "data")
