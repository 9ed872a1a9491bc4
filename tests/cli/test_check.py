"""`fencinglab check` and `compare --matrix` from the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fencinglab import cli
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.model import incident
from fencinglab.model.fix import FIXES


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fix", "latest-id"], 0),
        (["--fix", "latest-id", "--fail-on", "window"], 1),
        (["--fix", "fenced"], 1),
        (["--fix", "latest-id", "--max-states", "50"], 3),
        (["--fix", "latest-id", "--workers", "1"], 3),
        (["--fix", "latest-id", "--hazard", "restore", "--writes", "1"], 1),
        (["--fix", "token-floor", "--hazard", "restore", "--hazard", "ttl=2", "--writes", "1"], 0),
    ],
)
def test_exit_codes(words, code, capsys):
    """0 nothing unsafe and everything decided, 1 violated, 3 not decided or not put to the test."""
    assert cli.main(["check", *words]) == code
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check", "--fix", "fence"], "`fence` is no fix; nearest: fenced"),
        (["check", "--fix", "fenced", "--workers", "0"], "--workers 0: a search needs 1 to 8"),
        (["check", "--fix", "fenced", "--max-states", "0"], "--max-states 0: a search needs at least 1"),
        (["check", "--fix", "fenced", "--hazard", "crsh"], "--hazard crsh: `crsh` is no hazard (there are crash, "),
        (["check", "--fix", "fenced", "--hazard", "crash=0"], "--hazard crash=0: how often it may happen is 1 to 9"),
        (["check", "--fix", "fenced", "--hazard", "crash="], "--hazard crash=: how often it may happen is 1 to 9"),
        (
            ["check", "--fix", "fenced", "--hazard", "crash", "--hazard", "crash=2"],
            "--hazard crash=2: `crash` is named twice",
        ),
        (["check", "--fix", "fenced", "--fix", "latest"], "--fix fenced, latest: check takes one fix; `compare"),
        (["check", "--fix", "fenced", "--alert", "x"], "--alert x: is none of none, before, after, with"),
        (["check", "--fix", "fenced", "--show", "x"], "--show x: is none of order"),
        (["check", "no-such-file", "--show", "x"], "--show x: is none of order"),  # before anything is searched
        (["check", "--fix", "fenced", "--fail-on", "x"], "--fail-on x: `x` is none of window, cost"),
        (["check", "--fix", "fenced", "--conditions"], "--conditions belongs to a request file; leave it out"),
        (["check"], "check needs either a request file or --fix NAME"),
        (["check", "broken-unconditional", "--fix", "fenced"], "check needs either a request file or --fix NAME"),
        (["check", "no-such-file"], "`no-such-file` is neither a request file that comes with fencinglab nor a file"),
        (["check", "broken-unconditional", "--workers", "0"], "--workers 0: a search needs 1 to 8"),
        (["check", "broken-unconditional", "--max-states", "0"], "--max-states 0: a search needs at least 1"),
        (["check", "a", "b", "c"], "check takes one request file, or two to set side by side, not 3"),
        (["check", "late-render", "request-status", "--conditions"], "--conditions belongs to one request file"),
        (["check", "broken-unconditional", "--writes", "2"], "--writes 2 belongs to --fix NAME; leave it out"),
        (["check", "broken-unconditional", "--alert", "with"], "--alert with belongs to --fix NAME; leave it out"),
        (["compare", "--matrix", "--fix", "x"], "`x` is no fix"),
        (["compare", "--matrix", "--writes", "0"], "--writes 0: a search needs 1 to 9"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, capsys):
    """Exit 2 with the name, its value and what is allowed; no traceback, nothing on standard output."""
    assert cli.main(words) == 2
    said = capsys.readouterr()

    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    assert said.out == ""


def test_the_files_of_a_check_are_the_same_every_time(tmp_path, monkeypatch, capsys):
    """--out writes check.json, timelines and drawings; a written counterexample is replayed by name of its file."""
    monkeypatch.chdir(tmp_path)
    found = []
    for _ in range(2):
        assert cli.main(["check", "--fix", "fenced", "--out", "out"]) == 1
        found.append({path.name: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()})
    assert found[0] == found[1]
    assert capsys.readouterr().out.splitlines()[-1].startswith("Written: out/check.html, out/check.json, ")

    assert cli.main(["replay", "out/fenced-ownership.timeline"]) == 0
    assert "✕ a write was accepted after a newer grant" in capsys.readouterr().out


def test_the_matrix_has_every_cell(tmp_path, capsys):
    """Every fix and every invariant has a cell with status, length and states, every incident and fix a result."""
    assert cli.main(["compare", "--matrix", "--writes", "1", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    with (tmp_path / "matrix.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]

    assert [*rows[0]] == ["fix", "invariant", "status", "length", "states"]
    assert [(row["fix"], row["invariant"]) for row in rows] == [(fix, name) for fix in FIXES for name in INVARIANTS]
    assert all((row["status"] == "violated") == bool(row["length"]) for row in rows)
    assert {row["states"] for row in rows if row["fix"] == "unfenced"} == {rows[0]["states"]}
    assert max(map(len, out.splitlines()[:-1])) <= 100
    assert (tmp_path / "matrix.svg").read_text(encoding="utf-8").count("<text") > len(FIXES)
    with (tmp_path / "incidents.csv").open(encoding="utf-8") as file:
        assert len([*csv.DictReader(file)]) == len(incident.incidents()) * len(FIXES)
    whole = json.loads((tmp_path / "matrix.json").read_text(encoding="utf-8"))
    assert len(whole["cells"]) == len(rows)


def test_the_matrix_says_within_which_bounds(capsys):
    """Hazards and sizes stand above the table, and change it."""
    assert cli.main(["compare", "--matrix", "--fix", "latest-id", "--writes", "1", "--hazard", "ttl"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "Fixes and invariants; workers: 2; writes of each: 1; hazards on: ttl."
    assert next(line for line in lines if line.startswith("latest-id")).split()[:3] == ["latest-id", "✕", "9"]
