"""A request sent to a receiver: its decision, what the sender learns, and when it is refused why.

`step` is one transition of the world: known items, one request, the items afterwards. It depends on nothing else, so an
explorer may remember it by the items and the text of the request. Only a failed condition counts as a refusal: a server
error, a type error or a throttled request says nothing about the item, and is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fencinglab.dynamodb.mock import Mock
from fencinglab.dynamodb.placeholders import Bindings
from fencinglab.dynamodb.requests import (
    ACTIONS,
    Item,
    Items,
    Operation,
    Place,
    Request,
    Requests,
    begin,
    bind,
    each,
    entries,
    frozen,
    key_in,
    places,
    singles_sent,
)
from fencinglab.errors import InputError

CONDITION_FAILED = "ConditionalCheckFailed"
UNUSABLE = {  # no answer to any request will be another one
    "ResourceNotFoundException": "a table is missing there",
    "UnrecognizedClientException": "its credentials are not accepted there",
    "AccessDeniedException": "these credentials may not do that",
    "ExpiredTokenException": "the credentials have run out",
}


class Answer(NamedTuple):
    """What came of one request."""

    decision: str  # of the history's decisions
    reason: str  # why it was refused, or what went wrong; empty where it was accepted
    outcome: str  # of the history's outcomes: what the sender learned
    reply: Item | None = None  # the attributes of the reply
    stored: Item | None = None  # with a refusal: the first item that failed its condition, where it came along


class Step(NamedTuple):
    """One transition: the items afterwards, and what came of the request. Everything is text, so it compares."""

    items: Items
    decision: str
    reason: str
    outcome: str
    reply: str | None  # the attributes of the reply, frozen


def send(client: Any, file: Requests, request: Request, bindings: Bindings) -> Answer:
    """Send one request and say what came of it; InputError where the receiver cannot be used at all."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        reply = getattr(client, ACTIONS[request.action])(**request.input)
    except ClientError as error:
        return _refused(file, request, bindings, error.response)
    except BotoCoreError as error:
        return Answer("unknown", f"no reply ({type(error).__name__})", "unknown")
    return Answer("accepted", "", "ok", reply.get("Attributes", reply.get("Item")))


def step(client: Any, file: Requests, items: Items, operation: str, bindings: Bindings) -> Step:
    """What the operation makes of the items: those that it touches are put there, it is sent, they are read back.

    `items` lie in `places(file, bindings)`. The receiver's tables must be there (`tables`), and nobody else may write.
    It is sent without its ClientRequestToken: a receiver forgets that after ten minutes, and a message may take longer.
    """
    where = places(file, bindings)
    request = _without_token(bind(file, operation, bindings))
    touched = [single.place for single in singles_sent(file, request)]
    lying = {place: item for place, item in zip(where, items, strict=True) if place in touched}
    for place, item in lying.items():
        if item is None:
            client.delete_item(TableName=place.table, Key=json.loads(place.key))
        else:
            client.put_item(TableName=place.table, Item=json.loads(item))
    answer = send(client, file, request, bindings)
    reason = answer.reason
    if answer.decision == "rejected":  # by what is known to lie there, also where the receiver does not say
        stored = {number: json.loads(lying[place] or "{}") for number, place in enumerate(touched)}
        reason = why(file, request, bindings, stored)
    now = dict(zip(lying, read(client, tuple(lying)), strict=True))
    reply = None if answer.reply is None else frozen(answer.reply)
    after = tuple(now.get(place, item) for place, item in zip(where, items, strict=True))
    return Step(after, answer.decision, reason, answer.outcome, reply)


def read(client: Any, where: Sequence[Place]) -> Items:
    """The items as they lie there now."""
    found = (client.get_item(TableName=p.table, Key=json.loads(p.key), ConsistentRead=True).get("Item") for p in where)
    return tuple(None if item is None else frozen(item) for item in found)


def changed(file: Requests, request: Request) -> str:
    """The key of the item that a request changes: its values, `|` between.

    Of a transaction that is the first that keeps the id of the operation, else the first.
    """
    changes = [one for what, one in entries(request.input) if what != "ConditionCheck"]
    kept = file.map.get("operation")
    one = next((one for one in changes if kept and kept in json.dumps(one)), changes[0])
    key = key_in(file, one)
    return "|".join(str(next(iter(key[name].values()))) for name in sorted(key))


def why(file: Requests, request: Request, bindings: Bindings, stored: Mapping[int, Item]) -> str:
    """Why the conditions failed: by the attributes of those parts of a condition that the stored item does not meet.

    `stored` are the items (empty: there is none) of its single requests, by their number; an operation other than a
    transaction has the number 0. The first of terminal, held, not_held (acquiring) or duplicate, newer_token, not_held,
    terminal, expired (otherwise); `condition` where none of these explains it.
    """
    grant = file.operations[request.operation].kind == "grant"
    found: set[str] = set()
    for number, single in enumerate(singles_sent(file, request)):
        if (item := stored.get(number)) is not None:
            for part in single.unmet(item):
                found |= {*_causes(file, bindings, item, single.looked_at(part), grant)}
    order = (
        ("terminal", "held", "not_held") if grant else ("duplicate", "newer_token", "not_held", "terminal", "expired")
    )
    return next((cause for cause in order if cause in found), "condition")


def unmet(file: Requests, operation: str, items: Items, text: str) -> set[str]:
    """The parts of its conditions that the operation, sent as this text, finds unmet by these items of the file."""
    lying = dict(zip(places(file), items, strict=True))
    request = Request(operation, file.operations[operation].action, text)
    return {
        part for single in singles_sent(file, request) for part in single.unmet(json.loads(lying[single.place] or "{}"))
    }


