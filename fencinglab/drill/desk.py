"""Where a scenario is played: a receiver, new items, workers on a real clock, and notes of what they send and learn."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from fencinglab.dynamodb.hold import Hold, Told, took
from fencinglab.dynamodb.requests import READ, Place, Requests, begin, counters, places

APART = (0.0, 0.0005, 0.002)  # seconds by which workers that begin together may be apart: not, a little, a request
MARGIN = 0.2  # seconds to wait beyond a whole one, for clocks that are a little apart


class Heard(NamedTuple):
    """What a worker of a scenario was told."""

    scenario: str
    worker: str
    told: Told


class Check(NamedTuple):
    """One thing that a scenario expected, and whether it came so."""

    scenario: str
    says: str
    holds: bool


class Stopped(Exception):
    """Why a scenario does not come to its end: a bound of the drill, or this machine or the file is not up to it."""


class Notes:
    """What all scenarios write down, from many threads; and the bounds that all of them share."""

    def __init__(self, most_requests: int, until: float) -> None:
        self.heard: list[Heard] = []  # in the order of their arrival
        self.checks: list[Check] = []
        self.judged: dict[Place, str] = {}  # the resource of each item, also of one that a grant makes
        self.beside: set[Place] = set()  # what else it touches, such as a token floor
        self.most_requests, self.until, self.requests = most_requests, until, 0
        self._one = threading.Lock()

    def count(self) -> None:
        """One more request; Stopped beyond the bounds."""
        with self._one:
            self.requests += 1
        if self.requests > self.most_requests:
            raise Stopped(f"it asked for more than {self.most_requests:,} operations")
        if time.monotonic() > self.until:
            raise Stopped("the time was over")


class Desk:
    """One scenario's own items and workers."""

    def __init__(
        self, scenario: str, connect: Callable[[], Any], file: Requests, notes: Notes, *,
        lease: int, workers: int, rounds: int, run: str, seed: int,
    ) -> None:  # fmt: skip
        self.scenario, self.connect, self.file, self.notes = scenario, connect, file, notes
        self.client = connect()
        self.lease, self.workers, self.rounds, self.run = lease, workers, rounds, run
        # a floor of its own, also in a table that is there
        self.given: dict[str, Any] = {"floor": f"token-floor-{run}", "lease": lease}
        self._items = 0
        self._random = random.Random(f"{seed}/{scenario}")

    def resource(self, start: bool = True) -> str:
        """The key of a new item; with `start` as the file has it before anybody acquires."""
        self._items += 1
        resource = f"{self.scenario}-{self.run}-{self._items}"
        known = {"resource": resource, "now": self.now(), **self.given}
        granted = counters(self.file, known)
        for place, item in zip(places(self.file, known), begin(self.file, known), strict=True):
            if item is None and place not in granted:
                self.notes.beside.add(place)
                continue
            self.notes.judged[place] = resource
            if start and item is not None:
                self.notes.count()
                self.client.put_item(TableName=place.table, Item=json.loads(item))
        return resource

    def player(self, name: str, resource: str, ahead: int = 0, client: Any = None, **given: Any) -> Player:
        """A worker on this item, whose clock runs some seconds ahead, with a client of its own where one is given."""
        known = self.given | given
        hold = Hold(client or self.client, name, resource, lambda: self.now() + ahead, self.file, **known)
        return Player(self, name, resource, hold)

    def players(self, names: str) -> list[Player]:
        """Workers, a letter each, on one new item."""
        resource = self.resource()
        return [self.player(name, resource) for name in names]

    def now(self) -> int:
        """The true time in whole seconds."""
        return int(time.time())

    def lease_runs_out(self) -> None:
        """Wait until a lease that was granted by now has run out."""
        self.wait(self.lease + 1 + MARGIN)

    def expect_held(self, says: str, player: Player, since: float) -> None:
        """Expect that a worker is refused, since a lease that was granted at that time still runs.

        Stopped where it does not: then this machine was too slow to tell.
        """
        took = player.take()
        if took and time.time() >= since + self.lease - 1:
            raise self.too_slow()
        self.expect(says, not took)

    def ran_out(self, since: int) -> bool:
        """Whether a lease that was granted since then may have run out, so that another worker takes it by right."""
        return self.now() >= since + self.lease

    def too_slow(self) -> Stopped:
        """What ends a scenario in which a lease ran out that was to last."""
        return Stopped(f"too slow for a lease of {self.lease} s; give --lease more")

    def wait(self, seconds: float) -> None:
        """Let real time pass; Stopped where the drill's is over."""
        if time.monotonic() + seconds > self.notes.until:
            raise Stopped("the time was over")
        time.sleep(seconds)

    def noted(self, worker: str, told: Iterable[Told]) -> None:
        """Write down what a worker was told; Stopped where that does not say what became of an operation."""
        for one in told:
            self.notes.heard.append(Heard(self.scenario, worker, one))
            self.notes.count()
            if one.outcome == "unknown":
                raise Stopped(f"what became of `{one.name}` is unknown: {one.reason}")

    def expect(self, says: str, holds: bool) -> None:
        """Write down whether an expectation came true."""
        self.notes.checks.append(Check(self.scenario, says, bool(holds)))

    def at_once(self, *calls: Callable[[], Any]) -> list[Any]:
        """What the calls give, each in a thread of its own, begun together but for what the seed sets them apart."""
        if not calls:
            return []
        barrier, apart = threading.Barrier(len(calls)), self._random.choice(APART)

        def go(call: Callable[[], Any], pause: float) -> Any:
            barrier.wait()
            time.sleep(pause)
            return call()

        with ThreadPoolExecutor(len(calls)) as pool:
            begun = [pool.submit(go, call, self._random.uniform(0, apart)) for call in calls]
            return [done.result() for done in begun]


