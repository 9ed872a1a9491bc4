"""What the words of a log line mean, told from the texts alone."""

from __future__ import annotations

import duckdb
import pytest

from fencinglab.logs import words


def meaning(**texts: str) -> dict[str, object]:
    """What a line with these texts (kind, decision, outcome, reason, denial) means."""
    given = {name: texts.get(name) for name in ("kind", "decision", "outcome", "reason", "denial")}
    with duckdb.connect() as con:
        con.execute(
            f"create table texts as select {', '.join(f'?::varchar as {name}' for name in given)}", [*given.values()]
        )
        found = con.execute(words.meanings("texts"))
        [row] = found.fetchall()
        return dict(zip((column[0] for column in found.description), row, strict=True))


# A guard that refuses answers with a count of nothing: read as a success, the protection at work would be the harm.
NOTHING = [
    "0 rows updated", "0 rows affected", "0 row(s) updated", "Query OK, 0 rows affected (0.00 sec)", "no rows updated",
    "no row was updated", "0 of 1 rows updated", "0/1 rows updated", "0 matching rows updated", "updated 0 rows",
    "update affected 0 rows", "wrote 0 items", "wrote nothing", "nothing was written", "rowCount=0", "rows_affected: 0",
    "RowsAffected: 0", "update done, rowCount=0 job=j1", "modifiedCount: 0", "matched_count=0", "changes: 0",
    "saved: false", "saved=false", "result saved: false", "applied: false", "write accepted? no",
    "update completed: 0 rows affected", "lease acquired: false", "0 items written, 3 retries", "UPDATE: 0 rows changed",
]  # fmt: skip
OPEN = [
    "write ok? no: 409", "updated: 0", "status changed: 0", "write ok: false", "saved result, success=false", "write never completed",
    "rolled back saved result", "saved result, 0 rows updated", "wasn't saved", "not yet saved", "not been updated",
    "would have updated the row", "result saved (dry run)", "lease acquired, 0 rows deleted", "transaction rollback, saved",
]  # fmt: skip
DONE = [
    "1 row updated", "10 rows updated", "20 rows saved", "updated 100 items", "saved result in 0 ms", "saved, 0 retries",
    "result saved after 0 retries", "row updated (0 ms)", "item saved, attempt 0", "attempt 0: row updated",
    "worker-0: rows updated", "shard-0: 1 row updated", "saved item 0", "wrote shard 0", "1 row updated, 0 rows deleted",
    "updated 1 row, 0 rows skipped", "saved, ok", "write ok, no retries", "saved (force=false)", "saved result, cached: no",
    "stored, elapsed=0.3", "updated: 0.5s", "updated in 0s", "committed offset 0", "saved: job-0", "updated job 0",
    "0: written", "saved with 0 warnings", "rows updated", "updated: 3", "saved: true", "row count 10, saved",
    "wrote 1 of 1 rows", "lease acquired, waited 0 ms", "lease acquired (renewed=false)", "updated status, 0 items left",
]  # fmt: skip
SAID = [
    *((text, "rejected") for text in NOTHING), *((text, "unknown") for text in OPEN), *((text, "accepted") for text in DONE)
]  # fmt: skip


@pytest.mark.parametrize(("text", "decision"), SAID)
def test_nothing_written_is_no_success(text, decision):
    """A count of nothing is a refusal, a success denied is open, and a 0 that counts something else is neither."""
    assert meaning(kind=text)["decision"] == decision


@pytest.mark.parametrize("column", ["decision", "outcome"])
def test_a_decision_may_be_a_count_of_nothing(column):
    """The field that holds the decision is read as the event is."""
    said = meaning(kind="write", **{column: "0 rows updated"})

    assert (said["decision"], said["outcome"]) == ("rejected", "failed")


def test_words_against_each_other_leave_it_open():
    """A success beside a count of nothing is neither."""
    assert meaning(kind="0 rows updated", decision="ok")["decision"] == "unknown"
    assert meaning(kind="0 rows updated", decision="rejected")["decision"] == "rejected"


