"""The files of an audit: whole or not at all, the same bytes again, inert, and without a name where that was asked."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import worlds
from hostile import ACTING, HOSTILE, hostile_lines, hostile_stream

from fencinglab import cli, history
from fencinglab.report import files, page

NAMES = {"report.json", "findings.csv", "affected.csv", "summary.md", "report.html"}
DONE = ("--terminal", "DONE,FAILED")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Audit files into a folder: the exit code, what was written (name -> text) and the screen."""
    monkeypatch.chdir(tmp_path)

    def of(logs: dict[str, str | bytes], *options: str, out: str = "out") -> tuple[int, dict[str, str], str]:
        for name, content in logs.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        code = cli.main(["audit", *logs, "--out", out, *options])
        screen = "".join(capsys.readouterr())
        return code, contents(Path(out)), screen

    return of


@pytest.fixture
def no_page(monkeypatch):
    """Leave out the page, which takes longest, where it is not what is asked."""
    monkeypatch.setattr(page, "html", lambda report: "")


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too."""
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


def rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(text.splitlines()))


def broken_jobs() -> str:
    """Ten jobs with a flaw each."""
    return worlds.stream(worlds.broken_takeover())


# --- what is written


def test_five_files_are_written(run):
    """A run writes its five files, a timeline of each worst finding and nothing besides, says where, and leaves no trace of its work."""
    code, written, screen = run({"log.jsonl": broken_jobs()}, *DONE)

    assert code == 1
    told = [f"findings/{n}.timeline" for n in (1, 2, 3, 4)]
    assert set(written) == NAMES | {*told}
    assert screen.splitlines()[-1] == "Written: " + ", ".join(
        f"out/{n}" for n in ("report.json", "findings.csv", "affected.csv", "summary.md", "report.html", *told)
    )


def test_findings_and_report_agree(run, no_page):
    """findings.csv has every broken row that report.json counts, with its place; affected.csv every resource."""
    _, written, _ = run({"log.jsonl": broken_jobs()}, *DONE)
    report, found = json.loads(written["report.json"]), rows(written["findings.csv"])
    counted = {r["name"]: r["count"] for r in report["rules"] if r["status"] == "violated"}

    assert {name: sum(row["rule"] == name for row in found) for name in counted} == counted
    assert len(found) == sum(counted.values())
    assert all(re.fullmatch(r"log\.jsonl:\d+", row["source"]) for row in found)
    assert {row["resource"] for row in rows(written["affected.csv"])} >= {
        r["resource"] for r in found if r["class"] == "unsafe"
    }
    shown = {(r["name"], row["source"]) for r in report["rules"] for row in r["rows"] if r["status"] == "violated"}
    assert {(row["rule"], row["source"]) for row in found} == shown


def test_a_written_timeline_is_replayed(run, no_page, capsys):
    """`fencinglab replay` takes a finding's file: without a fix the write is accepted, and the fence refuses it."""
    _, written, _ = run({"log.jsonl": broken_jobs()}, *DONE)
    report = json.loads(written["report.json"])
    assert cli.main(["replay", "out/findings/1.timeline", "--fix", "unfenced", "--fix", "fenced"]) == 0
    told = capsys.readouterr().out

    assert [written[replay["file"]].splitlines() for replay in report["replays"]] == [
        replay["lines"] for replay in report["replays"]
    ]
    assert "✕ unfenced  worker-a wrote with 1 after 2 was accepted: accepted, nothing compared" in told
    assert told.splitlines()[-1] == "fenced    ● nothing unsafe"


def test_timelines_of_an_earlier_run_go(run, no_page):
    """A second audit into the same folder leaves no timeline of the first, and no other file of the user's is touched."""
    run({"log.jsonl": broken_jobs()}, *DONE)
    Path("out/findings/mine.timeline").write_text("mine", encoding="utf-8")
    _, written, _ = run({"log.jsonl": worlds.stream(worlds.jobs())}, *DONE)

    assert set(written) == NAMES | {"findings/mine.timeline"}


