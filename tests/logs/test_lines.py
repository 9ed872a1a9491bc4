"""Application logs become history rows: exact tokens, true line numbers, nothing lost and nothing claimed."""

import csv
import io
import json
from collections import Counter
from datetime import datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import lines, mutations
from fencinglab.logs.detect import Detected
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec, resolve

LINE = {"timestamp": "2026-11-29T14:00:00.123Z", "event": "written", "resource": "r1", "worker": "w1", "token": 41}
NAMES = (*history.NAMES, "event_id")


def line(**fields):
    """One JSON line, a plain accepted write but for the given fields; a field that is `...` is left out."""
    return json.dumps({name: value for name, value in {**LINE, **fields}.items() if value is not ...})


def table(*rows, delimiter=",", header=("resource", "kind", "worker", "token", "decision")):
    """A delimited file of the header and rows."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def file_of(path, name, shape="lines", first_line=0, count=None):
    """The file as inputs.py gives it."""
    found = path.read_bytes().split(b"\n")
    found = found if found[-1] else found[:-1]
    blank = sum(not one.strip() for one in found)
    detected = Detected("csv" if shape == "csv" else "log-lines", shape)
    return File(name, path, first_line, "", 0, len(found) if count is None else count, blank, detected)


class Log:
    """Files read as one log; `rows` are dictionaries without nulls, in the order of the lines."""

    def __init__(self, files, key="k", **spec):
        self.con, self.files = duckdb.connect(), files
        self.names = lines.fields(self.con, files)
        self.spec = resolve(MappingSpec(**spec), self.names, "line")
        self.read = lines.read(self.con, files, self.spec, key)
        listed = ", ".join(f'"{name}"' for name in NAMES)
        found = self.con.execute(f"select {listed} from {self.read.table}").fetchall()
        rows = [{name: value for name, value in zip(NAMES, row, strict=True) if value is not None} for row in found]
        self.rows = sorted(rows, key=lambda row: (row["source"].split(":")[0], int(row["source"].split(":")[1])))
        self.aside = {lost.source: lost.reason for lost in self.read.set_aside}
        entries = self.read.records + len(self.read.set_aside) + self.read.blank + self.read.beside
        assert entries == sum(file.lines for file in files)
        assert self.read.records == len(self.rows) + self.read.filtered

    def column(self, name):
        return [row.get(name) for row in self.rows]


@pytest.fixture
def read(tmp_path):
    """Read texts, each a file (`log`, `log1`, …), as one log."""

    def read(*texts, shape="lines", **spec):
        files = []
        for number, text in enumerate(texts):
            path = tmp_path / f"log{number or ''}"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            files.append(file_of(path, path.name, shape))
        return Log(files, **spec)

    return read


# --- fields -------------------------------------------------------------------------------------------


def test_fields_are_named_in_order_and_inner_ones_dotted(read):
    """`fields` names what the lines hold, in order of appearance, inner objects by dotted names."""
    log = read(line(ctx={"token": 1, "deep": {"er": 2}}, tags=[1]) + "\n" + line(other=1))

    assert log.names == [*LINE, "ctx.token", "ctx.deep.er", "tags", "other"]


def test_inner_and_dotted_fields_are_read(read):
    """A dotted name is an inner field, or a field whose own name has the dot."""
    inner, dotted = line(token=..., ctx={"token": 7}), line(token=..., **{"ctx.token": 8})

    log = read(f"{inner}\n{dotted}\n", fields={"token": "ctx.token"})

    assert log.column("token") == [7, 8]


def test_a_dotted_name_inside_an_object_is_read(read):
    """OpenTelemetry keeps `job.id` among its `Attributes`."""
    log = read(line(resource=..., token=..., Attributes={"job.id": "r1", "fencing.token": 7, "a": {"b.c": 1}}))

    assert "Attributes.a.b.c" in log.names
    assert (log.column("resource"), log.column("token")) == (["r1"], [7])


def test_an_object_that_holds_a_lease_is_no_result(read):
    """Splunk exports each line inside `result`: were that the value, every line would leave another one."""
    inside = read("\n".join(json.dumps({"result": json.loads(one)}) for one in (line(token=...), line())))
    beside = read(line(result={"sum": 3}))

    assert ("result" in inside.names, inside.column("token"), inside.spec.get("value")) == (False, [None, 41], None)
    assert (beside.spec.get("value"), beside.names[-2:]) == ("result", ["result", "result.sum"])


def test_odd_field_names_are_only_names(read):
    """Quotes, slashes and tildes in a field's name are part of it, not of the SQL around it."""
    names = ["a'b", 'c"d', "e/f", "g~h", "path", "filename", "i}"]
    for name in names:
        log = read(line(token=..., **{name: 5}) + "\nno json\n", fields={"token": name})

        assert log.column("token") == [5], name


def test_names_that_differ_in_case_are_two_fields(read):
    """Trap 16: `Token` and `TOKEN` are two fields."""
    log = read(line(token=..., Token=1, TOKEN=2), fields={"token": "TOKEN"})

    assert log.column("token") == [2]


# --- kinds and decisions ------------------------------------------------------------------------------

EVENTS = [
    ("lease_acquired", "grant", "accepted"), ("acquire", "grant", "unknown"), ("acquire_failed", "grant", "rejected"),
    ("lease granted to w1", "grant", "unknown"), ("renewed", "renew", "accepted"), ("heartbeat", "renew", "unknown"),
    ("released", "release", "accepted"), ("job_completed", "finish", "accepted"), ("finish rejected", "finish", "rejected"),
    ("write_completed", "write", "accepted"), ("writing report", "write", "unknown"), ("0 rows updated", "write", "unknown"),
    ("write_rejected_stale", "write", "rejected"), ("retry scheduled", "retry", "accepted"),
    ("scheduled", "schedule", "accepted"), ("polled", "poll", "accepted"), ("alert raised", "alert", "accepted"),
    ("email sent", "effect", "accepted"), ("deleted", "delete", "accepted"), ("item deleted by ttl", "ttl_delete", "accepted"),
    ("page_rendered", "write", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "kind", "decision"), EVENTS)
def test_the_event_tells_kind_and_decision(read, event, kind, decision):
    """Without a decision field the event's words tell both; only the past tense tells a success."""
    log = read(line(event=event))

    assert (log.column("kind"), log.column("decision")) == ([kind], [decision])


DECISIONS = [
    ("accepted", "accepted"), (True, "accepted"), (200, "accepted"), ("rejected", "rejected"), (False, "rejected"),
    (409, "rejected"), ("ConditionalCheckFailedException", "rejected"), ("timeout", "unknown"), (503, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "decision"), DECISIONS)
def test_a_decision_field_wins_over_the_event(read, word, decision):
    """What the decision field says counts, whatever the event's tense and the type of the value."""
    log = read(line(event="written", decision=word))

    assert log.column("decision") == [decision]


