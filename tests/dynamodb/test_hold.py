"""One worker's hold on one request: what it is told, and what it can no longer do once another holds it."""

from __future__ import annotations

import json
from itertools import count

import pytest
from botocore.exceptions import ReadTimeoutError
from poller import Alerts, RequestStatus

from fencinglab.drill.desk import remove_expired
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.hold import Hold, ids
from fencinglab.dynamodb.mock import Mock, lose_replies
from fencinglab.dynamodb.requests import Place, begin, frozen, places
from fencinglab.dynamodb.sending import tables
from fencinglab.errors import InputError

FILE = shelf.find("request-status")
WEEK = 604_800


class Desk:
    """A table with one request in it, workers that share a clock, and replies that can be lost."""

    def __init__(self, receiver, file=FILE):
        self.receiver, self.file, self.now, self.lost = receiver, file, 1000, []
        lose_replies(receiver, lambda operation: bool(self.lost) and self.lost.pop(0))

    def worker(self, name, **more):
        operations = (f"{name}/{number}" for number in count(1))
        return RequestStatus(
            self.receiver, name, "req-1", lambda: self.now, file=self.file, operations=operations, **more
        )


@pytest.fixture
def desk():
    with Mock() as mock:
        receiver = mock.client()
        with tables(receiver, FILE):
            made = Desk(receiver)
            assert made.worker("uploader").enqueue().ok
            yield made


def lies(request):
    return Place("request-status", frozen({"requestId": {"S": request}}))


def told(one):
    return one.decision, one.reason, one.outcome


def test_a_request_from_beginning_to_end(desk):
    """A retry, a backoff and a finish under one token, then a release: each is done, and polling has stopped."""
    a = desk.worker("A")
    assert a.acquire().token == 1_000_001
    for done in (
        a.record_response("PROCESSING", "h1"), a.schedule_next_poll(30), a.renew(), a.decide_retry("retry", 64),
        a.schedule_next_poll(64, backoff=64), a.finish("SUCCEEDED", "h2"), a.release(),
    ):  # fmt: skip
        assert told(done) == ("accepted", "", "ok")
        assert done.token == 1_000_001
    item = a.look()
    assert item["apiStatus"] == {"S": "SUCCEEDED"} and item["attempt"] == {"N": "2"} and item["version"] == {"N": "9"}
    assert "nextPollAt" not in item and "leaseOwner" not in item and item["fencingToken"] == {"N": "1000001"}
    assert told(desk.worker("B").acquire()) == ("rejected", "terminal", "failed")


def test_a_worker_that_returns_changes_nothing(desk):
    """After a takeover none of the old worker's operations changes the item, and each says that a newer token is there."""
    a, b = desk.worker("A"), desk.worker("B")
    a.acquire()
    assert told(b.acquire()) == ("rejected", "held", "failed")
    desk.now += 60
    assert b.acquire().token == a.token + 1
    before = b.look()
    for late in (
        a.renew(), a.schedule_next_poll(5), a.record_response("PROCESSING", "old"), a.decide_retry("retry", 5),
        a.finish("SUCCEEDED", "old"), a.finish("FAILED", "old"), a.raise_alert("alert/old"), a.release(),
    ):  # fmt: skip
        assert told(late) == ("rejected", "newer_token", "failed")
        assert late.item == before  # the stored item comes along
    assert b.look() == before
    assert b.finish("SUCCEEDED", "new").ok


def test_refusals_are_told_apart(desk):
    """Expired, terminal, not held and newer token are four answers."""
    a = desk.worker("A")
    a.acquire()
    desk.now += 60
    assert a.renew().reason == "expired"
    assert a.finish("SUCCEEDED", "h").ok  # late, and nobody came: accepted
    assert a.finish("FAILED", "h").reason == "terminal"
    assert a.record_response("PROCESSING", "h").reason == "terminal"
    a.release()
    assert a.release().reason == "not_held"


@pytest.mark.parametrize("operation", ["acquire", "renew", "record_response", "finish", "release", "enqueue"])
def test_a_lost_reply_is_answered_by_reading_back(desk, operation):
    """An operation whose reply was lost is found in the item: a success, sent once, never guessed."""
    a = desk.worker("A")
    if operation != "acquire":
        a.acquire()
    if operation == "enqueue":
        a = RequestStatus(desk.receiver, "A", "req-2", lambda: 1000, file=FILE)
        desk.lost = [False, True]  # the second request: the one that puts the item
    else:
        desk.lost = [True]
    given = {"record_response": ("PROCESSING", "h"), "finish": ("SUCCEEDED", "h")}.get(operation, ())
    done = getattr(a, operation)(*given)

    assert told(done) == ("accepted", "found by reading back", "ok")
    assert [(m.decision, m.outcome) for m in done.messages] == [("unknown", "unknown")]
    assert operation not in ("acquire",) or (a.token, done.token) == (1_000_001, 1_000_001)