def test_a_notebook_of_an_earlier_run_goes(run, no_page, monkeypatch):
    """A notebook that a run wrote does not stay beside the report of another; the user's own does, and is never overwritten."""
    monkeypatch.setattr("papermill.execute_notebook", lambda source, target, *_, **__: shutil.copy(source, target))
    log = {"log.jsonl": worlds.stream(worlds.jobs())}
    assert "audit.ipynb" in run(log, *DONE, "--notebook")[1]
    assert "audit.ipynb" in run(log, *DONE, "--notebook")[1]
    assert set(run(log, *DONE, "--redact")[1]) == NAMES

    for own in ("no notebook", "[]", '{"metadata": {}}'):
        Path("out/audit.ipynb").write_text(own, encoding="utf-8")
        assert run(log, *DONE)[1]["audit.ipynb"] == own
        code, written, screen = run(log, *DONE, "--notebook")
        assert (code, written["audit.ipynb"]) == (2, own)
        assert "--out out: its audit.ipynb was not written by an audit; move it, or name another folder" in screen


def test_the_report_says_what_was_read(run, no_page):
    """report.json names schema, inputs with their hashes, versions, mapping, options and the command."""
    _, written, _ = run({"log.jsonl": broken_jobs()}, *DONE, "--skew", "1s")
    report = json.loads(written["report.json"])
    [given] = report["inputs"]

    assert report["schema"] == "fencinglab.audit/1"
    assert report["command"] == "fencinglab audit log.jsonl --out out --terminal DONE,FAILED --skew 1s"
    assert (given["name"], given["format"], given["size"]) == ("log.jsonl", "dynamodb-stream", len(broken_jobs()))
    assert re.fullmatch("[0-9a-f]{64}", given["sha256"])
    assert report["mapping"]["dynamodb-stream"]["skew"] == "1s"
    assert {"fencinglab", "python"} == set(report["versions"])
    assert set(report["entries"]) == {"read", "blank", "set_aside", "records", "duplicates", "filtered", "audited"}


def test_a_healthy_log_has_no_findings(run):
    """Where nothing was broken the tables have their header and no row."""
    code, written, _ = run({"log.jsonl": worlds.stream(worlds.jobs())}, *DONE)

    assert code == 0
    assert (len(written["findings.csv"].splitlines()), rows(written["affected.csv"])) == (1, [])


# --- the same bytes again


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_second_run_gives_the_same_bytes(run, packed):
    """The same logs and words give the same bytes, also from packed files and with entries set aside."""
    text = broken_jobs() + "{cut\n\n" + worlds.stream(worlds.jobs(), "lambda lines")
    logs = {
        "a.log": gzip.compress(text.encode()) if packed else text,
        "b.log": worlds.stream(worlds.broken_takeover()[:9], "pretty"),
    }
    first, second = (run(logs, *DONE, out="out")[1] for _ in range(2))

    assert first == second
    assert not [name for name, text in first.items() if "/tmp" in text or "fencinglab-" in text]


# --- whole or not at all


def test_a_failure_while_writing_leaves_what_was_there(run, no_page, monkeypatch):
    """When the disk is full in the middle, the files of the run before are as they were, and one sentence says what to do."""
    before = run({"log.jsonl": worlds.stream(worlds.jobs())}, *DONE)[1]
    wrote, opened = [], Path.open

    def full(self: Path, mode: str = "r", *words: Any, **more: Any) -> Any:
        if "w" in mode and ".fencinglab-" in str(self):
            wrote.append(self.name)
            if len(wrote) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
        return opened(self, mode, *words, **more)

    monkeypatch.setattr(Path, "open", full)
    code, after, screen = run({"log.jsonl": broken_jobs()}, *DONE)

    assert code == 2
    assert after == before
    assert screen.splitlines()[-1] == (
        "fencinglab: --out out: cannot be written (No space left on device); free the place or name another folder"
    )


@pytest.mark.parametrize("part", [page.html, files._csv], ids=["the page", "a table"])
def test_a_slip_while_rendering_writes_nothing(run, monkeypatch, part):
    """When a rendering fails, nothing is written and nothing is left behind."""

    def slip(*_: Any) -> str:
        raise RuntimeError("slip")

    monkeypatch.setattr(files.page if part is page.html else files, part.__name__, slip)
    with pytest.raises(RuntimeError, match="slip"):
        run({"log.jsonl": broken_jobs()}, *DONE)

    assert not Path("out").exists() or contents(Path("out")) == {}


