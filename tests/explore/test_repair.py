"""The smallest repair of a broken file holds, nothing smaller does, and where none helps that is said."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import combinations

from teams import changed

from fencinglab.check import files, page, told
from fencinglab.check.check import Check, check
from fencinglab.dynamodb import sending, shelf
from fencinglab.dynamodb.mock import Mock
from fencinglab.dynamodb.parse import parse
from fencinglab.dynamodb.requests import begin
from fencinglab.explore.candidates import candidates, repaired
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.repair import UNSAFE, repair
from fencinglab.explore.search import explore
from fencinglab.explore.team import Team
from fencinglab.inert import inert


@contextmanager
def searched(file, workers=2):
    """The answer of a search over the file, whose receiver is still there."""
    with Mock() as mock:
        client = mock.client()
        with sending.tables(client, file, streams=False):
            yield explore(Team(file, lambda *asked: sending.step(client, *asked), begin(file), workers))


def test_it_is_the_smallest():
    """Every smaller set of the conditions that are offered breaks something; the one that was found does not."""
    with searched(shelf.find("broken-unconditional"), workers=1) as answer:
        found = repair(answer, 100_000)
        team, offered = answer.model, candidates(answer.model)
        wide = team.read_as(repaired(team, offered))
        smaller = [s for size in range(len(found.added)) for s in combinations(offered, size)]
        for some in smaller:
            again = explore(wide.with_file(repaired(team, some)))
            assert any(again.of(name).status == "violated" for name in (*UNSAFE, "can-finish"))

    assert smaller
    assert [found.answer.of(name).status for name in UNSAFE if name != "alert-once"].count("violated") == 0


def test_a_repaired_file_holds_when_it_is_checked():
    """What is printed to be pasted, put into the file, is a file that holds: the same states, nothing violated."""
    file = shelf.find("broken-unconditional")
    found = check(file, workers=1, repaired=True, most=100_000)
    raw = json.loads((shelf.FOLDER / "broken-unconditional.json").read_text(encoding="utf-8"))
    written = files.contents(found)
    for name, action, text in told.requests(found.repair):
        assert json.loads(text) == json.loads(written[f"repair/{name}.json"])
        raw["operations"][name] = {"kind": raw["operations"][name]["kind"], action: json.loads(text)}
    again = check(parse(json.dumps(raw), "again.json"), workers=1, repaired=True, most=100_000)

    assert [(one.operation, one.name) for one in found.repair.added] == [
        ("record_response", "not terminal"), ("finish", "not terminal"),
    ]  # fmt: skip
    assert again.repair is None
    assert (again.answer.states, told.exit_code(again.answer)) == (found.repair.answer.states, 3)  # one worker
    assert "The smallest repair within the same bounds adds 2 conditions" in told.mended(found.repair)


def test_the_lease_in_another_item_is_asked_in_a_transaction():
    """A plain write beside its lease becomes a transaction that checks the lease."""

    def plain(raw):
        check, update = raw["operations"]["write"].pop("transact-write-items")["TransactItems"]
        raw["operations"]["write"]["update-item"] = update["Update"]

    file = changed("lease-beside-resource", plain)
    with searched(file, workers=1) as answer:
        [token] = [c for c in candidates(answer.model) if (c.operation, c.name) == ("write", "token")]
        made = repaired(answer.model, [token])
    one = made.operations["write"]

    assert sending.refused(made) is None
    assert one.action == "transact-write-items"
    assert one.input["TransactItems"][0]["ConditionCheck"] == {
        "TableName": "reports", "Key": {"itemId": {"S": "lease#${resource}"}},
        "ConditionExpression": "fencingToken = :token", "ExpressionAttributeValues": {":token": {"N": "$token"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }  # fmt: skip


def test_no_set_helps_where_nothing_tells_two_grants_apart():
    """Without a mapped token a worker that crashed is refused by nothing: that is said, with what is missing."""

    def forgetful(raw):
        del raw["map"]["token"]

    file = changed("broken-unconditional", forgetful)
    found = check(file, workers=1, hazards=[Hazard("crash")], repaired=True, most=100_000).repair

    assert found.answer is None
    assert "`map` names no token that they could ask for" in " ".join(told.mended(found).split())


def test_a_request_to_paste_is_whole():
    """A long value and characters that could act on a screen are written so that nothing is cut, replaced or acts."""
    note = "x" * 9_000 + "\u202e\x1b[31m\x7f"

    def noted(raw):
        finish = raw["operations"]["finish"]["update-item"]
        finish["UpdateExpression"] = finish["UpdateExpression"].replace("SET ", "SET note = :note, ", 1)
        finish["ExpressionAttributeValues"][":note"] = {"S": note}

    found = check(changed("broken-unconditional", noted), workers=1, repaired=True, most=100_000)
    [text] = [text for name, _, text in told.requests(found.repair) if name == "finish"]

    assert json.loads(text)["ExpressionAttributeValues"][":note"] == {"S": note}
    assert json.loads(files.contents(found)["repair/finish.json"]) == json.loads(text)
    assert all(line == inert(line, len(line)) for line in text.splitlines())


def test_what_is_not_repaired():
    """A file that holds has no repair, and where the search stopped at a bound none is looked for."""
    assert check(shelf.find("late-render"), workers=1, repaired=True, most=100_000).repair is None
    assert check(shelf.find("broken-unconditional"), repaired=True, most=1_000).repair is None


def test_conditions_keep_the_names_that_are_there():
    """A value that the request has already is used again, a reserved word gets a name, and an OR its parentheses."""

    def reserved(raw):
        text = json.dumps(raw["operations"]).replace("leaseOwner", "#owner")
        raw["operations"] = json.loads(text)
        raw["map"]["holder"] = "owner"
        acquire = raw["operations"]["acquire"]["update-item"]
        acquire["ExpressionAttributeNames"] = {"#owner": "owner"}
        finish = raw["operations"]["finish"]["update-item"]
        finish["ConditionExpression"] = "attribute_exists(requestId) OR attribute_exists(version)"

    with searched(changed("broken-unconditional", reserved), workers=1) as answer:
        [one] = [c for c in candidates(answer.model) if (c.operation, c.name) == ("finish", "owner")]
        made = repaired(answer.model, [one]).operations["finish"].input

    assert (
        made["ConditionExpression"] == "(attribute_exists(requestId) OR attribute_exists(version)) AND #owner = :worker"
    )
    assert made["ExpressionAttributeNames"] == {"#owner": "owner", "#ttl": "ttl"}


def test_conditions_take_the_types_and_statuses_of_the_file():
    """Without a mapped terminal version the statuses are asked; a token that is stored as text is asked as text."""

    def otherwise(raw):
        del raw["map"]["terminal_version"]
        raw["map"]["token"] = "writtenToken"
        raw["token"] = "$acquire.fencingToken"

    with searched(changed("broken-token-as-text", otherwise), workers=1) as answer:
        chosen = [
            c for c in candidates(answer.model) if c.operation == "finish" and c.name in ("token", "not terminal")
        ]
        made = repaired(answer.model, chosen)
    asked = made.operations["finish"].input

    assert asked["ConditionExpression"].endswith("AND writtenToken = :token AND NOT apiStatus IN (:status, :terminal1)")
    assert asked["ExpressionAttributeValues"][":token"] == {"S": "$token"}
    assert asked["ExpressionAttributeValues"][":terminal1"] == {"S": "FAILED"}
    assert sending.refused(made) is None


def test_a_search_that_is_given_up_is_no_word_that_there_is_no_repair(monkeypatch):
    """Where the sets are too many, or one of them is not searched to its end, that is said, and no set is ruled out."""
    file = shelf.find("broken-unconditional")
    monkeypatch.setattr("fencinglab.explore.repair.MOST_SEARCHES", 1)
    given_up = " ".join(told.mended(check(file, workers=1, repaired=True, most=100_000).repair).split())
    monkeypatch.undo()

    assert given_up.startswith("No repair was found, of conditions on ") and "not decided, after 1 sets" in given_up
    with searched(file, workers=1) as answer:
        assert "not decided, for one of the searches stopped at the bound of" in repair(answer, 20).why_not


def test_beside_a_search_that_is_given_up_a_repair_is_not_called_the_smallest(monkeypatch):
    """Where no set of two was searched to its end, that of three which holds is a repair, and fewer may do."""
    sizes = []

    def bounded(team, most, until):
        return explore(team, most=10 if sizes[-1] == 2 else most, until=until)

    monkeypatch.setattr("fencinglab.explore.repair.explore", bounded)
    with searched(shelf.find("broken-unconditional"), workers=1) as answer:
        found = repair(answer, 100_000, lambda text: sizes.append(int(text.split()[2])))
    text = " ".join(told.mended(found).split())

    assert {*sizes} == {2, 3} and len(found.added) == 3
    assert text.startswith("A repair within the same bounds adds 3 conditions, found by exploring; fewer may hold")
    assert "fewer may hold, for one of the searches stopped at the bound" in page.html(Check(answer, repair=found))
