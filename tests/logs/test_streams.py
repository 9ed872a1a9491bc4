"""What DynamoDB Streams records say about their mutations, whatever they are wrapped in."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import worlds

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import places, read
from fencinglab.logs.filters import Filters
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.read import Log

Row = dict[str, Any]
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "streams"
ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs/stream/2026-02-27T08:15:00.000"
SEQUENCE = 100_000_000_000_000_000_000
NOON = 1_772_452_800  # 2026-03-02T12:00:00Z
TERMINAL = MappingSpec(terminal=("DONE", "FAILED"))


@pytest.fixture
def stream(tmp_path):
    """Read files of a stream: (what was read, its rows in order, each with its `place` in the files)."""
    with duckdb.connect() as con:

        def of(
            files: str | bytes | Mapping[str, str | bytes], spec: MappingSpec = TERMINAL, filters: Filters = Filters()
        ) -> tuple[Log, list[Row]]:
            given, work = tmp_path / "given", tmp_path / "work"
            work.mkdir()
            for name, content in (files if isinstance(files, Mapping) else {"log.json": files}).items():
                path = given / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            log = read.read(con, [str(given)], spec, work, filters=filters)
            asked = con.execute("select rowid, * from history order by order_scope, order_key, event_id, rowid")
            names = [name for name, *_ in asked.description]
            rows = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
            placed = places.of_rows(con, log.paths, [row["rowid"] for row in rows])
            for row in rows:
                row["place"] = placed[row["rowid"]].removeprefix(f"{given}/")
            return log, rows

        yield of


def item(values: Mapping[str, Any] | None) -> Row | None:
    """An item as DynamoDB writes it; a value that is an object already is taken as it is."""
    if values is None:
        return None
    return {n: v if isinstance(v, dict) else worlds.typed({n: v})[n] for n, v in values.items() if v is not None}


def change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, number: int = 1, **more: Any) -> Row:
    """A record of one mutation of job-1, the `number`-th of its stream."""
    images = {"OldImage": item(before), "NewImage": item(after)}
    inside = {
        "ApproximateCreationDateTime": NOON + number, "Keys": {"jobId": {"S": "job-1"}},
        **{name: image for name, image in images.items() if image is not None},
        "SequenceNumber": str(SEQUENCE + number), "StreamViewType": "NEW_AND_OLD_IMAGES",
    }  # fmt: skip
    inside |= {name: more.pop(name) for name in [*more] if name in inside or name == "ApproximateCreationDateTime"}
    record = {
        "eventID": f"e{number:05}", "eventName": "INSERT" if before is None else "REMOVE" if after is None else "MODIFY",
        "eventSource": "aws:dynamodb", "dynamodb": {n: v for n, v in inside.items() if v is not None}, "eventSourceARN": ARN,
    }  # fmt: skip
    return {name: value for name, value in (record | more).items() if value is not None}


def told(*images: Mapping[str, Any] | None, **more: Any) -> list[Row]:
    """The records of one item's images, one after the other."""
    return [
        change(before, after, n, **more) for n, (before, after) in enumerate(zip(images, images[1:], strict=False), 1)
    ]


def shown(row: Row, names: Sequence[str]) -> Row:
    """The columns of a row, whole numbers as ints."""
    return {n: int(row[n]) if isinstance(row[n], Decimal) else row[n] for n in names}


def plain(rows: Sequence[Row], without: Sequence[str] = ()) -> list[Row]:
    """The history columns of rows but where they lie, hashes of values by their order of appearance."""
    seen: dict[Any, int] = {}
    left = [name for name in history.NAMES if name != "source" and name not in without]
    for row in rows:
        for name in ("before_value", "after_value"):
            if row[name] is not None:
                row[name] = seen.setdefault(row[name], len(seen))
    return [shown(row, left) for row in rows]


# --------------------------------------------------------------------------- what one record says

HELD = {"jobId": "job-1", "leaseOwner": "a", "leaseExpiresAt": NOON + 60, "fencingToken": 7, "status": "RUNNING"}
STORED = HELD | {"writtenToken": 7, "writtenBy": "a"}
VERSIONED = STORED | {"version": 3}
BY_B = {"leaseOwner": "b", "fencingToken": 8, "leaseExpiresAt": NOON + 120}
FREE = {"leaseOwner": None, "leaseExpiresAt": None}
MARK = {"jobId": "job-1", "fence": 7, "data": "x"}

