"""What is shown is found again in the files, with its line and its place in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import worlds

from fencinglab.logs.places import find

RECORDS = worlds.jobs()[:4]
ONE, TWO, THREE, FOUR = RECORDS


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


EVENT = {"Records": RECORDS}
SNS = {"Type": "Notification", "Message": dumps(EVENT), "MessageId": "m"}


@pytest.fixture
def written(tmp_path):
    """Write a file and give its path."""

    def write(text):
        path = tmp_path / "log.json"
        path.write_bytes(text.encode())
        return path

    return write


def test_records_are_found_by_their_ids(written):
    """An event id, or a sequence number where there is none, gives line and index; the order of names does not matter."""
    late = {"awsRegion": "x", "dynamodb": TWO["dynamodb"], "eventID": TWO["eventID"]}  # as boto3 sorts them
    bare = {"dynamodb": THREE["dynamodb"]}
    path = written(f"\n{dumps(ONE)}\n{dumps({'Records': [FOUR, late]})}\n[{dumps(bare)}]\n")
    sequence = THREE["dynamodb"]["SequenceNumber"]
    found = find(path, {ONE["eventID"], TWO["eventID"], FOUR["eventID"], sequence, "nowhere"}, raw=True)

    assert {name: place[:2] for name, place in found.items()} == {
        ONE["eventID"]: (2, ""), FOUR["eventID"]: (3, "#1"), TWO["eventID"]: (3, "#2"), sequence: (4, ""),
    }  # fmt: skip
    assert found[ONE["eventID"]][2].decode().strip() == dumps(ONE)


def test_records_inside_texts_are_found(written):
    """A record in a message in a queue is found although its quotes are escaped, once or several times."""
    path = written(dumps({"Messages": [{"Body": dumps(SNS)}]}) + "\n" + dumps({"Body": dumps(EVENT)}) + "\n")

    assert find(path, {TWO["eventID"]})[TWO["eventID"]][:2] == (1, "#2")


def test_attributes_called_like_ids_do_not_confuse(written):
    """An attribute `eventID` of an item is not taken for the record's."""
    one = json.loads(dumps(ONE))
    one["dynamodb"]["NewImage"] = {"eventID": {"S": TWO["eventID"]}, "SequenceNumber": {"N": "5"}}

    assert find(written(dumps([one, TWO])), {TWO["eventID"]})[TWO["eventID"]][:2] == (1, "#2")
