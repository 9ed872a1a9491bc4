"""What the terminal and a ticket show: the verdict first, the suspects worst first, and nothing that a log could act with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import worlds
from hostile import ACTING, hostile_lines, hostile_stream

from fencinglab.audit import advice
from fencinglab.cli import main
from fencinglab.report import screen
from fencinglab.report.examine import audit_logs, examine, request_of

DATA = Path(__file__).parents[2] / "data"
LOGS = {
    "report-generation.jsonl": "none",
    "request-status.jsonl": "SUCCEEDED,FAILED",
    "request-status-unfenced.jsonl": "SUCCEEDED,FAILED",
    "leader-election.jsonl": "none",
    "no-written-token.jsonl": "DONE,FAILED",
    "workers.csv": "DONE,FAILED",
    "broken-takeover.jsonl": "DONE,FAILED",
    "broken-render.jsonl": "COMPLETED,FAILED",
    "broken-workers.jsonl": "DONE",
    "broken-archive.jsonl": "DONE,FAILED",
}

MARKS = {
    "violated": "✕ violated", "holds": "● holds", "idle": "· idle", "unknown": "○ unknown",
    "not_visible": "○ not visible", "not_applicable": "· not applicable",
}  # fmt: skip


@pytest.fixture(scope="module")
def reports():
    """The report of each log."""
    return {name: audit_logs([str(DATA / name)], terminal=terminal) for name, terminal in LOGS.items()}


def identities(log: Path) -> set[str]:
    """Every name that a log of data/ gives to somebody or something."""
    found = set()
    for value in re.findall(
        r'"(?:S|jobId|reportId|worker|operationId|leaseKey|lease)": ?"([^"]+)"', log.read_text(encoding="utf-8")
    ):
        if re.search(r"\d|/", value) and not re.fullmatch(r"[\d.:TZ-]+", value):
            found.add(value)
    return found


@pytest.mark.parametrize("name", LOGS)
def test_the_screen_begins_with_the_sentence(reports, name):
    """The first line is the headline: the verdict in words, with a full stop, naming nobody."""
    first = screen.screen(reports[name]).splitlines()[0]

    assert first == reports[name]["headline"]
    assert first.startswith(
        {"holds": "Holds: ", "violated": "Violated: ", "inconclusive": "No proof either way: "}[
            reports[name]["verdict"]
        ]
    )
    assert first.endswith(".")
    assert not [i for i in identities(DATA / name) if i in first]


@pytest.mark.parametrize("name", LOGS)
def test_the_screen_says_what_it_rests_on(reports, name):
    """The counts of entries, the format, the mapping, the five lines of the decision rule and what cannot be seen are there, once."""
    report, text = reports[name], screen.screen(reports[name])
    e = report["entries"]

    assert (
        f"Read {e['read']:,} entries = {e['records']:,} records + {e['blank']:,} blank + {e['set_aside']:,} set aside; "
        in text
    )
    assert (
        f"{e['records']:,} records = {e['audited']:,} audited + {e['duplicates']:,} duplicates + {e['filtered']:,} filtered."
        in text
    )
    assert [line for line in text.splitlines() if re.match(r"[●✕○·] ", line)] == [
        f"{MARKS[line['status']]:<18}{line['line']}" for line in report["decision_rule"]
    ]
    for line in ("Format: ", "Mapped: ", "This log does not show: "):
        assert len(re.findall(rf"^{line}", text, re.MULTILINE)) == 1
    for rule in report["rules"]:
        if rule["status"] == "violated":
            assert rule["title"] in text


def test_findings_are_worst_first(reports):
    """Unsafe rules stand before windows; each with its rows, where they lie and what to do."""
    text = screen.screen(reports["broken-takeover.jsonl"])
    classes = re.findall(r"^\w+ \((\w+)\): ", text, re.MULTILINE)

    assert classes == sorted(classes)
    assert {*classes} == {"unsafe", "window"}
    assert len(re.findall(r"\[2026-03-02T[\d:]+Z, \S*broken-takeover.jsonl:\d+\]", text)) > 5
    assert text.count("    fix: ") == len(classes)


def test_suspects_are_listed_worst_first(reports):
    """Where nothing can be proved, resources that changed hands are listed first, with the attribute to add."""
    text = screen.screen(reports["no-written-token.jsonl"])
    listed = re.findall(r"^    import-jobs/(job-\d+)  2 holders, (\d+) writes left open", text, re.MULTILINE)

    assert listed == [("job-34", "5"), ("job-32", "4"), ("job-35", "3")]
    assert text.count("To decide it: ") == 1
    assert f"To decide it: {advice.TO_RECORD['token'].stream}\n" in text


def test_one_write_is_not_many(reports):
    """A count of one has its noun in the singular."""
    report = reports["no-written-token.jsonl"]
    text = screen.screen(report | {"suspects": [report["suspects"][0] | {"undecided": 1}]})

    assert "2 holders, 1 write left open" in text


def test_what_would_decide_it_is_named_without_suspects(tmp_path):
    """An open audit says what to record also where nothing changed hands; a column is named as --map takes it."""
    line = {"seq": 1, "resource": "r", "event": "lease", "worker": "a", "token": 1}
    (tmp_path / "log").write_text(worlds.lines([line, line | {"seq": 2, "event": "finish"}]), encoding="utf-8")
    (tmp_path / "other").write_text(
        worlds.lines([line | {"event": "acquired"}, line | {"seq": 2, "event": "written"}]), encoding="utf-8"
    )
    silent, other = (
        screen.screen(audit_logs([str(tmp_path / name)], terminal="DONE")).splitlines() for name in ("log", "other")
    )

    assert [text for text in silent if text.startswith("To decide it: ")] == [
        "To decide it: log what the receiver decided as `decision`, after a lost reply by reading the item back, "
        "or map it: --map decision=FIELD"
    ]
    assert [text for text in other if text.startswith("To decide it: ")] == [
        "To decide it: log `status` with every attempt, or map it: --map status=FIELD"
    ]


def test_final_statuses_are_proposed(tmp_path):
    """Statuses that were entered and seldom left are proposed as an option to paste; nothing is guessed silently."""
    path = tmp_path / "log.jsonl"
    path.write_text(worlds.stream(worlds.jobs()), encoding="utf-8")
    text = screen.screen(audit_logs([str(path)]))

    assert "DONE: entered 5 times, left 0" in text
    assert "which are final is not declared; add --terminal DONE" in text
    assert "which are final" not in screen.screen(audit_logs([str(path)], terminal="DONE"))


def test_no_status_is_proposed_where_none_can_be_seen_to_be_left():
    """Where the order is not known no status is seen to be left, so one that is not final is not proposed as one."""
    log = str(DATA / "workers.csv")

    assert "add --terminal with those that nothing leaves" in screen.screen(audit_logs([log]))
    assert "declared; add --terminal DONE\n" in screen.screen(audit_logs([log], order="lines"))


# --- the lines for a ticket


@pytest.mark.parametrize("name", LOGS)
def test_the_summary_is_short_and_names_nobody(reports, name):
    """At most fifteen lines, with the verdict and the five lines, and no identity, file or place."""
    text = screen.summary(reports[name])

    assert len(text.splitlines()) <= 15
    assert text.startswith(f"**{reports[name]['headline']}**")
    assert all(line["line"] in text for line in reports[name]["decision_rule"])
    assert f"verdict {reports[name]['verdict']}, exit {reports[name]['exit_code']}." in text
    assert not [
        i
        for i in (*identities(DATA / name), name, "/", "123456789012")
        if i in text.replace("`fencingToken", "").replace("report.html", "")
    ]


# --- hostile text


@pytest.fixture(params=[hostile_stream, hostile_lines], ids=["stream", "lines"])
def hostile(request, tmp_path):
    """A log in which everything that can be named is hostile."""
    path = tmp_path / "log.jsonl"
    path.write_text(request.param(), encoding="utf-8")
    return path


def test_hostile_text_is_inert(hostile):
    """Nothing on the screen, in a story or in the summary acts on a terminal, breaks a line or floods it."""
    with examine(request_of([str(hostile)], {"resource": resource_of(hostile)})) as done:
        texts = [screen.screen(done.report), screen.summary(done.report)]
        texts += [screen.story(rows, name) for name, rows in done.stories()]

    assert done.report["exit_code"] in (1, 3)
    assert len(texts) == 3
    assert "<script>" not in texts[1]  # Markdown may hold markup
    for text in texts:
        assert ACTING.findall(text) == []
        assert max(map(len, text.splitlines())) < 1500
        assert len(text) < 30_000


def resource_of(log: Path) -> str:
    """The key of the one resource in a hostile log, as --resource takes it."""
    first: dict[str, Any] = json.loads(log.read_text(encoding="utf-8").splitlines()[0])
    return str(first["jobId"] if "jobId" in first else first["dynamodb"]["Keys"]["jobId"]["S"])


def test_a_history_needs_no_mapping(tmp_path, capsys):
    """A history that fencinglab wrote says its final statuses itself: no mapping is shown and none proposed."""
    assert main(["replay", "late-render", "--fix", "unfenced", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    with examine(request_of([str(tmp_path / "history/unfenced.jsonl")], {})) as done:
        text = screen.screen(done.report)

    assert "Format: history" in text
    assert "Mapped:" not in text
    assert "--terminal" not in text