SAYS: dict[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, Row]] = {
    # 1: the token in an item's image is not the writer's token
    "a grant presents its new token": (
        HELD, HELD | BY_B, {"kind": "grant", "token": 8, "fenced": True, "writer": "b", "before_token": 7, "after_token": 8}),
    "a grant after a release": (
        HELD | FREE, HELD | BY_B, {"kind": "grant", "token": 8, "before_holder": "", "after_holder": "b"}),
    "a grant that creates the item": (
        None, HELD, {"kind": "grant", "token": 7, "before_image": 0, "before_holder": "", "after_token": 7}),
    "the token in the item is not the writer's": (
        HELD, HELD | {"status": "PAUSED"}, {"kind": "write", "token": None, "fenced": None, "writer": None, "after_token": 7}),
    "a written token that changed is this writer's": (
        STORED, STORED | {"writtenToken": 6, "writtenBy": "b"}, {"kind": "write", "token": 6, "fenced": True, "writer": "b"}),
    "a written token that is there for the first time": (
        HELD | {"writtenToken": None}, STORED, {"token": 7, "fenced": True, "writer": "a"}),
    "stored again, and the version rose": (
        VERSIONED, VERSIONED | {"status": "PAUSED", "version": 4}, {"token": 7, "fenced": True, "writer": "a"}),
    "stored again lower, and the version rose": (
        VERSIONED | BY_B, VERSIONED | BY_B | {"status": "PAUSED", "version": 4}, {"token": 7, "fenced": True, "after_token": 8}),
    "granted, and the older mark stays": (
        VERSIONED, VERSIONED | BY_B | {"version": 4}, {"kind": "grant", "token": 8, "fenced": True, "writer": "b"}),
    "granted with a status, and the older mark stays": (
        VERSIONED, VERSIONED | BY_B | {"version": 4, "status": "PAUSED"}, {"kind": "grant", "token": 8, "writer": "b"}),
    "others raise the version beside an older mark": (
        VERSIONED | BY_B, VERSIONED | BY_B | {"crmSyncedAt": 5, "version": 4},
        {"kind": "write", "token": None, "fenced": None, "writer": None, "protected": False}),
    "a holder that stores no name releases": (
        HELD | BY_B | {"writtenBy": "a", "version": 3}, HELD | BY_B | FREE | {"writtenBy": "a", "version": 4},
        {"kind": "release", "writer": None, "before_holder": "b"}),
    "renewed, and the older mark stays": (
        VERSIONED | BY_B, VERSIONED | BY_B | {"leaseExpiresAt": NOON + 150, "version": 4},
        {"kind": "renew", "token": None, "fenced": None, "writer": None, "protected": True}),
    "renewed, and stored again": (
        VERSIONED, VERSIONED | {"leaseExpiresAt": NOON + 150, "version": 4}, {"kind": "renew", "token": 7, "fenced": True}),
    "the item changed and its version did not": (
        VERSIONED, VERSIONED | {"status": "PAUSED"}, {"token": None, "fenced": False, "writer": None, "protected": True}),
    "the version fell": (
        VERSIONED, VERSIONED | {"status": "PAUSED", "version": 2}, {"token": None, "fenced": None, "writer": None}),
    "no version, unchanged and equal: presumed": (
        STORED, STORED | {"status": "PAUSED"}, {"token": 7, "fenced": None, "writer": None}),
    "no version, unchanged and lower: not known": (
        STORED | BY_B, STORED | BY_B | {"status": "PAUSED"}, {"token": None, "fenced": None, "writer": None}),
    "a version but no written token": (
        HELD | {"version": 3}, HELD | {"version": 4, "status": "PAUSED"}, {"token": None, "fenced": None}),
    "a version unchanged, no written token": (
        HELD | {"version": 3}, HELD | {"version": 3, "status": "PAUSED"}, {"token": None, "fenced": False}),
    "a name that changed is this writer's": (
        HELD | {"writtenBy": "a"}, HELD | {"writtenBy": "b"}, {"writer": "b", "token": None}),
    "another name with another token": (
        STORED, STORED | {"writtenToken": 6}, {"writer": "a", "token": 6}),
    # marks: an item without holder and expiry holds the token of its last write
    "a mark that rises": (
        MARK, MARK | {"fence": 9, "data": "y"}, {"kind": "write", "token": 9, "fenced": True, "before_token": 7, "after_token": 9}),
    "a mark that falls": (
        MARK, MARK | {"fence": 5}, {"kind": "write", "token": 5, "fenced": True}),
    "a mark that stays is presumed": (
        MARK, MARK | {"data": "y"}, {"kind": "write", "token": 7, "fenced": None}),
    "a mark stored again with a risen version": (
        MARK | {"version": 1}, MARK | {"data": "y", "version": 2}, {"token": 7, "fenced": True}),
    "a mark beside a version that stayed": (
        MARK | {"version": 1}, MARK | {"data": "y", "version": 1}, {"token": None, "fenced": False}),
    "a mark that creates the item": (
        None, MARK, {"kind": "write", "token": 7, "fenced": True, "before_image": 0}),
    # 2: a stream holds accepted writes and nothing about their senders
    "every record is an accepted write": (
        STORED, STORED | BY_B, {"decision": "accepted", "reason": None, "outcome": None, "sent_at": None, "current_token": None}),
    # 3: a token rises with every grant, also to the same holder; a renewal keeps it
    "a grant to the same holder": (
        STORED, STORED | {"fencingToken": 8, "writtenToken": 8}, {"kind": "grant", "token": 8, "writer": "a"}),
    "a renewal keeps the token": (
        STORED, STORED | {"leaseExpiresAt": NOON + 90}, {"kind": "renew", "token": 7, "before_token": 7, "after_token": 7}),
    "a counter that rises on renewals is a version": (
        {"jobId": "job-1", "leaseOwner": "a", "leaseCounter": 4}, {"jobId": "job-1", "leaseOwner": "a", "leaseCounter": 5},
        {"kind": "write", "token": None, "before_version": 4, "after_version": 5, "before_token": None, "after_token": None}),
    "a new holder is a grant where there are no tokens": (
        {"jobId": "job-1", "leaseOwner": "a", "leaseCounter": 4}, {"jobId": "job-1", "leaseOwner": "b", "leaseCounter": 5},
        {"kind": "grant", "token": None, "fenced": True, "writer": "b", "after_holder": "b"}),
    "a new holder without a new token is no grant": (
        STORED, STORED | {"leaseOwner": "b"}, {"kind": "write", "before_holder": "a", "after_holder": "b", "after_token": 7}),
    "a counter set up for nobody is no grant": (
        None, {"jobId": "job-1", "fencingToken": 0, "leaseOwner": ""}, {"kind": "write", "after_token": 0, "token": None}),
    "a token raised for nobody is no grant": (
        HELD, HELD | {"fencingToken": 8} | FREE, {"kind": "release", "before_token": 7, "after_token": 8, "after_holder": ""}),
    "a mark that the grant of another item raises is none of the holder's own": (
        {"jobId": "job-1", "leaseOwner": "", "fencingToken": 7, "status": "RUNNING"}, {"jobId": "job-1", "leaseOwner": "", "fencingToken": 8, "status": "RUNNING"},
        {"kind": "write", "protected": False, "token": None, "before_token": 7, "after_token": 8}),
    "a mark that falls is": (
        {"jobId": "job-1", "leaseOwner": "", "fencingToken": 8, "status": "RUNNING"}, {"jobId": "job-1", "leaseOwner": "", "fencingToken": 7, "status": "RUNNING"},
        {"protected": True}),
    "a mark that rises with a status is": (
        {"jobId": "job-1", "leaseOwner": "", "fencingToken": 7, "status": "RUNNING"}, {"jobId": "job-1", "leaseOwner": "", "fencingToken": 8, "status": "PAUSED"},
        {"protected": True}),
    # 6: a deleted item forgets its token
    "a deletion": (
        STORED, None, {"kind": "delete", "token": None, "fenced": None, "writer": None, "before_token": 7, "after_token": None,
                       "before_holder": "a", "after_holder": "", "after_image": 0, "after_status": None}),
    "a re-creation": (None, STORED | {"fencingToken": 1}, {"kind": "grant", "before_image": 0, "before_token": None, "after_token": 1}),
    # the other kinds
    "a release": (STORED, STORED | FREE, {"kind": "release", "before_holder": "a", "after_holder": "", "after_expires_at": None}),
    "a holder that is empty is nobody": (STORED, STORED | {"leaseOwner": ""}, {"kind": "release", "after_holder": ""}),
    "a holder that is NULL is nobody": (STORED, STORED | {"leaseOwner": {"NULL": True}}, {"kind": "release", "after_holder": ""}),
    "a finish": (STORED, STORED | {"status": "DONE"}, {"kind": "finish", "before_terminal": False, "after_terminal": True}),
    "a finish that releases": (STORED, STORED | FREE | {"status": "FAILED"}, {"kind": "finish", "after_holder": ""}),
    "a finish that creates the item": (None, STORED | {"status": "DONE", "leaseOwner": ""}, {"kind": "finish"}),
    "a second finish is a write": (
        STORED | {"status": "DONE"}, STORED | {"status": "FAILED"}, {"kind": "write", "before_terminal": True, "after_terminal": True}),
    "a status that is left": (STORED | {"status": "DONE"}, STORED, {"before_terminal": True, "after_terminal": False}),
    "an alert": (STORED, STORED | {"alertId": "al-1"}, {"kind": "alert", "alert": "al-1"}),
    "an alert that was raised before": (
        STORED | {"alertId": "al-1"}, STORED | {"alertId": "al-1", "status": "X"}, {"kind": "write", "alert": None}),
    "an operation": (STORED, STORED | {"operationId": "op-2"}, {"operation": "op-2"}),
    "an operation of before": (
        STORED | {"operationId": "op-1"}, STORED | {"operationId": "op-1", "status": "X"}, {"operation": None}),
    "a schedule": (STORED, STORED | {"nextPollAt": NOON}, {"kind": "schedule", "protected": True}),
    "a renewal where no item has an owner": (
        STORED | FREE, STORED | FREE | {"leaseExpiresAt": NOON},
        {"kind": "renew", "before_holder": None, "after_holder": None}),
    "an expiry that is shortened": (STORED, STORED | {"leaseExpiresAt": NOON}, {"kind": "write", "protected": True}),
    # what only the holder may change
    "nothing of the lease's business": (
        STORED, STORED | {"crmSyncedAt": 5}, {"kind": "write", "protected": False}),
    "whoever stores its token is": (
        STORED, STORED | {"crmSyncedAt": 5, "writtenToken": 6}, {"kind": "write", "protected": True, "token": 6}),
    "a result is": (STORED, STORED | {"resultHash": "x"}, {"protected": True, "before_value": None}),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), SAYS.values(), ids=SAYS)
