"""From the user's words to a report: what the words mean, and that nobody healthy is accused."""

from __future__ import annotations

import functools
import json
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st

from fencinglab.audit import advice
from fencinglab.audit.audit import Declared
from fencinglab.audit.rules import RULES
from fencinglab.errors import InputError, UsageError
from fencinglab.logs.filters import Filters
from fencinglab.logs.mapping import MappingSpec
from fencinglab.report import report
from fencinglab.report.examine import OPTIONS, audit_logs, examine, request_of, said

NAMES = [rule.name for rule in RULES]
CORE = {rule.name for rule in RULES if rule.core}
OPEN = ("unknown", "not_visible")


def report_of(folder: Path, files: Mapping[str, str], options: Sequence[str] = ()) -> dict[str, Any]:
    """The report of these files, options as on the command line."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    words = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in zip(options[::2], options[1::2], strict=True)
    }
    return audit_logs([str(folder / name) for name in files], **words)


def statuses(report: dict[str, Any]) -> dict[str, set[str]]:
    """The rules by status, but for those that hold."""
    found: dict[str, set[str]] = {}
    for rule in report["rules"]:
        found.setdefault(rule["status"], set()).add(rule["name"])
    found.pop("holds", None)
    return found


# --- nobody healthy is accused

REFUSALS = {"went_on_after_rejection", "rejected_stale", "rejected_late", "rejected_done", "own_success_rejected"}
STREAM = {  # what a whole healthy stream does not show, or puts to no test
    "not_visible": REFUSALS, "not_applicable": {"state_went_back"}, "idle": {"scopes_mixed"}, "unknown": {"alert_twice"},
}  # fmt: skip
LINES = {
    "not_visible": {"tokens_as_text", "chain_broken"}, "not_applicable": {"state_went_back"}, "unknown": {"alert_twice"},
    "idle": {"token_restarted", "ttl_removed_live", "went_on_after_rejection"}, "violated": {"rejected_late"},
}  # fmt: skip
NO_TOKEN = STREAM | {
    "unknown": {
        "token_went_back",
        "stale_write_accepted",
        "unfenced_write",
        "operation_twice",
        "alert_twice",
        "unfenced_delete",
    }
}
NO_STATUS = {"terminal_twice", "terminal_left", "ttl_removed_live", "work_after_terminal", "rejected_done"}
HOLDS = "Holds: none of {} writes after a grant came from a worker that had lost its lease."
NOT_JUDGED = " Not judged: {} changes of attributes that are not mapped (--protect)."
NO_PROOF = "No proof either way: the stream does not say which token a write carried. {} changed hands and were written afterwards: look at these first."

PINNED: dict[str, tuple[int, str, dict[str, set[str]]]] = {
    "a written token is stored": (0, HOLDS.format(27), STREAM),
    "no written token is stored": (3, NO_PROOF.format("3 resources"), NO_TOKEN),
    "a version is stored, no written token": (3, NO_PROOF.format("3 resources"), NO_TOKEN),
    "completed items are removed by TTL": (0, HOLDS.format(27), STREAM),
    "failed acquires in JSON lines": (0, HOLDS.format(23), LINES),
    "tokens are quoted in JSON lines": (0, HOLDS.format(23), LINES),
    "tokens are quoted in CSV": (0, HOLDS.format(23), LINES),
    "tokens are UUIDs": (3, NO_PROOF.format("3 resources").replace(
        "the stream does not say which token a write carried", "its tokens are identities (`fencingToken`), which order nothing"
    ), {
        "not_visible": REFUSALS, "not_applicable": {"state_went_back"},
        "unknown": {"token_went_back", "stale_write_accepted", "token_shared", "holder_without_token", "unfenced_write",
                    "image_went_back", "token_restarted", "alert_twice", "tokens_as_text", "scopes_mixed"},
    }),
    "NEW_IMAGE": (0, HOLDS.format(27), STREAM | {"not_visible": REFUSALS | {"chain_broken"}}),
    "images are not typed": (0, HOLDS.format(27), STREAM | {"unknown": {"alert_twice", "tokens_as_text"}}),
    "an item that others touch": (0, HOLDS.format(18) + NOT_JUDGED.format(15), STREAM | {"idle": {"scopes_mixed", "token_restarted", "ttl_removed_live"}}),
    "a leader election without statuses": (0, HOLDS.format(29), {
        "not_visible": REFUSALS - {"rejected_done"}, "not_applicable": NO_STATUS | {"state_went_back"},
        "idle": {"scopes_mixed"}, "unknown": {"alert_twice"},
    }),
}  # fmt: skip
BESIDE = {
    "an item that others touch": lambda: worlds.Case(
        {"log": worlds.stream(worlds.shared_item())}, ("--terminal", "EXPORTED"), 0
    ),
    "a leader election without statuses": lambda: worlds.Case(
        {"log": worlds.stream(worlds.leader_election())}, ("--terminal", "none"), 0
    ),
}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A healthy log and its report, made once."""

    @functools.cache
    def of(name: str) -> tuple[worlds.Case, dict[str, Any]]:
        case = (worlds.HEALTHY | BESIDE)[name]()
        return case, report_of(tmp_path_factory.mktemp("healthy"), case.files, case.options)

    return of


