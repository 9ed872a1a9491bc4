"""Pollers from several schedulers that share requests, against a Data Manager API that answers by a script.

What a worker does is a *story*: a generator that acts and yields the seconds that pass meanwhile. `in_order` lets the
stories happen on a logical clock, the same way for the same seed; `in_threads` lets each run in a thread of its own.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, NamedTuple, Protocol

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.hold import Hold, Told
from fencinglab.dynamodb.requests import Requests

Story = Iterator[float]
Record = Callable[[str, str, Told], None]  # worker, resource, what came of an operation
SUCCEEDED, FAILED = "SUCCEEDED", "FAILED"
FINAL = {SUCCEEDED: "finish", FAILED: "fail"}  # a failure leaves an alert due
BASE = 1_772_442_000  # 2026-03-02T09:00:00Z: where the clocks begin


class RequestStatus(Hold):
    """One worker's hold on one request."""

    def __init__(
        self, client: Any, worker: str, resource: str, clock: Callable[[], int], *,
        file: Requests | None = None, operations: Iterator[str] | None = None, **given: Any,
    ) -> None:  # fmt: skip
        """As a Hold; without `file` by the request-status file that comes with the package."""
        file = file or shelf.find("request-status")
        super().__init__(client, worker, resource, clock, file, operations=operations, **given)

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


class Response(NamedTuple):
    """One answer of the API."""

    status: str  # ACCEPTED, PROCESSING, RATE_LIMITED, SUCCEEDED or FAILED
    seconds: int = 2  # how long the call takes
    retry_after: int = 20  # the seconds after which it wants to be asked again
    lost: bool = False  # decided there, but the caller never hears of it


SCRIPTS: dict[str, tuple[Response, ...]] = {  # the last answer is given for ever
    "accepted": (Response("ACCEPTED"), Response("SUCCEEDED")),
    "processing": (Response("PROCESSING"), Response("PROCESSING", retry_after=90), Response("SUCCEEDED")),
    "rate-limited": (Response("RATE_LIMITED", 0, 64), Response("RATE_LIMITED", 0, 128), Response("SUCCEEDED")),
    "succeeded": (Response("SUCCEEDED"),),
    "failed": (Response("PROCESSING"), Response("FAILED")),
    "duplicate": (Response("SUCCEEDED", 130), Response("SUCCEEDED")),  # told to two workers
    "contradicted": (Response("FAILED", 130), Response("SUCCEEDED")),  # the answer that came late is another one
    "reply-lost": (Response("SUCCEEDED", 10, lost=True), Response("SUCCEEDED")),
    "slow": (Response("PROCESSING", 150), Response("PROCESSING", 75), Response("SUCCEEDED")),
}


class DataManager:
    """The API: each request has its script, and each call takes the next answer, whoever makes it."""

    def __init__(self, scripts: Mapping[str, Sequence[Response]]) -> None:
        self.scripts, self.calls = scripts, dict.fromkeys(scripts, 0)
        self._one = threading.Lock()

    def ask(self, resource: str) -> Response:
        """The next answer about this request."""
        with self._one:
            number = self.calls[resource]
            self.calls[resource] += 1
        script = self.scripts[resource]
        return script[min(number, len(script) - 1)]


class Alerts:
    """Where alerts arrive. One that comes again under its id is known, and is not shown to anybody again."""

    def __init__(self) -> None:
        self.received: list[str] = []  # as they came
        self.shown: dict[str, int] = {}  # once each, with how often it came

    def send(self, alert: str) -> None:
        """Deliver an alert."""
        self.received.append(alert)
        self.shown[alert] = self.shown.get(alert, 0) + 1


class Clock(Protocol):
    """Gives the time in whole seconds, and lets a story wait."""

    def __call__(self) -> int:
        """The time in seconds."""


class Logical:
    """A clock that stands until somebody sets it."""

    def __init__(self, now: float = BASE) -> None:
        self.now = now

    def __call__(self) -> int:
        """The time in seconds."""
        return int(self.now)


class Hurried:
    """The real clock from BASE on, `pace` seconds of the stories in each real one."""

    def __init__(self, pace: float) -> None:
        self.pace, self._begun = pace, time.monotonic()

    def __call__(self) -> int:
        """The time in seconds."""
        return int(BASE + (time.monotonic() - self._begun) * self.pace)


# --------------------------------------------------------------------------- stories


