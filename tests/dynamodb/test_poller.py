"""Several schedulers, one table: every request ends once with what the API said, whatever pauses, crashes or is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from poller import (
    SCRIPTS,
    Alerts,
    DataManager,
    Hurried,
    Logical,
    RequestStatus,
    Response,
    crashed,
    in_order,
    in_threads,
    paused,
    scheduler,
)

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.mock import Mock, lose_replies
from fencinglab.dynamodb.sending import tables

FILE = shelf.find("request-status")
WORKERS = ("wp-cron/web-1", "action-scheduler/web-2", "queue-worker/q-4", "recovery/deploy-118")


class Morning:
    """What came of some requests that some schedulers polled."""

    def __init__(
        self, run, clock, scripts=SCRIPTS, wrap=lambda number, story: story, lose=lambda operation: False, **given
    ):
        self.api, self.alerts, self.told = DataManager(scripts), Alerts(), []
        with Mock() as mock:
            receiver = mock.client()
            with tables(receiver, FILE):
                for resource in scripts:
                    assert RequestStatus(receiver, "uploader", resource, clock, file=FILE).enqueue().ok
                lose_replies(receiver, lose)
                stories = [
                    wrap(
                        number,
                        scheduler(
                            receiver, FILE, w, list(scripts), clock, self.api, self.alerts, self._record, **given
                        ),
                    )
                    for number, w in enumerate(WORKERS)
                ]
                run(stories, clock)
                looks = {r: RequestStatus(receiver, "x", r, clock, file=FILE).look() for r in scripts}
        self.items = {r: {name: next(iter(v.values())) for name, v in item.items()} for r, item in looks.items()}

    def _record(self, worker, resource, told):
        self.told.append((worker, resource, told))

    def rows(self):
        return [(w, r, t.name, t.operation, t.token, t.decision, t.reason, t.outcome) for w, r, t in self.told]

    def count(self, **wanted):
        return sum(all(getattr(t, name) == value for name, value in wanted.items()) for _, _, t in self.told)

    def check(self, complete=True):
        """What must be true of every morning: one end, by the newest owner; no stale write; alerts raised once."""
        newest: dict[str, int] = {}
        ends = Counter()
        for _, resource, told in sorted(self.told, key=lambda one: one[2].messages[0].at):
            if told.decision == "accepted" and told.name in ("finish", "fail"):
                ends[resource] += 1
            if told.decision == "accepted" and told.name == "acquire":
                assert told.token > newest.get(resource, 0)
                newest[resource] = told.token
        assert all(times == 1 for times in ends.values())
        for resource, item in self.items.items():
            if complete:
                assert ends[resource] == 1 and item["terminalVersion"] == "1" and "alertDue" not in item
                assert "nextPollAt" not in item
            assert ("alertId" in item) is (f"alert/{resource}" in self.alerts.shown) or not complete
            assert ("ttl" in item) <= ("terminalVersion" in item)


def test_every_script_ends_once():
    """Each way in which the API answers comes to its one end; the slow ones are taken over and their first worker stops."""
    morning = Morning(in_order, Logical())

    morning.check()
    ends = {resource: item["apiStatus"] for resource, item in morning.items.items()}
    assert ends == dict.fromkeys(SCRIPTS, "SUCCEEDED") | {"failed": "FAILED"} | {"contradicted": ends["contradicted"]}
    assert morning.items["rate-limited"]["retryDecision"] == "retry" and morning.api.calls["rate-limited"] == 3
    assert morning.items["rate-limited"]["backoffSeconds"] == "128"
    assert set(morning.alerts.shown) == {f"alert/{r}" for r, status in ends.items() if status == "FAILED"}
    stale = {(r, t.name) for _, r, t in morning.told if t.reason == "newer_token"}
    assert ("duplicate", "finish") in stale and ("slow", "record_response") in stale
    assert morning.count(outcome="unknown") == 0


def test_the_same_seed_tells_the_same_story():
    """Everything that was sent and learned is the same for the same seed, and another for another."""
    few = {name: SCRIPTS[name] for name in ("failed", "succeeded")}
    stories = [Morning(lambda s, c, n=n: in_order(s, c, n), Logical(), few).rows() for n in (7, 7, 8)]

    assert stories[0] == stories[1] != stories[2]


@pytest.mark.parametrize("place", range(1, 7))
def test_a_crash_at_any_place_loses_nothing(place):
    """A scheduler that dies at any point of its first visit: the others bring every request, and its alert, to an end."""
    few = {name: SCRIPTS[name] for name in ("failed", "processing")}
    morning = Morning(in_order, Logical(), few, lambda n, story: crashed(story, place) if n == 0 else story)

    morning.check()
    assert morning.items["failed"]["alertId"] == "alert/failed"
    assert set(morning.alerts.shown) == {"alert/failed"}  # under one id, however often it was sent


@pytest.mark.parametrize("place", range(1, 6))
def test_a_pause_at_any_place_is_harmless(place):
    """A scheduler that stands still for five minutes at any point of its first visit changes nothing when it returns."""
    few = {name: SCRIPTS[name] for name in ("failed", "succeeded")}
    morning = Morning(in_order, Logical(), few, lambda n, story: paused(story, place, 300) if n == 0 else story)

    morning.check()


def test_lost_replies_change_nothing():
    """With every fourth reply of the receiver lost, everything still ends once, and nobody takes a loss for a theft."""
    number = iter(range(10**6))
    few = {name: SCRIPTS[name] for name in ("failed", "rate-limited", "accepted")}
    morning = Morning(in_order, Logical(), few, lose=lambda op: op == "UpdateItem" and next(number) % 4 == 3)

    morning.check()
    assert morning.count(reason="found by reading back", outcome="ok") > 3


def test_in_real_threads():
    """The same schedulers in threads, two hundred seconds in one: other interleavings, the same promises."""
    few = {name: SCRIPTS[name] for name in ("succeeded", "failed", "rate-limited", "slow")}
    morning = Morning(in_threads, Hurried(200), few)

    morning.check()
    assert morning.items["slow"]["apiStatus"] == "SUCCEEDED"


def test_a_story_that_fails_is_heard():
    """An error in a thread is raised where the threads were begun."""

    def story():
        yield 0
        raise RuntimeError("here")

    with pytest.raises(RuntimeError, match="here"):
        in_threads([story()], Hurried(100))


def test_the_api_answers_by_its_script():
    """Each call takes the next answer and the last is given for ever; an alert under a known id is not shown again."""
    api, alerts = DataManager({"r": (Response("PROCESSING"), Response("SUCCEEDED"))}), Alerts()
    assert [api.ask("r").status for _ in range(3)] == ["PROCESSING", "SUCCEEDED", "SUCCEEDED"]
    for _ in range(2):
        alerts.send("a")
    assert (alerts.received, alerts.shown) == (["a", "a"], {"a": 2})


def test_a_scheduler_gives_up_in_time():
    """A request that the API never finishes is polled until the scheduler's time is over, and stays open."""
    morning = Morning(
        in_order, Logical(), {"endless": (Response("PROCESSING", retry_after=300),)}, every=100, until=1500
    )

    morning.check(complete=False)
    assert morning.items["endless"]["apiStatus"] == "PROCESSING"
    assert 4 <= morning.api.calls["endless"] <= 7