class Player:
    """A worker of a scenario: a hold whose every message is written down."""

    def __init__(self, desk: Desk, name: str, resource: str, hold: Hold) -> None:
        self.desk, self.name, self.resource, self.hold = desk, name, resource, hold

    def take(self) -> bool:
        """Acquire; whether it did."""
        return took(self.desk.file, self._noted(self.hold.take()))

    def work(self) -> list[Told]:
        """The file's first write that is not final, as `use`; nothing where it has none."""
        return self.use(self.named("write")) if self.named("write") else []

    def write(self) -> list[Told]:
        """The file's first write, final only where it has no other, as `use`."""
        return self.work() if self.named("write") else self.finish()

    def finish(self) -> list[Told]:
        """The file's first finish, as `use`."""
        return self.use(self.named("finish"))

    def use(self, name: str) -> list[Told]:
        """What it was told of one operation; nothing where a read before it kept it from sending that."""
        return [told for told in self._noted(self.hold.use(name)) if told.name == name]

    def everything(self) -> list[Told]:
        """Every operation that only a holder may use, one after the other, as `use`."""
        return [told for name in of_a_holder(self.desk.file) for told in self.use(name)]

    def create(self) -> Told:
        """Let the item come to be."""
        [told] = self._noted([self.hold.create()])
        return told

    def repeat(self, told: Told) -> Told:
        """The same message again."""
        [again] = self._noted([self.hold.repeat(told)])
        return again

    def named(self, kind: str) -> str:
        """The name of the file's first operation of this kind; empty where it has none."""
        return next(iter(self.desk.file.of_kind(kind)), "")

    def _noted(self, tolds: Iterable[Told]) -> Iterator[Told]:
        for told in tolds:
            self.desk.noted(self.name, [told])
            yield told


def of_a_holder(file: Requests) -> list[str]:
    """The operations of the program that only a holder may use, in its order."""
    names = [use.operation for use in file.program]
    return [name for name in names if file.operations[name].kind not in (READ, "grant")]


def remove_expired(client: Any, file: Requests, now: int, places: Iterable[Place]) -> tuple[Place, ...]:
    """Which of these items a clean-up by time to live removes at this second: those whose `ttl` has passed.

    An item without the attribute, `ttl` unless `map` names another, stays, as with DynamoDB's own; most mocks have no
    clean-up of their own.
    """
    ttl = file.map.get("ttl", "ttl")
    passed = {
        "ConditionExpression": "#ttl <= :now", "ExpressionAttributeNames": {"#ttl": ttl},
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
    }  # fmt: skip
    removed = []
    for place in places:
        try:
            client.delete_item(TableName=place.table, Key=json.loads(place.key), **passed)
        except client.exceptions.ConditionalCheckFailedException:
            continue
        removed.append(place)
    return tuple(removed)
