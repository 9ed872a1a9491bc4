"""The logs of data/ say what data/expected.toml says, and together they break and hold every rule."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import worlds

from fencinglab import cli
from fencinglab.audit.rules import RULES

DATA = Path(__file__).parents[1] / "data"
EXPECTED = [
    {"violated": {}} | entry for entry in tomllib.loads((DATA / "expected.toml").read_text(encoding="utf-8"))["audit"]
]
STATUSES = ("holds", "idle", "unknown", "not_visible", "not_applicable")
NAMES = [rule.name for rule in RULES]


def audit(log: Path, options: str, out: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of one audit, run in this process as the command line runs it."""
    code = cli.main(["audit", str(log), *shlex.split(options), "--out", str(out), "--quiet"])
    return code, json.loads((out / "report.json").read_text(encoding="utf-8"))


def by_status(report: dict[str, Any]) -> dict[str, Any]:
    """What the report says of each rule, in the words of expected.toml."""
    found: dict[str, Any] = {"violated": {r["name"]: r["count"] for r in report["rules"] if r["status"] == "violated"}}
    return found | {status: {r["name"] for r in report["rules"] if r["status"] == status} for status in STATUSES}


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: f"{e['log']} {e['options']}")
def test_every_log_says_what_is_expected(expected, tmp_path, capsys):
    """Each log gives exactly its verdict, its exit code, each rule's status and the number of findings."""
    code, report = audit(DATA / expected["log"], expected["options"], tmp_path / "out")

    assert by_status(report) == {"violated": expected["violated"]} | {s: set(expected[s]) for s in STATUSES}
    assert (report["verdict"], code) == (expected["verdict"], expected["exit_code"])
    assert capsys.readouterr().out.startswith(report["headline"])
    if "suspects" in expected:
        assert {row["resource"] for row in report["suspects"]} == set(expected["suspects"])


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: f"{e['log']} {e['options']}")
def test_expectations_name_every_rule_once(expected):
    """An expectation says something of each of the rules, and of none twice."""
    named = [*expected["violated"], *(name for status in STATUSES for name in expected[status])]

    assert sorted(named) == sorted(NAMES)


def test_every_rule_is_broken_somewhere():
    """Together the logs break every rule at least once."""
    assert {name for expected in EXPECTED for name in expected["violated"]} == set(NAMES)


def test_every_rule_holds_somewhere_healthy():
    """In the logs whose verdict is holds, every rule has cases and none of them broken, in at least one log."""
    healthy = [expected for expected in EXPECTED if expected["verdict"] == "holds"]

    assert {name for expected in healthy for name in expected["holds"]} == set(NAMES)


def test_every_log_is_expected_and_small():
    """expected.toml names every log of data/ and nothing else; a log is under 200 KB, all together under 1 MB."""
    sizes = {
        path.name: path.stat().st_size for path in DATA.iterdir() if path.is_file() and path.name != "expected.toml"
    }

    assert {expected["log"] for expected in EXPECTED} == set(sizes) == set(worlds.FILES)
    assert max(sizes.values()) < 200_000
    assert sum(sizes.values()) < 1_000_000


def test_generator_makes_the_same_bytes(tmp_path):
    """Running tests/worlds.py again gives every log of data/ byte for byte."""
    worlds.write(tmp_path)

    for name in worlds.FILES:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), f"{name}: run python tests/worlds.py"


@pytest.mark.parametrize("name", worlds.FILES)
def test_logs_name_nobody(name):
    """No log holds an address, a link, a key id or an AWS account other than the one of AWS's own examples."""
    text = (DATA / name).read_text(encoding="utf-8")

    assert set(re.findall(r"arn:aws:\w+:[\w-]*:(\d+):", text)) <= {worlds.ACCOUNT}
    assert re.findall(r"[\w.+-]+@[\w-]+\.\w+|https?://|\b(?:AKIA|ASIA)\w+|\b\d{1,3}(?:\.\d{1,3}){3}\b", text) == []


def test_table_records_only_what_changed():
    """A refused write and one that changes nothing leave no record; the sequence has 21 digits and rises with gaps."""
    table = worlds.Table("jobs", "jobId", 1)

    assert table.put({"jobId": "a", "attempt": 1})
    assert not table.update("a", {"attempt": 2}, when=lambda item: item["attempt"] == 7)
    assert table.update("a", {"attempt": 1})
    assert table.update("a", {"attempt": worlds.plus_one, "note": "n"})
    table.ttl("a")

    numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in table.records]
    assert [record["eventName"] for record in table.records] == ["INSERT", "MODIFY", "REMOVE"]
    assert [record.get("userIdentity", {}).get("type") for record in table.records] == [None, None, "Service"]
    assert table.records[1]["dynamodb"]["OldImage"] == {"jobId": {"S": "a"}, "attempt": {"N": "1"}}
    assert all(len(str(number)) == 21 for number in numbers)
    assert all(later - number > 1 for number, later in pairwise(numbers))


def test_a_fenced_worker_is_refused_after_a_takeover():
    """Of two workers that acquire at once one gets a token; after a takeover the first writes nothing more."""
    table = worlds.Table("jobs", "jobId", 1)
    first, second = worlds.Worker(table, "first"), worlds.Worker(table, "second")
    worlds.enqueue(table, "a")

    assert [first.acquire("a"), second.acquire("a")] == [True, False]
    table.now += 61
    assert second.acquire("a")
    assert [first.write("a", note="late"), first.renew("a"), first.release("a")] == [False, False, False]
    assert second.finish("a", "DONE")
    assert table.items["a"]["writtenToken"] == 2
