"""What stands in the items: which clean-up may remove, whether a lease runs, and what must be a number."""

from __future__ import annotations

import json

import pytest
from teams import mine

from fencinglab.check import told
from fencinglab.check.check import check
from fencinglab.errors import InputError
from fencinglab.explore import recorded, telling
from fencinglab.explore.hazards import Hazard

TTL = [Hazard("ttl")]


@pytest.mark.parametrize("mapped", [{}, {"ttl": "expiry"}])
def test_clean_up_deletes_a_lease_that_lies_in_an_item_of_its_own(mapped):
    """The token counter goes with it and begins again, so a stale write has the token of the newer grant."""
    file = mine(lambda raw: raw["map"].update(mapped))
    safe, found = check(file, most=100_000).answer, check(file, hazards=TTL, most=100_000).answer
    run = found.of("order").run
    [deleted] = [place for place, step in enumerate(run) if step.act == "delete"]
    told_run = telling.broken(found, "order")

    assert told.headline(safe).startswith("Holds: ")
    assert [found.of(name).status for name in ("order", "ownership")] == ["violated"] * 2
    assert any(line.says == "clean-up deletes the item id lease" for line in told_run.lines)
    assert "that clean-up deletes another item than the protected one" in told_run.unsaid
    assert "ttl_delete" not in {row["kind"] for row in recorded.rows(found.model, run)}
    assert run[deleted].number == 1


def test_clean_up_removes_what_carries_its_time():
    """Where `map` names the attribute of the clean-up, an item without it stays, and one with it goes."""

    def kept(raw):
        raw["map"]["ttl"] = "removeAt"

    def removed(raw):
        kept(raw)
        raw["start"]["removeAt"] = "$now"

    never, goes = (check(mine(change), workers=1, hazards=TTL, most=100_000).answer for change in (kept, removed))

    assert (never.states, goes.states) == (check(mine(), workers=1, most=100_000).answer.states, goes.states)
    assert goes.states > never.states


@pytest.mark.parametrize("holder", ["$operation", None])
def test_a_lease_runs_whoever_is_named_as_its_holder(holder):
    """With a random id as its holder, or none, a lease runs out like any other: a write before that is not late."""

    def other(raw):
        if holder is None:
            del raw["map"]["holder"]
        else:
            raw["operations"]["acquire"]["update-item"]["ExpressionAttributeValues"][":worker"] = holder

    plain, found = (check(mine(change), most=100_000).answer for change in (lambda raw: None, other))

    assert [(v.status, v.length) for v in found.verdicts] == [(v.status, v.length) for v in plain.verdicts]
    assert found.of("late").length == 5


def test_without_an_expiry_no_lease_runs_out():
    """Nothing is late where `map` names no time at which a lease ends; the bounds say so, and it is not called a pass."""
    answer = check(mine(lambda raw: raw["map"].pop("expires_at")), workers=1, most=100_000).answer

    assert (answer.of("late").status, answer.of("late").missing) == ("empty", ("arrived-late",))
    assert "no lease that runs out, for `map` names no expires_at" in " ".join(told.screen(answer).split())
    assert "a lease that runs out" not in told.screen(answer)


@pytest.mark.parametrize(
    ("column", "attribute", "stored"),
    [
        ("token", "fence", {"S": "e0"}), ("expires_at", "expiry", {"S": "2026-03-02T09:00:00Z"}),
        ("expires_at", "expiry", {"S": "60"}), ("expires_at", "expiry", {"N": "60.5"}),
    ],
)  # fmt: skip
def test_what_counts_is_a_whole_number(column, attribute, stored):
    """An ETag as the token, a date or a text as the expiry is refused with the column and what stands there."""
    file = mine(lambda raw: raw["start"].update({attribute: stored}))

    with pytest.raises(InputError, match=f"`map` has `{attribute}` for {column}, and {json.dumps(stored)} stands"):
        check(file, most=1_000)


def test_a_grant_of_what_is_finished_claims_no_place_in_its_value():
    """Who is granted a finished job is refused by it: the value that stands is that of its one owner."""
    answer = check(mine(), most=100_000).answer

    assert answer.of("polling-stops").status == "violated"
    assert answer.of("final").status == "holds"


def test_a_job_without_an_end_is_asked_for_no_end():
    """Where nothing finishes and no status is final, tokens and the last value are judged, and the end is not asked."""

    def endless(raw):
        raw |= {"terminal": [], "program": ["acquire", "save"]}
        del raw["operations"]["complete"]

    answer = check(mine(endless), most=100_000).answer
    text = " ".join(told.screen(answer).split())

    assert {name: answer.of(name).status for name in ("order", "ownership", "final")} == {
        "order": "holds", "ownership": "holds", "final": "holds",
    }  # fmt: skip
    assert {answer.of(name).status for name in ("terminal", "polling-stops", "can-finish")} == {"not_applicable"}
    assert "not asked: no operation is of the kind finish, and `terminal` names no status" in text
    assert told.exit_code(answer) == 0


def test_an_operation_that_is_used_twice_is_two_operations():
    """Each use has an id and a value of its own, so that the second is not taken for a repetition of the first."""

    def twice(raw):
        raw["program"].insert(1, "save")
        update = raw["operations"]["save"]["transact-write-items"]["TransactItems"][1]["Update"]
        update["UpdateExpression"] += ", done_by = :by"
        update["ConditionExpression"] += " AND done_by <> :by"
        update["ExpressionAttributeValues"][":by"] = "$operation"

    answer = check(mine(twice), most=100_000).answer

    assert answer.of("can-finish").status == "holds"


def test_a_repair_lets_somebody_finish():
    """A condition with which a grant could tell no token any more is no repair: nobody would write at all."""

    def loose(raw):
        [_, save] = raw["operations"]["save"]["transact-write-items"]["TransactItems"]
        save["Update"]["UpdateExpression"] += ", seen = :token"
        save["Update"]["ConditionExpression"] += " AND (attribute_not_exists(seen) OR seen = :token)"
        save["Update"]["ExpressionAttributeValues"][":token"] = "$token"
        raw["operations"]["save"]["transact-write-items"]["TransactItems"] = [save]

    found = check(mine(loose), repaired=True, most=100_000)

    assert found.answer.of("can-finish").status == "violated"  # with these conditions a second owner never writes
    assert found.repair.answer.of("ownership").status == "holds"
    assert found.repair.answer.of("can-finish").length > 0