def test_what_a_record_says(stream, before, after, expected):
    """One record between two images says exactly this of its mutation."""
    [row] = stream(worlds.stream([change(before, after)]))[1]

    assert shown(row, list(expected)) == expected


def test_a_missing_owner_is_nobody_where_other_records_have_one(stream):
    """An item without an owner is held by nobody if the log has the attribute at all."""
    freed = STORED | FREE
    rows = stream(worlds.stream([change(STORED, freed), change(freed, freed | {"leaseExpiresAt": NOON}, 2)]))[1]
    expected = {"kind": "renew", "before_holder": "", "after_holder": ""}

    assert shown(rows[-1], list(expected)) == expected


@pytest.mark.parametrize(("version", "fenced", "notes"), [(4, None, 1), (5, False, 0)])
def test_a_version_that_grants_leave_proves_nothing(stream, version, fenced, notes):
    """Where a grant leaves a recognised version as it was, no write that leaves it too is known to be unfenced."""
    granted = VERSIONED | BY_B | {"version": 4}
    again = granted | {"leaseOwner": "c", "fencingToken": 9, "version": version}
    log, rows = stream(worlds.stream(told(VERSIONED, granted, again, again | {"status": "PAUSED"})))

    assert rows[-1]["fenced"] is fenced
    assert len([note for note in log.notes if "leaves `version` as it was" in note]) == notes


def test_who_held_what_and_until_when(stream):
    """Both sides of every column come from the two images, with the key, the scope and the order."""
    after = VERSIONED | BY_B | {"status": "DONE", "terminalVersion": 1, "version": 4, "resultHash": "r"}
    [row] = stream(worlds.stream([change(VERSIONED, after)]))[1]
    expected = {
        "resource": "jobs/job-1", "lease": "jobs/job-1", "order_key": f"{SEQUENCE + 1:040}",
        "order_scope": "jobs/stream/2026-02-27T08:15:00.000", "at": datetime(2026, 3, 2, 12, 0, 1),
        "before_token": 7, "before_holder": "a", "before_expires_at": datetime(2026, 3, 2, 12, 1), "before_status": "RUNNING",
        "before_terminal": False, "before_terminal_version": None, "before_version": 3, "before_value": None,
        "after_token": 8, "after_holder": "b", "after_expires_at": datetime(2026, 3, 2, 12, 2), "after_status": "DONE",
        "after_terminal": True, "after_terminal_version": 1, "after_version": 4, "expiry_unit": "s", "token_width": 0,
    }  # fmt: skip

    assert shown(row, list(expected)) == expected
    assert row["after_value"] is not None


# --- 9: stream times are floored

TIMES = {
    NOON: ("12:00:00", 1_000_000),
    float(NOON): ("12:00:00", 1_000_000),
    NOON + 0.25: ("12:00:00.250000", 1_000),
    "2026-03-02T12:00:00+00:00": ("12:00:00", 1_000_000),
    "2026-03-02 12:00:00+00:00": ("12:00:00", 1_000_000),
    "2026-03-02T12:00:00Z": ("12:00:00", 1_000_000),
    NOON * 1000 + 5: ("12:00:00.005000", 1_000_000),  # old LocalStack
    "yesterday": (None, 1_000_000),
}


@pytest.mark.parametrize(("written", "expected"), TIMES.items(), ids=str)
def test_times_say_how_precise_they_are(stream, written, expected):
    """Whole seconds may lie up to a second before the true time; a fraction, a millisecond."""
    [row] = stream(worlds.stream([change(STORED, HELD | BY_B, ApproximateCreationDateTime=written)]))[1]
    at = row["at"] and row["at"].time().isoformat()

    assert (at, row["at_precision"]) == expected


def test_a_record_without_a_time(stream):
    """A record that has no creation time has no time."""
    [row] = stream(worlds.stream([change(STORED, STORED | BY_B, ApproximateCreationDateTime=None)]))[1]

    assert row["at"] is None


# --- statuses, declared fields, values


def test_nothing_is_terminal_that_was_not_declared(stream):
    """Without --terminal it is not known what is final, and no write is called a finish."""
    [row] = stream(worlds.stream([change(STORED, STORED | {"status": "DONE"})]), MappingSpec())[1]

    assert shown(row, ["kind", "before_terminal", "after_terminal", "after_status"]) == {
        "kind": "write", "before_terminal": None, "after_terminal": None, "after_status": "DONE",
    }  # fmt: skip


FELL = {
    "none fell": ({"attempt": 1, "seen": 5}, {"attempt": 2, "seen": 5}, ""),
    "one fell": ({"attempt": 3, "seen": 5}, {"attempt": 2, "seen": 6}, "attempt"),
    "the other fell": ({"attempt": 3, "seen": 5}, {"attempt": 3, "seen": 4}, "seen"),
    "a fraction fell": ({"attempt": 3, "seen": {"N": "5.5"}}, {"attempt": 3, "seen": {"N": "5.25"}}, "seen"),
    "a text of a number fell": ({"attempt": "10", "seen": 5}, {"attempt": "9", "seen": 5}, "attempt"),
    "one is gone": ({"attempt": 3, "seen": 5}, {"attempt": 3}, None),
    "one is new": ({"attempt": 3}, {"attempt": 3, "seen": 1}, ""),
    "one is no number any more": ({"attempt": 3, "seen": 5}, {"attempt": "x", "seen": 5}, None),
}


@pytest.mark.parametrize(("before", "after", "expected"), FELL.values(), ids=FELL)
def test_fields_that_may_only_rise(stream, before, after, expected):
    """--rising names the field that fell, is empty where none did, and not known where one is gone."""
    spec = MappingSpec(rising=("attempt", "seen"))
    [row, _] = stream(
        worlds.stream([change(HELD | before, HELD | after), change(HELD | before, HELD | before, 2)]), spec
    )[1]

    assert row["fell"] == expected


PROTECTED = {
    "a declared field": ({"plan": "a"}, {"plan": "b"}, True),
    "a declared map": ({"plan": {"M": {"a": {"N": "1"}}}}, {"plan": {"M": {"a": {"N": "2"}}}}, True),
    "a declared map in another order": (
        {"plan": {"M": {"a": {"N": "1"}, "b": {"N": "2"}}}}, {"plan": {"M": {"b": {"N": "2"}, "a": {"N": "1"}}}, "x": 1}, False),
    "a declared set in another order": ({"plan": {"SS": ["a", "b"]}}, {"plan": {"SS": ["b", "a"]}, "x": 1}, False),
    "another field": ({"plan": "a"}, {"plan": "a", "x": 1}, False),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), PROTECTED.values(), ids=PROTECTED)
def test_declared_fields_are_protected(stream, before, after, expected):
    """--protect adds what only the holder may change; the order in a map or a set is no change."""
    [row] = stream(worlds.stream([change(STORED | before, STORED | after)]), MappingSpec(protect=("plan",)))[1]

    assert row["protected"] is expected


