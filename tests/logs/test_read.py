"""From what was named to one table, with every entry accounted for and every refusal in one sentence."""

from __future__ import annotations

import csv
import gzip
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from shutil import which
from subprocess import run
from typing import Any

import duckdb
import pytest
import worlds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencinglab import cli
from fencinglab.errors import InputError, UsageError
from fencinglab.logs import places, read
from fencinglab.logs.filters import Filters
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.read import Entries, Log

Row = dict[str, Any]
SECRET = "s3cret-payload"
DONE = MappingSpec(terminal=("DONE",))
JOBS = worlds.jobs()
LINES = worlds.stream(JOBS).splitlines()


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def history(
    folder: Path,
    files: Mapping[str, str | bytes],
    spec: MappingSpec = DONE,
    filters: Filters = Filters(),
    form: str | None = None,
) -> tuple[Log, list[Row]]:
    """What was read of these files, and the rows in their order with their places."""
    for name, content in files.items():
        path = folder / "given" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "work").mkdir()
    with duckdb.connect() as con:
        given_ = [str(folder / "given" / name) for name in files]
        log = read.read(con, given_, spec, folder / "work", filters=filters, form=form)
        asked = con.execute("select rowid, * from history order by order_scope, order_key, rowid")
        names = [name for name, *_ in asked.description]
        rows = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
        placed = places.of_rows(con, log.paths, [row["rowid"] for row in rows])
    for row in rows:
        row["place"] = placed[row["rowid"]].removeprefix(f"{folder}/given/")
    return log, rows


def aside(log: Log) -> list[tuple[str, str]]:
    """(file:line, reason) of what was set aside."""
    return [(entry.source.partition("/given/")[2], entry.reason) for entry in log.set_aside]


# --------------------------------------------------------------------------- the two equations


class Made:
    """What a generator put into the files, counted by itself."""

    def __init__(self) -> None:
        self.files: dict[str, str | bytes] = {}
        self.blank = 0
        self.lost = 0
        self.records: list[str] = []  # event ids, one a record

    def add(self, name: str, lines: Sequence[str], newline: str, packed: bool, last: bool) -> None:
        text = newline.join(lines) + (newline if last else "")
        self.files[name] = gzip.compress(text.encode()) if packed else text

    @property
    def entries(self) -> int:
        return len(self.records) + self.blank + self.lost


numbers = st.integers(0, len(JOBS) - 1)
STREAM_CHUNKS = st.one_of(
    st.tuples(st.just("record"), st.lists(numbers, min_size=1, max_size=1)),
    st.tuples(st.sampled_from(("event", "array", "joined", "text", "failed")), st.lists(numbers, max_size=3)),
    st.tuples(st.sampled_from(("blank", "junk", "cut", "other", "token", "sequence")), st.just([])),
)


def stream_line(made: Made, kind: str, records: Sequence[int]) -> str:
    """One line of a stream log, which `made` counts."""
    inside = [JOBS[n] for n in records]
    if kind in ("record", "event", "array", "joined", "text", "failed"):
        made.records += [record["eventID"] for record in inside]
    if kind == "joined":
        made.blank += not inside
        return "".join(map(dumps, inside))
    if kind == "blank":
        made.blank += 1
        return " \t"
    if kind in ("junk", "cut", "other", "token", "sequence"):
        made.lost += 1
    bad = json.loads(LINES[1])
    bad["eventID"] = f"bad-{made.lost}"
    if kind == "token":
        bad["dynamodb"]["NewImage"]["fencingToken"] = {"N": "1E+100"}
    bad["dynamodb"]["SequenceNumber"] = "8.00E+20"
    return {
        "record": lambda: dumps(inside[0]),
        "event": lambda: dumps({"Records": inside}),
        "array": lambda: dumps(inside),
        "text": lambda: dumps({"Body": dumps({"Records": inside})}),
        "failed": lambda: dumps({"version": "1.0", "payload": {"Records": inside}}),
        "junk": lambda: f"{SECRET} }}{{",
        "cut": lambda: LINES[3][:-20],
        "other": lambda: dumps({"a": SECRET}),
        "token": lambda: dumps(bad),
        "sequence": lambda: dumps(bad),
    }[kind]()


@st.composite
def stream_logs(draw: st.DrawFn) -> Made:
    """One to three files of a stream, of lines of all sorts."""
    made = Made()
    for number in range(draw(st.integers(1, 3))):
        chunks = [("record", [1]), *draw(st.lists(STREAM_CHUNKS, max_size=8))]  # which says what the file is
        lines = [stream_line(made, kind, records) for kind, records in chunks]
        if len(lines) > 1 and lines[-1] == "":  # an empty last line is none
            made.blank -= 1
            lines.pop()
        newline = draw(st.sampled_from(("\n", "\r\n")))
        made.add(f"{number}.log", lines, newline, draw(st.booleans()), draw(st.booleans()))
    return made


