"""Where moto answers otherwise than DynamoDB, the mock answers as DynamoDB does."""

from __future__ import annotations

import json

import pytest
from receivers import acquire, ministack, table

from fencinglab.dynamodb import expression
from fencinglab.dynamodb.fidelity import kept
from fencinglab.dynamodb.mock import Mock, client

TABLE, KEY = "request-status", {"requestId": {"S": "req"}}
ITEM = {
    "words": {"S": "5"}, "amount": {"N": "5"}, "truth": {"BOOL": True}, "untruth": {"BOOL": False}, "hollow": {"NULL": True},
    "letters": {"SS": ["a", "b"]},
}  # fmt: skip
VALUES = {":0": {"N": "0"}, ":1": {"N": "1"}, ":5": {"N": "5"}, ":9": {"N": "9"}, ":null": {"NULL": True}}
MET = {  # condition -> whether that item meets it
    "words > :1": False, "words <= :9": False, "words BETWEEN :1 AND :9": False, "NOT words > :1": True,
    "words = :5": False, "words <> :5": True, "amount BETWEEN :1 AND :9": True, "amount IN (:1, :5)": True,
    "truth = :1": False, "untruth = :0": False, "truth <> :1": True, "truth > :0": False, "truth BETWEEN :0 AND :5": False,
    "truth IN (:1)": False, "amount IN (:1)": False,
    "unwritten = :null": False, "unwritten <> :null": True, "unwritten IN (:null)": False, "hollow = :null": True,
    "unwritten < :1": False, "NOT unwritten < :1": True, "unwritten <> :1": True, "unwritten BETWEEN :1 AND :9": False,
    "size(words) = :1": True, "size(letters) > :1": True, "size(letters) BETWEEN :1 AND :9": True, ":9 > size(letters)": True,
    "size(unwritten) > :0": False, "NOT size(unwritten) > :0": True, "size(unwritten) <> :1": True,
    "size(amount) > :0": False, "size(truth) > :0": False, "size(unwritten) IN (:0)": False,
}  # fmt: skip


@pytest.mark.parametrize(("condition", "met"), MET.items())
def test_conditions(condition, met):
    """Values of two types are never equal nor in order, NULL is not what is missing, and only what has a size is measured."""
    assert expression.fails(condition, {}, VALUES, ITEM) is not met


def test_conditions_on_ministack():
    """A receiver that shares no code with the mock judges each of these conditions as it does."""
    with ministack() as url:
        receiver = client(url)
        table(receiver)
        receiver.put_item(TableName=TABLE, Item=KEY | ITEM)

        def meets(condition):
            try:
                receiver.update_item(
                    TableName=TABLE, Key=KEY, UpdateExpression="SET seen = :5", ConditionExpression=condition,
                    ExpressionAttributeValues={name: v for name, v in VALUES.items() if name in condition + " :5"},
                )  # fmt: skip
            except receiver.exceptions.ConditionalCheckFailedException:
                return False
            return True

        assert {condition: meets(condition) for condition in MET} == MET


@pytest.mark.parametrize(
    "update", ["SET leaseOwner = :a ADD fencingToken :a", "SET leaseOwner = :a ADD leaseOwner.inner :one"]
)
@pytest.mark.parametrize("item", [{**KEY, "fencingToken": {"S": "40"}}, None], ids=["an item", "no item"])
def test_a_refused_update_changes_nothing(update, item):
    """Of an update that is refused for its last action the first is not done either: no lease, no item, no record."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        if item:
            receiver.put_item(TableName=TABLE, Item=item)
        values = {":a": {"S": "A"}, ":one": {"N": "1"}}
        with pytest.raises(receiver.exceptions.ClientError, match="ValidationException"):
            receiver.update_item(
                TableName=TABLE, Key=KEY, UpdateExpression=update,
                ExpressionAttributeValues={name: value for name, value in values.items() if name in update},
            )  # fmt: skip
        assert receiver.get_item(TableName=TABLE, Key=KEY).get("Item") == item
        assert len(streamed(mock)) == bool(item)


def test_an_update_without_an_expression_is_taken():
    """It makes an item that is only its key, and changes none that is there."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        for _ in range(2):
            receiver.update_item(TableName=TABLE, Key=KEY)
        assert receiver.get_item(TableName=TABLE, Key=KEY)["Item"] == KEY
        assert [record["eventName"] for record in streamed(mock)] == ["INSERT"]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ({"N": "042.50"}, {"N": "42.5"}),
        ({"N": "1E3"}, {"N": "1000"}),
        ({"N": "-0.0"}, {"N": "0"}),
        ({"N": "+" + "9" * 38}, {"N": "9" * 38}),
        ({"NS": ["2.0", "01"]}, {"NS": ["2", "1"]}),
        ({"S": "042"}, {"S": "042"}),
        ({"N": {"S": "042"}}, {"N": {"S": "042"}}),  # a map with an attribute of that name
    ],
)
def test_numbers_are_kept(written, stored):
    """A number is stored without a sign or zeros that say nothing; a text stays."""
    assert kept(written) == stored