@pytest.mark.parametrize("name", PINNED)
def test_what_a_healthy_log_prints(healthy, name):
    """The verdict, the sentence and the status of every rule of each healthy log are exactly these."""
    _, report = healthy(name)
    code, headline, expected = PINNED[name]

    assert (report["exit_code"], report["headline"]) == (code, headline)
    assert statuses(report) == expected
    assert report["verdict"] == ("inconclusive" if code else "holds")


@pytest.mark.parametrize("name", worlds.HEALTHY)
def test_no_healthy_log_is_accused(healthy, name):
    """No unsafe rule and no window is found in a healthy log, and what stays open is what the log cannot show."""
    case, report = healthy(name)

    assert [r["name"] for r in report["rules"] if r["status"] == "violated" and r["class"] not in ("cost",)] == []
    assert report["exit_code"] == case.exit_code
    assert {r["name"] for r in report["rules"] if r["core"] and r["status"] in OPEN} == set(case.unknown)


def test_the_same_write_is_found_with_a_version(tmp_path):
    """A stale worker that wrote without condition and token is not cleared: no proof, with the attribute to add; with a version, the row."""
    options = ["--terminal", "DONE,FAILED"]
    silent = report_of(tmp_path, {"silent": worlds.stream(worlds.no_written_token(()))}, options)
    versioned = report_of(tmp_path, {"versioned": worlds.stream(worlds.no_written_token(("version",)))}, options)
    [unfenced] = [r for r in versioned["rules"] if r["name"] == "unfenced_write"]

    assert (silent["verdict"], silent["exit_code"]) == ("inconclusive", 3)
    assert {"import-jobs/job-32", "import-jobs/job-34"} <= {row["resource"] for row in silent["suspects"]}
    assert any("writtenToken" in item["stream"] for item in silent["to_record"])
    assert (versioned["verdict"], versioned["exit_code"], unfenced["count"]) == ("violated", 1, 1)
    assert [row["resource"] for row in unfenced["rows"]] == ["import-jobs/job-34"]


# --- the log record that the report asks for

RECORD = [name for name, _ in advice.RECORD]


def documented(fenced: bool) -> str:
    """A log of nothing but the documented record: two workers, a takeover, a late writer who is refused, or is not."""
    lines: list[dict[str, Any]] = []

    def line(action: str, worker: str, token: int, accepted: bool = True, status: str = "RUNNING") -> None:
        number = len(lines) + 1
        given = {
            "time": worlds.clock(worlds.BASE + 10 * number), "resource": "request-status/r-1", "action": action, "worker": worker,
            "fencingToken": token, "operationId": f"op-{number}",
            "decision": "accepted" if accepted else "rejected", "storedToken": None if accepted else 2,
            "storedOwner": None if accepted else "b", "status": status if accepted else None, "version": number if accepted else None,
        }  # fmt: skip
        lines.append({name: given[name] for name in RECORD if given.get(name) is not None})

    line("acquire", "a", 1, status="QUEUED")
    line("write", "a", 1)
    line("acquire", "b", 2)
    line("write", "b", 2)
    line("write", "a", 1, accepted=not fenced)
    line("finish", "b", 2, status="DONE")
    line("release", "b", 2, status="DONE")
    return worlds.lines(lines)