def test_a_place_that_is_a_file(tmp_path, monkeypatch, capsys):
    """A file where the folder should be is one sentence, and stays what it is."""
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("x", encoding="utf-8")
    Path("log.jsonl").write_text(worlds.stream(worlds.jobs()), encoding="utf-8")

    assert cli.main(["audit", "log.jsonl", *DONE, "--out", "taken"]) == 2
    assert "--out taken: cannot be written (File exists)" in capsys.readouterr().err
    assert Path("taken").read_text(encoding="utf-8") == "x"


# --- what was set aside


def test_what_was_set_aside_is_private(run, no_page):
    """Raw lines go into private/set_aside.jsonl only, each marked as payload, with its place and reason."""
    code, written, screen = run({"log.jsonl": worlds.stream(worlds.jobs()) + '{"secret-payload\n'}, *DONE)
    private = [json.loads(line) for line in written.pop("private/set_aside.jsonl").splitlines()]

    assert code == 3
    assert private == [
        {"payload": True, "source": "log.jsonl:46", "reason": "cut off or not JSON", "raw": '{"secret-payload'}
    ]
    assert set(written) == NAMES
    assert not [name for name, text in (*written.items(), ("screen", screen)) if "secret-payload" in text]


def test_nothing_private_where_nothing_was_set_aside(run, no_page):
    """There is no private folder where everything was read."""
    run({"log.jsonl": worlds.stream(worlds.jobs())}, *DONE)

    assert not Path("out/private").exists()


def test_nothing_private_with_redact(run, no_page):
    """--redact writes no raw line, and takes away what an earlier run left in the folder."""
    log = {"log.jsonl": worlds.stream(worlds.jobs()) + "{cut\n"}
    run(log, *DONE)
    assert Path("out/private/set_aside.jsonl").exists()
    run(log, *DONE, "--redact")

    assert not Path("out/private").exists()


# --- redacted


def secret_stream() -> str:
    """A stream whose every identity can be looked for, with flaws of all sorts and something to set aside."""
    text = (
        worlds.stream(worlds.broken_takeover())
        + worlds.stream(worlds.broken_render())
        + worlds.stream(worlds.jobs(stores=()))
    )
    for old, new in (
        ("report-jobs", "zz-table-one"), ("previews/", "zz-folder/"), ("previews", "zz-table-two"), ("table/jobs", "table/zz-table-three"),
        ("worker-", "zz-worker-"), ("renderer-", "zz-renderer-"), ("alert-", "zz-alert-"), ("op-", "zz-op-"),
        ("123456789012", "998877665544"),
    ):  # fmt: skip
        text = text.replace(old, new)
    return re.sub(r'("(?:jobId|documentId)":\{"S":")', r"\1zz-key-", text) + '{"zz-payload\n'


def secret_lines() -> str:
    """The same for log lines."""
    events = [
        {n: f"zz-{v}" if n in ("jobId", "worker", "operationId", "lease") else v for n, v in event.items()}
        for event in worlds.broken_workers()
    ]
    events += [
        {"seq": 900, "event": "write", "jobId": "zz-job", "worker": "zz-w", "token": 1, "decision": "rejected", "reason": "held by zz-other"},
        {"seq": 901, "event": "event_nobody_knows", "jobId": "zz-job", "worker": "zz-w", "token": 1},
        {"seq": "zz-seq", "event": "write", "jobId": "zz-job", "worker": "zz-w", "token": 1},
        {"seq": 903, "event": "write", "jobId": "zz-job", "worker": "zz-w", "token": "zz-token"},
    ]  # fmt: skip
    return worlds.lines(events) + '{"zz-payload\n'


SECRETS = {
    "a stream": ({"zz-dir/zz-file.jsonl": secret_stream}, []),
    "a packed stream": ({"zz-dir/zz-file.gz": secret_stream}, []),
    "lines": ({"zz-dir/zz-file.log": secret_lines}, []),
    "lines in the order of the file": ({"zz-dir/zz-file.log": secret_lines}, ["--order", "lines", "--map", "order_key=none"]),
    "one resource": ({"zz-dir/zz-file.log": secret_lines}, ["--resource", "zz-not-seen-yet"]),
    "one resource, said otherwise": ({"zz-dir/zz-file.log": secret_lines}, ["--resource=zz-not-seen-yet"]),
    "a prefix": ({"zz-dir/zz-file.log": secret_lines}, ["--key-prefix=zz-"]),
    "both": ({"zz-dir/zz-file.jsonl": secret_stream, "zz-dir/zz-app.log": secret_lines}, []),
}  # fmt: skip