@pytest.mark.parametrize("number", ["1" * 39, "0." + "1" * 39, "1E126", "1E-131", "abc", "1_0", "NaN", ""])
def test_a_number_that_dynamodb_refuses_is_refused(number):
    """More than 38 digits, too large, too small or none at all: the request is refused and stores nothing."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        with pytest.raises(receiver.exceptions.ClientError, match=r"ValidationException.* at most 38 digits"):
            receiver.put_item(TableName=TABLE, Item={**KEY, "fencingToken": {"N": number}})
        assert receiver.scan(TableName=TABLE)["Items"] == []


def test_a_transaction_with_a_token_is_done_once():
    """The same transaction again is answered and not done; another one under its token is refused; a failed one leaves it free."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)

        def add(by, **more):
            update = {
                "TableName": TABLE, "Key": KEY, "UpdateExpression": "ADD fencingToken :by",
                "ExpressionAttributeValues": {":by": {"N": by}}, **more,
            }  # fmt: skip
            receiver.transact_write_items(TransactItems=[{"Update": update}], ClientRequestToken="token-1")

        with pytest.raises(receiver.exceptions.TransactionCanceledException):
            add("1", ConditionExpression="attribute_exists(requestId)")
        add("1")
        add("1")
        with pytest.raises(receiver.exceptions.IdempotentParameterMismatchException):
            add("2")
        assert receiver.get_item(TableName=TABLE, Key=KEY)["Item"]["fencingToken"] == {"N": "1"}


def streamed(mock):
    """The records of the only stream of a mock."""
    streams = mock.client("dynamodbstreams")
    arn = streams.list_streams()["Streams"][0]["StreamArn"]
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    begin = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    return streams.get_records(ShardIterator=begin["ShardIterator"])["Records"]


def test_streams_show_each_change():
    """The stream of a table has one record for each change of an item that was put before, with both images."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        receiver.put_item(TableName=TABLE, Item={"requestId": {"S": "req"}})
        acquire(receiver, "req", "A", 100)
        records = streamed(mock)
    assert [r["eventName"] for r in records] == ["INSERT", "MODIFY"]
    assert records[1]["dynamodb"]["OldImage"] == {"requestId": {"S": "req"}}
    assert json.dumps(records[1]["dynamodb"]["NewImage"]["fencingToken"]) == '{"N": "1"}'


def test_an_update_that_makes_an_item_is_one_record():
    """An item that comes to be by an update, alone or in a transaction, leaves one record with all that it holds."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        request = {
            "TableName": TABLE, "UpdateExpression": "SET leaseOwner = :a",
            "ExpressionAttributeValues": {":a": {"S": "A"}},
        }  # fmt: skip
        for key in ("alone", "together"):
            one = {**request, "Key": {"requestId": {"S": key}}}
            if key == "together":
                receiver.transact_write_items(TransactItems=[{"Update": one}])
            else:
                receiver.update_item(**one)
        records = streamed(mock)
    assert [(r["eventName"], len(r["dynamodb"]["NewImage"])) for r in records] == [("INSERT", 2), ("INSERT", 2)]
    assert len({r["dynamodb"]["SequenceNumber"] for r in records}) == 2


def test_what_changes_nothing_is_not_recorded():
    """A put or an update, alone or in a transaction, that leaves an item as it was leaves no record in the stream."""
    item = {**KEY, "leaseOwner": {"S": "A"}, "done": {"SS": ["a", "b"]}}
    same = {
        "TableName": TABLE, "Key": KEY, "UpdateExpression": "SET leaseOwner = :a ADD done :done",
        "ExpressionAttributeValues": {":a": {"S": "A"}, ":done": {"SS": ["b"]}},
    }  # fmt: skip
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        receiver.put_item(TableName=TABLE, Item=item)
        receiver.put_item(TableName=TABLE, Item=item)
        receiver.update_item(**same)
        receiver.transact_write_items(TransactItems=[{"Update": same}])
        assert len(streamed(mock)) == 1