def test_the_documented_record_is_recognised(tmp_path):
    """Every field of the log record that the report asks for is recognised without a word, for what it means there."""
    report = report_of(tmp_path, {"log": documented(fenced=True)}, ["--terminal", "DONE"])
    mapped = report["mapping"]["log-lines"]["fields"]

    assert set(mapped.values()) >= {*RECORD}
    assert {
        "kind": "action",
        "writer": "worker",
        "token": "fencingToken",
        "decision": "decision",
    }.items() <= mapped.items()
    assert report["counts"]["grants"] == 2


@pytest.mark.parametrize("order", [["--order", "lines"], ["--map", "order_key=version"]], ids=lambda words: words[1])
@pytest.mark.parametrize(("fenced", "code"), [(True, 0), (False, 1)])
def test_the_documented_record_answers_every_core_rule(tmp_path, fenced, code, order):
    """A log of these records is decided: no core rule stays open, a healthy one holds, a stale write is found."""
    options = ["--terminal", "DONE", *order]
    report = report_of(tmp_path, {"log": documented(fenced)}, options)

    assert [r["name"] for r in report["rules"] if r["core"] and r["status"] in OPEN] == []
    assert report["exit_code"] == code


def test_the_readme_documents_the_same_record():
    """The table of README.md names the fields of the record, and the option by which its version is the order."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    table = text.partition("| field | meaning |")[2].partition("\n\n")[0]
    names = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]

    assert names == RECORD
    assert "`--map order_key=version`" in table
    assert "`--map order_key=version`" in dict(advice.RECORD)["version"]


@pytest.mark.parametrize("language", advice.SNIPPETS)
def test_the_snippets_write_the_documented_record(language):
    """Each snippet writes every field of the record, and the same names."""
    assert not [name for name in RECORD if name not in advice.SNIPPETS[language]]


# --- what is open is called by its name, with what decides it


def attempts(*changed: dict[str, Any], **more: Any) -> str:
    """Two workers, a takeover and a late write as log lines; `...` takes a field away."""
    said = ["acquire", "acquire", "write", "write", "finish"]
    base = [
        {"time": worlds.clock(worlds.BASE + n), "seq": n, "resource": "r", "action": action, "worker": worker, "token": token,
         "decision": "accepted", "status": "DONE" if action == "finish" else "RUNNING"}
        for n, (action, (worker, token)) in enumerate(zip(said, [("a", 1), ("b", 2), ("b", 2), ("a", 1), ("b", 2)], strict=True), 1)
    ]  # fmt: skip
    events = [one | more | dict(*changed[n : n + 1]) for n, one in enumerate(base)]
    return worlds.lines({k: v for k, v in event.items() if v is not ...} for event in events)


def view(name: str) -> str:
    """The stream of a healthy log as another view shows it."""
    return worlds.stream(worlds.view(worlds.jobs(), name))


def two_labels() -> str:
    """A healthy stream in which one resource's rows are in two of a table's streams."""
    jobs = worlds.Table("jobs", "jobId", 1)
    a, b = (worlds.Worker(jobs, name) for name in "ab")
    for worker in (a, b):
        worlds.enqueue(jobs, "job") if worker is a else jobs.stream_label("2026-03-02T12:00:00.000")
        worker.acquire("job")
        worker.write("job", status="RUNNING", resultHash=worker.name)
        jobs.now += 90
    return worlds.stream(jobs.records)


REFUSED = {"decision": "rejected", "reason": "newer_token"}
DECISION = advice.TO_RECORD["decision"].line
VIEW = "No proof either way: the stream does not show what a write left: its view must be NEW_AND_OLD_IMAGES."
OPENED: dict[str, tuple[str, list[str], str, list[str]]] = {
    "a lost reply": (
        attempts({}, {}, {}, {"decision": "unknown"}), [],
        "1 write with an older token has no known decision (log `decision`, or --map decision=FIELD)", [DECISION]),
    "lost replies": (
        attempts({}, {}, {}, {"decision": "unknown"}) + attempts({}, {}, {}, {"decision": "unknown"}, resource="s"), [],
        "2 writes with an older token have no known decision (log `decision`, or --map decision=FIELD)", [DECISION]),
    "a doubted grant": (
        attempts({}, {"decision": "unknown"}, {"worker": "a", "token": 1}, {}, {"worker": "a", "token": 1}), [],
        "1 grant of a newer token has no known decision (log `decision`, or --map decision=FIELD)", [DECISION]),
    "before the result is known": (
        attempts({"action": "acquired"}, {"action": "acquired"}, *[{"action": "writing result"}] * 3, decision=...), [],
        "1 write with an older token has no known decision (log `decision`, or --map decision=FIELD)", [DECISION]),
    "no decision at all": (
        attempts(decision=...), [], "the log does not say what the receiver decided (--map decision=FIELD)", [DECISION]),
    "no decision and no event": (
        attempts(decision=..., action=...), [],
        "what the receiver decided (--map kind=FIELD for the event, or --map decision=FIELD)", [DECISION]),
    "identities": (
        attempts({"token": "x"}, {"token": "y"}, {"token": "y"}, {"token": "x"}, {"token": "y"}), [],
        "its tokens are identities (`token`), which order nothing", [advice.TO_RECORD["identity"].line]),
    "a version and no order": (
        attempts(*({"version": n} for n in range(1, 6)), seq=...), [],
        "the log does not say in which order the receiver decided",
        ["if every accepted mutation raises `version`, it is the order: --map order_key=version; "
         "else log `sequence` with every attempt, or map it: --map order_key=FIELD"]),
    "no order": (attempts(seq=...), [], "the log does not say in which order the receiver decided", ["sequence"]),
    "a place in the order that is lacking": (
        attempts({}, {}, {}, {"decision": "unknown", "seq": ...}), [], "1 of 5 rows has no place in the receiver's order",
        ["log `seq` with every attempt, after a lost reply by reading the item back"]),
    "a stream that was begun anew": (
        two_labels(), [], "1 resource stands in two streams, which have no common order",
        [advice.TO_RECORD["one_order"].line]),
    "no status": (attempts({}, {}, {}, REFUSED, status=...), [], "the log does not say which status a write left", ["status"]),
    "an undeclared status": (
        attempts({}, {}, {}, REFUSED), ["--map", "order_key=seq"], "which statuses are final is not declared (--terminal)",
        [advice.TO_RECORD["after_terminal"].stream]),
    "OLD_IMAGE": (view("OLD_IMAGE"), [], VIEW, ["only a stream with NEW_AND_OLD_IMAGES shows it"]),
    "KEYS_ONLY": (view("KEYS_ONLY"), [], VIEW, ["only a stream with NEW_AND_OLD_IMAGES shows it"]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPENED)
def test_what_is_open_is_called_by_its_name(tmp_path, name):
    """The headline gives the reason that is true, and each thing that would decide it is named once."""
    log, options, reason, lines = OPENED[name]
    terminal = [] if name == "an undeclared status" else ["--terminal", "DONE"]
    report = report_of(tmp_path, {"log": log}, [*terminal, *options])

    assert (report["verdict"], report["exit_code"]) == ("inconclusive", 3)
    assert reason in report["headline"]
    assert [item["line"] for item in report["to_record"]] == lines
    assert "rises on renewals" not in json.dumps([report["headline"], report["notes"]])


def test_what_would_show_a_gap_is_said_for_the_kind_of_log(tmp_path):
    """A log of lines is told which field to log, a stream what to store; missing records show in a stream alone."""
    lines, stream = (
        {row["question"]: row["remedy"] for row in report_of(tmp_path, {"log": log}, ["--terminal", "DONE"])["can_see"]}
        for log in (attempts({}, {}, status=...), view("NEW_IMAGE"))
    )

    assert lines["alerts"] == "log `alertId` with every attempt"
    assert lines["the final status"] == "log `status` with every attempt"
    assert "only a stream" in lines["whether records are missing"]
    assert stream["whether records are missing"] == advice.TO_RECORD["before_image"].stream
    assert "in the worker" in stream["refused writes and why"]


def test_a_line_that_matches_no_record_is_told_how_to_find_one(tmp_path):
    """Beside a stream, the order that a line lacks is the stream's: not a sequence, the operation would give it."""
    jobs = worlds.Table("jobs", "jobId", 1)
    a = worlds.Worker(jobs, "a")
    worlds.enqueue(jobs, "job")
    a.acquire("job")
    for result in "xy":
        a.write("job", resultHash=result)
    line = {"resource": "job", "action": "write", "worker": "a", "fencingToken": 1, "decision": "accepted"}
    files = {"stream": worlds.stream(jobs.records), "lines": worlds.lines([line])}
    report = report_of(tmp_path, files, ["--terminal", "DONE"])

    assert "log lines that match no single stream record have no place in the stream's order" in report["headline"]
    assert [item["stream"] for item in report["to_record"]] == [advice.TO_RECORD["record"].stream]


