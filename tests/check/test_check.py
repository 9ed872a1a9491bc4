"""A request file that a search could say nothing of is refused in one sentence, not passed."""

from __future__ import annotations

import json

import pytest
from teams import changed, example, mine

from fencinglab.check import files, page, told
from fencinglab.check.check import check
from fencinglab.errors import InputError
from fencinglab.explore.hazards import Hazard


def test_nobody_can_ever_acquire():
    """A condition that is never true is found by the search and said in one sentence."""

    def never(raw):
        raw["operations"]["acquire"]["update-item"]["ConditionExpression"] += " AND attribute_not_exists(requestId)"

    with pytest.raises(
        InputError,
        match=r"nobody can ever acquire: `attribute_not_exists\(requestId\)` of `acquire` is never true here",
    ):
        check(changed("broken-unconditional", never), most=1_000)


def test_an_optional_operation_that_is_never_carried_out_is_told():
    """A release behind a finish that ends the lease, and a write that needs a reply which nobody gets, stop nobody."""

    def idle(raw):
        raw["program"].remove("give_up?")
        del raw["operations"]["give_up"]
        complete = raw["operations"]["complete"]["update-item"]
        for name, kind, condition in (("release", "release", "leaseOwner = :w"), ("extra", "write", "version > :w")):
            raw["program"].append(f"{name}?")
            raw["operations"][name] = {"kind": kind, "update-item": {
                "TableName": complete["TableName"], "Key": complete["Key"],
                "UpdateExpression": "REMOVE leaseExpiresAt", "ConditionExpression": condition,
                "ExpressionAttributeValues": {":w": "$worker" if name == "release" else "$release.noSuch"},
            }}  # fmt: skip

    found = check(changed("late-render", idle), workers=1, hazards=[Hazard("release")], most=100_000)

    assert found.idle == (
        "operation `release` can never be accepted: `leaseOwner = :w` of `release` is never true here",
        "operation `extra` is never sent: no worker ever learns $release.noSuch",
    )
    assert found.answer.of("can-finish").status == "holds"
    assert "Never carried out: operation `release` can never be accepted" in told.asked(found)
    assert "Never carried out: operation <code>release</code> can never be accepted" in page.html(found)
    assert json.loads(files.contents(found)["check.json"])["never_carried_out"] == [*found.idle]


def test_an_operation_that_no_worker_comes_to():
    """Behind a read that never shows what is expected all is silent; that is said, and not that a token is lacking."""

    def looked(raw):
        key = raw["operations"]["save"]["update-item"]["Key"]
        look = {"kind": "read", "get-item": {"TableName": "jobs", "Key": key}, "expects": {"jobStatus": "NEVER"}}
        raw["operations"]["look"], raw["program"][2:2] = look, ["look"]

    with pytest.raises(InputError, match="operation `save` is never sent: no worker ever comes to it"):
        check(example(looked), workers=1, most=100_000)


def test_an_operation_that_can_never_be_accepted():
    """So is the condition of any other operation, such as one on an attribute that nothing ever writes."""

    def never(raw):
        finish = raw["operations"]["finish"]["update-item"]
        finish["ConditionExpression"] = "attribute_exists(requestId) AND fence = :token"

    with pytest.raises(InputError, match="operation `finish` can never be accepted: `fence = :token` of `finish`"):
        check(changed("broken-unconditional", never), most=100_000)


@pytest.mark.parametrize(
    ("sets", "condition", "value", "why"),
    [
        ("n = :v", "version > :v", {"S": "0"}, "`version > :v` of `finish` is never true here"),
        ("n = hint + :v", "attribute_exists(requestId)", {"N": "1"}, "ValidationException: The provided expression"),
    ],
)
def test_what_a_receiver_never_decides_is_no_pass(sets, condition, value, why):
    """A finish that compares a number with a text, or counts on what each grant removes, is told, not taken as refused."""

    def undecided(raw):
        raw["start"]["hint"] = 1
        raw["operations"]["acquire"]["update-item"]["UpdateExpression"] += " REMOVE hint"
        finish = raw["operations"]["finish"]["update-item"]
        finish["UpdateExpression"] = finish["UpdateExpression"].replace("SET ", f"SET {sets}, ", 1)
        finish["ConditionExpression"] = condition
        finish["ExpressionAttributeValues"][":v"] = value

    with pytest.raises(InputError, match=f"operation `finish` can never be accepted: {why}"):
        check(changed("broken-unconditional", undecided), most=100_000)


@pytest.mark.parametrize(("column", "attribute"), [("expires_at", "expiries"), ("holder", "lease.holder")])
def test_a_column_is_looked_up_where_something_stands(column, attribute):
    """A slip in `map`, or a path into an attribute, is refused with the nearest: without it nothing could be seen."""
    file = mine(lambda raw: raw["map"].update({column: attribute}))

    with pytest.raises(InputError, match=f"`map` has `{attribute}` for {column}, and no request ever stores it"):
        check(file, most=100_000)


@pytest.mark.parametrize(
    ("part", "one", "near"),
    [("holds", "ownerships", "ownership"), ("breaks", "orders", "order"), ("hazards", "crashes", "crash")],
)
def test_a_claim_is_about_something_that_there_is(part, one, near):
    """An invariant or a hazard that there is not is refused with the nearest, not passed over."""
    file = mine(lambda raw: raw.update(claims={part: [one]}))

    with pytest.raises(InputError, match=rf"`claims`: `{part}` has no `{one}` \(nearest: `{near}`; allowed: "):
        check(file, most=1_000)