def members(value: Any) -> Sequence[Any]:
    """The contents of an attribute's value: those of a set or a list, else the one."""
    content = _content(value)
    return content if isinstance(content, list) else [content]


@contextmanager
def tables(client: Any, file: Requests, streams: bool = True) -> Iterator[None]:
    """The file's tables made at the receiver and removed at the end; one that is there is an InputError.

    Without streams moto does not copy all that ever happened with every transaction that fails.
    """
    made = []
    with answering(client, file):
        try:
            for table in file.tables:
                _create(client, table, file.name, streams)
                made.append(table["TableName"])
            for name in made:
                client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
            yield
        finally:
            for name in made:
                client.delete_table(TableName=name)


@contextmanager
def answering(client: Any, file: Requests) -> Iterator[None]:
    """A block in which a receiver that fails, other than by refusing a worker's request, is an InputError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        names = ", ".join(table["TableName"] for table in file.tables)
        raise InputError(
            f"{file.name}: {client.meta.endpoint_url} failed ({error}); what was made in {names} may be left there"
        ) from None


def refused(file: Requests) -> None:
    """Raise InputError, naming the operation, for the first request that DynamoDB would refuse whatever lies there.

    Asks a mock of its own, with the items of `start`: reserved words, overlapping paths, syntax, changed keys. Each
    condition is made true there, since a request whose condition fails is not looked at any further.
    """
    with Mock() as mock:
        client = mock.client()
        with tables(client, file):
            known = _any(file, {"now": 0})
            for name, operation in file.operations.items():
                willing = file._replace(operations={**file.operations, name: _willing(file, operation)})
                fault = step(client, willing, begin(file), name, known).reason
                kind, _, message = fault.partition(": ")
                wrong = kind == "ValidationException" or "ValidationError" in message
                if wrong or message.startswith(("KeyError", "ValueError", "IndexError")):
                    raise InputError(f"{file.name}: operation `{name}` would be refused: {message}")


# --------------------------------------------------------------------------- what lies behind


def _refused(file: Requests, request: Request, bindings: Bindings, response: dict[str, Any]) -> Answer:
    error = response.get("Error", {})
    code, message = error.get("Code", ""), error.get("Message") or response.get("message", "")
    if code in UNUSABLE:
        raise InputError(f"operation `{request.operation}`: {UNUSABLE[code]} ({code}: {message})")
    failed = code == CONDITION_FAILED + "Exception"
    causes = [response] if failed else response.get("CancellationReasons", [])
    stored: dict[int, Item] = {n: cause["Item"] for n, cause in enumerate(causes) if cause.get("Item")}
    if not failed and CONDITION_FAILED not in [cause.get("Code") for cause in causes]:
        return Answer("unknown", f"{code}: {message}", "unknown")
    reason = why(file, request, bindings, stored)
    return Answer("rejected", reason, "failed", stored=next(iter(stored.values()), None))


def _without_token(request: Request) -> Request:
    if '"ClientRequestToken"' not in request.text:
        return request
    kept = {name: value for name, value in request.input.items() if name != "ClientRequestToken"}
    return request._replace(text=frozen(kept))


def _causes(file: Requests, bindings: Bindings, item: Item, looked_at: set[str], grant: bool) -> Iterator[str]:
    """What the attributes of a part that the item does not meet say, each in a word."""
    columns = {column for column, attribute in file.map.items() if attribute in looked_at}
    held = _content(item.get(file.map.get("token", "")))
    if "token" in columns and bindings.get("token") is not None:
        yield "newer_token" if str(held).isdecimal() and int(held) > int(bindings["token"]) else "not_held"
    if "holder" in columns or not item:
        yield "held" if grant and item else "not_held"
    if "expires_at" in columns:
        yield "held" if grant else "expired"
    if columns & {"status", "terminal_version"} and _content(item.get(file.map.get("status", ""))) in file.terminal:
        yield "terminal"
    if "terminal_version" in columns and file.map["terminal_version"] in item:
        yield "terminal"
    if any(bindings.get("operation") in members(item.get(attribute)) for attribute in looked_at):
        yield "duplicate"
    if "alert" in columns and file.map["alert"] in item:
        yield "duplicate"


def _content(value: Any) -> Any:
    return None if value is None else next(iter(value.values()))


def _willing(file: Requests, operation: Operation) -> Operation:
    """The operation with conditions that are true and still read whole."""

    def true(one: dict[str, Any]) -> dict[str, Any]:
        [key, *_] = key_in(file, one)
        condition = one.get("ConditionExpression", f"attribute_exists({key})")
        return one | {"ConditionExpression": f"attribute_exists({key}) OR attribute_not_exists({key}) OR ({condition})"}

    return operation if operation.action == "get-item" else operation._replace(input=each(operation.input, true))


def _any(file: Requests, known: Bindings) -> dict[str, Any]:
    """Bindings for a request whose answer does not matter."""
    made: dict[str, Any] = {"worker": "A", "token": 1, "operation": "A/1", "value": "a", **known}
    return {name: {"N": "1"} for name in file.replies} | made


def _create(client: Any, table: dict[str, Any], name: str, streams: bool) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    stream = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
    try:
        client.create_table(**{"BillingMode": "PAY_PER_REQUEST", **(stream if streams else {}), **table})
    except client.exceptions.ResourceInUseException:
        raise InputError(f"{name}: the table {table['TableName']} is there already, and is not touched") from None
    except (BotoCoreError, ClientError) as error:
        raise InputError(f"{name}: {client.meta.endpoint_url} does not make {table['TableName']}: {error}") from None
