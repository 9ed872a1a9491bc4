"""A team's own requests over a recorded log: what they would have decided, and what cannot be told."""

from __future__ import annotations

import copy
import json
from datetime import timedelta

import duckdb
import pandas
import pytest

from fencinglab import history
from fencinglab.audit import audit, proposal, whatif
from fencinglab.dynamodb import shelf as requests
from fencinglab.dynamodb.parse import parse
from fencinglab.model import shelf
from fencinglab.model.event import MUTATIONS
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay

STATUS = requests.find("request-status")
GUARDS = {
    "latest": "fencingToken = :token",
    "at-or-above": "(attribute_not_exists(writtenToken) OR writtenToken <= :token)",
    "unguarded": "attribute_exists(id)",
    "current-lease": "fencingToken = :token AND leaseOwner = :worker AND leaseExpiresAt > :now",
}
TOLD = (
    "report-generation", "second-write", "stale-terminal", "delayed-message", "late-but-not-stale", "released-then-written",
    "holder-returns", "lost-reply", "stale-alert", "stale-backoff", "authority-restored", "read-again", "C07", "C12",
)  # fmt: skip


def file(condition: str, *kinds: str, **more):
    """A request file whose every mutation has this condition and no other."""
    values = {":token": {"N": "$token"}, ":worker": {"S": "$worker"}, ":now": {"N": "$now"}, ":value": {"S": "$value"}}
    used = {name: value for name, value in values.items() if name in condition or name in (":value", ":token")}
    write = {
        "TableName": "jobs", "Key": {"id": {"S": "job"}}, "ConditionExpression": condition,
        "UpdateExpression": "SET writtenToken = :token, made = :value", "ExpressionAttributeValues": used,
    }  # fmt: skip
    acquire = {
        "TableName": "jobs", "Key": {"id": {"S": "job"}}, "UpdateExpression": "SET leaseOwner = :w ADD fencingToken :one",
        "ExpressionAttributeValues": {":w": {"S": "$worker"}, ":one": {"N": "1"}}, "ReturnValues": "ALL_NEW",
    }  # fmt: skip
    made = {
        "table": {"TableName": "jobs", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                  "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]},
        "start": {"id": "job", "fencingToken": {"N": "0"}},
        "operations": {"acquire": {"kind": "grant", "update-item": acquire}}
        | {f"do_{kind}": {"kind": kind, "update-item": write} for kind in kinds or MUTATIONS},
        "program": ["acquire", *(f"do_{kind}" for kind in kinds or MUTATIONS)],
        "map": {"token": "fencingToken", "holder": "leaseOwner", "expires_at": "leaseExpiresAt",
                "written_token": "writtenToken", "status": "status", "terminal_version": "terminalVersion"},
        "terminal": ["DONE", "FAILED"],
    }  # fmt: skip
    return parse(json.dumps(made | more), "mine.json")


def judged(con: duckdb.DuckDBPyConnection, rows: list[dict], of) -> dict[str, int]:
    """The table `whatif` of these rows with the column of the proposal; what cannot be told, and why."""
    audit.judge(con, history.read(con, pandas.DataFrame(rows, columns=list(history.NAMES), dtype=object)))
    whatif.judge_guards(con)
    return proposal.judge_proposal(con, of)


def told(rows: list[dict], of) -> tuple[whatif.WhatIf, dict[str, int]]:
    with duckdb.connect() as con:
        why = judged(con, rows, of)
        return whatif.counted(con)[-1], why


def ran(name: str, fix: str = "unfenced") -> list[dict]:
    return [dict(row) for row in replay(shelf.find(name), FIXES[fix]).rows]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_condition_decides_as_the_guard_that_it_is(guard):
    """Requests whose condition is a guard's comparison decide each mutation of a log as that guard."""
    rows = [row for name in TOLD for row in ran(name)]
    with duckdb.connect() as con:
        judged(con, rows, file(GUARDS[guard]))
        both = con.execute(f'select "{guard}", "{proposal.NAME}" from whatif').fetchall()

    assert [one for one in both if one[0] != one[1]] == []
    assert len(both) > 25
    assert {one[0] for one in both} == ({1} if guard == "unguarded" else {0, 1})


def test_the_articles_requests_would_have_refused_the_stale_write():
    """Over the article's log the requests of the article refuse the one stale write and no good one."""
    found, why = told(ran("report-generation"), STATUS)

    assert found == whatif.WhatIf(proposal.NAME, 3, 1, 1, 0, 0, 0, 0, 0, 0)
    assert why == {}


def test_without_a_condition_nothing_is_refused():
    """Requests that compare nothing let every stale write pass."""
    found, _ = told(ran("report-generation"), requests.find("broken-unconditional"))

    assert (found.refuses_stale, found.stale) == (0, 1)


def test_tokens_as_text_are_compared_as_text():
    """Where the requests store tokens as text, 9 passes after 10, as it would on the real receiver."""
    rows = ran("report-generation")
    for row in rows:
        for column in ("token", "before_token", "after_token", "current_token"):
            row[column] = {41: 9, 42: 10}.get(row[column], row[column])
    text, _ = told(rows, requests.find("broken-token-as-text"))

    assert (text.refuses_stale, text.stale) == (0, 1)
    assert told(rows, STATUS)[0].refuses_stale == 1


def test_a_good_write_that_is_refused_is_counted():
    """A condition that shuts a holder's second write out is seen to refuse good writes."""
    found, _ = told(ran("second-write"), file("(attribute_not_exists(writtenToken) OR writtenToken < :token)"))

    assert found.refuses_good > 0


def test_a_late_write_is_none_of_the_good_ones():
    """A condition on the lease's end refuses the late write, which is counted apart."""
    found, _ = told(ran("late-but-not-stale"), file(GUARDS["current-lease"]))

    assert (found.refuses_late, found.late, found.refuses_good) == (1, 1, 0)


OPEN = {
    "the token": ({"token": None, "fenced": None}, GUARDS["latest"], "the log does not say what stands for $token"),
    "the writer": ({"writer": None}, GUARDS["current-lease"], "the log does not say what stands for $worker"),
    "the time": ({"at": None}, "leaseExpiresAt > :now", "the log does not say what stands for $now"),
    "an attribute of their own": ({}, "attribute_exists(approvedBy)", "the log does not say approvedBy"),
}


@pytest.mark.parametrize(("lacks", "condition", "why"), OPEN.values(), ids=OPEN)
def test_what_the_log_does_not_say_is_never_guessed(lacks, condition, why):
    """A mutation whose token, writer, time or item is not known is counted as open, with the reason."""
    rows = ran("report-generation")
    writes = [row for row in rows if row["kind"] in MUTATIONS]
    for row in writes:
        row |= lacks
    found, reasons = told(rows, file(condition))

    assert (found.open, reasons) == (len(writes), {why: len(writes)})
    assert found.refuses_stale == found.refuses_good == 0


def test_one_part_of_a_condition_may_be_enough():
    """Where a known part of a condition is not met, what the rest looks at does not matter."""
    found, why = told(ran("report-generation"), file("fencingToken = :token AND attribute_exists(approvedBy)"))

    assert (found.refuses_stale, found.open) == (1, 2)
    assert why == {"the log does not say approvedBy": 2}


def test_a_kind_without_a_request_is_named():
    """A mutation of a kind that the file has no request of cannot be told."""
    _, why = told(ran("report-generation"), file(GUARDS["latest"], "finish"))

    assert why == {"there is no request of the kind write": 3}


def test_two_requests_of_a_kind_must_agree():
    """Of two requests of one kind it is not known which was meant; where they decide differently it cannot be told."""
    given = file(GUARDS["latest"])
    other = given.operations["do_write"]
    changed = copy.deepcopy(other.input) | {"ConditionExpression": "attribute_exists(id)"}
    both = given._replace(
        operations=given.operations | {"other": other._replace(name="other", input=changed)},
        program=(*given.program, given.program[1]._replace(operation="other")),
    )
    found, why = told(ran("report-generation"), both)

    assert (found.open, found.decided) == (1, 2)
    assert why == {"it depends on which request was meant, or on the clock": 1}


def test_a_clock_that_may_show_either_is_open():
    """Where the end of the lease lies within the precision of the log's time, a condition on it cannot be told."""
    rows = ran("late-but-not-stale")
    for row in rows:
        row |= {"at": row["at"] - timedelta(seconds=3), "at_precision": 10 * 10**6}
    found, why = told(rows, file(GUARDS["current-lease"]))

    assert found.open > 0
    assert set(why) == {"it depends on which request was meant, or on the clock"}


def test_a_repeated_operation_is_not_judged():
    """What the log names as an operation done before is the duplicate rule's business."""
    rows = ran("report-generation")
    for row in rows:
        row["operation"] = "same" if row["kind"] == "write" else None
    _, why = told(rows, STATUS)

    assert why == {"its operation was accepted before": 2}


def test_more_than_the_bound_is_counted(monkeypatch):
    """Beyond the bound nothing is sent: accepted stale writes come first, and the rest is counted as open."""
    monkeypatch.setattr(proposal, "MOST", 1)
    found, why = told(ran("report-generation"), STATUS)

    assert (found.refuses_stale, found.open, why) == (1, 2, {proposal.BEYOND: 2})


def test_the_receiver_is_asked_once_for_the_same(monkeypatch):
    """Equal requests on equal items are sent once."""
    asked = []
    step = proposal.sending.step
    monkeypatch.setattr(proposal.sending, "step", lambda *given: asked.append(given) or step(*given))
    rows = [row | {"resource": job, "lease": job} for job in ("one", "two") for row in ran("report-generation")]
    found, _ = told(rows, file(GUARDS["latest"]))

    assert (found.decided, len(asked)) == (6, 2)


def test_a_lease_item_that_the_grant_makes_is_there_when_something_is_written():
    """Where `start` has no lease yet, a write is not refused for want of it: it stands there with what the log says."""
    lease, value = {"TableName": "jobs", "Key": {"id": {"S": "lease"}}}, {":value": {"S": "$value"}}
    acquire = {
        **lease, "UpdateExpression": "SET leaseOwner = :w ADD fencingToken :one",
        "ExpressionAttributeValues": {":w": {"S": "$worker"}, ":one": {"N": "1"}}, "ReturnValues": "ALL_NEW",
    }  # fmt: skip
    asked = {**lease, "ConditionExpression": "fencingToken = :t", "ExpressionAttributeValues": {":t": {"N": "$token"}}}
    kept = {"TableName": "jobs", "Key": {"id": {"S": "job"}}, "UpdateExpression": "SET made = :value"}
    write = {"TransactItems": [{"ConditionCheck": asked}, {"Update": {**kept, "ExpressionAttributeValues": value}}]}
    beside = file(
        "fencingToken = :token", start={"id": "job"}, program=["acquire", "do_write"],
        operations={"acquire": {"kind": "grant", "update-item": acquire}, "do_write": {"transact-write-items": write}},
    )  # fmt: skip
    found, _ = told(ran("report-generation"), beside)

    assert (found.refuses_stale, found.stale, found.refuses_good) == (1, 1, 0)