def visit(status: RequestStatus, api: DataManager, alerts: Alerts, record: Record) -> Story:
    """One visit to one request: acquire it, ask, store the answer, give it back. The first refusal ends it.

    An alert is sent under an id of the request and then recorded: a crash in between sends it again, under the same id.
    """
    resource = str(status.known["resource"])

    def done(told: Told) -> bool:
        record(status.worker, resource, told)
        return told.ok

    if not done(acquired := status.acquire()):
        return
    yield 1
    if "alertDue" in (acquired.item or {}):  # finished by a worker that did not come to raise it
        yield from _alert(status, resource, alerts, done)
        return
    answer = api.ask(resource)
    yield answer.seconds
    if answer.lost:
        kept = done(status.schedule_next_poll(answer.retry_after))
    elif answer.status == "RATE_LIMITED":
        kept = done(status.decide_retry("retry", answer.retry_after))
        kept = kept and done(status.schedule_next_poll(answer.retry_after, backoff=answer.retry_after))
    elif answer.status not in FINAL:
        kept = done(status.record_response(answer.status, _hash(resource, answer)))
        yield 1
        kept = kept and done(status.schedule_next_poll(answer.retry_after))
    else:
        kept = done(status.finish(answer.status, _hash(resource, answer)))
        yield 1
        if kept and answer.status == FAILED:
            yield from _alert(status, resource, alerts, done)
            return
    yield 1
    if kept:
        done(status.release())


def _alert(status: RequestStatus, resource: str, alerts: Alerts, done: Callable[[Told], bool]) -> Story:
    alert = f"alert/{resource}"
    alerts.send(alert)
    yield 1
    if done(status.raise_alert(alert)):
        yield 1
        done(status.release())


def scheduler(
    client: Any, file: Requests, worker: str, resources: Sequence[str], clock: Clock, api: DataManager, alerts: Alerts,
    record: Record, every: int = 30, until: int = 3600, **given: Any,
) -> Story:  # fmt: skip
    """Look every so many seconds at which requests are due and visit them in turn, until all are finished.

    Stops `until` seconds after it began also where one cannot be finished. `given` goes to RequestStatus.
    """
    operations = (f"{worker}/{number}" for number in count(1))
    held = [RequestStatus(client, worker, r, clock, file=file, operations=operations, **given) for r in resources]
    begun, waiting = clock(), True
    while waiting and clock() - begun < until:
        waiting = False
        for status in held:
            item = status.look() or {}
            over = "terminalVersion" in item and "alertDue" not in item
            waiting = waiting or not over
            if not over and int(item.get("nextPollAt", {"N": 0})["N"]) <= clock():
                yield from visit(status, api, alerts, record)
        yield every


def paused(story: Story, place: int, seconds: float) -> Story:
    """The story, in which so many seconds more pass where it yields for the `place`-th time, from 1."""
    for number, passed in enumerate(story, 1):
        yield passed + (seconds if number == place else 0)


def crashed(story: Story, place: int) -> Story:
    """The story as far as the place where it would yield for the `place`-th time."""
    for number, passed in enumerate(story, 1):
        if number == place:
            return
        yield passed


def _hash(resource: str, answer: Response) -> str:
    """What the content of an answer is known by; the same answer has the same."""
    from hashlib import blake2b

    return blake2b(f"{resource} {answer.status}".encode(), digest_size=8).hexdigest()


# --------------------------------------------------------------------------- how they happen


def in_order(stories: Iterable[Story], clock: Logical, seed: int = 0) -> None:
    """Let the stories happen on the logical clock; which goes first of those at one moment is decided by the seed."""
    rng, numbers = random.Random(seed), count()
    waiting = [(clock.now + rng.random(), next(numbers), story) for story in stories]
    heapq.heapify(waiting)
    while waiting:
        clock.now, _, story = heapq.heappop(waiting)
        for seconds in story:
            heapq.heappush(waiting, (clock.now + seconds + rng.random() / 4, next(numbers), story))
            break


def in_threads(stories: Iterable[Story], clock: Hurried) -> None:
    """Let each story happen in a thread of its own, on the real clock; the first error of any is raised at the end."""

    def tell(story: Story) -> None:
        for seconds in story:
            time.sleep(seconds / clock.pace)

    told = [*stories]
    with ThreadPoolExecutor(len(told) or 1) as pool:
        for done in [pool.submit(tell, story) for story in told]:
            done.result()