quickly = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@quickly
@given(stream_logs())
def test_every_entry_of_a_stream_is_accounted_for(tmp_path_factory, made):
    """Read = records + blank + set aside, and records = audited + duplicates, as the generator counted them, whatever the files hold."""
    log, rows = history(tmp_path_factory.mktemp("stream"), made.files)
    unique = len(set(made.records))

    assert log.entries == Entries(
        read=made.entries, blank=made.blank, set_aside=made.lost, records=len(made.records),
        duplicates=len(made.records) - unique, filtered=0, audited=unique,
    )  # fmt: skip
    assert len(log.set_aside) == made.lost
    assert {row["event_id"] for row in rows} == set(made.records)


EVENTS = [event | {"eventId": f"id-{n}"} for n, event in enumerate(worlds.workers())]
LINE_CHUNKS = st.one_of(
    st.tuples(st.just("event"), st.integers(0, len(EVENTS) - 1)),
    st.tuples(st.sampled_from(("blank", "junk", "cut", "array", "token", "noise")), st.just(0)),
)


@st.composite
def line_logs(draw: st.DrawFn) -> Made:
    """One or two files of JSON log lines of all sorts; `records` are event ids, or `noise`."""
    made = Made()
    for number in range(draw(st.integers(1, 2))):
        lines = [dumps(EVENTS[0])]
        made.records.append("id-0")
        for kind, event in draw(st.lists(LINE_CHUNKS, max_size=10)):
            bad = EVENTS[0] | {"token": "8.00E+20", "eventId": f"bad-{len(lines)}"}
            lines.append({
                "event": dumps(EVENTS[event]), "blank": "  ", "junk": SECRET, "cut": dumps(EVENTS[3])[:-9], "array": "[1]",
                "token": dumps(bad), "noise": dumps({"time": "2026-03-02T09:00:00Z", "level": "info", "note": "cache is warm"}),
            }[kind])  # fmt: skip
            if kind == "blank":
                made.blank += 1
            elif kind in ("event", "noise"):
                made.records.append(EVENTS[event]["eventId"] if kind == "event" else kind)
            else:
                made.lost += 1
        made.add(
            f"{number}.log", lines, draw(st.sampled_from(("\n", "\r\n"))), draw(st.booleans()), draw(st.booleans())
        )
    return made


@quickly
@given(line_logs())
def test_every_line_is_accounted_for(tmp_path_factory, made):
    """The same holds for JSON log lines: what reports no mutation is filtered, and the same event id counts once."""
    log, rows = history(tmp_path_factory.mktemp("lines"), made.files)
    events = [name for name in made.records if name != "noise"]

    assert log.entries == Entries(
        read=made.entries, blank=made.blank, set_aside=made.lost, records=len(made.records),
        duplicates=len(events) - len(set(events)), filtered=len(made.records) - len(events), audited=len(set(events)),
    )  # fmt: skip
    assert len(rows) == log.entries.audited


@quickly
@given(st.lists(st.sampled_from((*range(6), "blank", "narrow", "token")), max_size=12), st.sampled_from(",;\t"))
def test_every_row_of_a_table_is_accounted_for(tmp_path_factory, rows, delimiter):
    """The same holds for CSV, whose header is no entry and whose values may hold line breaks."""
    names = ["time", "event", "jobId", "worker", "token", "decision", "note"]
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    table.writerow(names)
    made = Made()
    for row in [0, *rows]:
        event = EVENTS[row if isinstance(row, int) else 0]
        cells = [event.get(name, "a\nb" if name == "note" else "") for name in names]
        if row == "blank":
            made.blank += 1
            text.write("\n")
        elif row == "narrow":
            made.lost += 1
            table.writerow(cells[:3])
        elif row == "token":
            made.lost += 1
            table.writerow([*cells[:4], "8.00E+20", *cells[5:]])
        else:
            made.records.append(str(row))
            table.writerow(cells)
    log, _ = history(tmp_path_factory.mktemp("csv"), {"log.csv": text.getvalue()})

    assert (log.entries.read, log.entries.blank, log.entries.set_aside) == (made.entries, made.blank, made.lost)
    assert (
        log.entries.records == len(made.records) == log.entries.audited + log.entries.duplicates + log.entries.filtered
    )