def test_a_stream_without_a_status_is_told_what_to_declare(tmp_path):
    """Where no status is mapped, no final one can be named: what is asked for is a field, or none; and each thing once."""
    lock = worlds.Table("locks", "lockId", 1)
    for turn, owner in enumerate("aba"):
        lock.put({"lockId": "lock", "ownerName": owner, "recordVersionNumber": f"uuid-{turn}"})
    asked = [item["stream"] for item in report_of(tmp_path, {"log": worlds.stream(lock.records)})["to_record"]]

    assert asked == [advice.TO_RECORD[column].stream for column in ("token", "after_token", "status")]


@pytest.mark.parametrize(("protect", "verdict"), [([], "holds"), (["--protect", "text"], "violated")])
def test_what_was_not_judged_is_counted_and_named(tmp_path, protect, verdict):
    """Changes of attributes that nothing is mapped to are no proof: the headline counts them, a note says what to declare."""
    jobs = worlds.Table("documents", "documentId", 1)
    a, b = (worlds.Worker(jobs, name) for name in "ab")
    worlds.enqueue(jobs, "doc")
    a.acquire("doc")
    jobs.now += 90
    b.acquire("doc")
    b.write("doc", status="DRAFT")
    jobs.put(jobs.items["doc"] | {"text": "of a, late", "aws:rep:updateregion": "eu-west-1"})
    b.write("doc", status="DONE")
    report = report_of(tmp_path, {"log": worlds.stream(jobs.records)}, ["--terminal", "DONE", *protect])
    notes = [note for note in report["notes"] if "touched no mapped attribute" in note]

    assert report["verdict"] == verdict
    assert ("Not judged: 1 change of" in report["headline"]) == (verdict == "holds")
    assert len(notes) == (verdict == "holds")
    assert all("--protect" in note and note.endswith(": `createdAt`, `updatedAt`, `text`") for note in notes)


