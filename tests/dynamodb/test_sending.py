"""One step of a receiver: decision, reason, outcome and the items afterwards, the same whenever it is taken."""

from __future__ import annotations

import json

import pytest
from receivers import ministack

from fencinglab.dynamodb import requests, shelf
from fencinglab.dynamodb.mock import Mock, client, lose_replies
from fencinglab.dynamodb.requests import Place, begin, bind, learned, places
from fencinglab.dynamodb.sending import changed, read, send, step, tables, why
from fencinglab.errors import InputError

STATUS = shelf.find("request-status")
BESIDE = shelf.find("lease-beside-resource")
NOBODY, HELD = "nobody", "held by B"


def bound(operation="A/1", **more):
    return {"worker": "A", "token": 41, "now": 1000, "operation": operation, "value": "hash", **more}


def item(**attributes) -> tuple[str | None, ...]:
    """The request's item with these attributes (None takes one away), and no floor."""
    start = json.loads(begin(STATUS)[0]) | attributes
    return requests.frozen({name: value for name, value in start.items() if value is not None}), None


def lease(owner: str, token: int, until: int, **more) -> dict:
    return {"leaseOwner": {"S": owner}, "fencingToken": {"N": str(token)}, "leaseExpiresAt": {"N": str(until)}, **more}


@pytest.fixture(scope="module")
def receiver():
    with Mock() as mock:
        made = mock.client()
        with tables(made, STATUS), tables(made, BESIDE):
            yield made


@pytest.mark.parametrize(
    ("operation", "stored", "decision", "reason"),
    [
        ("acquire", {}, "accepted", ""),
        ("acquire", lease("B", 41, 1000), "accepted", ""),  # it runs out at the second 1000
        ("acquire", lease("B", 41, 1001), "rejected", "held"),
        ("acquire", lease("A", 41, 1001), "rejected", "held"),  # also by itself
        ("acquire", {"leaseOwner": {"S": "B"}}, "rejected", "held"),  # an owner without expiry holds for ever
        ("acquire", {"terminalVersion": {"N": "1"}, "apiStatus": {"S": "FAILED"}}, "rejected", "terminal"),
        ("acquire", {"terminalVersion": {"N": "1"}, "alertDue": {"N": "1"}}, "accepted", ""),
        ("finish", lease("A", 41, 1060), "accepted", ""),
        ("finish", lease("A", 41, 900), "accepted", ""),  # late is not stale
        ("finish", lease("B", 42, 1060), "rejected", "newer_token"),
        ("finish", lease("A", 42, 1060), "rejected", "newer_token"),  # its own newer grant
        ("finish", lease("A", 40, 1060), "rejected", "not_held"),  # an authority that was restored
        ("finish", lease("B", 41, 1060), "rejected", "not_held"),
        ("finish", {"fencingToken": {"N": "41"}}, "rejected", "not_held"),  # released
        ("finish", {"fencingToken": {"S": "a1b2"}}, "rejected", "not_held"),  # somebody else's idea of a token
        ("finish", lease("A", 41, 1060, terminalVersion={"N": "1"}), "rejected", "terminal"),
        ("finish", lease("A", 41, 1060, operationsDone={"SS": ["A/0", "A/1"]}), "rejected", "duplicate"),
        ("renew", lease("A", 41, 1001), "accepted", ""),
        ("renew", lease("A", 41, 1000), "rejected", "expired"),
        ("renew", lease("B", 42, 1000), "rejected", "newer_token"),
        ("release", lease("A", 41, 900), "accepted", ""),
        ("raise_alert", lease("A", 41, 1060, alertDue={"N": "1"}), "accepted", ""),
        ("raise_alert", lease("A", 41, 1060), "rejected", "condition"),  # none is due
        ("raise_alert", lease("A", 41, 1060, alertId={"S": "x"}), "rejected", "duplicate"),
        ("enqueue", {}, "rejected", "not_held"),  # it is there
    ],
)  # fmt: skip
def test_reasons_are_told_apart(receiver, operation, stored, decision, reason):
    """Each refusal has its reason, by the item that was stored; what is refused leaves the item as it was."""
    if operation == "enqueue":
        reason = "condition"
    items = item(**stored)
    known = bound(**learned("take_floor", {"tokenFloor": {"N": "1000000"}}))
    made = step(receiver, STATUS, items, operation, known)

    assert (made.decision, made.reason) == (decision, reason)
    assert made.outcome == {"accepted": "ok", "rejected": "failed"}[decision]
    assert (made.items == items) is (decision == "rejected")