@pytest.mark.parametrize(("logs", "options"), SECRETS.values(), ids=SECRETS)
def test_redacted_files_name_nothing(run, logs, options):
    """With --redact no resource, writer, holder, operation, alert, file, table or account is in any byte of any file or of the screen."""
    given = {name: gzip.compress(make().encode()) if name.endswith(".gz") else make() for name, make in logs.items()}
    said = ["--map", "value=resultHash,artifactKey"] if "zz-dir/zz-file.log" not in logs else []
    code, written, screen = run(given, "--terminal", "DONE,FAILED,COMPLETED", "--redact", *said, *options)

    assert code in (1, 3)
    assert {name for name in written if not name.startswith("findings/")} == NAMES
    for name, text in (*written.items(), ("the screen", screen)):
        found = {text[max(0, m.start() - 30) : m.end() + 40] for m in re.finditer("zz-|998877665544", text)}
        assert found == set(), name


FORM = re.compile(
    r"-?[\d.]+|\d{4}-\d\d-\d\dT.*|INSERT|MODIFY|REMOVE|aws:dynamodb|Service|NEW_AND_OLD_IMAGES|DONE|FAILED"
)


def marked(value: Any) -> Any:
    """The value of a log with a mark in every text but numbers, times, words of the stream, and what --terminal says."""
    if isinstance(value, dict):
        return {name: marked(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner) for inner in value]
    return value if not isinstance(value, str) or FORM.fullmatch(value) else f"zz {value}"


def strange_events() -> list[dict[str, Any]]:
    """Log lines with something to say of each sort: no word that is known, no time, no number, nothing to read."""
    base = {"jobId": "job-x", "worker": "w", "token": 1, "time": "2026-03-02T12:00:00Z"}
    said = [
        {"event": "report-of-customer-4711.pdf"}, {"event": "moved on"}, {"time": "yesterday"}, {"seq": "first"},
        {"token": "my token"}, {"token": "-3x"}, {"jobId": None}, {"event": "write", "decision": "rejected", "reason": "held by b"},
        {"status": "sent to b", "event": "write"}, {"leaseExpiresAt": "never", "event": "renew"}, {"alertId": "alert of b"},
    ]  # fmt: skip
    return [base | {"seq": 900 + n} | one for n, one in enumerate(said)]


def odd_history() -> str:
    """A history in JSON lines whose free texts are all its own."""
    base = dict.fromkeys(history.NAMES) | {"resource": "job", "order_scope": "a log", "at": "2026-03-02T09:00:00Z"}
    rows = [
        {"kind": "grant", "writer": "a", "token": 1, "after_token": 1, "before_holder": "", "after_holder": "a", "before_image": 0},
        {"kind": "grant", "writer": "b", "token": 2, "after_token": 2, "before_holder": "a", "after_holder": "b", "after_status": "with b"},
        {"kind": "write", "writer": "b", "token": 2, "operation": "o", "alert": "x", "fell": "attempt", "expiry_unit": "weeks"},
        {"kind": "write", "writer": "a", "token": 1, "operation": "o", "alert": "x", "before_status": "with b", "after_status": "with a"},
        {"kind": "write", "writer": "a", "token": 1, "decision": "rejected", "reason": "held by b", "expiry_unit": "days"},
    ]  # fmt: skip
    return worlds.lines(
        base | {"decision": "accepted", "fenced": True, "order_key": f"{n:040}", "source": f"step of b:{n}"} | row
        for n, row in enumerate(rows, 1)
    )


MARKED = {
    "a stream": lambda: {
        "zz log.jsonl": worlds.lines(marked(worlds.broken_takeover())) + '{"zz cut\n'
    },
    "lines": lambda: {"zz log.jsonl": worlds.lines(marked([*worlds.broken_workers(), *strange_events()])) + '{"zz cut\n'},
    "a table": lambda: {"zz log.csv": worlds.csv(marked([*worlds.broken_workers(), *strange_events()]))},
    "a history": lambda: {
        "zz log.jsonl": re.sub(r'"zz (grant|write|accepted|rejected)"', r'"\1"', worlds.lines(
            marked([json.loads(line) for line in odd_history().splitlines()])))
    },
}  # fmt: skip