def test_a_name_of_another_kind_than_the_holders_accuses_nobody(tmp_path):
    """Where writes store a host and leases are held under ids of their own, the two are not compared, and a note says so."""
    jobs = worlds.Table("jobs", "jobId", 1)
    host = worlds.Worker(jobs, "host-1")
    worlds.enqueue(jobs, "job")
    for token in (1, 2):
        host.held["job"] = token
        lease = {"leaseOwner": f"host-1#{token}", "leaseExpiresAt": int(jobs.now) + 60, "fencingToken": token}
        jobs.update("job", lease | {"version": worlds.plus_one})
        host.overwrite("job", resultHash=f"{token}")
        host.overwrite("job", leaseOwner=None, leaseExpiresAt=None)
    host.overwrite("job", status="DONE")
    report = report_of(tmp_path, {"log": worlds.stream(jobs.records)}, ["--terminal", "DONE"])

    assert report["verdict"] == "holds"
    assert any("`writtenBy` names nobody that `leaseOwner` names" in note for note in report["notes"])


def test_a_token_that_another_item_grants_is_no_change_left_unjudged(tmp_path):
    """Where the grant raises the protected item's token too, the log is decided, and its raising is none of what is not."""
    table = worlds.Table("jobs", "jobId", 1)
    a, b = (worlds.Worker(table, name) for name in "ab")
    for key in ("lease", "doc"):
        table.put({"jobId": key, "fencingToken": 0, "version": 1})
    for worker in (a, b):
        worker.acquire("lease")
        table.update("doc", {"fencingToken": worker.held["lease"], "version": worlds.plus_one})
        worker.held["doc"] = worker.held["lease"]
        worker.overwrite("doc", resultHash=worker.name)
        worker.renew("lease")
        table.now += 90
    report = report_of(tmp_path, {"log": worlds.stream(table.records)}, ["--terminal", "none"])

    assert report["verdict"] == "holds"
    assert "Not judged" not in report["headline"]