def test_no_item_is_nobodys(receiver):
    """Whatever is sent to an item that was deleted is refused as not held, and does not bring it back."""
    for operation in ("acquire", "record_response", "finish", "release", "renew"):
        made = step(receiver, STATUS, (None, None), operation, bound())
        assert (made.decision, made.reason, made.items) == ("rejected", "not_held", (None, None))


def test_every_step_stores_who_made_it(receiver):
    """Whatever of a worker's operations is accepted raises the version and stores token, writer and operation."""
    ready = lease("A", 41, 1060)
    for operation in (
        "renew",
        "record_response",
        "schedule_next_poll",
        "decide_retry",
        "finish",
        "fail",
        "raise_alert",
        "release",
    ):
        before = item(**ready, **({"alertDue": {"N": "1"}} if operation == "raise_alert" else {}))
        after = json.loads(step(receiver, STATUS, before, operation, bound(operation)).items[0])
        assert int(after["version"]["N"]) == int(json.loads(before[0])["version"]["N"]) + 1, operation
        marks = [after[name] for name in ("writtenToken", "writtenBy", "operationId")]
        assert marks == [{"N": "41"}, {"S": "A"}, {"S": operation}]
    granted = json.loads(step(receiver, STATUS, item(), "acquire", bound("A/1")).items[0])
    assert granted["writtenToken"] == granted["fencingToken"] == {"N": "41"}


def test_ttl_stands_only_on_what_is_completed(receiver):
    """The clean-up attribute comes with success, or with the alert after a failure, one retention later; never before."""
    for operation, there in (("record_response", False), ("finish", True), ("fail", False), ("raise_alert", True)):
        due = {"alertDue": {"N": "1"}} if operation == "raise_alert" else {}
        after = json.loads(step(receiver, STATUS, item(**lease("A", 41, 1060), **due), operation, bound()).items[0])
        assert ("ttl" in after) is there, operation
        assert not there or after["ttl"] == {"N": str(1000 + 604_800)}


def test_a_step_depends_on_nothing_else(receiver):
    """The same items and the same request give the same step, whatever happened at the receiver in between."""
    first = step(receiver, STATUS, item(), "acquire", bound())
    step(receiver, STATUS, first.items, "finish", bound())

    assert step(receiver, STATUS, item(), "acquire", bound()) == first
    assert hash(first) == hash(step(receiver, STATUS, item(), "acquire", bound()))


def test_a_step_does_not_depend_on_the_token_of_a_transaction(receiver):
    """The same transaction from the same items does the same again, though the receiver would take it for a repetition."""
    write = BESIDE.operations["write"]
    told = write._replace(input={**write.input, "ClientRequestToken": "$operation"})
    file = BESIDE._replace(operations={**BESIDE.operations, "write": told})
    granted = step(receiver, file, begin(file), "acquire", bound("A/1"))
    first = step(receiver, file, granted.items, "write", bound("A/2"))

    assert first.items[0] != granted.items[0]
    assert step(receiver, file, granted.items, "write", bound("A/2")) == first