@pytest.mark.parametrize("terminal", ["DONE,FAILED", None], ids=["statuses said", "statuses not said"])
@pytest.mark.parametrize("make", MARKED.values(), ids=MARKED)
def test_a_redacted_run_quotes_no_text_of_the_log(run, make, terminal):
    """Whatever text of a log is marked, the mark is in nothing that a redacted run prints or writes; without --redact it is."""
    options = ["--terminal", terminal] if terminal else []
    _, plain, said = run(make(), *options, out="plain")
    code, written, screen = run(make(), *options, "--redact")

    assert code in (1, 3)
    assert "zz " in said
    assert "zz " in plain["report.json"]
    for name, text in (*written.items(), ("the screen", screen)):
        found = {text[max(0, m.start() - 60) : m.end() + 40] for m in re.finditer("zz ", text)}
        assert found == set(), name


def test_a_redacted_notebook_quotes_no_text_of_the_log(run, no_page):
    """The executed notebook of a redacted run has no text of the log either."""
    _, written, _ = run(MARKED["lines"](), "--terminal", "DONE,FAILED", "--redact", "--notebook")

    assert "zz " not in written["audit.ipynb"]
    assert "worker-1" in written["audit.ipynb"]


def test_a_redacted_refusal_quotes_no_text_of_the_log(run):
    """Nor does the sentence of a history that cannot be read."""
    text = odd_history().replace('"token": 1,', '"token": "zz token",')
    code, written, screen = run({"log.jsonl": text}, "--redact")

    assert (code, written) == (2, {})
    assert "zz " not in screen


def test_redacted_names_are_kept_apart(run, no_page):
    """A redacted report tells the same story: as many resources and writers as there were, each by a number."""
    log = {"log.jsonl": broken_jobs()}
    plain, redacted = (
        rows(run(log, *DONE, *more, out=out)[1]["findings.csv"]) for out, more in (("a", []), ("b", ["--redact"]))
    )
    numbers = {
        (one[name], other[name])
        for one, other in zip(plain, redacted, strict=True)
        for name in ("resource", "writer")
        if one[name]
    }

    assert [row["rule"] for row in plain] == [row["rule"] for row in redacted]
    assert [row["source"].rpartition(":")[2] for row in plain] == [row["source"].rpartition(":")[2] for row in redacted]
    assert len({one for one, _ in numbers}) == len({other for _, other in numbers}) == len(numbers)
    assert all(re.fullmatch(r"(resource|worker)-\d+", other) for _, other in numbers)


# --- hostile


@pytest.mark.parametrize("make", [hostile_stream, hostile_lines])
@pytest.mark.parametrize("options", [[], ["--redact"]], ids=["plain", "redacted"])
def test_hostile_text_is_inert(run, make, options):
    """Markup, terminal codes, direction marks, formulas and megabytes of a log do nothing in CSV, JSON, Markdown and HTML."""
    _, written, screen = run({"log.jsonl": make()}, *options)
    written.pop("private/set_aside.jsonl", None)

    json.loads(written["report.json"])
    for name, text in written.items():
        assert ACTING.findall(text) == [], name
        assert len(text) < 4_000_000, name
    assert "<script" not in written["report.html"].lower()
    for name in ("findings.csv", "affected.csv"):
        cells = [cell for row in csv.reader(written[name].splitlines()) for cell in row]
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
        assert max(map(len, cells)) < 32_767  # what a spreadsheet takes
    assert HOSTILE[:50] not in screen


@pytest.mark.parametrize("key", ["=cmd()", "+1", "-1", "@sum", '=HYPERLINK("x")', " =1", "a,b", 'a"b', "ä"])
def test_cells_are_text(run, no_page, key):
    """A key that looks like a formula becomes text; any other stays what it is."""
    text = "".join(worlds.stream(worlds.broken_takeover()[:60])).replace("table/report-jobs/", "stream/none/")
    text = re.sub(r'"jobId":\{"S":"[^"]*"\}', lambda _: '"jobId":' + json.dumps({"S": key}), text)
    _, written, _ = run({"log.jsonl": text}, *DONE)
    found = {row["resource"] for row in rows(written["affected.csv"])}

    assert found == {f"'{key}" if key[0] in "=+-@" else key}


def test_the_folder_may_be_anywhere(run, no_page):
    """A folder that is not there yet is made, with those above it."""
    run({"log.jsonl": worlds.stream(worlds.jobs())}, *DONE, out="a/b/c")

    assert set(contents(Path("a/b/c"))) == NAMES
    shutil.rmtree("a")
