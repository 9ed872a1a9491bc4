"""The recorded drills of data/drills audit to what they show, and name nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fencinglab.report.examine import audit_logs, examine, request_of

DRILLS = Path(__file__).parents[2] / "data" / "drills"


@pytest.mark.parametrize(
    ("name", "verdict", "code", "broken"),
    [
        ("fenced", "holds", 0, {"leases_overlap", "rejected_stale", "rejected_done", "own_success_rejected"}),
        ("unfenced", "violated", 1, {"token_went_back", "terminal_twice"}),
    ],
)
@pytest.mark.parametrize("files", [("stream.jsonl", "workers.jsonl"), ("stream.jsonl",)], ids=["both", "stream"])
def test_a_recorded_drill_audits_to_its_verdict(name, verdict, code, broken, files):
    """Stream and log together, and the stream alone, give the verdict that the drill gave."""
    report = audit_logs([str(DRILLS / name / file) for file in files], terminal="SUCCEEDED,FAILED")
    found = {rule["name"] for rule in report["rules"] if rule["status"] == "violated"}

    assert (report["verdict"], report["exit_code"]) == (verdict, code)
    assert broken & found == {rule for rule in broken if len(files) == 2 or not re.match("rejected|own", rule)}


@pytest.mark.parametrize("path", sorted(DRILLS.rglob("*.jsonl")), ids=lambda p: f"{p.parent.name} {p.name}")
def test_it_is_small_and_names_nobody(path):
    """No account but the one of AWS's documentation, no address, no key; under 200 KB."""
    text = path.read_text(encoding="utf-8")

    assert path.stat().st_size < 200_000
    assert set(re.findall(r"arn:aws:\w+:[\w-]*:(\d+):", text)) <= {"123456789012"}
    assert re.findall(r"[\w.+-]+@[\w-]+\.\w+|https?://|\b(?:AKIA|ASIA)\w+|\b\d{1,3}(?:\.\d{1,3}){3}\b", text) == []


def test_every_accepted_line_finds_its_record():
    """Joined by operation, each accepted line of the workers' log is the record of the stream that it reports."""
    lines = [json.loads(line) for line in (DRILLS / "fenced" / "workers.jsonl").read_text().splitlines()]
    request = request_of([str(DRILLS / "fenced")], {"terminal": "SUCCEEDED,FAILED"})
    with examine(request) as done:
        assert done.log.matched == sum(line["decision"] != "rejected" for line in lines)
        unordered = done.con.execute("select count(*) from history where decision <> 'rejected' and order_key is null")
        assert unordered.fetchone() == (0,)
