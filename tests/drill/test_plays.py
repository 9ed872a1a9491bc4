"""Scenarios are played as far as a team's own requests go, and what is no fault of theirs is none."""

from __future__ import annotations

import json
import signal

import pytest

from fencinglab.check import files
from fencinglab.drill.desk import Player
from fencinglab.drill.process import Child
from fencinglab.drill.run import MOCK, Plan, drill
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.errors import InputError
from fencinglab.report.drilled import judged

STATUS = shelf.find("request-status")


def example():
    """The file that `check --example` prints, to be changed."""
    return json.loads(files.example())


def played(raw, *scenarios):
    """The drill of such a file."""
    return drill(parse(json.dumps(raw), "mine.json"), MOCK, Plan(scenarios))


def failed(done):
    return [(check.scenario, check.says) for check in done.checks if not check.holds]


def lock_item(raw):
    """The lease is an item that the acquire puts; what is written asks only whether the job is done."""
    table, now = raw["table"]["TableName"], {":now": {"N": "$now"}}
    raw |= {"program": ["acquire", "save", "complete"], "map": {**raw["map"]}}
    del raw["map"]["token"], raw["map"]["written_token"], raw["operations"]["renew"], raw["operations"]["release"]
    raw["operations"]["acquire"] = {"kind": "grant", "put-item": {
        "TableName": table, "ExpressionAttributeValues": now,
        "Item": {"jobId": "lock#${resource}", "leaseOwner": "$worker", "leaseExpiresAt": {"N": "$expiry"}},
        "ConditionExpression": "attribute_not_exists(jobId) OR leaseExpiresAt <= :now",
    }}  # fmt: skip
    for name in ("save", "complete"):
        one = raw["operations"][name]["update-item"]
        one["UpdateExpression"] = one["UpdateExpression"].replace("writtenToken = :token, ", "")
        one["ConditionExpression"] = "attribute_not_exists(terminalVersion)"
        del one["ExpressionAttributeValues"][":token"]


def test_a_lease_that_the_acquire_puts_is_drilled():
    """Its item is there for nobody before the first grant, and still its records are what the audit reads."""
    raw = example()
    lock_item(raw)
    done = played(raw, "crashed-worker", "replacement-owner")
    keys = {one["dynamodb"]["Keys"]["jobId"]["S"][:5] for one in done.stream}

    assert keys == {"lock#", "crash", "repla"}
    with judged(done) as one:
        assert one.exit_code == 1 and not all(check.holds for check in done.checks)


def test_what_an_earlier_reply_tells_is_asked_for_first():
    """A finish that compares what the save's reply showed is sent behind a save, also by a process of its own."""
    raw = example()
    one = raw["operations"]["complete"]["update-item"]
    one["ConditionExpression"] += " AND jobResult = :saved"
    one["ExpressionAttributeValues"][":saved"] = {"S": "$save.jobResult"}
    raw["operations"]["save"]["update-item"]["ReturnValues"] = "ALL_NEW"
    done = played(raw, "delayed-response", "crashed-worker", "duplicate-terminal", "stalled-process")

    assert failed(done) == [] and done.stopped == ()
    assert {line["kind"] for line in done.log if line["worker"] == "B"} == {"grant", "write", "finish"}


def test_a_reply_that_tells_nothing_ends_the_scenario():
    """Where a request needs what no reply has, the scenario ends with that sentence, also in a process of its own."""
    raw = example()
    one = raw["operations"]["complete"]["update-item"]
    one["ConditionExpression"] += " AND version = :saved"
    one["ExpressionAttributeValues"][":saved"] = {"N": "$acquire.nothing"}
    done = played(raw, "crashed-worker", "stalled-process")

    why = "mine.json: operation `complete` needs $acquire.nothing, which has no value here"
    assert dict(done.stopped) == {"crashed-worker": why, "stalled-process": why}