def test_leases_in_another_item_are_named(tmp_path):
    """Where the takeover is in another item, headline, note and advice say so, whatever else the log holds."""
    lock = worlds.Table("locks", "lockId", 1)
    a, b = (worlds.Worker(lock, name, stores=()) for name in "ab")
    worlds.enqueue(lock, "lock")
    a.acquire("lock")
    lock.now += 90
    b.acquire("lock")
    jobs = worlds.Table("tasks", "taskId", 2)
    for version, (owner, token) in enumerate([("a", 1), ("a", 1), ("b", 2)], 1):
        jobs.put(
            {"taskId": "task-1", "writtenToken": token, "writtenBy": owner, "version": version, "lease": "locks/lock"}
        )
    log = worlds.stream([*lock.records, *jobs.records, *worlds.jobs()])
    report = report_of(tmp_path, {"log": log}, ["--terminal", "DONE,FAILED"])

    assert "the leases are granted in other items than those that they protect" in report["headline"]
    assert report["suspects"][0]["holders"] == 0 and "changed hands" not in report["headline"]
    assert [note for note in report["notes"] if "1 resource takes tokens that no grant in it issued" in note]
    assert advice.TO_RECORD["current_token"].stream in [item["stream"] for item in report["to_record"]]


# --- what --terminal names and no row has


@pytest.mark.parametrize("terminal", ["done", "FAILED,Done"])
def test_a_status_in_another_case_is_refused(tmp_path, terminal):
    """A status that differs only in case from one that is seen is a slip; both are named."""
    with pytest.raises(
        UsageError, match="--terminal [dD]one: no row has this status, and some have DONE; say it as they do"
    ):
        report_of(tmp_path, {"log": attempts()}, ["--terminal", terminal])
    assert report_of(tmp_path, {"log": attempts()}, ["--terminal", "DONE,done"])["verdict"] == "violated"


def test_a_status_that_no_row_has_is_noted(tmp_path):
    """Another status that no row has is named with those that are seen; redacted, these are numbers."""
    log = {"log": attempts()}
    note = "of the statuses that --terminal names no row is known to have `FAILED`, `LOST`; seen are "

    assert note + "RUNNING, DONE" in report_of(tmp_path, log, ["--terminal", "DONE,FAILED,LOST"])["notes"]
    assert (
        note + "status-1, DONE"
        in report_of(tmp_path, log, ["--terminal", "DONE,FAILED,LOST", "--redact", "1"])["notes"]
    )
    assert not [n for n in report_of(tmp_path, log, ["--terminal", "DONE"])["notes"] if "--terminal" in n]
    silent = report_of(tmp_path, {"log": attempts(status=...)}, ["--terminal", "DONE"])["notes"]
    assert "of the statuses that --terminal names no row is known to have `DONE`; none is seen" in silent