VALUES = {
    "the same": ({"result": "r"}, {"result": "r", "x": 1}, True),
    "another": ({"result": "r"}, {"result": "s"}, False),
    "a number": ({"result": 5}, {"result": 6}, False),
    "a map": ({"result": {"M": {"a": {"N": "1"}}}}, {"result": {"M": {"a": {"N": "2"}}}}, False),
    "a map in another order": (
        {"result": {"M": {"a": {"N": "1"}, "b": {"N": "2"}}}}, {"result": {"M": {"b": {"N": "2"}, "a": {"N": "1"}}}}, True),
    "a list": ({"result": {"L": [{"N": "1"}]}}, {"result": {"L": []}}, False),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "same"), VALUES.values(), ids=VALUES)
def test_values_are_hashed(stream, before, after, same):
    """The result stands in the history as a hash, equal where the results are, also where they are maps."""
    [row] = stream(worlds.stream([change(STORED | before, STORED | after)]))[1]

    assert (row["before_value"] == row["after_value"]) is same
    assert all(re.fullmatch("[0-9A-F]{1,16}", row[name]) for name in ("before_value", "after_value"))


def test_a_value_that_is_missing_has_no_hash(stream):
    """A map that is not there yet is not known, not the hash of nothing."""
    [row] = stream(worlds.stream([change(STORED, STORED | {"result": {"M": {"a": {"N": "1"}}}})]))[1]

    assert row["before_value"] is None
    assert row["after_value"] is not None


# --------------------------------------------------------------------------- views


def test_a_new_image_stands_in_for_the_old_one(stream, tmp_path_factory):
    """With NEW_IMAGE the record before gives the image before: the rows are as with both images, but for its hash."""
    records = worlds.jobs()
    new = plain(stream(worlds.stream(worlds.view(records, "NEW_IMAGE")))[1], without=["before_image"])
    both = plain(rows_of(tmp_path_factory, worlds.stream(records)), without=["before_image"])

    assert new == both


def rows_of(tmp_path_factory: pytest.TempPathFactory, text: str | bytes, spec: MappingSpec = TERMINAL) -> list[Row]:
    """The rows of a second stream in one test."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "work").mkdir()
    (folder / "log.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with duckdb.connect() as con:
        read.read(con, [str(folder / "log.json")], spec, folder / "work")
        asked = con.execute("select * from history order by order_scope, order_key, event_id, rowid")
        names = [name for name, *_ in asked.description]
        return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]


def test_the_first_new_image_says_nothing_of_its_write(stream):
    """The first record of an item's window shows a token, a name and an operation that an earlier write may have stored."""
    stored = VERSIONED | {"operationId": "op-1", "alertId": "al-1"}
    records = worlds.view(told(HELD, stored, stored | {"status": "PAUSED", "version": 4}), "NEW_IMAGE")
    first, second = stream(worlds.stream(records))[1]
    names = ["kind", "writer", "token", "fenced", "protected", "operation", "alert", "before_token", "before_holder"]

    assert shown(first, names) == dict.fromkeys(names) | {"kind": "write"}
    assert shown(first, ["after_token", "after_holder"]) == {"after_token": 7, "after_holder": "a"}
    assert shown(second, names) == dict.fromkeys(names) | {
        "kind": "write", "writer": "a", "token": 7, "fenced": True, "protected": True, "before_token": 7, "before_holder": "a",
    }  # fmt: skip


def test_new_images_after_a_deletion(stream):
    """A deletion and a re-creation leave nothing for the next record to inherit."""
    rows = stream(worlds.stream(worlds.view(told(None, HELD, None, HELD | BY_B), "NEW_IMAGE")))[1]

    assert [row["kind"] for row in rows] == ["grant", "delete", "grant"]
    assert [shown(row, ["before_token"])["before_token"] for row in rows] == [None, 7, None]


def test_redelivered_new_images_are_not_their_own_predecessors(stream):
    """A record that came twice is no change from itself: its first delivery does not stand in as the image before it."""
    first, second, third = worlds.view(told(None, HELD, HELD | {"status": "A"}, HELD | BY_B), "NEW_IMAGE")
    log, rows = stream(worlds.stream([first, second, second, third, third]))

    assert (log.entries.duplicates, [row["kind"] for row in rows]) == (2, ["grant", "write", "grant"])
    assert [shown(row, ["before_token"])["before_token"] for row in rows] == [None, 7, 7]


def test_old_images_show_what_was(stream):
    """With OLD_IMAGE what the receiver held before is known, and of what it held after nothing but that a deletion left nothing."""
    log, rows = stream(worlds.stream(worlds.view(told(STORED, STORED | BY_B, STORED | FREE, None), "OLD_IMAGE")))

    assert [shown(row, ["before_token", "before_holder"]) for row in rows] == [
        {"before_token": 7, "before_holder": "a"}, {"before_token": 8, "before_holder": "b"}, {"before_token": 7, "before_holder": ""},
    ]  # fmt: skip
    nothing = ["token", "fenced", "protected", "writer", "operation", "after_token", "after_status", "after_version"]
    assert [shown(row, nothing) for row in rows] == [dict.fromkeys(nothing)] * 3
    assert [row["after_holder"] for row in rows] == [None, None, ""]
    assert {"fenced", "after_token", "after_image"} <= log.never
    assert not {"before_token", "before_image", "order_key"} & log.never


def test_keys_alone_show_that_something_changed(stream):
    """With KEYS_ONLY the rows are there in their order, and no image is; the log says what to choose."""
    log, rows = stream(worlds.stream(worlds.view(told(None, STORED, STORED | BY_B, None), "KEYS_ONLY")))

    assert [row["kind"] for row in rows] == ["write", "write", "delete"]
    assert {"before_token", "after_token", "before_image", "after_image", "fenced"} <= log.never
    assert "choose NEW_AND_OLD_IMAGES" in log.notes[0]


def test_two_views_in_one_log(stream):
    """Where one table streams new images and another both, each record is read as far as it goes."""
    other = {"eventSourceARN": ARN.replace("jobs", "tasks")}
    news = worlds.view(told(None, STORED, STORED | {"status": "PAUSED", "writtenToken": 6}), "NEW_IMAGE")
    both = told(None, STORED, STORED | {"status": "PAUSED", "writtenToken": 6}, **other)
    log, rows = stream(worlds.stream([*news, *both]))

    assert [shown(row, ["token", "fenced", "before_token"]) for row in rows] == [
        {"token": 7, "fenced": True, "before_token": None}, {"token": 6, "fenced": True, "before_token": 7},
    ] * 2  # fmt: skip
    assert "before_image" not in log.never


# --------------------------------------------------------------------------- wrappings


def expected_places(text: str, records: Sequence[Row]) -> list[str]:
    """Where the event id of each record stands in the text, by looking for it."""
    places = []
    for record in records:
        [(number, line)] = [(n, l) for n, l in enumerate(text.split("\n"), 1) if record["eventID"] in l]
        inside = sorted((r["eventID"] for r in records if r["eventID"] in line), key=line.index)
        index = f"#{inside.index(record['eventID']) + 1}" if len(inside) > 1 else ""
        places.append(f"{number}{index}")
    return places