# A deletion ends what is known of the item and a poll writes nothing: neither is told by what stands beside a write.
KINDS = [
    ("polled and saved", "write"), ("job saved (ttl=60s)", "write"), ("saved; evicted cache", "write"),
    ("expired item replaced", "write"), ("deleted temp files and saved result", "write"),
    ("lease acquired, ttl=30s", "grant"), ("deleted stale lease, lease acquired", "grant"),
    ("acquired the lease, expired item removed", "grant"), ("lease renewed, ttl 30", "renew"),
    ("ttl_delete", "ttl_delete"), ("ttl", "ttl_delete"), ("item deleted by ttl", "ttl_delete"), ("TTL expired", "ttl_delete"),
    ("item removed", "delete"), ("stored item deleted", "delete"), ("lease deleted", "delete"), ("polled", "poll"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_deletion_or_a_look_is_one_alone(text, kind):
    """Where a text tells a write or a grant besides, that is what it reports."""
    assert meaning(kind=text)["kind"] == kind


# A word of refusal tells one only where nothing was done besides: the stale write that went through often has both.
BOTH = [
    *((text, "rejected") for text in (
        "write rejected: already finished", "refused, newer token granted", "stale", "update conflict, requeued",
        "already finished, write refused", "could not be saved: conflict", "ConditionalCheckFailed: item was updated",
        "conflict exception raised", "duplicate, not saved", "not applied",
    )),
    *((text, "unknown") for text in (
        "saved after conflict", "saved despite stale lease", "conflict resolved, saved", "stale cache refreshed, saved",
        "rejected: 0, saved: 5", "accepted_stale", "accepted=1 rejected=0", "not rejected", "no conflict",
    )),
    *((text, "accepted") for text in ("saved, no conflict", "saved without conflicts", "saved (stale=false)", "no stale entries, saved")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "decision"), [
    ("job already completed", "unknown"), ("already been saved", "unknown"), ("job already completed, refusing write", "rejected"),
    ("lease already acquired, saved", "accepted"), ("has been saved", "accepted"),
])  # fmt: skip
def test_what_was_done_already_was_not_done_by_this_line(text, decision):
    """A worker that finds the job finished has written nothing: read as a finish, its line would be the harm."""
    assert meaning(kind=text)["decision"] == decision


@pytest.mark.parametrize(("text", "decision"), [
    ("lease check ok", "unknown"), ("job accepted by queue", "unknown"), ("row version changed, giving up", "unknown"),
    ("accepted", "accepted"), ("write ok", "accepted"), ("lease taken", "accepted"), ("sent request", "unknown"),
    ("cache updated", "unknown"), ("connection acquired from pool", "unknown"), ("config saved", "unknown"),
    ("cache updated, result saved", "accepted"), ("email sent", "accepted"), ("sent write, no reply", "unknown"), ("update dropped: fenced", "rejected"),
])  # fmt: skip
def test_a_success_is_one_of_something_that_is_known(text, decision):
    """`check ok` tells a success, but of no write; a single word is the event itself, and a request is an attempt."""
    assert meaning(kind=text)["decision"] == decision


@pytest.mark.parametrize("column", ["kind", "decision"])
@pytest.mark.parametrize(("text", "decision"), BOTH)
def test_a_refusal_beside_a_success_is_neither(text, decision, column):
    """Only a refusal that is told first, or alone, is one; a refusal that is denied is none."""
    assert meaning(**{"kind": "update", column: text})["decision"] == decision


@pytest.mark.parametrize(("text", "decision"), [("stale header", "unknown"), ("ConditionalCheckFailed", "rejected")])
def test_a_fault_beside_a_success_must_name_a_refusal(text, decision):
    """An error that speaks of something stale does not say that a write which was saved was refused."""
    assert meaning(kind="saved", denial=f"error {text}")["decision"] == decision


NOTICES = [
    *((text, True) for text in (
        "lease lost", "write failed: lease lost", "heartbeat failed, lease lost", "starting write", "load failed: read timed out",
        "skipping update: lease expired",
    )),
    *((text, False) for text in (
        "job saved, lease lost", "save failed: read timed out", "write timed out, giving up", "could not save, giving up",
        "failed to upload: ReadTimeoutException", "resumed and saved",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "noticed"), NOTICES)
def test_an_attempt_is_no_notice(text, noticed):
    """A write whose reply did not come is an attempt, whatever else its line says; before it is sent it is none."""
    assert meaning(kind=text)["noticed"] is noticed


VERDICTS = [
    (["ok", "rejected"], True), (["success", "failure"], True), (["ConditionalCheckFailed"], True), (["accepted"], True),
    (["ok", "report-7"], False), (["old", "new"], False), (["7"], False), (["done"], False), (["approved"], False),
    (["true", "false"], False), ([], False),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), VERDICTS)
def test_a_field_of_decisions_is_told_by_its_values(texts, expected):
    """Only where every value is a word for a decision does a field hold decisions."""
    with duckdb.connect() as con:
        assert words.decide(con, texts) is expected