def test_none_stands_alone():
    """`none` beside a status is refused."""
    with pytest.raises(
        UsageError, match="--terminal none,DONE: `none` says that no status is final; name statuses, or none"
    ):
        request_of(["log"], {"terminal": "none,DONE"})
    assert request_of(["log"], {"terminal": " none "}).declared.no_terminal


# --- what the words mean

SAID: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "nothing": ({}, {"mapping": MappingSpec(), "declared": Declared(), "filters": Filters(), "form": None, "redact": False}),
    "fields": ({"map": "token=a;holder=b"}, {"mapping": MappingSpec(fields={"token": "a", "holder": "b"})}),
    "fields as a notebook says them": ({"map": "token=a, holder=b"}, {"mapping": MappingSpec(fields={"token": "a", "holder": "b"})}),
    "several fields of one column": ({"map": "value=a,b;token=c"}, {"mapping": MappingSpec(fields={"value": "a,b", "token": "c"})}),
    "statuses": ({"terminal": "A, B,"}, {"mapping": MappingSpec(terminal=("A", "B"))}),
    "no status": ({"terminal": "none"}, {"mapping": MappingSpec(terminal=()), "declared": Declared(no_terminal=True)}),
    "rising": ({"rising": "a,b"}, {"mapping": MappingSpec(rising=("a", "b")), "declared": Declared(rising=True)}),
    "protected": ({"protect": "a"}, {"mapping": MappingSpec(protect=("a",))}),
    "times": (
        {"retention": "7d", "skew": "500ms"}, {"mapping": MappingSpec(retention=604_800_000_000, skew=500_000)}),
    "order": ({"order": "lines"}, {"mapping": MappingSpec(order="lines")}),
    "filters": (
        {"since": "1", "until": "2", "key_prefix": "k", "resource": "r"}, {"filters": Filters("1", "2", "k", "r")}),
    "what counts": (
        {"skip": "alert_twice,token_shared", "fail_on": "window,cost", "require": "order", "accept": "unknown", "require_exercised": "True"},
        {"declared": Declared(skip=frozenset({"alert_twice", "token_shared"}), fail_on=frozenset({"window", "cost"}),
                              require_order=True, require_exercised=True, accept=frozenset({"unknown"}))}),
    "format": ({"format": "csv"}, {"form": "csv"}),
    "redact": ({"redact": "True"}, {"redact": True}),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), SAID.values(), ids=SAID)
def test_words_become_a_request(words, expected):
    """Options mean the same for the command line and for a notebook; what was not said is not declared."""
    request = request_of(["log"], words)

    assert {name: getattr(request, name) for name in expected} == expected
    assert request.logs == ("log",)


def test_a_mapping_file_and_options(tmp_path):
    """A mapping file may stand among the fields, in any place; options count more."""
    path = tmp_path / "a b.toml"
    path.write_text('terminal = ["X"]\nskew = "1s"\n[map]\ntoken = "t"\nholder = "h"\n', encoding="utf-8")
    for written in (f"{path};token=u", f"token=u;{path}", f"token=u, {path}"):
        spec = request_of(["log"], {"map": written, "terminal": "Y"}).mapping
        assert spec == MappingSpec(fields={"token": "u", "holder": "h"}, terminal=("Y",), skew=1_000_000), written


def test_a_declaration_in_a_file_counts(tmp_path):
    """What a mapping file declares is declared: nothing final, fields that may only rise."""
    path = tmp_path / "map.toml"
    path.write_text('terminal = []\nrising = ["a"]\n', encoding="utf-8")
    declared = request_of(["log"], {"map": str(path)}).declared

    assert (declared.no_terminal, declared.rising) == (True, True)