def test_a_transaction_is_one_step(receiver):
    """A transaction writes the report only while the lease beside it is the writer's; refused it changes neither."""
    where, items = places(BESIDE), begin(BESIDE)
    granted = step(receiver, BESIDE, items, "acquire", bound("A/1"))
    written = step(receiver, BESIDE, granted.items, "write", bound("A/2"))
    again = step(receiver, BESIDE, written.items, "write", bound("A/2"))
    taken = step(receiver, BESIDE, written.items, "acquire", bound("B/1", worker="B", now=1060))
    stale = step(receiver, BESIDE, taken.items, "finish", bound("A/3"))
    finished = step(receiver, BESIDE, taken.items, "finish", bound("B/2", worker="B", token=42))
    reopened = step(receiver, BESIDE, finished.items, "acquire", bound("A/4", now=2000))

    assert [place.table for place in where] == ["reports", "reports"]
    assert json.loads(written.items[0])["result"] == {"S": "hash"}
    assert written.items[1] == granted.items[1]
    assert [s.reason for s in (again, taken, stale, finished, reopened)] == [
        "duplicate",
        "",
        "newer_token",
        "",
        "terminal",
    ]
    assert stale.items == taken.items and reopened.items == finished.items


def test_what_is_no_refusal_is_unknown(receiver):
    """A server error, a type error, a throttled or unanswered request is unknown, never rejected; the item stays."""
    counted = item(fencingToken={"S": "40"})  # ADD on a text: refused by its type, not by a condition
    made = step(receiver, STATUS, counted, "acquire", bound())
    assert (made.decision, made.items) == ("unknown", counted)
    assert made.reason.startswith("ValidationException: ")


def test_a_lost_reply_is_unknown():
    """A request whose reply is lost is unknown to its sender, and stands in the item all the same."""
    with Mock() as mock:
        made = mock.client()
        with tables(made, STATUS):
            made.put_item(TableName="request-status", Item=json.loads(item()[0]))
            lose_replies(made, lambda operation: operation == "UpdateItem")
            answer = send(made, STATUS, bind(STATUS, "acquire", bound()), bound())
            [lying, _] = read(made, places(STATUS))
    assert (answer.decision, answer.outcome, answer.reason) == ("unknown", "unknown", "no reply (ReadTimeoutError)")
    assert json.loads(lying)["leaseOwner"] == {"S": "A"}


def test_why_without_a_stored_item_is_not_guessed():
    """Where a refusal brings no item along, nothing is told apart."""
    assert why(STATUS, bind(STATUS, "finish", bound()), bound(), {}) == "condition"


def test_a_receiver_that_cannot_be_used_is_said():
    """A table that is missing, or there already, or nobody at the address is one sentence, before or at the first request."""
    with Mock() as mock:
        made = mock.client()
        with pytest.raises(InputError, match="operation `acquire`: a table is missing there"):
            send(made, STATUS, bind(STATUS, "acquire", bound()), bound())
        with (
            tables(made, STATUS),
            pytest.raises(InputError, match="request-status is there already"),
            tables(made, STATUS),
        ):
            pass
        assert made.list_tables()["TableNames"] == []
    nobody = client("http://127.0.0.1:9")
    with pytest.raises(InputError, match="127.0.0.1:9 does not make request-status"), tables(nobody, STATUS):
        pass


def test_a_receiver_that_fails_in_between_is_said():
    """What fails beside a worker's request, such as the removal of a table, is a sentence that names what may be left."""
    with Mock() as mock:
        made = mock.client()
        lose_replies(made, lambda operation: operation == "DeleteTable")
        with (
            pytest.raises(InputError, match=r"^request-status.json: .* failed .*; what was made in request-status may"),
            tables(made, STATUS),
        ):
            pass


def test_places_are_the_start_and_what_else_is_touched():
    """The protected resource comes first, then what lies beside it or is touched only when items are created."""
    assert places(STATUS, {"resource": "r"}) == (
        Place("request-status", '{"requestId":{"S":"r"}}'), Place("request-status", '{"requestId":{"S":"token-floor"}}'),
    )  # fmt: skip
    assert begin(STATUS)[1] is None
    assert [json.loads(place.key)["itemId"]["S"] for place in places(BESIDE)] == ["report#report-7", "lease#report-7"]


# --------------------------------------------------------------------------- exactness of tokens

AT_38 = int("9" * 37 + "8")