BESIDE = [
    ({"message": "finish failed: ConditionalCheckFailedException"}, "unknown"), ({"detail": "deadline exceeded: no reply"}, "unknown"),
    ({"detail": "WriteConflict"}, "unknown"), ({"note": "0 rows updated"}, "unknown"), ({"ctx": {"detail": "stale"}}, "unknown"),
    ({"reason": "lease lost, write refused"}, "unknown"), ({"reason": "stale token"}, "unknown"), ({"message": "report 7 written"}, "accepted"), ({"message": "no conflict"}, "unknown"),
    ({"note": "job already completed"}, "unknown"), ({"result": "loan rejected"}, "unknown"), ({"result": "42"}, "accepted"),
    ({"result": "ok", "rowCount": 0}, "unknown"), ({"result": "ok", "rowCount": 1}, "accepted"),
    ({"message": "conflict", "decision": "accepted"}, "accepted"), ({"message": "conflict", "outcome": "ok"}, "accepted"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "decision"), BESIDE)
def test_a_sentence_beside_the_event_may_deny_it(read, fields, decision):
    """`written` names what was tried where a message beside it, and no decision, tells of a refusal or no reply."""
    assert read(line(**fields)).column("decision") == [decision]


@pytest.mark.parametrize(("fields", "fenced"), [
    ({"event": "acquire", "decision": "failed"}, None), ({"event": "acquired"}, True), ({"event": "acquire"}, None),
    ({"event": "lock busy"}, None), ({"event": "frobnicate", "decision": "ok"}, True), ({"event": "write"}, True),
])  # fmt: skip
def test_a_token_is_presented_only_where_the_line_says_so(read, fields, fenced):
    """A worker that tells whose token kept it out has not used that token."""
    assert read(line(**fields)).column("fenced") == [fenced]


def test_where_the_decision_is_null_the_event_tells_it(read):
    """A line without its decision is decided by the words of its event, unless other lines of this event have one."""
    given = [("written", "rejected"), ("written", None), ("saved", None), ("write", "")]
    log = read("\n".join(line(event=event, decision=decision) for event, decision in given))

    assert log.column("decision") == ["rejected", "unknown", "accepted", "unknown"]


def test_an_error_flag_is_no_acceptance(read):
    """`error: true` is an error, and `error: false` is none."""
    log = read("\n".join([line(event="write", error=True), line(event="write", error=False)]))

    assert log.column("decision") == ["unknown", "accepted"]


REFUSED = [
    {"applied": False}, {"[applied]": False}, {"rejected": True}, {"rowCount": 0}, {"rows_affected": 0},
    {"affectedRows": "0"}, {"modifiedCount": 0}, {"matchedCount": 0}, {"changes": 0}, {"result": {"rowCount": 0}},
    {"matchedCount": 0, "modifiedCount": 0}, {"err": {"name": "ConditionalCheckFailedException"}},
    {"exception": "ConditionalCheckFailedException"}, {"success": True, "rowCount": 0}, {"success": False, "rowCount": 0},
    {"statusCode": 409}, {"status_code": "412"}, {"res": {"statusCode": 409}}, {"status": 409},
    {"http": {"response": {"status_code": 412}}}, {"response": {"status": 409}},
]  # fmt: skip
DOUBTED = [
    {"success": False}, {"ok": "false"}, {"matchedCount": 1, "modifiedCount": 0}, {"err": "boom"}, {"err": {"code": "E17"}},
    {"httpStatus": 500}, {"httpStatusCode": 400}, {"level": "error"}, {"severity": "ERROR"}, {"log": {"level": "fatal"}},
    {"level": 50}, {"level_name": "CRITICAL", "level": 500}, {"@l": "Error"},
]  # fmt: skip
NO_DENIAL = [
    {"statusCode": 200}, {"statusCode": 304}, {"status": 4}, {"status": "DONE"}, {"level": "warn"}, {"level": 30},
    {"level": 300}, {"severity": "INFO"}, {"success": True}, {"applied": True}, {"rejected": False}, {"rowCount": 1},
    {"changes": 3}, {"changes": "none"}, {"changes": [0]}, {"matchedCount": 0, "upsertedCount": 1, "modifiedCount": 0},
    {"err": None}, {"err": ""}, {"err": {"code": 0}}, {"ok": None},
]  # fmt: skip


@pytest.mark.parametrize(("fields", "write", "written"), [
    *((fields, "rejected", "unknown") for fields in REFUSED), *((fields, "unknown", "unknown") for fields in DOUBTED),
    *((fields, "unknown", "accepted") for fields in NO_DENIAL),
])  # fmt: skip
def test_other_fields_may_deny_what_the_event_says(read, fields, write, written):
    """They refuse what the event only names, and leave open what it calls done; the receiver's own word stands above them."""
    log = read("\n".join(line(event=event, **fields) for event in ("write", "written", "write rejected")))

    assert log.column("decision") == [write, written, "rejected"]
    assert read(line(event="write", decision="accepted", **fields)).column("decision") == ["accepted"]


@pytest.mark.parametrize(("field", "values", "decisions"), [
    ("rowCount", (0, 1, 2, None), ("rejected", "accepted", "accepted", "unknown")),
    ("rejected", (True, False), ("rejected", "accepted")), ("success", (True, False), ("accepted", "rejected")),
    ("error", ("boom", False, "ConditionalCheckFailed", None), ("unknown", "accepted", "rejected", "unknown")),
    ("statusCode", (200, 409, 500), ("accepted", "rejected", "unknown")),
])  # fmt: skip
def test_such_a_field_may_be_the_decision_by_the_users_word(read, field, values, decisions):
    """A count, a flag or an error that is mapped as the decision is read as what it is."""
    log = read("\n".join(line(event="write", **{field: value}) for value in values), fields={"decision": field})

    assert log.column("decision") == [*decisions]


def test_a_field_that_may_be_the_decision_is_named(read):
    """A log whose decisions are open is told which of its fields may hold them."""
    said = "if `success` holds what the receiver decided: --map decision=success"

    assert said in read(line(event="write", success=True)).read.notes
    assert said not in read(line(event="written", success=True)).read.notes


def test_a_line_may_count_what_others_do_not(read):
    """Where some lines say how many rows were changed, one that says only that none matched is a refusal still."""
    log = read(line(event="write", modifiedCount=1) + "\n" + line(event="write", matchedCount=0))

    assert log.column("decision") == ["unknown", "rejected"]


def test_a_denial_makes_no_mutation(read):
    """A line that reports none is still none where it says that it failed."""
    log = read(line(event="waiting", success=False) + "\n" + line())

    assert log.column("decision") == ["accepted"]


def test_outcome_is_what_the_sender_learned(read):
    """A timeout is never a failure; without its own field the outcome follows from the decision."""
    given = [("accepted", None), ("rejected", None), ("timeout", None), ("accepted", "timeout"), ("accepted", "failed")]
    log = read("\n".join(line(decision=d, outcome=o) for d, o in given))

    assert log.column("outcome") == ["ok", "failed", "unknown", "unknown", "failed"]