def test_a_file_that_writes_nothing_before_its_finish_is_not_accused():
    """Where the finish is all that a worker writes, nobody is expected to write before it, and everything comes true."""
    raw = example()
    raw["program"].remove("save")
    del raw["operations"]["save"]
    done = played(raw, "delayed-response", "crashed-worker", "replacement-owner", "replay", "stalled-process")

    assert failed(done) == [] and done.stopped == ()


def test_a_worker_that_reads_and_stops_is_not_accused():
    """A worker that comes back, reads that the item is another's and sends nothing has had nothing accepted."""
    done = drill(shelf.find("broken-check-then-write"), MOCK, Plan(("delayed-response", "clock-skew")))

    assert failed(done) == []


def test_a_read_is_no_write():
    """A worker that is kept from writing by what it reads has not written, whatever the read was told."""
    file = shelf.find("broken-check-then-write")
    look = file.operations["look_before_response"]._replace(expects={"leaseOwner": {"S": "somebody else"}})
    done = drill(file._replace(operations={**file.operations, look.name: look}), MOCK, Plan(("crashed-worker",)))

    assert ("crashed-worker", "A acquires, works and is gone") in failed(done)


def test_a_worker_that_reads_before_it_acquires_may_stop():
    """Where a read before the acquire shows not what it expects nobody acquires, though the acquire itself would."""
    raw = example()
    acquire = raw["operations"]["acquire"]["update-item"]
    acquire["ConditionExpression"] = acquire["ConditionExpression"].replace(
        " AND attribute_not_exists(terminalVersion)", ""
    )
    look = {"get-item": {name: acquire[name] for name in ("TableName", "Key")}, "expects": {"jobStatus": "QUEUED"}}
    raw |= {"program": ["look", *raw["program"]], "operations": {"look": look, **raw["operations"]}}
    done = played(raw, "duplicate-terminal")

    assert failed(done) == [] and done.stopped == ()


def test_an_attribute_that_nobody_wrote_is_not_asked_for():
    """A column whose attribute no played operation writes is no reason to refuse the audit of the others."""
    raw = example()
    raw["map"]["next_poll"] = "lookAgainAt"

    with judged(played(raw, "duplicate-terminal")) as one:
        assert one.exit_code == 0


def test_what_is_unknown_ends_the_scenario():
    """A request that the receiver cannot carry out was neither accepted nor refused: that is said, and judged is nothing."""
    raw = example()
    raw["start"]["fencingToken"] = {"S": "40"}
    done = played(raw, "crashed-worker")

    sentence = "no change was decided, .*; crashed-worker did not end: what became of `acquire` is unknown: Validation"
    with pytest.raises(InputError, match=f"^mine.json: {sentence}"), judged(done):
        pass


def test_a_receiver_that_fails_ends_the_scenario(monkeypatch):
    """An error of the receiver outside of a worker's requests is the reason that a scenario did not end, and no traceback."""
    monkeypatch.setattr(Player, "take", lambda player: player.hold.client.describe_table(TableName="nothing"))
    done = drill(STATUS, MOCK, Plan(("crashed-worker", "replay")))

    assert {name for name, _ in done.stopped} == {"crashed-worker", "replay"}
    assert all("ResourceNotFoundException" in why for _, why in done.stopped)


def test_a_process_that_ends_by_itself_ends_the_scenario(monkeypatch):
    """A worker's process that is gone, for whatever reason, is no refusal of the receiver's."""
    send = Child.send
    monkeypatch.setattr(Child, "send", lambda child, _: send(child, signal.SIGKILL))
    done = drill(STATUS, MOCK, Plan(("stalled-process",)))

    assert done.stopped == (("stalled-process", "A's process ended by itself"),)


def test_a_drill_that_is_interrupted_ends_its_processes_itself(monkeypatch):
    """What a keyboard sends to the drill and its workers alike is not heard by these, which would answer with a traceback."""
    send = Child.send
    monkeypatch.setattr(Child, "send", lambda child, _: send(child, signal.SIGINT))
    done = drill(STATUS, MOCK, Plan(("stalled-process",)))

    assert failed(done) == [] and done.stopped == ()