def exactness(made) -> dict[str, object]:
    """What a receiver makes of large tokens, of texts, of a missing expiry."""
    table, key = "request-status", {"requestId": {"S": "x"}}

    def put(**attributes):
        made.put_item(TableName=table, Item={**key, **attributes})

    def grown(**attributes):
        put(**attributes)
        return step_of("acquire")

    def step_of(operation, **more):
        known = bound(resource="x", **more)
        answer = send(made, STATUS, bind(STATUS, operation, known), known)
        return (
            answer.reply["fencingToken"]["N"]
            if answer.reply
            else f"{answer.decision} {answer.reason.partition(':')[0]}"
        )

    def compared(stored, given):
        put(t=stored)
        try:
            made.update_item(
                TableName=table, Key=key, UpdateExpression="SET a = :t", ConditionExpression="t < :t",
                ExpressionAttributeValues={":t": given},
            )  # fmt: skip
            return "met"
        except made.exceptions.ConditionalCheckFailedException:
            return "not met"

    def stored(number):
        try:
            put(t={"N": number})
            return made.get_item(TableName=table, Key=key)["Item"]["t"]["N"]
        except made.exceptions.ClientError as error:
            return error.response["Error"]["Code"]

    found = {
        "38 digits": stored(str(AT_38)),
        "38 digits, then ADD 1": grown(fencingToken={"N": str(AT_38)}),
        "39 digits": stored("1" * 39),
        "9 < 10 as numbers": compared({"N": "9"}, {"N": "10"}),
        "9 < 10 as texts": compared({"S": "9"}, {"S": "10"}),
        "text < number": compared({"S": "9"}, {"N": "10"}),
        "ADD to a text": grown(fencingToken={"S": "9"}),
        "owner, no expiry": grown(leaseOwner={"S": "B"}, fencingToken={"N": "1"}),
    }
    put(**lease("A", AT_38, 1060))
    found["finish with 38 digits"] = step_of("finish", token=AT_38)
    put(**lease("A", AT_38, 1060))
    found["finish with one less"] = step_of("finish", token=AT_38 - 1)
    return found


def test_tokens_are_exact_on_the_mock(receiver):
    """The mock counts and compares 38 digits exactly and refuses a 39th; as texts 9 is above 10."""
    assert exactness(receiver) == {
        "38 digits": str(AT_38), "38 digits, then ADD 1": str(AT_38 + 1), "39 digits": "ValidationException",
        "9 < 10 as numbers": "met", "9 < 10 as texts": "not met", "text < number": "not met",
        "ADD to a text": "unknown ValidationException", "owner, no expiry": "rejected held",
        "finish with 38 digits": str(AT_38), "finish with one less": "rejected newer_token",
    }  # fmt: skip


def test_tokens_on_ministack():
    """ministack keeps and compares 38 digits exactly, but rounds an ADD to 28: tokens stay below 10^28 there."""
    with ministack() as url:
        made = client(url)
        with tables(made, STATUS):
            assert exactness(made) == {
                "38 digits": str(AT_38), "38 digits, then ADD 1": "1" + "0" * 38, "39 digits": "ValidationException",
                "9 < 10 as numbers": "met", "9 < 10 as texts": "not met", "text < number": "not met",
                "ADD to a text": "unknown ValidationException", "owner, no expiry": "rejected held",
                "finish with 38 digits": str(AT_38), "finish with one less": "rejected newer_token",
            }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operation", "key"),
    [
        ("request-status", "acquire", "req-8f23"),
        ("lease-beside-resource", "acquire", "lease#report-7"),
        ("lease-beside-resource", "write", "report#report-7"),  # the lease is only asked
        ("lease-beside-resource", "finish", "report#report-7"),  # the lease changes too, but not for the sake of it
    ],
)
def test_a_request_names_the_item_that_it_changes(name, operation, key):
    """Of a transaction the item that keeps the operation's id is named, not one that is only asked."""
    file = shelf.find(name)

    assert changed(file, bind(file, operation, bound())) == key