@quickly
@given(stream_logs(), st.sampled_from(("job-1", "jobs/job-1", "job-", "none")), st.booleans())
def test_filtered_records_are_accounted_for(tmp_path_factory, made, key, prefix):
    """With a filter, records = audited + duplicates + filtered, and what is audited is what the filter says."""
    of = {record["eventID"]: record["dynamodb"]["Keys"]["jobId"]["S"] for record in JOBS}
    bare = key.removeprefix("jobs/")
    kept = {name for name in made.records if (of[name].startswith(bare) if prefix else of[name] == bare)}
    filters = Filters(key_prefix=key) if prefix else Filters(resource=key)
    folder = tmp_path_factory.mktemp("filtered")
    if not kept:
        with pytest.raises(InputError, match="no record is left of"):
            history(folder, made.files, filters=filters)
        return
    log, rows = history(folder, made.files, filters=filters)

    assert {row["event_id"] for row in rows} == kept
    assert log.entries.audited == len(kept)
    assert log.entries.records == log.entries.audited + log.entries.duplicates + log.entries.filtered


# --------------------------------------------------------------------------- filters

TIMES = {
    "from a time on": (Filters(since="2026-03-02T09:01:00Z"), lambda at: at >= datetime(2026, 3, 2, 9, 1)),
    "before a time": (Filters(until="2026-03-02T09:01:00Z"), lambda at: at < datetime(2026, 3, 2, 9, 1)),
    "both": (
        Filters(since="2026-03-02 09:01", until="2026-03-02T10:02:00+01:00"),
        lambda at: datetime(2026, 3, 2, 9, 1) <= at < datetime(2026, 3, 2, 9, 2)),
    "in seconds": (Filters(since=str(worlds.BASE + 60)), lambda at: at >= datetime(2026, 3, 2, 9, 1)),
    "a day": (Filters(until="2026-03-03"), lambda at: at < datetime(2026, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize(("filters", "keeps"), TIMES.values(), ids=TIMES)
def test_filters_of_time(tmp_path, filters, keeps):
    """--since and --until keep what is at or after the one and before the other, in UTC."""
    log, rows = history(tmp_path, {"a": worlds.stream(JOBS)}, filters=filters)
    moments = [datetime.fromisoformat(worlds.clock(r["dynamodb"]["ApproximateCreationDateTime"])[:-1]) for r in JOBS]

    assert [row["at"] for row in rows] == [at for at in moments if keeps(at)]
    assert log.entries.filtered == len(JOBS) - len(rows) > 0


@pytest.mark.parametrize(
    ("option", "filters"), [("--since", Filters(since="soon")), ("--until", Filters(until="9 o'clock"))]
)
def test_a_time_that_is_none(tmp_path, option, filters):
    """A time that cannot be read is refused at once with the option and how to write one."""
    with pytest.raises(UsageError, match=f"^{option} .*: write a time such as 2026-11-29T14:00:00Z$"):
        history(tmp_path, {"a": "no log at all"}, filters=filters)


@pytest.mark.parametrize("key", ["o'brien", "a|b", "x/y", '"', "%", "_", "ä", "; drop table history"])
def test_filters_take_any_text(tmp_path, key):
    """A key that is asked for is text, whatever is in it."""
    records = [json.loads(line.replace('"job-1"', dumps(key))) for line in LINES]
    log, rows = history(tmp_path, {"a": worlds.stream(records)}, filters=Filters(resource=key.replace("|", r"\|")))

    assert {row["resource"] for row in rows} == {f"jobs/{key}".replace("|", r"\|")}


# --------------------------------------------------------------------------- set aside


def test_reasons_carry_no_payload(tmp_path):
    """What is set aside has its place, a reason without a word of the entry, and the entry itself apart."""
    lines = worlds.lines(EVENTS).splitlines()
    lines[4:4] = ["", f'{{"event":"{SECRET}"', f"{SECRET} is no JSON", "", f'["{SECRET}"]']
    lines.append(dumps(EVENTS[1] | {"eventId": "x", "token": f"{SECRET} 42"}))
    lines.append(dumps(EVENTS[1] | {"eventId": "y", "seq": f"{SECRET} 43"}))
    log, _ = history(tmp_path, {"app.log": "\n".join(lines)})

    assert [place for place, _ in aside(log)] == [f"app.log:{n}" for n in (6, 7, 9, len(lines) - 1, len(lines))]
    assert not [reason for _, reason in aside(log) if SECRET in reason]
    assert all(SECRET.encode() in entry.raw for entry in log.set_aside)


def test_places_in_many_copies(tmp_path):
    """Places are right in packed files, in files that share a copy, and after blank lines."""
    broken = "\n\n" + LINES[0] + "\n\n{cut\n"
    files = {f"{n:03}.log{'.gz' if n % 3 == 0 else ''}": broken for n in range(100)}
    packed = {name: gzip.compress(text.encode()) if name.endswith(".gz") else text for name, text in files.items()}
    packed["good.log"] = worlds.stream(JOBS)
    log, rows = history(tmp_path, packed)

    assert sorted(aside(log)) == [(f"{name}:5", "cut off or not JSON") for name in files]
    assert log.entries == Entries(
        read=500 + len(JOBS),
        blank=300,
        set_aside=100,
        records=100 + len(JOBS),
        duplicates=100,
        filtered=0,
        audited=len(JOBS),
    )


def test_bad_bytes_in_a_document_are_no_further_entry(tmp_path):
    """A record that is read with a replaced byte is one record, not one record and one entry set aside; a note says so."""
    text = worlds.stream(JOBS, "pretty").encode().replace(b"worker-a", b"worker-\xff", 1)
    log, rows = history(tmp_path, {"a.json": text})

    assert (log.entries.read, log.entries.set_aside, len(rows)) == (len(JOBS), 0, len(JOBS))
    assert log.notes[-1] == "1 lines hold bytes that are not UTF-8, read as U+FFFD"


# --------------------------------------------------------------------------- refusals

NOTHING = '{"a":1}\n{"a":2}\n'
REFUSED: dict[str, tuple[dict[str, str | bytes], list[str], str]] = {
    "a file that is not there": ({}, ["nowhere.jsonl"], "nowhere.jsonl: no such file or folder"),
    "an empty file": ({"a.log": ""}, ["a.log"], "a.log: no readable record: every file is empty"),
    "blank lines": ({"a.log": "\n \n"}, ["a.log"], "every file is empty"),
    "an empty folder": ({"d/.hidden": "x"}, ["d"], "d is a folder without a log file"),
    "an empty container": ({"a": '{"Records":[]}'}, ["a"], "a: no lease field|a: no readable record"),
    "no readable record": (
        {"a": LINES[1].replace('"SequenceNumber":"', '"SequenceNumber":"x')}, ["a"],
        r"a: no readable record in 1 lines: the sequence number is not 1 to 40 digits .*\(.*a:1\)$"),
    "an unknown format": ({"a": "hello world\nfoo\n"}, ["a"], "a holds an unknown format, which is not read: .* --format"),
    "a format that is not read": (
        {"a": '{"Item":{"pk":{"S":"x"}}}\n'}, ["a"], "a holds a full export of a DynamoDB table, which is not read: it could show"),
    "something far away": ({}, ["s3://bucket/logs/"], "s3://bucket/logs/ is not on this machine; fetch it first: aws s3 cp"),
    "no lease field in a stream": (
        {"a": worlds.stream([r for r in JOBS if r["eventName"] == "INSERT"][:2])}, ["a"],
        "a: no lease field is recognised among `jobId`, `status`, .* --map token=… --map holder=…$"),
    "no lease field in lines": (
        {"a": '{"event":"write","jobId":"j"}\n{"event":"write","jobId":"k"}\n'}, ["a"],
        "a: no lease field is recognised among `event`, `jobId`"),
    "nothing known in lines": ({"a": NOTHING}, ["a"], "a: no lease field is recognised among `a`"),
    "no resource in lines": (
        {"a": '{"event":"write","token":"5"}\n{"event":"write","token":"6"}\n'}, ["a"],
        "a: no field says what is protected among `event`, `token`; say which by --map resource=…$"),
    "two candidates": (
        {"a": worlds.stream(JOBS).replace("operationId", "lockedBy")}, ["a"],
        "two candidates for holder: `leaseOwner` and `lockedBy`; say which by --map holder=leaseOwner"),
    "a field that is not there": (
        {"a": worlds.stream(JOBS)}, ["a", "--map", "token=fence"], r"--map token=fence: no record has a field `fence`"),
    "a format that cannot be": ({"a": NOTHING}, ["a", "--format", "parquet"], "--format parquet: no such format"),
    "a format that it has not": (
        {"a": NOTHING}, ["a", "--format", "history"], "a is text, which --format history cannot read; allowed: "),
    "nothing left": (
        {"a": worlds.stream(JOBS)}, ["a", "--resource", "job-99"],
        "no record is left of 45: 0 duplicates, 45 filtered; see --since, --until, --key-prefix, --resource$"),
    "no time": ({"a": worlds.stream(JOBS)}, ["a", "--since", "soon"], "--since soon: write a time such as"),
    "a broken Parquet file": ({"a": b"PAR1\0\0"}, ["a"], "a begins like Parquet but cannot be opened"),
    "a packed file": ({"a": b"BZh91AY&SY"}, ["a"], "a is packed with bzip2; unpack it first: bunzip2"),
    "an empty name": ({}, [""], "an empty path names no log"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "words", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_one_sentence(tmp_path, monkeypatch, capsys, files, words, message):
    """What cannot be used exits with 2 and one sentence that names the thing and what to do; no traceback, no report."""
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code = cli.main(["audit", *words, "--out", "out"])
    out, err = capsys.readouterr()

    assert (code, out) == (2, "")
    assert err.startswith("fencinglab: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert __import__("re").search(message, err.removeprefix("fencinglab: ").rstrip("\n")), err
    assert not Path("out").exists()


@pytest.mark.skipif(
    not hasattr(__import__("os"), "getuid") or __import__("os").getuid() == 0, reason="root may read everything"
)
def test_a_folder_that_cannot_be_read(tmp_path, capsys):
    """A folder that belongs to another is refused with its name."""
    (tmp_path / "d").mkdir(mode=0)

    assert cli.main(["audit", str(tmp_path / "d")]) == 2
    assert "cannot be read (Permission denied)" in capsys.readouterr().err


# --------------------------------------------------------------------------- several formats together

TABLE_LINES = [
    {"time": "2026-03-02T09:00:10.500Z", "event": "acquire", "jobId": "job-1", "worker": "log-a", "token": 1, "operationId": "op-acquire", "decision": "accepted"},
    {"time": "2026-03-02T09:00:11.500Z", "event": "finish", "jobId": "job-1", "worker": "log-a", "token": 1, "decision": "accepted"},
    {"time": "2026-03-02T09:00:12.500Z", "event": "write", "jobId": "job-1", "worker": "worker-b", "token": 0, "decision": "rejected"},
    {"time": "2026-03-02T09:00:13.500Z", "event": "write", "jobId": "job-9", "worker": "worker-b", "token": 3, "decision": "accepted"},
]  # fmt: skip
PLAIN_JOBS = worlds.jobs(stores=())


def test_lines_join_the_records_that_they_report(tmp_path):
    """Where resource, token and kind leave one of each, the record gains what the line knows and the line is gone."""
    log, rows = history(tmp_path, {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(TABLE_LINES)})
    [grant] = [row for row in rows if row["operation"] == "op-acquire"]
    [finish] = [row for row in rows if row["writer"] == "log-a" and row["kind"] == "finish"]
    [rejected] = [row for row in rows if row["decision"] == "rejected"]

    assert log.matched == 2
    assert (grant["resource"], grant["kind"], int(grant["token"])) == ("jobs/job-1", "grant", 1)
    assert (finish["resource"], int(finish["token"]), finish["fenced"], finish["outcome"]) == (
        "jobs/job-1",
        1,
        True,
        "ok",
    )
    assert (rejected["resource"], rejected["lease"], rejected["order_scope"]) == ("jobs/job-1", "jobs/job-1", None)
    assert {row["resource"] for row in rows} == {*(f"jobs/job-{n}" for n in range(1, 6)), "job-9"}
    assert log.entries.records == len(PLAIN_JOBS) + len(TABLE_LINES) == len(rows) + log.matched


def test_sources_are_never_ordered_by_each_other(tmp_path):
    """A line that found no record keeps no place among the records, even where the lines are in order."""
    spec = MappingSpec(terminal=("DONE",), order="lines")
    _, rows = history(tmp_path, {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(TABLE_LINES)}, spec)
    scopes = {row["order_scope"] for row in rows if row["resource"] == "jobs/job-1"}

    assert len(scopes) == 2


def test_lines_whose_workers_hold_nothing_in_the_stream_name_no_writer(tmp_path):
    """Names of two kinds, such as pods beside owners, are not compared: the lines keep all but who wrote, and a note says so."""
    lines = [line | {"worker": "pod-1"} for line in TABLE_LINES]
    log, rows = history(tmp_path, {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(lines)})

    assert log.matched == 2
    assert "pod-1" not in {row["writer"] for row in rows}
    assert any("name no worker that the stream names as a holder" in note for note in log.notes)


def test_two_reports_of_one_record_join_nothing(tmp_path):
    """Two lines that could be one record, or one line that could be two, are left as they are."""
    twice = [TABLE_LINES[0], TABLE_LINES[0] | {"worker": "worker-b"}]
    log, rows = history(tmp_path, {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(twice)})

    assert log.matched == 0
    assert {row["writer"] for row in rows if row["operation"] == "op-acquire"} == {"log-a", "worker-b"}


@pytest.mark.parametrize(
    ("lines", "writers"),
    [
        ([{"decision": "accepted"}], ["log-a"]),
        ([{"decision": "unknown"}], []),  # whoever wrote, the item's token is this one
        ([{"decision": "accepted"}, {"decision": "unknown", "worker": "log-b"}], []),
        ([{"decision": "accepted"}, {"decision": "rejected", "worker": "log-b"}], ["log-a"]),
        ([{"decision": "unknown", "operationId": "op-1"}], ["log-a"]),  # its record proves that it was accepted
    ],
)
def test_only_an_accepted_line_joins_by_token(tmp_path, lines, writers):
    """A line that may not have been accepted says who wrote a record only where both name the operation."""
    stored, finish = worlds.jobs(stores=()), TABLE_LINES[1]
    images = [r["dynamodb"].get("NewImage", {}) for r in stored if r["dynamodb"]["Keys"]["jobId"]["S"] == "job-1"]
    next(image for image in images if image.get("status") == {"S": "DONE"})["operationId"] = {"S": "op-1"}
    files = {
        "s.jsonl": worlds.stream(stored),
        "a.log": worlds.lines([*(finish | one for one in lines), TABLE_LINES[3]]),
    }
    log, rows = history(tmp_path, files)

    assert [
        row["writer"] for row in rows if row["kind"] == "finish" and row["order_scope"] and row["writer"]
    ] == writers
    assert log.matched == len(writers)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(
    ("results", "decisions"),
    [(("ok", "rejected"), ["accepted", "rejected"]), (("old", "rejected"), ["accepted", "unknown"])],
)
def test_a_result_is_the_decision_where_its_values_are(tmp_path, results, decisions, within):
    """`result` is what was computed unless every value is a word for a decision; one that may be leaves it open."""
    entries = [{"event": "saved", "jobId": "j", "worker": "w", "token": 1, "result": one} for one in results]
    if within:
        entries = [{"time": "2026-03-02T09:00:00Z", "message": json.dumps(entry)} for entry in entries]
    _, rows = history(tmp_path, {"a.log": worlds.lines(entries)})

    assert sorted(row["decision"] for row in rows) == decisions


@pytest.mark.parametrize(("mapped", "ordered"), [({}, False), ({"order_key": "seq"}, True)])
def test_a_sequence_that_each_worker_keeps_is_no_order(tmp_path, mapped, ordered):
    """Where two entries share a value of a `seq` that was only recognised, it orders nothing, unless the user says so."""
    files = {
        f"{worker}.log": worlds.lines(
            {"time": f"2026-03-02T09:0{token}:0{n}Z", "seq": n, "jobId": "j", "action": "write", "worker": worker,
             "token": token, "decision": "accepted"} for n in (1, 2)
        )
        for token, worker in enumerate("ab")
    }  # fmt: skip
    log, rows = history(tmp_path, files, MappingSpec(fields=mapped))

    assert {row["order_scope"] is not None for row in rows} == {ordered}
    assert any("`seq` gives no order" in note and "--map order_key=seq" in note for note in log.notes) is not ordered
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("said", "ordered"),
    [({}, False), ({"fields": {"order_key": "seq"}}, True), ({"skew": 600_000_000}, True)],
)
def test_a_sequence_that_rises_while_time_falls_is_no_order(tmp_path, said, ordered):
    """Workers that count for themselves share no value where they start apart: the times give them away."""
    steps = (
        (1, "acquire", "a", 41), (101, "acquire", "b", 42), (102, "write", "b", 42), (2, "write", "a", 41),
    )  # fmt: skip
    entries = [
        {"time": f"2026-03-02T09:0{minute}:00Z", "seq": seq, "jobId": "j", "action": action, "worker": worker,
         "token": token, "decision": "accepted"} for minute, (seq, action, worker, token) in enumerate(steps)
    ]  # fmt: skip
    log, rows = history(tmp_path, {"a.log": worlds.lines(entries)}, MappingSpec(**said))

    assert {row["order_scope"] is not None for row in rows} == {ordered}
    assert any("`seq` gives no order: in one resource it rises while time falls" in n for n in log.notes) is not ordered


def test_lines_that_deny_a_success_are_counted_with_the_fields_that_do(tmp_path):
    """A reader of the report can see which fields took the success of an event back, and how often."""
    entry = {"jobId": "j", "event": "saved", "worker": "a", "token": 1, "level": "info", "rowCount": 1}
    log, _ = history(tmp_path, {"a.log": worlds.lines([entry, entry | {"rowCount": 0}, entry | {"level": "error"}])})

    assert "lines that deny a success in `level` or `rowCount`, and so are not taken as accepted: 2" in log.notes


def test_a_shared_place_that_says_the_same_leaves_the_order(tmp_path):
    """Exports that overlap repeat entries: they take nothing from the order."""
    entry = {"seq": 1, "jobId": "j", "action": "write", "worker": "a", "token": 1, "decision": "accepted"}
    log, rows = history(tmp_path, {"a.log": worlds.lines([entry]), "b.log": worlds.lines([entry, entry | {"seq": 2}])})

    assert [row["order_scope"] for row in rows] == ["order_key"] * 2
    assert log.entries.duplicates == 1


OVERLAP = {
    "time": "2026-03-02T09:00:01.000Z", "jobId": "j", "action": "finish", "worker": "a", "token": 1,
    "operationId": "o", "decision": "accepted", "status": "DONE",
}  # fmt: skip


@pytest.mark.parametrize("order", [None, "lines"])
@pytest.mark.parametrize(
    ("first", "second", "duplicates"),
    [
        ([OVERLAP], [OVERLAP], 1),
        ([OVERLAP, OVERLAP], [OVERLAP], 1),  # the second one is a true repetition
        ([OVERLAP, OVERLAP], [OVERLAP, OVERLAP], 2),
        ([OVERLAP, OVERLAP], [{**OVERLAP, "jobId": "k"}], 0),
        ([OVERLAP], [{**OVERLAP, "status": "FAILED"}], 0),
        ([OVERLAP], [{**OVERLAP, "operationId": None}], 0),
        ([{**OVERLAP, "time": "2026-03-02T09:00:01Z"}], [{**OVERLAP, "time": "2026-03-02T09:00:01Z"}], 0),
    ],
)
def test_trap_18_an_entry_in_two_files_is_one(tmp_path, first, second, duplicates, order):
    """Exports overlap: of one operation at one millisecond the k-th entry of a file is the k-th of the other."""
    files = {"a.log": worlds.lines(first), "b.log": worlds.lines(second)}
    log, rows = history(tmp_path, files, MappingSpec(order=order))

    assert log.entries.duplicates == duplicates
    assert len(rows) == len(first) + len(second) - duplicates


RECORDS = JOBS[:9]
INSIDE = {
    "after a text": "".join(f"2026-03-02T09:00:00Z INFO {json.dumps(one)}\n" for one in RECORDS),
    "events after a text": "".join(f"2026-03-02T09:00:00Z {json.dumps({'Records': [one]})}\n" for one in RECORDS),
    "in a field": "".join(json.dumps({"time": 1772442000, "msg": "seen", "record": one}) + "\n" for one in RECORDS),
    "in a cell": "".join(
        ["@timestamp,@message\n", *(f'2026-03-02 09:00:00,"{json.dumps(one).replace(chr(34), chr(34) * 2)}"\n' for one in RECORDS)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", INSIDE.values(), ids=INSIDE)
def test_stream_records_inside_log_lines_are_refused_with_what_takes_them_out(tmp_path, text):
    """What other text hides is named, with a command whose output is read."""
    with pytest.raises(
        InputError, match=r"a\.log holds stream records inside log lines, .*; give what is inside: "
    ) as told:
        history(tmp_path, {"a.log": text})
    if not (which("jq") and which("gzip")):
        pytest.skip("needs jq and gzip")
    run(str(told.value).partition("inside: ")[2], shell=True, check=True, cwd=tmp_path)
    log, _ = history(tmp_path / "again", {"inside": (tmp_path / "inside.jsonl").read_bytes()})

    assert log.entries.records == len(RECORDS)


def test_a_log_of_leases_may_quote_records(tmp_path):
    """Lines with a token of their own are log lines, whatever else they hold."""
    entries = [entry | {"record": record} for entry, record in zip(TABLE_LINES, RECORDS, strict=False)]
    log, _ = history(tmp_path, {"a.log": worlds.lines(entries)}, MappingSpec(fields={"value": "none"}))

    assert log.entries.records == len(entries)


def test_a_gzip_file_without_one_whole_line_is_called_cut_off(tmp_path):
    """Where a download stopped within the first record, that is the reason, and no field is missed."""
    with pytest.raises(InputError, match=r"no readable record in 1 lines: the gzip data ends too early"):
        history(tmp_path, {"cut.gz": gzip.compress(LINES[0].encode())[:200]})


@pytest.mark.parametrize("given", [["s.jsonl"], ["s.jsonl", "a.log"]])
def test_the_order_of_lines_is_for_log_lines(tmp_path, given):
    """A stream has an order of its own: that `--order lines` changes nothing is said, not passed over."""
    files = {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(TABLE_LINES)}
    log, _ = history(tmp_path, {name: files[name] for name in given}, replace(DONE, order="lines"))

    assert any("--order lines says nothing here" in note for note in log.notes) is (len(given) == 1)


def test_a_key_in_two_tables_joins_nothing(tmp_path):
    """A line does not say which table it means: with its key in two tables it joins neither and keeps its name."""
    other = [json.loads(line.replace("table/jobs/", "table/tasks/")) for line in worlds.stream(PLAIN_JOBS).splitlines()]
    other = [record | {"eventID": record["eventID"][::-1]} for record in other]
    files = {"s.jsonl": worlds.stream([*PLAIN_JOBS, *other]), "a.log": worlds.lines(TABLE_LINES)}
    log, rows = history(tmp_path, files)

    assert log.matched == 0
    assert sum(row["resource"] == "job-1" for row in rows) == 3
    assert not [
        row for row in rows if row["resource"].startswith(("jobs/", "tasks/")) and row["operation"] == "op-acquire"
    ]


def test_filters_count_both_sources(tmp_path):
    """A filter leaves the lines of a key with its records, and the equations hold."""
    files = {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(TABLE_LINES)}
    log, rows = history(tmp_path, files, filters=Filters(resource="job-1"))
    of_job_1 = sum(r["dynamodb"]["Keys"]["jobId"]["S"] == "job-1" for r in PLAIN_JOBS)

    assert {row["resource"] for row in rows} == {"jobs/job-1"}
    assert len(rows) + log.matched == log.entries.audited == of_job_1 + 3
    assert log.entries.filtered == len(PLAIN_JOBS) + len(TABLE_LINES) - of_job_1 - 3


def test_a_mapping_speaks_to_the_log_that_it_fits(tmp_path):
    """A field that only one of the sources has is mapped there; one that none has is refused."""
    files = {
        "s.jsonl": worlds.stream(PLAIN_JOBS),
        "a.log": worlds.lines(e | {"fence": e["token"]} for e in TABLE_LINES),
    }
    spec = MappingSpec(fields={"token": "fence"}, terminal=("DONE",))
    log, _ = history(tmp_path, files, spec)

    assert log.mappings["log-lines"].get("token") == "fence"
    assert log.mappings["dynamodb-stream"].get("token") == "fencingToken"


def test_a_field_that_no_source_has(tmp_path):
    """A mapped field that none of the sources has is refused by name."""
    files = {"s.jsonl": worlds.stream(PLAIN_JOBS), "a.log": worlds.lines(TABLE_LINES)}
    with pytest.raises(InputError, match="--map token=fence: no record has a field `fence`"):
        history(tmp_path, files, MappingSpec(fields={"token": "fence"}))


def test_a_history_beside_a_stream(tmp_path):
    """A history that was written before can be audited together with a stream; neither is joined or lost."""
    with duckdb.connect() as con:
        con.sql("""select 'jobs/job-1' as resource, 'write' as kind, 'rejected' as decision, 5 as token, 'app:1' as source
            """).write_parquet(str(tmp_path / "h.parquet"))
    log, rows = history(tmp_path, {"h.parquet": (tmp_path / "h.parquet").read_bytes(), "s.jsonl": worlds.stream(JOBS)})

    assert (log.entries.records, len(rows), log.matched) == (len(JOBS) + 1, len(JOBS) + 1, 0)
    assert [row["source"] for row in rows if row["decision"] == "rejected"] == ["app:1"]


def test_a_table_beside_lines_and_a_stream(tmp_path):
    """Log lines as JSON, as CSV and as a Parquet table beside a stream are all there."""
    with duckdb.connect() as con:
        con.sql("select 'job-7' as \"jobId\", 'write' as event, 'w' as worker, 3 as token").write_parquet(
            str(tmp_path / "t")
        )
    files = {
        "t.parquet": (tmp_path / "t").read_bytes(), "a.log": worlds.lines(TABLE_LINES[2:3]),
        "b.csv": worlds.csv(TABLE_LINES[3:]), "s.jsonl": worlds.stream(PLAIN_JOBS),
    }  # fmt: skip
    log, rows = history(tmp_path, files)

    assert log.entries.records == len(rows) == len(PLAIN_JOBS) + 3
    assert {"job-7", "job-9", "jobs/job-1"} <= {row["resource"] for row in rows}


# --------------------------------------------------------------------------- many files


def test_two_thousand_tiny_files(tmp_path):
    """Two thousand packed files of one record each are read in a few seconds, and rows are found in them."""
    records = [json.loads(LINES[n % len(LINES)]) | {"eventID": f"e{n}"} for n in range(2000)]
    for n, record in enumerate(records):
        record["dynamodb"]["SequenceNumber"] = str(10**21 + n)
    files = {f"2026/03/02/{n % 24:02}/{n:05}.gz": gzip.compress(dumps(r).encode(), 1) for n, r in enumerate(records)}
    begun = time.process_time()
    log, rows = history(tmp_path, files)

    assert log.entries.audited == len(rows) == 2000
    assert {row["event_id"]: row["place"] for row in rows} == {
        record["eventID"]: f"{name}:1" for name, record in zip(files, records, strict=True)
    }
    assert time.process_time() - begun < 20


def test_the_same_logs_give_the_same_rows(tmp_path_factory):
    """Reading twice gives the same rows in the same order, and hashes under another key."""
    files = {f"{n}.jsonl": worlds.stream(part) for n, part in enumerate(worlds.split(worlds.redelivered(JOBS), 3))}
    (_, one), (_, other) = (history(tmp_path_factory.mktemp(name), files) for name in "ab")
    hashes = ("before_value", "after_value", "source")

    assert [{n: v for n, v in row.items() if n not in hashes} for row in one] == [
        {n: v for n, v in row.items() if n not in hashes} for row in other
    ]
    assert {row["after_value"] for row in one} & {row["after_value"] for row in other} == {None}