def test_reports_for_a_notebook(tmp_path):
    """`audit_logs` takes text, drops what is empty, and raises what the command line would exit 2 for."""
    path = tmp_path / "log.jsonl"
    path.write_text(worlds.stream(worlds.jobs()), encoding="utf-8")
    report = audit_logs([str(path)], terminal="DONE", map="", since="", redact=False)

    assert report["options"] == {"terminal": "DONE"}
    assert report["command"] == f"fencinglab audit {path} --terminal DONE"
    with pytest.raises(UsageError, match="--skip nothing: allowed: "):
        audit_logs([str(path)], skip="nothing")
    with pytest.raises(InputError, match="no such file"):
        audit_logs([str(tmp_path / "nowhere")])


def test_reports_are_json(tmp_path):
    """A report is JSON types only, and survives being written; tokens beyond 2^53 are text, times are ISO text in UTC."""
    records = [json.loads(line.replace('"fencingToken":{"N":"', '"fencingToken":{"N":"9007199254740993')) for line in
               worlds.stream(worlds.broken_takeover()).splitlines()]  # fmt: skip
    report = report_of(tmp_path, {"log": worlds.stream(records)}, ["--terminal", "DONE"])
    rows = [row for rule in report["rules"] for row in rule["rows"]]

    assert json.loads(json.dumps(report)) == report
    assert any(
        isinstance(row["after_token"], str) and row["after_token"].startswith("9007199254740993") for row in rows
    )
    assert all(row["at"].endswith("Z") for row in rows)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    """The work folder is gone when the examination ends, also after an error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = tmp_path / "log.jsonl"
    path.write_text(worlds.stream(worlds.jobs(), "pretty")[:-300], encoding="utf-8")
    with examine(request_of([str(path)], {})) as done:
        assert any((tmp_path / "tmp").iterdir())
    with pytest.raises(InputError):
        audit_logs([str(path)], map="token=nothing")

    assert done.report["entries"]["set_aside"] == 1
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_every_rule_is_reported(tmp_path):
    """A report has every rule once, in its order, with title, class, cases and advice."""
    report = report_of(tmp_path, {"log": worlds.stream(worlds.jobs())})

    assert [rule["name"] for rule in report["rules"]] == NAMES
    assert {rule["name"] for rule in report["rules"] if rule["core"]} == CORE
    assert all(rule["title"] and rule["advice"] for rule in report["rules"])


@given(
    st.dictionaries(
        st.sampled_from([name for name in OPTIONS if name not in ("redact", "require_exercised")]),
        st.text(min_size=1).filter(lambda text: ";" not in text), max_size=5,
    ),
    st.sets(st.sampled_from(["redact", "require_exercised"])),
)  # fmt: skip
def test_options_are_read_as_they_are_typed(valued, alone):
    """Typed as on a command line, options come back as they were, whatever their values hold."""
    options = valued | dict.fromkeys(alone, "True")

    assert said(shlex.join(report.words(options))) == options


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("--sinc 2026-03-01", "`--sinc` is no option of `fencinglab audit`; nearest: --since"),
        ("since 2026-03-01", "`since` is no option of `fencinglab audit`; nearest: --since"),
        ("--skip", "--skip: its value is missing"),
    ],
)
def test_what_is_no_option_is_refused(text, sentence):
    """A slip in typed options is a sentence with the nearest; so is one in the options of a request."""
    with pytest.raises(UsageError, match=re.escape(sentence)):
        said(text)
    with pytest.raises(UsageError, match="`sinc` is no option of an audit; nearest: `since`"):
        audit_logs(["log"], sinc="2026-03-01")


# --- what was deleted unseen


def test_lines_that_leave_a_final_status_say_what_they_do_not_show(tmp_path):
    """Where a finished resource goes on in log lines, the report says that they would not show its deletion."""
    again = {"status": "DONE"}
    left = report_of(tmp_path, {"log": attempts({}, again)}, ["--terminal", "DONE"])
    kept = report_of(tmp_path, {"log": attempts()}, ["--terminal", "DONE"])

    assert [rule["count"] for rule in left["rules"] if rule["name"] == "terminal_left"] == [1]
    assert [note for note in left["notes"] if "show no deletion by TTL or by hand" in note]
    assert not [note for note in kept["notes"] if "deletion" in note]
