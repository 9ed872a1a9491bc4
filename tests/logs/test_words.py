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


NAMES = [
    *((text, "accepted") for text in (
        "lease acquired", "LeaseAcquired", "lease_acquired", "Lease acquired.", "job.claimed", "became leader", "took the lease",
        "renewed", "lease extended", "released", "written", "Result saved!", "job completed successfully", "write completed",
        "write done", "acquire success", "update succeeded", "status update saved", "deleted", "item deleted by ttl", "alert raised", "email sent",
    )),
    *((text, "rejected") for text in (
        "rejected", "write_rejected", "write rejected: stale token", "WriteRejectedStale", "finish refused", "update conflict",
        "write rejected: already finished", "write failed: ConditionalCheckFailedException", "conditional check failed",
        "precondition failed", "acquire failed", "failed to acquire lease", "could not acquire the lease",
    )),
    *((text, "unknown") for text in (
        "write", "writing result", "write requested", "write failed", "not saved", "renew failed", "rejecting and saving",
        "saved and rejected", "stale write", "fenced", "job rejected", "update superseded",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "decision"), NAMES)
def test_a_name_decides(text, decision):
    """A text of known words only tells a success in the past tense, a refusal, or neither."""
    assert meaning(kind=text)["decision"] == decision


# Each of these has a word of success or of refusal, and one more that may take it back.
SENTENCES = [
    "0 rows updated", "1 of 2 rows updated", "saved=false", "saved: false", "saved?", "✗ saved", "saved ✗", "wasn't saved",
    "never saved", "would have saved the result", "result saved (dry run)", "rolled back saved result", "result saved locally",
    "saved result in 3 ms", "wrote 0 items", "updated: 0", "write ok: 409", "job completed by w2", "lease granted to w2",
    "lease is taken", "job already completed", "job finished elsewhere", "saved after conflict", "accepted_stale", "no conflict",
    "rejected: 0, saved: 5", "write not rejected", "write rejected=false", "lease released, job done", "nicht gespeichert, saved",
    # a process's own business, before or beside the mutation
    "cache updated", "session renewed", "render finished", "upload completed", "temp file written", "connection acquired",
    "request completed", "lease check ok", "checkpoint saved", "done", "status changed",
    # whose refusal or takeover it is cannot be told
    "item expired", "job evicted", "result rejected", "application rejected", "job taken over", "lease stolen", "leader elected", "job locked",
    "saved " + "result " * 60 + "not",
]  # fmt: skip


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_decides_nothing(text):
    """One word that is not known leaves the line open, whatever the others say."""
    assert meaning(kind=text)["decision"] == "unknown"


VALUES = [
    *((text, "accepted") for text in ("accepted", "OK", "true", "200", "200 OK", "success", "committed", "written", "write ok")),
    *((text, "rejected") for text in (
        "rejected", "false", "no", "409", "412", "409 Conflict", "conflict", "stale", "stale token", "fenced off", "already completed",
        "ConditionalCheckFailedException", "TransactionCanceledException", "rejected_stale", "not the owner", "lease lost",
    )),
    *((text, "unknown") for text in (
        "timeout", "error", "503", "lost", "failed", "maybe", "0 rows updated", "no conflict", "not rejected", "saved: false",
        "ok 409", "5", "0",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "decision"), VALUES)
@pytest.mark.parametrize("kind", ["write", "written", "result written for w2", "something else"])
def test_the_receivers_own_word_stands_above_the_event(kind, text, decision):
    """The field that holds the decision decides by its whole value, whatever the event's tense."""
    assert meaning(kind=kind, decision=text)["decision"] == decision
    assert meaning(kind=kind, outcome=text)["decision"] == decision


def test_what_refuses_and_a_decision_that_accepts_leave_it_open():
    """One of the two is about something else."""
    assert meaning(kind="write rejected", decision="ok")["decision"] == "unknown"
    assert meaning(kind="write", decision="ok", denial="rejected")["decision"] == "unknown"
    assert meaning(kind="acquire failed", decision="failed")["decision"] == "rejected"


@pytest.mark.parametrize(("denial", "write", "written"), [
    (None, "unknown", "accepted"), ("rejected", "rejected", "unknown"), ("error", "unknown", "unknown"),
    ("error boom", "unknown", "unknown"), ("error stale", "rejected", "unknown"), ("error write stale header", "unknown", "unknown"),
    ("error operation error DynamoDB: UpdateItem, StatusCode: 400, ConditionalCheckFailedException: it failed", "rejected", "unknown"),
    ("error saved after ConditionalCheckFailed", "unknown", "unknown"),
])  # fmt: skip
def test_what_denies_a_success_and_the_event_must_agree(denial, write, written):
    """A field beside it refuses what an event only names, and leaves open what an event calls done."""
    assert meaning(kind="write", denial=denial)["decision"] == write
    assert meaning(kind="written", denial=denial)["decision"] == written
    assert meaning(kind="cache lookup", denial=denial)["decision"] == "unknown"


KINDS = [
    ("polled and saved", "write"), ("job saved (ttl=60s)", "write"), ("saved; evicted cache", "write"),
    ("expired item replaced", "write"), ("deleted temp files and saved result", "write"),
    ("claim updated", "write"), ("alert saved", "write"), ("schedule updated by w2", "write"), ("claim job", "grant"),
    ("lease acquired, ttl=30s", "grant"), ("deleted stale lease, lease acquired", "grant"),
    ("acquired the lease, expired item removed", "grant"), ("lease renewed, ttl 30", "renew"), ("heartbeat", "renew"),
    ("lock", "grant"), ("Acquired lease from store", "grant"), ("lease taken over by w2", "grant"), ("lock file read", None),
    ("ttl_delete", "ttl_delete"), ("ttl", "ttl_delete"), ("item deleted by ttl", "ttl_delete"), ("TTL expired", "ttl_delete"),
    ("item removed", "delete"), ("item expired", "ttl_delete"), ("lease deleted", "release"), ("delete_lock", "release"), ("row deleted", "delete"), ("delete completed", "delete"), ("polled", "poll"),
    ("write completed", "write"), ("job completed", "finish"), ("page_rendered", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_write_is_one_whatever_stands_beside_it(text, kind):
    """A deletion ends what is known, a grant is held to no token, a poll writes nothing: neither is read into a write."""
    assert meaning(kind=text)["kind"] == kind


def test_a_deletion_is_told_by_a_name():
    """A sentence that mentions one deletes nothing, though the receiver accepted something."""
    assert meaning(kind="deleted temp files, closing job", decision="ok")["decision"] == "unknown"
    assert meaning(kind="delete item", decision="ok")["decision"] == "accepted"


NOTICES = [
    *((text, True) for text in (
        "lease lost", "worker_paused", "lease_expired", "read_input", "job started", "waiting for lease", "heartbeat failed, lease lost",
        "starting write", "save skipped", "skipping update: lease expired", "Paused w1 for 30 s", "Lost lease of job-1 to w2",
    )),
    *((text, False) for text in (
        "job saved, lease lost", "save failed: read timed out", "write timed out, giving up", "could not save, giving up",
        "failed to upload: ReadTimeoutException", "resumed and saved", "write failed: lease lost", "write lost",
        "started and wrote result", "expired lease takeover", "page rendered",
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
