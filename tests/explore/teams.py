"""Request files for tests: one that comes with fencinglab, the example, or a lease apart from its job, each changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fencinglab.check import files
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.dynamodb.requests import Requests

Change = Callable[[dict[str, Any]], Any]  # of a file as it stands, in place


def changed(name: str, change: Change) -> Requests:
    """A request file that comes with the package, changed."""
    return _parsed(shelf.source(name)[0], change, f"{name}.json")


def example(change: Change) -> Requests:
    """The file to start from, changed."""
    return _parsed(files.example(), change, "mine.json")


def _parsed(text: str, change: Change, name: str) -> Requests:
    raw = json.loads(text)
    change(raw)
    return parse(json.dumps(raw), name)


def mine(change: Change = lambda raw: None) -> Requests:
    """A job in one item and its lease in another: each write is a transaction that asks the lease for the token."""
    raw = {
        "table": {
            "TableName": "jobs", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        },
        "start": {"id": "job", "stage": "NEW"},
        "program": ["acquire", "save", "complete"],
        "map": {"token": "fence", "holder": "holder", "expires_at": "expiry", "status": "stage", "value": "kept"},
        "terminal": ["DONE"],
        "given": {"lease": 60},
        "operations": {
            "acquire": {"kind": "grant", "update-item": {
                "TableName": "jobs", "Key": {"id": "lease"}, "ReturnValues": "ALL_NEW",
                "UpdateExpression": "SET holder = :worker, expiry = :expiry ADD fence :one",
                "ConditionExpression": "attribute_not_exists(holder) OR expiry < :now",
                "ExpressionAttributeValues": {":worker": "$worker", ":expiry": "$expiry", ":now": "$now", ":one": 1},
            }},
            "save": _write("kept = :value"),
            "complete": {"kind": "finish", **_write("kept = :value, stage = :done")},
        },
    }  # fmt: skip
    change(raw)
    return parse(json.dumps(raw), "mine.json")


def _write(sets: str) -> dict[str, Any]:
    held = {
        "TableName": "jobs", "Key": {"id": "lease"}, "ConditionExpression": "fence = :token",
        "ExpressionAttributeValues": {":token": "$token"},
    }  # fmt: skip
    done = {
        "TableName": "jobs", "Key": {"id": "job"}, "UpdateExpression": f"SET {sets}",
        "ConditionExpression": "stage <> :done", "ExpressionAttributeValues": {":value": "$value", ":done": "DONE"},
    }  # fmt: skip
    return {"transact-write-items": {"TransactItems": [{"ConditionCheck": held}, {"Update": done}]}}
