"""A request asks less, and nothing else of it changes."""

from __future__ import annotations

from fencinglab.explore.weaker import without


def test_a_condition_is_taken_out_with_what_only_it_used():
    """Without a condition the rest of the request is as it was; a value that nothing uses any more is gone."""
    given = {
        "UpdateExpression": "SET a = :a",
        "ConditionExpression": "#o = :o AND b = :a",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":a": {"N": "1"}, ":o": {"S": "A"}},
    }

    assert without(given, "#o = :o") == {
        "UpdateExpression": "SET a = :a",
        "ConditionExpression": "b = :a",
        "ExpressionAttributeValues": {":a": {"N": "1"}},
    }
    assert without(without(given, "#o = :o"), "b = :a") == {
        "UpdateExpression": "SET a = :a",
        "ExpressionAttributeValues": {":a": {"N": "1"}},
    }
    assert without(given, "c = :c") == given