REASONS = [
    ("newer token exists", "newer_token"), ("stale", "newer_token"), ("lease expired", "expired"),
    ("already finished", "terminal"), ("duplicate request", "duplicate"), ("not the owner", "not_held"),
    ("quota", "quota"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REASONS)
def test_reasons_are_the_words_of_the_history_where_they_fit(read, text, reason):
    """A reason becomes a word that the rules understand, or stays what it is."""
    log = read(line(decision="rejected", reason=text))

    assert log.column("reason") == [reason]


def test_only_a_refusal_has_a_reason(read):
    """The event may tell the reason of a refusal; an accepted write has none."""
    log = read(line(event="write_rejected_stale") + "\n" + line(reason="scheduled"))

    assert log.column("reason") == ["newer_token", None]


# --- what a line says ---------------------------------------------------------------------------------


def test_a_grant_leaves_its_token_its_holder_and_its_expiry(read):
    """An accepted acquire says what the receiver holds from now on."""
    log = read(line(event="acquired", leaseOwner="w1", leaseExpiresAt="2026-11-29T14:00:30Z", worker=...))

    assert log.rows[0] == {
        "resource": "r1", "lease": "r1", "at": datetime(2026, 11, 29, 14, 0, 0, 123_000), "at_precision": 1000,
        "kind": "grant", "writer": "w1", "token": 41, "fenced": True, "protected": True, "decision": "accepted",
        "outcome": "ok", "after_token": 41, "after_holder": "w1", "after_expires_at": datetime(2026, 11, 29, 14, 0, 30),
        "expiry_unit": "text", "source": "log:1",
    }  # fmt: skip


def test_a_failed_acquire_changes_nothing(read):
    """Contention on a healthy log: a refused grant leaves no token and no holder."""
    log = read(line(event="acquired") + "\n" + line(event="acquire_failed", worker="w2", token=...))

    assert [(r["kind"], r["decision"], r.get("after_token"), r.get("after_holder")) for r in log.rows] == [
        ("grant", "accepted", 41, "w1"),
        ("grant", "rejected", None, None),
    ]


def test_a_release_names_who_held_and_leaves_nobody(read):
    """Who releases held the lease, as far as the line says."""
    log = read(line(event="released"))

    assert (log.rows[0]["before_holder"], log.rows[0]["after_holder"]) == ("w1", "")


def test_statuses_are_terminal_as_declared(read):
    """A status is terminal or not once that is declared; with `none`, or undeclared, nothing is known."""
    statuses = [line(status="RUNNING"), line(status="SUCCEEDED"), line()]
    text = "\n".join([*statuses, line(event="write", status="FAILED", decision="rejected")])

    assert read(text, terminal=("SUCCEEDED", "FAILED")).column("after_terminal") == [False, True, None, None]
    assert read(text, terminal=()).column("after_terminal") == [None] * 4
    assert read(text).column("after_terminal") == [None] * 4
    assert read(text).column("after_status") == ["RUNNING", "SUCCEEDED", None, None]


def test_results_are_keyed_hashes(read):
    """A result is never kept, only its hash; the same fields give the same hash under one key alone."""
    text = "\n".join([line(result="a", checksum=1), line(result="a", checksum=1), line(result="a", checksum=2), line()])
    fields = {"value": "result,checksum"}
    first, second, third, none = read(text, fields=fields).column("after_value")

    assert (first == second, first == third, none, 0 < len(first) <= 16) == (True, False, None, True)
    assert read(text, fields=fields, key="other").column("after_value")[0] != first


def test_whether_a_token_was_presented(read):
    """A token says so itself; without one only a mapped field does."""
    log = read("\n".join([line(), line(token=None, fenced=False), line(token=None, fenced=True), line(token=None)]))

    assert log.column("fenced") == [True, False, True, None]


def test_effects_and_polls_change_nothing_that_is_protected(read):
    """Sending and looking are no changes of what the lease protects."""
    log = read("\n".join(line(event=event) for event in ("written", "email_sent", "polled")))

    assert log.column("protected") == [True, False, False]


def test_what_the_receiver_held_is_read_where_a_line_says_it(read):
    """A refusal may come with the stored item."""
    stored = {"storedToken": 42, "storedOwner": "w2", "storedStatus": "DONE", "storedExpiresAt": 1764424830}
    log = read(line(decision="rejected", **stored), terminal=("DONE",))

    assert {k: v for k, v in log.rows[0].items() if k.startswith("before_")} == {
        "before_token": 42, "before_holder": "w2", "before_expires_at": datetime(2025, 11, 29, 14, 0, 30),
        "before_status": "DONE", "before_terminal": True,
    }  # fmt: skip


def test_several_fields_make_one_resource(read):
    """A resource may take two fields to name, and is not known where one is missing."""
    texts = [line(resource=..., table="jobs", pk="7"), line(resource=..., table="jobs")]
    log = read("\n".join(texts), fields={"resource": "table,pk"})

    assert log.column("resource") == ["jobs/7"]
    assert log.aside == {"log:2": "no value in table,pk, the mapped resource"}


def test_a_number_that_names_a_resource_is_one_however_it_is_written(read):
    """In a CSV of pandas with a gap `7` is `7.0`: two workers on one job would pass for two jobs."""
    rows = [{"resource": one, "lease": one} for one in (7, "7", 7.0, "7.0", "v7.0")]

    for also in ("", "garbage"):
        log = read("\n".join(line(**row) for row in rows) + "\n" + also)
        assert log.column("resource") == log.column("lease") == ["7"] * 4 + ["v7.0"]


def test_a_log_can_never_show_how_a_token_is_stored(read):
    """Trap 2: quotes in a log prove nothing about the receiver."""
    log = read(line(token="9") + "\n" + line(token="10"))

    assert log.column("token") == [9, 10]
    assert {"token_width", "before_image", "after_image"} <= log.read.never
    assert log.column("token_width") == [None, None]


# --- tokens -------------------------------------------------------------------------------------------

TOKENS = [
    ("42", 42), ('"42"', 42), ("42.0", 42), ('"42.0"', 42), ("0", 0), ('" 42 "', 42), ("null", None), ('""', None),
    ('"None"', None), ("9007199254740993", 9007199254740993),
    ("9" * 38, int("9" * 38)), ('"' + "9" * 38 + '"', int("9" * 38)),
]  # fmt: skip


@pytest.mark.parametrize("also", ["", "no json"])
@pytest.mark.parametrize(("written", "token"), TOKENS)
def test_trap_3_tokens_are_exact(read, written, token, also):
    """A token is read to its last digit, quoted or not, on the quick way and on the general one."""
    log = read(line(token="@").replace('"@"', written) + "\n" + line(token=1) + "\n" + also)

    assert log.column("token") == [None if token is None else Decimal(token), 1]


IMPOSSIBLE = [
    ("-1", "token -1 is negative"),
    ("1.5", "token 1.5 is a fraction"),
    ("9" * 39, "token has more than 38 digits"),
    ('"8.00E+20"', "token 8.00E+20 is rounded (by a spreadsheet or a JSON library?)"),
    ("9007199254740993.0", "token 9007199254740992.0 is a float beyond 2^53: its last digits are rounded"),
    ('"1,234"', "token 1,234 has thousands separators"),
    ('"1 234 567"', "token 1 234 567 has thousands separators"),
    ('"<script>alert(1)</script>"', "token is not a number, as most others are"),
]


@pytest.mark.parametrize(("written", "reason"), IMPOSSIBLE)
def test_impossible_tokens_are_set_aside(read, written, reason):
    """A token that no authority issues is set aside with its line and its reason."""
    log = read("\n".join([line(), line(token="@").replace('"@"', written), line()]))

    assert log.aside == {"log:2": reason}
    assert len(log.rows) == 2


def test_a_token_beyond_doubles_written_as_a_power_is_set_aside(read):
    """Trap 3: `8.00E+20` as a bare number is rounded, however the JSON library prints it."""
    for also in ("", "no json\n"):
        log = read(f"{line()}\n{line(token='@')}\n{also}".replace('"@"', "8.00E+20"))

        assert "rounded" in log.aside["log:2"]


def test_identities_are_no_order(read):
    """Where most tokens are UUIDs none is a number; they were presented all the same, and a note says it."""
    tokens = ["3f0e6c1e-5f0c-4a56-9a1b-0e7f0a1b2c3d", "b7a1f7f4-93c2-4b53-8a6f-6a7b8c9d0e1f", "77"]
    log = read("\n".join(line(token=token) for token in tokens))

    assert (log.column("token"), log.column("fenced"), log.aside) == ([None] * 3, [True] * 3, {})
    assert log.read.identity
    assert log.read.notes == ("`token` holds identities, not numbers: order rules cannot be decided",)


# --- times --------------------------------------------------------------------------------------------

TIMES = [
    (1764424800, datetime(2025, 11, 29, 14), 1_000_000),
    ("1764424800", datetime(2025, 11, 29, 14), 1_000_000),
    (1764424800.0, datetime(2025, 11, 29, 14), 1_000_000),
    (1764424800.25, datetime(2025, 11, 29, 14, 0, 0, 250_000), 10_000),
    (1764424800123, datetime(2025, 11, 29, 14, 0, 0, 123_000), 1000),
    (1764424800123456, datetime(2025, 11, 29, 14, 0, 0, 123_456), 0),
    (1764424800123456789, datetime(2025, 11, 29, 14, 0, 0, 123_456), 0),
    ("2026-11-29T14:00:00Z", datetime(2026, 11, 29, 14), 1_000_000),
    ("2026-11-29T14:00:00.1Z", datetime(2026, 11, 29, 14, 0, 0, 100_000), 100_000),
    ("2026-11-29T14:00:00.123456789Z", datetime(2026, 11, 29, 14, 0, 0, 123_456), 0),
    ("2026-11-29T14:00:00+02:00", datetime(2026, 11, 29, 12), 1_000_000),
    ("2026-11-29T14:00:00.123-0330", datetime(2026, 11, 29, 17, 30, 0, 123_000), 1000),
    ("2026-11-29 14:00:00,123", datetime(2026, 11, 29, 14, 0, 0, 123_000), 1000),
    ("2026-11-29 14:00:00.123", datetime(2026, 11, 29, 14, 0, 0, 123_000), 1000),
    ("2013-11-02 17:30:52", datetime(2013, 11, 2, 17, 30, 52), 1_000_000),
    ("Sat Nov 02 17:30:52 2013", datetime(2013, 11, 2, 17, 30, 52), 1_000_000),
    ("2026-11-29", datetime(2026, 11, 29), 86_400_000_000),
]


@pytest.mark.parametrize(("written", "at", "precision"), TIMES)
def test_trap_14_times_are_read_however_they_are_written(read, written, at, precision):
    """A time and its precision are read from every usual form; no zone means UTC."""
    log = read(line(timestamp=written))

    assert (log.rows[0]["at"], log.rows[0]["at_precision"]) == (at, precision)


@pytest.mark.parametrize("written", ["soon", "infinity", "99:99", 1e30, "9" * 40, -5])
def test_a_time_that_cannot_be_read_is_not_known(read, written):
    """An unreadable time is null and counted; the line stays."""
    log = read(line(timestamp=written))

    assert log.column("at") == [None]
    assert log.read.notes == ("times in `timestamp` that cannot be read and are taken as not known: 1",)


def test_a_missing_zone_is_noted(read):
    """That zone-less times were taken as UTC is said."""
    log = read(line(timestamp="2026-11-29 14:00:00,123") + "\n" + line())

    assert log.read.notes == ("times written without a zone, read as UTC: 1",)


def test_expiry_units_are_told(read):
    """How an expiry is written shows mixed clocks."""
    written = [1764424800, 1764424800000, 1764424800000000, 1764424800000000000, "2026-11-29T14:00:00Z", "soon", None]
    log = read("\n".join(line(event="acquired", leaseExpiresAt=one) for one in written))

    assert log.column("expiry_unit") == ["s", "ms", "us", "ns", "text", None, None]


# --- order and what is carried along it ---------------------------------------------------------------


def test_a_log_has_no_order_of_its_own(read):
    """Without a mapped field or the user's word there is no order."""
    log = read(line() + "\n" + line())

    assert log.column("order_key") == log.column("order_scope") == [None, None]


def test_lines_are_an_order_by_the_users_word_in_each_file_alone(read):
    """`--order lines` orders by line number, each file for itself."""
    log = read(f"{line()}\n\n{line()}\n", line() + "\n", order="lines")

    assert [(row["order_scope"], int(row["order_key"])) for row in log.rows] == [("log", 1), ("log", 3), ("log1", 1)]
    assert {len(row["order_key"]) for row in log.rows} == {history.ORDER_DIGITS}


def test_a_mapped_sequence_orders_the_whole_log(read):
    """A sequence of up to 40 digits orders all files together, exactly."""
    low, high = "9" * 39, "1" + "0" * 39
    log = read(line(sequence=high), line(sequence=low) + "\n" + line(sequence=None))

    assert log.column("order_key") == [high, "0" + low, None]
    assert log.column("order_scope") == ["order_key", "order_key", None]


@pytest.mark.parametrize("rounded", ["8.00E+20", 8.00e20, 1.5, -1, "1" * 41])
def test_trap_15_rounded_sequence_numbers_are_set_aside(read, rounded):
    """A sequence number that a spreadsheet or a JSON library rounded orders nothing."""
    log = read("\n".join([line(sequence=1), line(sequence=rounded), line(sequence=2)]))

    assert list(log.aside) == ["log:2"]
    assert log.aside["log:2"].startswith("sequence number ")


def test_reasons_show_numbers_and_no_other_text(read):
    """A reason may be printed, so it shows a number that was refused, but no word of the line."""
    texts = [line(seq=1), line(seq="8.00E+20"), line(seq="secret 3"), line(seq=4, token="secret"), line(seq=5)]
    log = read("\n".join([*texts, '{"secret": ', "secret"]))

    assert list(log.aside) == ["log:2", "log:3", "log:4", "log:6", "log:7"]
    assert "8.00E+20" in log.aside["log:2"]
    assert not any("secret" in reason for reason in log.aside.values())


def test_names_are_no_sequence(read):
    """A field of names is no order, though it is called `sequence`."""
    log = read(line(sequence="daily") + "\n" + line(sequence="weekly"))

    assert (log.column("order_key"), log.aside) == ([None, None], {})
    assert log.read.notes == ("`sequence` holds no numbers: it gives no order",)


STORY = [
    {"event": "acquired", "token": 1, "leaseExpiresAt": "2026-11-29T14:00:30Z"},
    {"event": "write_rejected", "token": 1, "worker": "w9"},
    {"event": "written", "status": "RUNNING", "result": "a"},
    {"event": "acquired", "token": 2, "worker": "w2"},
    {"event": "written", "token": 1},
    {"event": "completed", "token": 2, "worker": "w2", "status": "DONE", "result": "b"},
    {"event": "released", "token": 2, "worker": "w2"},
    {"event": "deleted", "token": 2, "worker": "w2"},
    {"event": "acquired", "token": 1, "worker": "w3"},
    {"event": "written", "token": 1, "worker": "w3"},
]


def test_what_the_receiver_held_is_carried_along_the_order(read):
    """Each line is given what the last accepted line before it that said so left behind; a delete forgets it all."""
    log = read("\n".join(line(**fields) for fields in STORY), order="lines", terminal=("DONE",))

    assert log.column("before_token") == [None, 1, 1, 1, 2, 2, 2, 2, None, 1]
    assert log.column("before_holder") == [None, "w1", "w1", "w1", "w2", "w2", "w2", "", None, "w3"]
    assert [bool(e) for e in log.column("before_expires_at")] == [False, True, True, True, *[False] * 6]
    assert log.column("before_status") == [None, None, None, *["RUNNING"] * 3, "DONE", "DONE", None, None]
    assert log.column("before_terminal") == [None, None, None, False, False, False, True, True, None, None]
    assert log.column("current_token") == [None, 1, 1, 1, 2, 2, 2, 2, None, 1]
    values = log.column("before_value")
    assert (values[3] == values[4] == values[5], values[5] != values[6], values[:3]) == (True, True, [None] * 3)


def test_lines_that_run_backwards_in_time_are_in_no_order(read):
    """An export that lists the newest first would turn the story round: it is refused with how to turn it back."""
    texts = [line(timestamp=f"2026-11-29T14:00:0{second}Z") for second in (9, 6, 3)]

    with pytest.raises(InputError, match=r"^log: from line to line time falls 2 times and rises 0 times, .*`tac log`"):
        read("\n".join(texts), order="lines")
    assert len(read("\n".join(reversed(texts)), order="lines").rows) == 3
    assert len(read("\n".join(texts[:2]), order="lines").rows) == 2  # two clocks may be apart


@pytest.mark.parametrize("order", ["lines", None])
def test_an_event_id_that_is_a_code_is_no_id(read, order):
    """.NET calls the code of a message its `EventId`: lines that share it are no repeats of one, unless they say the same."""
    code = [line(event="acquired", eventId=1), line(eventId=2), line(eventId=2, worker="w2", token=42)]
    again = [line(event="acquired", eventId=1), line(eventId=2), line(eventId=2)]

    log = read("\n".join(code), order=order)
    assert log.column("event_id") == [None] * 3
    assert (
        "event ids are shared by lines of one resource that say different things: they are not used as ids"
        in log.read.notes
    )
    assert read("\n".join(again), order=order).column("event_id") == ["1", "2", "2"]


def test_nothing_is_carried_between_files_or_without_order(read):
    """Files are scopes of their own, and without order there is no line before."""
    first, second = line(event="acquired"), line(token=40)

    assert read(first, second, order="lines").column("before_token") == [None, None]
    assert read(first + "\n" + second).column("before_token") == [None, None]


def test_what_a_line_says_itself_is_not_overruled(read):
    """The stored item that came with a refusal counts, not what earlier lines would give."""
    log = read(line(event="acquired") + "\n" + line(decision="rejected", storedToken=50), order="lines")

    assert log.column("before_token") == [None, 50]


def test_the_newest_token_is_that_of_the_lease(read):
    """A lease may protect several resources: its newest token was granted wherever."""
    lines_ = [line(event="acquired", lease="l", token=5), line(resource="r2", lease="l", token=4), line(resource="r3")]
    log = read("\n".join(lines_), order="lines")

    assert log.column("current_token") == [None, 5, None]
    assert log.column("lease") == ["l", "l", "r3"]


def test_a_grant_that_is_logged_with_the_leases_own_key_counts_for_what_it_protects(read):
    """The newest token of a lease counts its key's own grants, since that key was last deleted."""
    key = {"resource": "l", "lease": "l"}
    lines_ = [
        line(event="acquired", token=5, **key), line(resource="r", lease="l", token=4), line(event="deleted", **key),
        line(event="acquired", token=1, **key), line(resource="r", lease="l", token=1), line(resource="r2", token=1),
    ]  # fmt: skip
    log = read("\n".join(lines_), order="lines")

    assert log.column("current_token") == [None, 5, 5, None, 1, None]


def test_a_lease_that_each_grant_has_of_its_own_is_asked_about(read):
    """An id of the grant, as etcd's, would hide every takeover or mix scopes: whether it is one is the user's to say."""
    granted = [line(event="acquired", lease=f"l{token}", token=token) for token in (1, 2, 3)]
    again = [line(lease=f"l{token}", token=token + 7) for token in (1, 2)]

    with pytest.raises(
        InputError, match="^`lease`: 3 of 3 leases, such as l1, .*--map lease=none; .*--map lease=lease$"
    ):
        read("\n".join(granted), order="lines")
    assert read("\n".join(granted), order="lines", fields={"lease": "lease"}).column("lease") == ["l1", "l2", "l3"]
    assert read("\n".join(granted), order="lines", fields={"lease": "none"}).column("current_token") == [None, 1, 2]
    assert read("\n".join(granted + again), order="lines").column("lease") == ["l1", "l2", "l3", "l1", "l2"]
    apart = [line(event="acquired", resource=f"r{token}", lease=f"l{token}", token=token) for token in (1, 2, 3)]
    assert read("\n".join(apart), order="lines").column("lease") == ["l1", "l2", "l3"]


def test_a_released_lease_is_known_by_the_order_not_by_who_says_so(read):
    """A stale worker that releases calls itself the holder; earlier lines know better."""
    texts = [line(event="acquired", token=2, worker="w2"), line(event="released", token=1)]
    log = read("\n".join(texts), order="lines")

    assert log.rows[1]["before_holder"] == "w2"


def test_who_holds_is_not_known_to_a_token_above_the_last_granted_one(read):
    """It is of a grant that the log does not show: its writer, if another, may be the holder of a lease that runs."""
    texts = [line(event="acquired", token=1, leaseExpiresAt="2026-11-29T14:00:30Z"), line(token=2)]
    texts += [line(event=event, worker="w2", token=2) for event in ("checked out", "released")]
    log = read("\n".join(texts), order="lines")

    assert log.column("before_holder") == [None, "w1", None, "w2"]
    assert [bool(e) for e in log.column("before_expires_at")] == [False, True, False, False]


# --- nothing is lost ----------------------------------------------------------------------------------


def test_unreadable_lines_are_set_aside_with_their_place(read):
    """What is no JSON object is set aside with line, reason and raw text."""
    text = "\n".join([line(), "garbage", "", "[1]", "42", "null", line()[:50], '{"a" 1}', line() + line(), line()])
    log = read(text)

    assert log.aside == {
        "log:2": "not JSON",
        "log:4": "JSON, but no object", "log:5": "JSON, but no object", "log:6": "JSON, but no object",
        "log:7": "JSON that is cut off after 50 characters", "log:8": "malformed JSON", "log:9": "malformed JSON",
    }  # fmt: skip
    assert log.read.set_aside[0].raw == b"garbage"
    assert log.column("source") == ["log:1", "log:10"]
    assert log.read.blank == 1


def test_a_mutation_without_resource_is_set_aside(read):
    """A line with a token, a holder or a lease's event, but no resource, is evidence that cannot be used."""
    tokens, events = [line(resource=...), line(resource="")], [line(resource=..., token=..., event="lease_acquired")]
    log = read("\n".join([*tokens, *events, line()]))

    assert set(log.aside.values()) == {"no value in resource, the mapped resource"}
    assert len(log.aside) == 3


def test_chatter_is_counted_and_not_audited(read):
    """Lines of another kind, and a worker that notices, waits or views, report no mutation."""
    other = {"resource": ..., "token": ..., "worker": ...}
    chatter = [
        line(event="request_finished", **other), line(event="GET /health finished", **other), line(event=None, **other),
        line(event="lease_lost"), line(event="waiting for lease"), line(event="viewed", token=...),
    ]  # fmt: skip
    log = read("\n".join([*chatter, line()]))

    assert (log.read.filtered, log.read.records, log.column("source"), log.aside) == (6, 7, ["log:7"], {})


def test_an_event_of_no_known_word_is_read_as_a_write_and_noted(read):
    """A line that presents a token is audited whatever its event is called, and a note of its own names the events."""
    log = read("\n".join([line(event="page_rendered"), line(event="page_rendered"), line(event="moved on"), line()]))

    assert log.column("kind") == ["write"] * 4
    assert log.read.notes == ("lines read as writes though no word in `event` says so: 3",)
    assert log.read.quotes == ("read as writes: page_rendered (2)",)


def test_without_an_event_field_every_line_with_a_resource_is_a_write(read):
    """Where nothing tells kinds, all lines report writes."""
    log = read(line(event=..., decision="ok") + "\n" + line(event=..., token=...))

    assert log.column("kind") == ["write", "write"]


def test_trap_25_two_fields_of_one_name_are_set_aside(read):
    """JSON readers differ in which of two equal names they take, so neither is taken."""
    twice = line()[:-1] + ', "token": 99}'
    harmless = line()[:-1] + ', "ctx": {"token": 99}, "note": "\\"token\\":"}'
    log = read(f"{line()}\n{twice}\n{harmless}\n")

    assert log.aside == {"log:2": "two fields are named token"}
    assert log.column("token") == [41, 41]


def test_trap_25_nan_and_lone_surrogates(read):
    """NaN is no token; half a surrogate pair, as JavaScript writes it, spoils no line."""
    log = read("\n".join([line(), line(token=float("nan")), line(note="\ud83d"), line(note="\\ud83d")]))

    assert (log.column("token"), log.aside) == ([41, None, 41, 41], {})
    assert lines.texts(log.con, log.files, "note") == {"?", "\\ud83d"}


def test_trap_13_marks_and_line_ends(read):
    """A byte order mark, CRLF, a lone CR, U+2028 and a NUL end no line and lose none."""
    odd = line(note="a\u2028b\x00c").replace("\\u2028", "\u2028")
    text = "\ufeff" + line() + "\r\n" + odd + "\r\n\r\n" + line().replace(", ", ",\r") + "\n" + line()
    for also in ("\n", "\ngarbage\n"):
        log = read(text + also)

        assert log.column("source") == ["log:1", "log:2", "log:4", "log:5"]


def test_trap_12_a_last_line_that_was_cut_is_set_aside(read):
    """A file may end in the middle of a line."""
    log = read(line() + "\n" + line()[:20])

    assert log.aside == {"log:2": "JSON that is cut off after 20 characters"}


def test_text_that_could_do_harm_is_text(read):
    """Markup, escapes, formulas and SQL in values are only values."""
    for text in ("<script>alert(1)</script>", "\x1b[31mred", "=cmd()|' /C calc'!A0", "'; drop table log_lines; --"):
        log = read(line(resource=text, worker=text, event=text))

        assert (log.column("resource"), log.column("writer")) == ([text], [text])


def test_names_of_files_are_only_names(tmp_path):
    """Quotes and brackets in a path are part of it."""
    path = tmp_path / "a'b {c}.jsonl"
    path.write_text(line() + "\ngarbage\n")
    log = Log([file_of(path, "a'b {c}.jsonl")])

    assert (log.column("source"), list(log.aside)) == (["a'b {c}.jsonl:1"], ["a'b {c}.jsonl:2"])


def test_a_long_line_is_read(read):
    """A line of 15 MB is a line."""
    log = read(line(note="x" * 15_000_000) + "\n" + line() + "\ngarbage\n")

    assert (log.column("source"), list(log.aside)) == (["log:1", "log:2"], ["log:3"])


def test_too_much_that_cannot_be_read_is_an_error(read, monkeypatch):
    """What is set aside is held in memory, so it has a bound; the message names a line and the reason."""
    monkeypatch.setattr(mutations, "MOST_SET_ASIDE", 2)

    with pytest.raises(InputError, match=r"^log:2: 3 entries cannot be read, this one because of: not JSON"):
        read(line() + "\nx\ny\nz\n")


# --- many files ---------------------------------------------------------------------------------------


def test_line_numbers_are_those_of_each_file(tmp_path):
    """Files that share a path count from their own first line."""
    path = tmp_path / "shared"
    path.write_text("\n".join([line(), "x", line(), line(), "y", line()]) + "\n")
    parts = [(0, 2), (2, 3), (5, 1)]
    log = Log([file_of(path, name, "lines", first, count) for name, (first, count) in zip("abc", parts, strict=True)])

    assert log.column("source") == ["a:1", "b:1", "b:2", "c:1"]
    assert list(log.aside) == ["a:2", "b:3"]


@pytest.mark.parametrize("also", ["", "garbage\n"])
def test_line_numbers_are_exact_in_large_files(tmp_path, also):
    """Every one of 60,000 lines in three files, read in parallel, knows its number, on both ways of reading."""
    files = []
    for name in "abc":
        path = tmp_path / name
        path.write_text("".join(line(token=n, note="x" * 2000) + "\n" for n in range(1, 20_001)) + also)
        files.append(file_of(path, name))
    log = Log(files)

    assert all(int(row["source"][2:]) == row["token"] for row in log.rows)
    assert len(log.rows) == 60_000


def test_trap_18_duplicates_can_be_told(read):
    """An event's id, or the same words at the same place in the order, tell a line that was exported twice."""
    ids = read(line(eventId="e1"), line(eventId="e1") + "\n" + line())
    entries = [line(seq=1), line(seq=1, event="released"), line(seq=2)]
    places = read(line(seq=1), "\n".join(entries), fields={"order_key": "seq"})

    assert ids.column("event_id") == ["e1", "e1", None]
    found = Counter(row["event_id"] for row in places.rows)
    assert sorted(found.values()) == [1, 1, 2]


def test_lines_and_tables_are_read_together(tmp_path):
    """JSON lines and a CSV of the same mapping make one log."""
    (tmp_path / "a").write_text(line() + "\n")
    (tmp_path / "b").write_text(table(["r2", "write", "w2", 7, "ok"]))
    log = Log([file_of(tmp_path / "a", "a"), file_of(tmp_path / "b", "b", "csv")], fields={"kind": "event"})

    assert [(row["source"], row["token"]) for row in log.rows] == [("a:1", 41), ("b:2", 7)]


# --- text before the JSON, JSON inside JSON -----------------------------------------------------------

CLOUDWATCH = f"""\
2026-11-29T14:00:00.001Z START RequestId: 8b2f Version: $LATEST
2026-11-29T14:00:01.123Z {line(timestamp=...)}
2026-11-29T14:00:02.000Z 2026-11-29T14:00:02.000Z\t8b2f\tINFO\t{line(timestamp=..., token=42)}
2026-11-29T14:00:03.000Z Traceback (most recent call last):
  File "worker.py", line 1, in <module>
2026-11-29T14:00:04.000Z done with {{1, 2}} and {{"a": 1}} in 3 ms
2026-11-29T14:00:05.000Z {line(timestamp=...)[:40]}
2026-11-29T14:00:06.000Z REPORT RequestId: 8b2f Duration: 3 ms
"""


def test_cloudwatch_text_has_its_time_before_the_json(read):
    """The prefix is the time where the line has none; text without JSON is chatter, cut JSON is not."""
    log = read(CLOUDWATCH)

    assert [(row["source"], row["token"], row["at"].second) for row in log.rows] == [("log:2", 41, 1), ("log:3", 42, 2)]
    assert log.aside == {"log:7": "JSON that is cut off after 40 characters"}
    assert log.read.filtered == 5


def test_a_lines_own_time_wins_over_the_prefix(read):
    """The prefix says when the line was ingested, the line says when it happened."""
    log = read(f"2026-11-29T14:00:09Z {line()}\n")

    assert log.column("at") == [datetime(2026, 11, 29, 14, 0, 0, 123_000)]


def test_lambda_lines_without_prefix_are_chatter(read):
    """START, END and REPORT lie between bare JSON lines."""
    log = read(f"START RequestId: 8b2f Version: 1\n{line()}\nEND RequestId: 8b2f\nREPORT RequestId: 8b2f\n")

    assert (log.column("source"), log.read.filtered, log.aside) == (["log:2"], 3, {})


def test_a_logger_may_put_its_name_before_the_json(read):
    """`INFO:worker:{…}` is a line with JSON."""
    log = read(f"INFO:worker:{line()}\n[w1] {line()}\n")

    assert log.column("token") == [41, 41]


def test_text_in_a_file_of_json_lines_is_set_aside(read):
    """One dated line of text among JSON lines is not taken for chatter."""
    log = read(f"{line()}\n2026-11-29T14:00:00Z lost its JSON\n{line()}\n")

    assert log.aside == {"log:2": "not JSON"}


def test_trap_10_json_inside_a_field_is_opened(read):
    """Containers keep the line as text in `log` or `message`; its fields count, the outer time where it has none."""
    outer = {"stream": "stdout", "time": "2026-11-29T14:00:09.5Z"}
    texts = [line(), line(timestamp=None), "hello", "took {1} ms", line()[:30], ""]
    log = read("\n".join(json.dumps({"log": text + "\n", **outer}) for text in texts))

    assert "timestamp" in log.names
    assert not {"log", "time"} & set(log.names)
    assert [(row["source"], row["at"].second) for row in log.rows] == [("log:1", 0), ("log:2", 9)]
    assert log.aside == {"log:5": "JSON that is cut off after 31 characters"}
    assert log.read.filtered == 3


def test_json_between_other_text_is_found(read):
    """Monolog writes ` []` for what is empty after the context."""
    log = read(f"[2026-11-29T14:00:00.123456+00:00] worker.INFO: saved {line()} []\n" * 2)

    assert (log.column("token"), log.aside) == ([41, 41], {})


def test_a_sentence_that_quotes_json_is_no_line(read):
    """`msg` stays the event where only some messages end with JSON."""
    log = read("\n".join([line(event=..., msg='saved {"a": 1}'), line(event=..., msg="renewed")] * 3))

    assert log.spec.get("kind") == "msg"
    assert log.column("kind") == ["write", "renew"] * 3


# --- delimited files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_trap_26_delimited_files(read, delimiter):
    """Any usual delimiter, and values with delimiters, quotes and line breaks; a source is a record's first line."""
    rows = [
        ["r1", "acquire", 'w"1', 1, "ok"], ["r1", "write\nof two lines", f"w{delimiter}1", "1", "accepted"],
        ["r2", "write", "w2", "007", "rejected"], ["r2", "write", "w2", "", ""],
    ]  # fmt: skip
    log = read(table(*rows, delimiter=delimiter), shape="csv")

    assert [(row["source"], row["resource"], row["writer"], row.get("token"), row["decision"]) for row in log.rows] == [
        ("log:2", "r1", 'w"1', 1, "accepted"), ("log:3", "r1", f"w{delimiter}1", 1, "accepted"),
        ("log:5", "r2", "w2", 7, "rejected"), ("log:6", "r2", "w2", None, "unknown"),
    ]  # fmt: skip
    assert log.read.beside == 2  # the header and a second line


def test_trap_26_thousands_separators_and_wrong_widths_are_set_aside(read):
    """`1,234` may be a token or a typing habit, a short row may lack any value: neither is guessed at."""
    rows = table(["r1", "write", "w1", "1,234", "ok"], ["r1", "write", "w1", 5, "ok"])
    log = read(f"{rows}r1,write\n\nr1,w,w,6,ok,more\n", shape="csv")

    assert log.aside == {
        "log:2": "token 1,234 has thousands separators",
        "log:4": "2 values under a header of 5 columns",
        "log:6": "6 values under a header of 5 columns",
    }
    assert log.read.set_aside[1].raw == b"r1,write"


def test_a_stray_quote_costs_its_own_line(read):
    """A quote that opens nothing does not swallow the rows after it."""
    rows = [["r1", "write", "w1", n, "ok"] for n in range(1, 6)]
    text = table(*rows).replace("w1,2", 'w"1,2').replace("w1,4", '"w1"x,4')
    log = read(text, shape="csv")

    assert log.column("token") == [1, 2, 3, 5]
    assert log.aside == {"log:5": "text follows a closing quote"}


def test_csv_rounded_numbers_and_absent_words(read):
    """What a spreadsheet rounded is set aside; the words for nothing are nothing."""
    tokens = ("1", "8.00E+20", "None", "NULL", "-", "nan")
    log = read(table(*(["r1", "write", "w1", token, "ok"] for token in tokens)), shape="csv")

    assert log.column("token") == [1, None, None, None, None]
    assert "rounded" in log.aside["log:3"]


def test_blanks_round_a_value_are_no_part_of_it(read):
    """psql and CHAR columns fill values up: in two exports of other widths one job is still one."""
    rows = ["r1,write,w1,1,ok", "r1   , write ,w1 , 1 ,ok "]
    log = read("resource , kind,worker,token,decision\n" + "\n".join(rows), shape="csv")

    assert [(row["resource"], row["writer"], row["token"], row["decision"]) for row in log.rows] == [
        ("r1", "w1", 1, "accepted")
    ] * 2


def test_whole_numbers_written_as_floats_are_an_order(read):
    """pandas writes a column of whole numbers with a gap as floats; beyond 15 digits their last ones are rounded."""
    log = read("\n".join(line(sequence=one) for one in ("2.0", "10.0", "9007199254740993.0")))

    assert [int(key) for key in log.column("order_key")] == [2, 10]
    assert [*log.aside] == ["log:3"]


def test_csv_files_with_other_columns(read):
    """Files of one log may differ in columns, order and delimiter; a missing column is not known."""
    first = table(["r1", "write", "w1", 1, "ok"])
    second = table([2, "r2", "write"], delimiter=";", header=("token", "resource", "kind"))
    log = read(first, second, shape="csv")

    assert log.column("source") == ["log:2", "log1:2"]
    assert (log.column("token"), log.column("writer")) == ([1, 2], ["w1", None])


def test_csv_with_byte_order_mark_and_crlf(read):
    """Excel's CSV is a CSV."""
    text = "\ufeff" + table(["r1", "write\nmore", "w1", 1, "ok"], ["r2", "write", "w1", 2, "ok"])
    log = read(text.replace("\n", "\r\n"), shape="csv")

    assert [(row["source"], row["token"]) for row in log.rows] == [("log:2", 1), ("log:4", 2)]


def test_insights_results_hold_lines(read):
    """In `@message` lies the line: its fields are read, `@timestamp` where it has no time, `@ptr` is its id."""
    messages = [line(), line(timestamp=...)[:45], "START RequestId: 8b2f", line(token=42)]
    rows = [("2026-11-29 14:00:00.123", message, f"p{n}") for n, message in enumerate(messages)]
    log = read(table(*rows, header=("@timestamp", "@message", "@ptr")), shape="csv")

    assert log.column("source") == ["log:2", "log:5"]
    assert (log.column("token"), log.column("event_id")) == ([41, 42], ["p0", "p3"])
    assert log.aside == {"log:3": "JSON that is cut off after 45 characters"}
    assert log.read.filtered == 1
    assert log.spec.get("at") == "timestamp"


def test_insights_time_where_the_lines_have_none(read):
    """The column is the time where no line has its own."""
    text = table(("2026-11-29 14:00:00.123", line(timestamp=...)), header=("@timestamp", "@message"))
    log = read(text, shape="csv")

    assert log.column("at") == [datetime(2026, 11, 29, 14, 0, 0, 123_000)]


# --- properties ---------------------------------------------------------------------------------------

OBJECTS = st.builds(
    line,
    token=st.one_of(st.integers(-2, 10**39), st.just(...), st.none(), st.floats(), st.text(max_size=5)),
    event=st.sampled_from([event for event, *_ in EVENTS] + [...]),
    resource=st.sampled_from(["r1", "r2", "", None, ...]),
    sequence=st.one_of(st.integers(0, 50), st.none(), st.sampled_from(["8.00E+20", "7", ...])),
    decision=st.sampled_from([word for word, _ in DECISIONS] + [None, ...]),
    timestamp=st.one_of(st.sampled_from([written for written, *_ in TIMES]), st.integers(), st.text(max_size=5)),
    leaseExpiresAt=st.one_of(st.none(), st.integers(0, 10**20), st.floats(min_value=1)),
)
OTHERS = ["", "  ", "\t", "garbage", "null", "[]", "{}", '{"a": {"b": [1]}}', "START RequestId: 1", line() + line()]
ENTRIES = st.one_of(
    OBJECTS,
    st.sampled_from(OTHERS),
    st.builds(lambda end: line()[:end], st.integers(0, 120)),
    st.builds("2026-11-29T14:00:00Z {}".format, st.sampled_from([line(), "text", '{"a"'])),
)
relaxed = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(st.lists(st.lists(ENTRIES, max_size=12), min_size=1, max_size=3), st.sampled_from([None, "lines"]))
def test_every_line_is_a_record_blank_or_set_aside(read, files, order):
    """Whatever the lines are: all are accounted for, once, and every row passes the checks of the history."""
    log = read(line() + "\n", *("\n".join(file) + "\n" for file in files), order=order)  # Log checks the sums

    places = [*log.column("source"), *log.aside]
    assert len(places) == len(set(places))
    rows = log.con.sql(f"select * exclude (event_id) from {log.read.table}")
    assert history.check(rows).columns == list(history.NAMES)


@relaxed
@given(st.lists(OBJECTS, min_size=1, max_size=12))
def test_both_ways_of_reading_agree(read, entries):
    """The quick way, for files where every line is an object, gives what the general one gives."""
    text = line() + "\n" + "\n".join(entries) + "\n"
    quick, general = read(text), read(text + "garbage\n")

    assert quick.rows == general.rows
    assert [*quick.aside, f"log:{len(entries) + 2}"] == list(general.aside)


CELLS = st.text(alphabet='ab";,\n \t', max_size=4)


@relaxed
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8))
def test_delimited_values_are_those_of_pythons_csv(read, rows):
    """Records and their values are what Python's own reader finds, but for blanks round them."""
    text = table(*[(f"r{n}", *row) for n, row in enumerate(rows)], header=("resource", "kind", "worker", "operationId"))
    log = read(text, shape="csv", fields={"kind": "none"})

    assert [(row["resource"], row.get("writer", ""), row.get("operation", "")) for row in log.rows] == [
        (f"r{n}", worker.strip(" "), operation.strip(" ")) for n, (_, worker, operation) in enumerate(rows)
    ]


@relaxed
@given(st.lists(st.text(alphabet='r,;"x\n', max_size=12), min_size=1, max_size=8))
def test_every_line_of_a_delimited_file_is_accounted_for(read, broken):
    """Whatever stands under the header, nothing is lost."""
    read(table(["r1", "write", "w1", 1, "ok"]) + "\n".join(broken) + "\n", shape="csv")  # Log checks the sums