@pytest.mark.parametrize("wrapping", worlds.WRAPPINGS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_trap_09_every_wrapping_gives_the_same_rows(stream, tmp_path_factory, wrapping, packed):
    """However the records are wrapped, the rows are those of one record a line, and each is found where it stands."""
    records = worlds.jobs()
    text = "\n\n" + worlds.stream(records, wrapping)
    log, rows = stream(gzip.compress(text.encode()) if packed else text)
    alone = rows_of(tmp_path_factory, worlds.stream(records))
    nameless = ["resource", "lease", "order_scope"] if wrapping == "get-records" else []  # it has no ARN

    assert plain(rows, nameless) == plain(alone, nameless)
    assert [row["place"] for row in rows] == [f"log.json:{place}" for place in expected_places(text, records)]
    assert log.set_aside == ()
    if nameless:
        assert {row["resource"] for row in rows} == {f"job-{n}" for n in range(1, 6)}
        assert {row["order_scope"] for row in rows} == {"unnamed stream"}


def test_trap_16_lower_cased_names(stream, tmp_path_factory):
    """Athena and Glue write every name in lower case, type tags too: the rows stay the same."""
    records = worlds.jobs()
    lowered = stream(worlds.stream(worlds.lowered(records)))[1]

    assert plain(lowered, ["before_image", "after_image"]) == plain(
        rows_of(tmp_path_factory, worlds.stream(records)), ["before_image", "after_image"]
    )


def test_trap_08_images_that_are_not_typed(stream, tmp_path_factory):
    """Images that somebody unmarshalled are read as they are; only the type of the stored token is not known."""
    records = worlds.jobs()
    untyped = stream(worlds.stream(worlds.untyped(records)))[1]
    without = ["before_image", "after_image", "token_width"]

    assert plain(untyped, without) == plain(rows_of(tmp_path_factory, worlds.stream(records)), without)
    assert {row["token_width"] for row in untyped} == {None}


def test_one_odd_record_does_not_change_how_the_others_are_read(stream):
    """One record with a plain image in a log of typed ones is set aside, alone."""
    records = worlds.jobs()
    odd = worlds.untyped(records[3:4])[0] | {"eventID": "odd"}
    log, rows = stream(worlds.stream([*records[:3], odd, *records[3:]]))

    assert len(rows) == len(records)
    assert [(entry.source.rpartition("/")[2], entry.reason) for entry in log.set_aside] == [
        ("log.json:4", "its values are not written as those of the others")
    ]


def test_records_in_many_small_files(stream):
    """Files that are read from one shared copy keep their names and line numbers."""
    records = worlds.jobs() * 2
    files = {f"{n:03}.json{'.gz' if n % 2 else ''}": "\n" * (n % 3) + worlds.stream([r]) for n, r in enumerate(records)}
    packed = {n: gzip.compress(text.encode()) if n.endswith(".gz") else text for n, text in files.items()}
    log, rows = stream(packed)
    expected = {
        r["eventID"]: f"{name}:{n % 3 + 1}"
        for n, (name, r) in enumerate(zip(files, records[: len(records) // 2], strict=False))
    }

    assert (len(rows), log.entries.duplicates) == (len(records) // 2, len(records) // 2)
    assert {row["event_id"]: row["place"] for row in rows} == expected


def test_several_wrappings_in_one_folder(stream):
    """Files of one stream need not be wrapped alike."""
    records = worlds.jobs()
    parts = [records[n::3] for n in range(3)]
    files = {
        f"{n}.json": worlds.stream(p, w)
        for n, (p, w) in enumerate(zip(parts, ("lines", "pretty", "lambda"), strict=True))
    }

    assert [row["event_id"] for row in stream(files)[1]] == [r["eventID"] for r in records]


def test_records_that_are_not_found_again(stream):
    """A record whose id is odd has no line, but keeps its file."""
    records = [*worlds.jobs(), change(HELD, HELD | {"fencingToken": {"N": "x"}}, 7, eventID='a"b')]
    records[0]["eventID"] = 'c"d'
    log, rows = stream(worlds.stream(records))

    assert aside(log) == [("log.json:?", NO_TOKEN)]
    assert [row["place"] for row in rows if row["event_id"] == 'c"d'] == ["log.json:?"]


def test_records_without_event_ids(stream):
    """Where there is no event id the sequence number tells records apart and finds them."""
    records = [{n: v for n, v in r.items() if n != "eventID"} for r in worlds.jobs()]
    log, rows = stream(worlds.stream([*records, records[0]]))

    assert (len(rows), log.entries.duplicates) == (len(records), 1)
    assert rows[3]["place"] == "log.json:4"


# --------------------------------------------------------------------------- real samples

SAMPLE_ROWS = {  # read although no attribute is of a lease, by saying that one is
    "lambda-go_dynamodb-event.json": ("asdf1", 2, [("Example-Table/binary|data", "write")] * 2),
    "lambda-go_dynamodb-event-malformed.2.json": ("asdf1", 2, [("Example-Table/binary|data", "write")] * 2),
    "lambda-go_dynamodb-time-window-event.json": ("Message", 3, [("101", k) for k in ("write", "write", "delete")]),
    "lambda-java_dynamo_ddb_stream_record.json": ("Message", 1, [("ExampleTableWithStream/101", "write")]),
    "lambda-java_dynamo_event.json": (
        "Message", 3, [("ExampleTableWithStream/101", k) for k in ("write", "write", "delete")]),
    "powertools_dynamoStreamEvent.json": ("Message", 2, [("101", "write")] * 2),
}  # fmt: skip
MASKED = r"no readable record in \d+ lines: the sequence number is not 1 to 40 digits"
SAMPLE_REFUSALS = {
    "ddb_test_batch_write_items_streaming.json": "LocalStack test snapshot .* sequence numbers and times are masked",
    "ddb_test_dynamodb_stream_records_with_update_item.json": "LocalStack test snapshot",
    "ddb_test_dynamodb_stream_stream_view_type.json": "LocalStack test snapshot",
    "ddb_test_transact_write_items_streaming.json": "LocalStack test snapshot",
    "getrecords_events_10.json": MASKED,
    "lambda_onfailure_s3_body.json": MASKED,
    "lambda_onfailure_sqs_messages.json": "failure destination without their records, .* could show no write",
}
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not in a user's checkout")


@needs_samples
def test_every_sample_is_expected():
    """Every real sample of a stream is read or refused in one of the two tests below."""
    assert {path.name for path in SAMPLES.iterdir()} == {*SAMPLE_ROWS, *SAMPLE_REFUSALS}


@needs_samples
@pytest.mark.parametrize("name", SAMPLE_ROWS)
def test_real_samples_are_read(stream, name):
    """A real sample gives all of its records, once one of its attributes is said to be the holder."""
    field, count, expected = SAMPLE_ROWS[name]
    log, rows = stream({name: (SAMPLES / name).read_bytes()}, MappingSpec(fields={"holder": field}))

    assert log.entries.records + (log.entries.set_aside if "malformed" in name else 0) == count
    assert [(row["resource"], row["kind"]) for row in rows if row["kind"] != "grant"] == [
        e for e, row in zip(expected, rows, strict=False) if row["kind"] != "grant"
    ]


@needs_samples
@pytest.mark.parametrize("name", SAMPLE_ROWS)
def test_real_samples_have_no_lease(stream, name):
    """Without a word of the user none of them has a lease field, and each says which fields it has."""
    with pytest.raises(InputError, match=rf"{name}: no lease field is recognised among `\w+`"):
        stream({name: (SAMPLES / name).read_bytes()})


@needs_samples
@pytest.mark.parametrize(("name", "reason"), SAMPLE_REFUSALS.items())
def test_real_samples_are_refused(stream, name, reason):
    """A masked snapshot has no order and a message without records shows no write: each is refused with that reason."""
    with pytest.raises(InputError, match=reason):
        stream({name: (SAMPLES / name).read_bytes()}, MappingSpec(fields={"holder": "my_partition_key"}))


# --------------------------------------------------------------------------- traps


def aside(log: Log) -> list[tuple[str, str]]:
    """(file:line, reason) of what was set aside."""
    return [(entry.source.rpartition("/")[2], entry.reason) for entry in log.set_aside]


NO_TOKEN = "fencingToken is not a whole number of at most 38 digits"
TOKENS = {
    "9" * 38: 10**38 - 1, "9007199254740993": 2**53 + 1, "1" + "0" * 37: 10**37, "42.0": 42, "0": 0,
    "9" * 39: NO_TOKEN, "1E+100": NO_TOKEN, "42.5": NO_TOKEN, "-1": NO_TOKEN, "": NO_TOKEN, "NaN": NO_TOKEN,
}  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), TOKENS.items(), ids=lambda v: str(v)[:40])
def test_trap_01_tokens_are_exact_or_set_aside(stream, written, expected):
    """A number of up to 38 digits is exact; what cannot be a token is set aside with its place and without its value."""
    log, rows = stream(worlds.stream([change(None, HELD), change(HELD, HELD | {"fencingToken": {"N": written}}, 2)]))

    if expected == NO_TOKEN:
        assert (aside(log), len(rows)) == ([("log.json:2", NO_TOKEN)], 1)
    else:
        assert (aside(log), shown(rows[1], ["after_token"])["after_token"]) == ([], expected)


def test_trap_02_tokens_stored_as_text(stream):
    """Tokens of text are compared as numbers here; how wide they are stored is kept, 0 for a number."""
    images = [HELD | {"fencingToken": token} for token in ({"S": "9"}, {"S": "10"}, {"S": "011"}, {"N": "12"})]
    rows = stream(worlds.stream(told(None, *images)))[1]

    assert [shown(row, ["after_token", "token_width", "kind"]) for row in rows] == [
        {"after_token": token, "token_width": width, "kind": "grant"}
        for token, width in ((9, 1), (10, 2), (11, 3), (12, 0))
    ]


def test_trap_03_bare_numbers_beyond_2_to_the_53(stream):
    """Images that are not typed keep every digit of a bare number."""
    text = worlds.stream(worlds.untyped([change(None, HELD | {"fencingToken": 2**53 + 1})]))

    assert shown(stream(text)[1][0], ["after_token"]) == {"after_token": 2**53 + 1}


def test_trap_04_binary_values(stream):
    """Binary keys and attributes are text in base64, and hinder nothing."""
    keys = {"pk": {"B": "AAEqQQ=="}}
    blob = STORED | {"blob": {"B": "QSoBAA=="}, "blobs": {"BS": ["AAE=", "QSo="]}}
    [row, _] = stream(worlds.stream([change(None, blob, Keys=keys), change(blob, blob | BY_B, 2, Keys=keys)]))[1]

    assert (row["resource"], row["kind"]) == ("jobs/AAEqQQ==", "grant")


def test_trap_05_order_in_sets_and_maps_is_no_change(stream):
    """The image after a write is the image before the next one, whatever order their sets and maps are written in."""
    sets = {"tags": {"SS": ["a", "b"]}, "map": {"M": {"x": {"N": "1"}, "y": {"L": [{"S": "z"}]}}}}
    turned = {"map": {"M": {"y": {"L": [{"S": "z"}]}, "x": {"N": "1"}}}, "tags": {"SS": ["b", "a"]}}
    first, second = stream(worlds.stream([change(None, STORED | sets), change(turned | STORED, BY_B | STORED, 2)]))[1]

    assert first["after_image"] == second["before_image"]


def test_trap_05_plain_lists_and_objects_too(stream):
    """The same holds for images that are not typed."""
    one = {"jobId": "job-1", "leaseOwner": "a", "fencingToken": 7, "tags": ["a", "b"], "map": {"x": 1, "y": 2}}
    other = {"map": {"y": 2, "x": 1}, "tags": ["b", "a"]} | {n: one[n] for n in ("fencingToken", "jobId", "leaseOwner")}
    inside = {"Keys": {"jobId": "job-1"}}
    records = [change(None, HELD, **inside), change(HELD, HELD | BY_B, 2, **inside)]
    records[0]["dynamodb"]["NewImage"], records[1]["dynamodb"]["OldImage"] = one, other
    records[1]["dynamodb"]["NewImage"] = one | {"fencingToken": 8}
    first, second = stream(worlds.stream(records))[1]

    assert first["after_image"] == second["before_image"]


def test_trap_06_missing_null_and_empty_are_three(stream):
    """Whether an attribute is missing, NULL or empty are three images; a token that is missing or NULL is not known."""
    images = [HELD, HELD | {"note": {"NULL": True}}, HELD | {"note": ""}, HELD | {"fencingToken": {"NULL": True}}]
    rows = stream(worlds.stream(told(None, *images, HELD | {"fencingToken": None})))[1]

    assert len({row["after_image"] for row in rows[:3]}) == 3
    assert [shown(row, ["after_token"])["after_token"] for row in rows] == [7, 7, 7, None, None]


def test_trap_07_attributes_called_like_types(stream):
    """Attributes called S, N, M or NULL are attributes, in typed images and in plain ones."""
    names = {"S": "x", "N": 5, "M": {"M": {"S": {"S": "y"}}}, "NULL": {"NULL": True}, "L": {"L": []}}
    typed = stream(worlds.stream(told(None, STORED | names, STORED | names | BY_B | {"writtenToken": 8})))[1]

    assert [shown(row, ["kind", "after_token", "after_holder"]) for row in typed] == [
        {"kind": "grant", "after_token": 7, "after_holder": "a"}, {"kind": "grant", "after_token": 8, "after_holder": "b"},
    ]  # fmt: skip


def test_trap_07_plain_maps_that_look_typed(stream):
    """In plain images a map with one member called S is a map, not a text."""
    image = {"jobId": "job-1", "leaseOwner": "a", "fencingToken": 7, "S": {"S": "x"}}
    record = change(None, HELD, Keys={"jobId": "job-1"})
    record["dynamodb"]["NewImage"] = image
    [row] = stream(worlds.stream([record]))[1]

    assert shown(row, ["resource", "after_token", "after_holder"]) == {
        "resource": "jobs/job-1", "after_token": 7, "after_holder": "a",
    }  # fmt: skip


JOBS = worlds.stream(worlds.jobs())
ENCODED = {
    "a BOM": b"\xef\xbb\xbf" + JOBS.encode(),
    "UTF-16 from PowerShell": JOBS.encode("utf-16"),
    "UTF-16 without a mark": JOBS.encode("utf-16-le"),
    "CRLF": JOBS.replace("\n", "\r\n").encode(),
    "CRLF in a document": worlds.stream(worlds.jobs(), "pretty").replace("\n", "\r\n").encode(),
    "CRLF round events": worlds.stream(worlds.jobs(), "lambda lines").replace("\n", "\r\n").encode(),
    "both newlines": JOBS.replace("\n", "\r\n", 7).encode(),
    "U+2028 in values": JOBS.replace("worker-a", "worker\u2028a").encode(),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_trap_13_encodings_and_newlines(stream, content):
    """However the text is encoded and its lines end, every record is there and found again."""
    log, rows = stream(content)

    assert (len(rows), log.set_aside) == (len(worlds.jobs()), ())
    assert len({row["place"] for row in rows}) == len(rows)
    assert {row["writer"] for row in rows} <= {None, "worker-a", "worker\u2028a", "worker-b", "worker-c"}


def test_trap_13_a_nul_costs_its_line(stream):
    """A line with a NUL is set aside, and the others are read."""
    lines = JOBS.split("\n")
    lines[2] = lines[2].replace("worker", "wor\0ker")
    log, rows = stream("\n".join(lines))

    assert len(rows) == len(worlds.jobs()) - 1
    [(place, reason)] = aside(log)
    assert place == "log.json:3"
    assert reason.endswith("is NUL")


ROUNDED = {
    "by Excel": '"8.00E+20"',
    "by Excel without quotes": "8.00E+20",
    "by pandas": "8.000000000031263e+20",
    "by JavaScript": "800000000003126300000",
    "a fraction": '"800000000003126276362.0"',
    "negative": '"-5"',
    "41 digits": '"' + "9" * 41 + '"',
    "no number": '"starting-sequence-number"',
    "empty": '""',
}


@pytest.mark.parametrize("written", ROUNDED.values(), ids=ROUNDED)
def test_trap_15_rounded_sequence_numbers(stream, written):
    """A sequence number that was rounded or is none gives no order: its record is set aside, the others are judged."""
    bare = [json.dumps(r) for r in worlds.jobs()]
    sequence = worlds.jobs()[1]["dynamodb"]["SequenceNumber"]
    bare[1] = bare[1].replace(f'"{sequence}"', written)
    log, rows = stream("\n".join(bare))
    [(place, reason)] = aside(log)

    assert (len(rows), place) == (len(bare) - 1, "log.json:2")
    assert reason.startswith("the sequence number ")
    assert written.strip('"') not in reason or not written.strip('"')


def test_trap_15_sequence_numbers_as_numbers(stream):
    """Numbers without quotes that nobody rounded order as text does: by value, not by their first digits."""
    numbers = (9, 10, 111, 9007199254740993, 800000000003126276362, 10**39 + 7)
    records = [change(HELD, HELD | {"x": n}, n, SequenceNumber=number) for n, number in enumerate(numbers, 1)]
    log, rows = stream(worlds.stream(records[::-1]))

    assert [int(row["order_key"]) for row in rows] == list(numbers)
    assert log.set_aside == ()


def test_trap_15_no_sequence_number(stream):
    """A record without a sequence number has no order, and is read."""
    [row] = stream(worlds.stream([change(STORED, STORED | BY_B, SequenceNumber=None)]))[1]

    assert (row["order_key"], row["order_scope"]) == (None, None)


def test_trap_18_the_same_record_in_many_files(stream):
    """A record that was delivered again counts once, wherever; a write that was made twice counts twice."""
    again = told(STORED, STORED | {"status": "A"}, STORED, STORED | {"status": "A"})  # the third is the first once more
    events = {
        "1.json": worlds.stream(again[:2]),
        "2.json": worlds.stream(again[1:], "lambda"),
        "3.json": worlds.stream(again),
    }
    log, rows = stream(events)

    assert [row["event_id"] for row in rows] == ["e00001", "e00002", "e00003"]
    assert (log.entries.records, log.entries.duplicates, log.entries.audited) == (7, 4, 3)


def test_trap_19_one_item_over_files_and_shards(stream, tmp_path_factory):
    """Records dealt out to files in any order are the same rows, each found in its file."""
    records = worlds.jobs()
    parts = worlds.split(records, 5)
    rows = stream({f"shard-{n}.jsonl": worlds.stream(part) for n, part in enumerate(parts)})[1]
    expected = {r["eventID"]: f"shard-{n}.jsonl:{i}" for n, part in enumerate(parts) for i, r in enumerate(part, 1)}

    assert plain(rows) == plain(rows_of(tmp_path_factory, worlds.stream(records)))
    assert {row["event_id"]: row["place"] for row in rows} == expected


def test_trap_20_a_new_incarnation_begins(stream):
    """A deletion and a re-creation are told: no item after the one, none before the other, and the token begins anew."""
    rows = stream(worlds.stream(told(None, STORED, None, STORED | {"fencingToken": 1, "writtenToken": 1})))[1]
    names = ["kind", "before_token", "after_token", "before_holder", "after_holder"]

    assert [tuple(shown(row, names).values()) for row in rows] == [
        ("grant", None, 7, "", "a"), ("delete", 7, None, "a", ""), ("grant", None, 1, "", "a"),
    ]  # fmt: skip
    assert [row["before_image"] == 0 for row in rows] == [True, False, True]
    assert [row["after_image"] == 0 for row in rows] == [False, True, False]


SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
DELETERS = {
    "TTL": ({"userIdentity": SERVICE}, "ttl_delete"),
    "TTL in another order": ({"userIdentity": dict(reversed(SERVICE.items()))}, "ttl_delete"),
    "a writer": ({}, "delete"),
    "nobody": ({"userIdentity": None}, "delete"),
    "another service": ({"userIdentity": {"type": "Service", "principalId": "replication.dynamodb"}}, "delete"),
}


@pytest.mark.parametrize(("more", "kind"), DELETERS.values(), ids=DELETERS)
def test_trap_21_ttl_is_no_writer(stream, more, kind):
    """Only the service's own deletion is TTL's."""
    assert stream(worlds.stream([change(STORED, None, **more)]))[1][0]["kind"] == kind


def test_trap_22_two_streams_are_never_one_order(stream):
    """The streams of two regions, or of one table before and after it was switched off, are two orders."""
    other = {"eventSourceARN": ARN.replace("2026-02-27", "2026-03-01").replace("eu-central-1", "us-east-1")}
    rows = stream(worlds.stream([*told(None, STORED), change(STORED, STORED | BY_B, 2, **other)]))[1]

    assert {row["resource"] for row in rows} == {"jobs/job-1"}
    assert [row["order_scope"] for row in rows] == [
        "jobs/stream/2026-02-27T08:15:00.000", "jobs/stream/2026-03-01T08:15:00.000",
    ]  # fmt: skip


def test_trap_23_composite_keys(stream):
    """A composite key is its values in the order of their names; numbers are canonical, and `|` in a value is told apart."""
    keys = [
        {"pk": {"S": "a"}, "sk": {"N": "1"}}, {"sk": {"N": "1.0"}, "pk": {"S": "a"}}, {"pk": {"S": "a|1"}, "sk": {"N": "2"}},
        {"pk": {"S": 'q"'}, "sk": {"S": "1.0"}},
    ]  # fmt: skip
    rows = stream(worlds.stream([change(STORED, STORED | {"x": n}, n, Keys=key) for n, key in enumerate(keys, 1)]))[1]

    assert [row["resource"] for row in rows] == ["jobs/a|1", "jobs/a|1", "jobs/a\\|1|2", 'jobs/q"|1.0']


def test_trap_24_one_table_of_several_entities(stream):
    """Of a table that holds more than leased items a prefix of the key leaves those; the others count as filtered."""
    user = {"jobId": "user-1", "mail": "x"}
    records = [*told(None, STORED, STORED | BY_B), change(None, user, 9, Keys={"jobId": {"S": "user-1"}})]
    log, rows = stream(worlds.stream(records), filters=Filters(key_prefix="job-"))

    assert {row["resource"] for row in rows} == {"jobs/job-1"}
    assert (log.entries.filtered, log.entries.audited) == (1, 2)


ODD_JSON = {
    "NaN": ('"SizeBytes":', '"x":NaN,"SizeBytes":'),
    "Infinity": ('"SizeBytes":', '"x":-Infinity,"SizeBytes":'),
    "a lone surrogate": ('"S":"worker', '"S":"\\ud800worker'),
    "a name twice": ('"eventVersion"', '"eventVersion":"1.0","eventVersion"'),
    "a control character": ('"S":"worker', '"S":"\x1fworker'),
    "deep nesting": ('"SizeBytes":', '"x":' + "[" * 5000 + "]" * 5000 + ',"SizeBytes":'),
}


@pytest.mark.parametrize(("old", "new"), ODD_JSON.values(), ids=ODD_JSON)
def test_trap_25_odd_json_costs_its_line_at_most(stream, old, new):
    """JSON that parsers do not agree on is read or set aside, and the other lines are read."""
    lines = JOBS.splitlines()
    at = next(n for n, line in enumerate(lines) if old in line and n)
    lines[at] = lines[at].replace(old, new, 1)
    log, rows = stream("\n".join(lines))

    assert log.entries.records + log.entries.set_aside == len(rows) + len(log.set_aside) == len(lines)
    assert aside(log) in ([], [(f"log.json:{at + 1}", "cut off or not JSON")])


# --------------------------------------------------------------------------- odd logs


def test_identities_are_no_tokens(stream):
    """Tokens that are random ids protect identity, not order: the columns stay empty, grants show by their holder, a note says so."""
    log, rows = stream(worlds.stream(worlds.jobs(token_of=worlds.uuid_token)))

    assert {row[name] for row in rows for name in ("token", "before_token", "after_token")} == {None}
    assert {row["fenced"] for row in rows if row["kind"] == "grant"} == {True}
    assert sum(row["kind"] == "grant" for row in rows) == sum(r["kind"] == "grant" for r in rows if r["after_holder"])
    assert log.notes == (
        "`fencingToken` holds identities, not numbers: they protect identity, not order",
        "`writtenToken` holds identities, not numbers: they protect identity, not order",
    )


HOSTILE_NAMES = (
    'a"b',
    "a'b",
    "a b",
    "a.b",
    "$.a",
    "a\\b",
    "ä",
    "\u202ea",
    "a\nb",
    "select",
    "was",
    "now",
    "S",
    "x" * 300,
    "<b>",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_attributes_may_be_called_anything(stream, name):
    """Any attribute name can be the token's, the key's or a bystander's."""
    held, later = ({"leaseOwner": owner, name: token, f"{name}!": "x"} for owner, token in (("a", 7), ("b", 8)))
    keys = {"Keys": {f"{name}?": {"S": "k"}}}
    spec = MappingSpec(fields={"token": name, "value": f"{name}!"})
    rows = stream(worlds.stream([change(None, held, **keys), change(held, later, 2, **keys)]), spec)[1]

    assert [shown(row, ["resource", "kind", "after_token"]) for row in rows] == [
        {"resource": "jobs/k", "kind": "grant", "after_token": token} for token in (7, 8)
    ]


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "\ud83d"])
def test_attributes_that_cannot_be_called(stream, name):
    """An attribute without a name, or with a name that is no text, costs the records that have it at most."""
    log, rows = stream(worlds.stream(told(None, HELD, HELD | {name: "x"}, HELD, HELD | BY_B)))

    assert [row["kind"] for row in rows if row["kind"] == "grant"] == ["grant", "grant"]
    assert len(rows) + len(log.set_aside) == 4


def test_names_that_differ_by_case_only(stream):
    """Of two attributes that differ by case the mapped one is read as it is written."""
    image = {"leaseOwner": "a", "FENCE": 3, "fence": 7}
    log, rows = stream(worlds.stream(told(None, image, image | {"fence": 8})), MappingSpec(fields={"token": "fence"}))

    assert [shown(row, ["after_token"])["after_token"] for row in rows] == [7, 8]


def test_items_of_many_attributes(stream):
    """An item of a thousand attributes is read."""
    wide = HELD | {f"attribute{n}": n for n in range(1000)}
    [first, second] = stream(worlds.stream(told(None, wide, wide | BY_B)))[1]

    assert first["after_image"] == second["before_image"] != second["after_image"]


@pytest.mark.parametrize("wrapping", ["pretty", "concatenated"])
def test_documents_longer_than_a_line_may_be(stream, wrapping):
    """A document of more than 16 MiB is read, record by record."""
    big = "x" * 400_000
    records = told(None, *({**STORED, "blob": big, "n": n} for n in range(24)))
    text = worlds.stream(records, wrapping)
    log, rows = stream(text)

    assert len(text) > 16 << 20
    assert (len(rows), log.set_aside) == (24, ())


CUT = {
    "a line": ("lines", 44, "log.json:45"),
    "an event a line": ("lambda lines", 44, "log.json:5"),
    "an event on one line": ("lambda", 44, "log.json:1"),
    "an array on one line": ("array", 44, "log.json:1"),
    "a document": ("pretty", 44, None),
    "a stretch of records": ("concatenated", 44, "log.json:1"),
    "a failure destination": ("failure destination", 44, "log.json:1"),
}


@pytest.mark.parametrize(("wrapping", "whole", "place"), CUT.values(), ids=CUT)
def test_trap_12_a_log_that_is_cut_off(stream, wrapping, whole, place):
    """Of a download that ended early every whole record is read, and the broken one is set aside with its line."""
    records = worlds.jobs()
    text = worlds.stream(records, wrapping)
    text = text[: text.rindex('"SequenceNumber"')]
    begins = text[: text.rindex('"eventID"')].count("\n")
    log, rows = stream(text)

    assert (len(rows), len(records)) == (whole, 45)
    assert aside(log) == [(place or f"log.json:{begins}", "cut off or not JSON")]


def test_what_is_no_record_is_set_aside(stream):
    """Other JSON between the records, and text, is set aside with line and index; an empty container holds no entry."""
    lines = [
        *JOBS.splitlines(),
        '{"a":1}',
        "hello",
        '{"Records":[]}',
        f"[{JOBS.splitlines()[0]},5]",
        '{"dynamodb":{"Keys":{}}}',
        '"x"',
    ]
    log, rows = stream("\n".join(lines))

    assert aside(log) == [
        ("log.json:46", "no stream record"), ("log.json:47", "cut off or not JSON"), ("log.json:49#2", "no stream record"),
        ("log.json:50", "no stream record of the shape that the others have"), ("log.json:51", "no stream record"),
    ]  # fmt: skip
    assert (log.entries.read, log.entries.records, log.entries.duplicates) == (51, 46, 1)


def test_what_is_no_record_in_a_document(stream):
    """In a document too, with the line on which it begins."""
    records = worlds.jobs()[:12]
    text = json.dumps({"Records": [*records, {"a": 1}]}, indent=1)
    log, rows = stream(text)

    assert len(rows) == len(records)
    assert aside(log) == [
        (f"log.json:{text[: text.index(chr(34) + 'a' + chr(34))].count(chr(10))}", "no stream record")
    ]