def test_a_lost_transaction_is_found_in_the_item_that_it_changed():
    """Of the items that a transaction asks and changes, the one that shows its operation is what the worker is told."""
    file = shelf.find("lease-beside-resource")
    with Mock() as mock, tables(mock.client(), file):
        receiver, lost = mock.client(), [True]
        for place, item in zip(places(file), begin(file), strict=True):
            receiver.put_item(TableName=place.table, Item=json.loads(item))
        lose_replies(receiver, lambda operation: operation == "TransactWriteItems" and lost.pop())
        a = Hold(receiver, "A", "report-7", lambda: 1000, file)
        assert [one.ok for one in a.take()] == [True]
        [done] = a.use("write")

        assert told(done) == ("accepted", "found by reading back", "ok")
        assert done.item == a.look() and done.item["itemId"] == {"S": "report#report-7"}


def test_its_own_success_is_no_theft(desk):
    """Reply and reading back both lost: the second message is refused by the first one's success, which is a success."""
    a = desk.worker("A")
    a.acquire()
    desk.lost = [True, True]  # UpdateItem, then GetItem
    done = a.finish("SUCCEEDED", "h")

    assert told(done) == ("rejected", "duplicate", "ok")
    assert [m.decision for m in done.messages] == ["unknown", "rejected"]
    assert a.look()["terminalVersion"] == {"N": "1"}


def test_an_acquire_that_was_not_heard_twice_is_found(desk):
    """An acquire that is refused by its own lease is known by its operation, and the token is learned from the item."""
    a, b = desk.worker("A"), desk.worker("B")
    desk.lost = [True, True]
    assert a.acquire().ok and a.token == 1_000_001
    assert told(b.acquire()) == ("rejected", "held", "failed")


def test_what_stays_unknown_is_unknown(desk):
    """When no reply ever comes the outcome is unknown: neither a success nor a refusal."""
    a = desk.worker("A")
    a.acquire()
    desk.lost = [True] * 9
    done = a.finish("SUCCEEDED", "h")
    desk.lost.clear()

    assert (done.outcome, done.ok, len(done.messages)) == ("unknown", False, 2)


def test_a_request_that_never_arrived_is_sent_again(desk):
    """Where reading back does not show the operation it is sent again, under the same id, and counted once."""
    a = desk.worker("A")
    a.acquire()
    fails = [True]

    def before(**_):
        if fails and fails.pop():
            raise ReadTimeoutError(endpoint_url="here")

    desk.receiver.meta.events.register("before-call.dynamodb.UpdateItem", before)
    done = a.record_response("PROCESSING", "h")
    assert told(done) == ("accepted", "", "ok") and len(done.messages) == 2
    assert a.look()["attempt"] == {"N": "1"}


def test_a_server_error_is_no_refusal(desk):
    """An ADD to a stored text is an error of its own: unknown, and nothing is concluded from it."""
    desk.receiver.put_item(TableName="request-status", Item={"requestId": {"S": "req-1"}, "fencingToken": {"S": "40"}})
    done = desk.worker("A").acquire()
    assert (done.decision, done.outcome, done.token) == ("unknown", "unknown", None)


def test_a_receiver_that_hides_the_stored_item_is_asked(desk):
    """Where a refusal brings no item along, as with dynalite, the worker reads it and tells the reason all the same."""
    a, b = desk.worker("A"), desk.worker("B")
    a.acquire()
    desk.now += 61
    b.acquire()

    def hide(http_response, parsed, **_):
        parsed.pop("Item", None)

    desk.receiver.meta.events.register("after-call.dynamodb.UpdateItem", hide)
    done = a.finish("SUCCEEDED", "h")
    assert told(done) == ("rejected", "newer_token", "failed") and done.item == b.look()


# --------------------------------------------------------------------------- alerts: neither doubled nor lost


def failed(desk):
    """A worker that has just finished a request as FAILED."""
    a = desk.worker("A")
    a.acquire()
    assert a.finish("FAILED", "h").ok
    return a


def test_send_then_record_doubles(desk):
    """A worker that crashes between sending and recording leaves an alert that the next one sends again."""
    alerts = Alerts()
    failed(desk)
    alerts.send("first/A")  # under an id of its own, and the worker is gone
    desk.now += 60
    b = desk.worker("B")
    assert "alertDue" in b.acquire().item
    alerts.send("first/B")
    assert b.raise_alert("first/B").ok
    assert len(alerts.shown) == 2


def test_record_then_send_loses(desk):
    """A worker that crashes between recording and sending leaves an alert that nobody sends any more."""
    alerts = Alerts()
    a = failed(desk)
    assert a.raise_alert("alert/req-1").ok  # and the worker is gone before it sends
    desk.now += 60
    assert told(desk.worker("B").acquire()) == ("rejected", "terminal", "failed")
    assert alerts.shown == {}


def test_due_then_sent_then_recorded_does_neither(desk):
    """Due in the step that finishes, sent under an id of the request, then recorded: shown once, and never lost."""
    alerts = Alerts()
    failed(desk)
    alerts.send("alert/req-1")  # the worker is gone before it records
    desk.now += 60
    b, c = desk.worker("B"), desk.worker("C")
    b.acquire()
    alerts.send("alert/req-1")
    assert b.raise_alert("alert/req-1").ok
    assert told(b.raise_alert("alert/req-1")) == ("rejected", "duplicate", "failed")
    b.release()
    assert told(c.acquire()) == ("rejected", "terminal", "failed")
    assert alerts.shown == {"alert/req-1": 2}


