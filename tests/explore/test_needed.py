"""Without a condition something breaks, or it is redundant within the bounds of the search."""

from __future__ import annotations

import claims
from teams import example

from fencinglab.check import told
from fencinglab.check.check import check
from fencinglab.dynamodb import shelf
from fencinglab.explore.needed import needed


def test_a_condition_is_needed_or_the_file_says_that_it_is_not():
    """Without any single condition of a good file something breaks, unless the file calls it redundant; and all that it calls so are."""
    file = shelf.find("late-render")
    found = check(file, most=100_000, conditions=True)

    assert len(found.needed) == 15 and {bool(need.breaks) for need in found.needed} == {True, False}
    assert [*claims.undeclared(found.needed, file.claims.redundant)] == []
    assert len([*claims.undeclared(found.needed, ())]) == len(file.claims.redundant) == 14


def test_why_each_condition_is_there():
    """With one worker nobody can be stale: a condition on the owner is redundant there, one on the token guards nothing more."""
    found = check(shelf.find("broken-finish-twice"), workers=1, conditions=True, most=100_000)
    text = told.why(found.needed)

    assert {need.operation for need in found.needed} == {"acquire", "record_response", "finish"}
    assert "leaseOwner = :worker: redundant within these bounds" in text
    assert told.ALONE in " ".join(text.split())  # or all that stand in for each other would be taken for needless
    assert any(need.breaks for need in found.needed)
    assert "✕ NOT contains(operationsDone, :operation): without it it can be finished twice" in text


def test_a_condition_that_keeps_a_second_grant_out_is_needed():
    """What was never put to the test breaks without the only condition that left it so: that is not redundant."""

    def once(raw):
        acquire, save = (raw["operations"][name]["update-item"] for name in ("acquire", "save"))
        acquire["ConditionExpression"] = "attribute_not_exists(leaseOwner)"
        save["ConditionExpression"] = "attribute_exists(jobId)"
        del acquire["ExpressionAttributeValues"][":now"]

    found = check(example(once), most=100_000, conditions=True)
    [first, *_] = found.needed

    assert found.answer.of("ownership").status == "empty"
    assert first.condition == "attribute_not_exists(leaseOwner)" and "ownership" in first.breaks


def test_beside_a_search_that_stopped_no_condition_is_redundant():
    """Where the search with all conditions did not see every state, it is not searched without one, and that is said."""
    answer = check(shelf.find("broken-finish-twice"), workers=1, most=100_000).answer
    found = needed(answer.model, answer._replace(stopped="stopped early"), most=100_000)

    assert {told.without(need) for need in found} == {"not decided: stopped early"}


def test_each_condition_is_taken_away_once():
    """A condition of an operation that the program uses twice is one condition, and one search."""
    twice = example(lambda raw: raw["program"].insert(2, "save"))
    found = check(twice, workers=1, most=100_000, conditions=True).needed

    assert [(need.operation, need.condition) for need in found if need.operation == "save"] == [
        ("save", "fencingToken = :token"), ("save", "leaseOwner = :worker"),
        ("save", "attribute_not_exists(terminalVersion)"),
    ]  # fmt: skip
