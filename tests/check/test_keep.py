"""What --out writes for a team's own tests really runs, and fails with a sentence where something unsafe can happen."""

from __future__ import annotations

import json
import subprocess
import sys

from fencinglab import cli
from fencinglab.check import files
from fencinglab.check.keep import contents, unsafe
from fencinglab.dynamodb import shelf
from fencinglab.explore.hazards import chosen
from fencinglab.explore.search import MOST_STATES


def test_the_test_that_is_written_passes(tmp_path, capsys):
    """pytest runs the written test beside the written copy of the file, and it passes."""
    raw = json.loads(files.example())
    raw["program"] = ["acquire", "complete"]
    raw["operations"] = {name: raw["operations"][name] for name in raw["program"]}
    text = json.dumps(raw)
    (tmp_path / "jobs.json").write_text(text, encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "jobs.json"), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", ".", "."],
        cwd=tmp_path / "out", capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "out" / "requests.json").read_text(encoding="utf-8") == text


def test_a_file_that_is_broken_fails_with_its_sentences():
    """The list that should be empty says of each unsafe invariant what was found; so does a bound, and an empty pass."""
    found = unsafe(shelf.FOLDER / "broken-finish-twice.json", hazards=["crash"], most=500)

    broken = " ".join(unsafe("broken-unconditional", workers=1))
    assert "terminal: it is finished at most once: violated, shortest run" in broken
    assert "order: accepted tokens never fall: not decided" in found
    assert unsafe("late-render", workers=1)[0].startswith("order: accepted tokens never fall: empty")


def test_the_test_asks_what_was_asked(tmp_path):
    """Hazards, bounds, options and the file that completes it stand in the test; both files are copied as they are."""
    raw = json.loads((shelf.FOLDER / "request-status.json").read_text(encoding="utf-8"))
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"operations": {"finish": raw["operations"]["finish"]}}), encoding="utf-8")
    written = contents(str(mine), "request-status", 3, chosen(["ttl", "crash=2"]), optional=True, most=70_000)
    plain = contents("request-status", "", 2, (), optional=False, most=MOST_STATES)

    assert (
        'unsafe(HERE / "requests.json", HERE / "rest.json", '
        'workers=3, hazards=["crash=2", "ttl"], optional=True, most=70_000) == []'
    ) in written["test_requests.py"]
    assert written["requests.json"] == mine.read_text(encoding="utf-8")
    assert json.loads(written["rest.json"]) == raw
    assert 'unsafe(HERE / "requests.json", workers=2) == []' in plain["test_requests.py"]
    assert "rest.json" not in plain