# --------------------------------------------------------------------------- clean-up


def test_clean_up_removes_only_what_is_completed(desk):
    """TTL removes a completed request after the retention, not a moment earlier, and neither an open one nor the floor."""
    a = desk.worker("A")
    a.acquire()
    RequestStatus(desk.receiver, "uploader", "req-open", lambda: 1000, file=FILE).enqueue()
    a.finish("SUCCEEDED", "h")
    every = [lies(name) for name in ("req-1", "req-open", "token-floor")]
    assert remove_expired(desk.receiver, FILE, 1000 + WEEK - 1, every) == ()
    assert remove_expired(desk.receiver, FILE, 1000 + WEEK, every) == (lies("req-1"),)
    kept = {i["requestId"]["S"] for i in desk.receiver.scan(TableName="request-status")["Items"]}
    assert kept == {"req-open", "token-floor"}


def test_a_failure_whose_alert_is_due_is_not_removed(desk):
    """A failed request stays as long as nobody raised its alert."""
    a = failed(desk)
    assert remove_expired(desk.receiver, FILE, 10**10, [lies("req-1")]) == ()
    a.raise_alert("alert/req-1")
    assert remove_expired(desk.receiver, FILE, 10**10, [lies("req-1")]) == (lies("req-1"),)


def test_the_articles_acquire_restarts_the_token():
    """Without a floor: the late worker's acquire re-creates the deleted item at token 1, and an older token is above it."""
    article = shelf.find("broken-article-acquire")
    with Mock() as mock:
        receiver = mock.client()
        with tables(receiver, article):
            receiver.put_item(
                TableName="request-status", Item={"requestId": {"S": "req-1"}, "fencingToken": {"N": "40"}}
            )
            desk = Desk(receiver, article)
            old, new, twin = desk.worker("old"), desk.worker("new"), desk.worker("new")
            assert new.acquire().token == 41
            assert new.finish("SUCCEEDED", "first").ok
            desk.now += WEEK
            assert remove_expired(receiver, article, desk.now, [lies("req-1")])
            assert old.acquire().token == 1
            item = old.look()
            assert "apiStatus" not in item  # created by a lease, from nothing
            # 41 grants later the sequence reaches the old token: under the same name it passes as current
            receiver.put_item(
                TableName="request-status",
                Item=item | {"fencingToken": {"N": "41"}, "leaseOwner": {"S": "new"}, "leaseExpiresAt": {"N": "1"}},
            )
            twin.token = 41
            assert twin.record_response("PROCESSING", "from the life before").ok


def test_the_floor_keeps_the_token_rising(desk):
    """With the floor: nobody but the uploader creates the item again, and its tokens begin above all older ones."""
    a, b = desk.worker("A"), desk.worker("B")
    first = a.acquire().token
    a.finish("SUCCEEDED", "h")
    desk.now += WEEK
    assert remove_expired(desk.receiver, FILE, desk.now, [lies("req-1")])
    assert told(b.acquire()) == ("rejected", "not_held", "failed")
    assert b.look() is None
    assert desk.worker("uploader").enqueue().ok
    assert b.acquire().token > first
    assert told(a.record_response("PROCESSING", "from the life before")) == ("rejected", "newer_token", "failed")


def test_enqueued_twice_is_one_request(desk):
    """Two cron systems that enqueue the same request create it once; the second is refused and changes nothing."""
    before = desk.worker("A").look()
    assert told(desk.worker("uploader-2").enqueue()) == ("rejected", "condition", "failed")
    assert desk.worker("A").look() == before


def test_ids_are_given_once():
    """Ids differ from each other and from those of another run of the same worker."""
    one, other = ids("A"), ids("A")
    assert len({next(one) for _ in range(50)} | {next(other) for _ in range(50)}) == 100


def test_a_file_that_does_not_say_how_an_item_comes_to_be(desk):
    """Its worker cannot create one: that is said, with the name of what is missing."""
    with pytest.raises(InputError, match="request-status.json: says not how an item comes to be; name its operations"):
        RequestStatus(desk.receiver, "A", "req-2", lambda: 1000, file=FILE._replace(creates=())).create()


def test_clean_up_goes_by_the_attribute_that_the_file_names(desk):
    """An item is removed by the attribute of `map`, where that is not `ttl`."""
    file = FILE._replace(map={**FILE.map, "ttl": "removeAt"})
    key = {"requestId": {"S": "req-3"}}
    desk.receiver.put_item(TableName="request-status", Item={**key, "removeAt": {"N": "5"}, "ttl": {"N": "99"}})

    assert remove_expired(desk.receiver, file, 4, [lies("req-3")]) == ()
    assert remove_expired(desk.receiver, file, 5, [lies("req-3")]) == (lies("req-3"),)
