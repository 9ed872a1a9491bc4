"""`fencinglab replay`: what an order of events does, from the command line and with nothing installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencinglab import cli, narrate
from fencinglab.model import shelf

ROOT = Path(__file__).parents[2]
FACTS = """\
unfenced final value: old-result
fenced final value: new-result
repeated current token: accepted
old token before newer token reaches resource: accepted
"""


def test_the_four_facts_are_printed(capsys):
    """The article's timeline, without any option, prints its four facts as lines, word for word."""
    assert cli.main(["replay", "report-generation"]) == 0
    assert f"\n{FACTS}\n" in capsys.readouterr().out


def test_fixes_are_chosen(capsys):
    """--fix may be given often; each fix is tried once, in the order given."""
    assert cli.main(["replay", "report-generation", "--fix", "latest", "--fix", "unfenced", "--fix", "latest"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert [line for line in lines if "final value" in line] == [
        "latest final value: new-result",
        "unfenced final value: old-result",
    ]


def test_without_a_name_all_are_listed(capsys):
    """Without a name the timelines and fixes are listed."""
    assert cli.main(["replay"]) == 0
    assert capsys.readouterr().out == narrate.listing()


def test_a_file_of_ones_own_and_its_companion(tmp_path, monkeypatch, capsys):
    """A file is replayed like a timeline of the shelf; what it names under `also` stands beside it."""
    monkeypatch.chdir(tmp_path)
    for name, other in (("mine", "report-generation"), ("early", "old-token-first")):
        Path(f"{name}.timeline").write_text(
            str(shelf.find(other)).replace("also: old-token-first", "also: early"), encoding="utf-8"
        )

    assert cli.main(["replay", "mine.timeline"]) == 0
    assert f"\n{FACTS}\n" in capsys.readouterr().out


def test_files_are_written(tmp_path, monkeypatch, capsys):
    """--out writes trace, comparison and histories, says where, and writes the same bytes again."""
    monkeypatch.chdir(tmp_path)
    found = []
    for _ in range(2):
        assert cli.main(["replay", "report-generation", "--out", "out"]) == 0
        found.append(
            {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        )

    assert capsys.readouterr().out.splitlines()[-1] == (
        "Written: out/trace.csv, out/comparison.csv, out/replay.json, out/history/unfenced.jsonl, out/history/fenced.jsonl, "
        "out/lanes.png, out/lanes.svg, out/lanes.html"
    )
    assert found[0] == found[1]
    assert json.loads(found[0]["out/replay.json"])["facts"] == FACTS.splitlines()


def test_a_written_history_can_be_audited(tmp_path, monkeypatch, capsys):
    """The audit reads a history that was written, and says of the unfenced run what the replay says."""
    monkeypatch.chdir(tmp_path)
    codes = {}
    cli.main(["replay", "report-generation", "--out", "out"])
    for fix in ("unfenced", "fenced"):
        codes[fix] = cli.main(["audit", f"out/history/{fix}.jsonl", "--quiet"])

    assert codes == {"unfenced": 1, "fenced": 0}
    assert "A wrote with 41 after 42 (B) had been accepted" in capsys.readouterr().out


WRONG = {
    "a name": (["replay", "report-genertion"], "`report-genertion` is neither a timeline that comes with fencinglab (`fencinglab replay` lists them) nor a file; nearest: report-generation"),
    "a fix": (["replay", "report-generation", "--fix", "fence"], "`fence` is no fix; nearest: fenced, "),
    "a fix for nothing": (["replay", "--fix", "fenced"], "--fix fenced belongs to the replay of a timeline; name one"),
    "a place that cannot be": (["replay", "report-generation", "--out", "taken"], "--out taken: cannot be written (File exists)"),
    "an event": (["replay", "taken"], "taken:7: expected an event and found `A wites x`; nearest: `A writes x`"),
    "an abbreviated option": (["replay", "report-generation", "--f", "x"], "unrecognized arguments: --f"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_one_sentence(tmp_path, monkeypatch, capsys, words, message):
    """What cannot be understood exits with 2 and one sentence, with the nearest that is right."""
    monkeypatch.chdir(tmp_path)
    text = (
        str(shelf.find("short-pause"))
        .split("shows:")[0]
        .replace("fixes: unfenced, longer-lease, renewed-often, grant-delay\n", "")
    )
    Path("taken").write_text(text + "\nA wites x\n", encoding="utf-8")

    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert (err.startswith("fencinglab: "), err.count("\n")) == (True, 1)
    assert message in err


def test_the_help_begins_with_its_question(capsys):
    """The verb says which question it answers, in its own help and in the list of verbs."""
    for words, at in ((["replay", "--help"], "\n\n"), (["--help"], "replay ")):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        text = " ".join(capsys.readouterr().out.split(at, 1)[1].split())
        assert (ended.value.code, text.startswith("What does this order of events do?")) == (0, True), text


def bare(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run lab.py with the Python behind this environment, which has none of our libraries."""
    python = getattr(sys, "_base_executable", sys.executable)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [python, "-I", "-S", "-X", "utf8", str(ROOT / "lab.py"), *words]
    return subprocess.run(
        command, cwd=cwd, env=kept | {"PYTHONIOENCODING": "utf-8"}, capture_output=True, encoding="utf-8", timeout=60
    )


def test_a_bare_python_is_enough(tmp_path):
    """`python3 lab.py replay NAME` needs no set-up and no library, takes files from the caller's folder, and makes none."""
    Path(tmp_path, "mine.timeline").write_text(str(shelf.find("report-generation")), encoding="utf-8")
    for name in ("report-generation", "mine.timeline"):
        done = bare("replay", name, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"\n{FACTS}\n" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.timeline"]


def test_charts_need_the_set_up_and_say_so(tmp_path):
    """Without the libraries that draw, --out writes all other files and says in one line what the charts need."""
    python = getattr(sys, "_base_executable", sys.executable)
    script = "import sys; sys.path[0] = sys.argv.pop(1); from fencinglab.cli import main; sys.exit(main())"
    command = [python, "-I", "-S", "-c", script, str(ROOT), "replay", "report-generation", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60)
    last = done.stdout.splitlines()[-1]

    assert (done.returncode, done.stderr) == (0, "")
    assert last.startswith("No charts: they need the set-up; type `") and len(last) <= 100
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_file()) == [
        "comparison.csv",
        "replay.json",
        "trace.csv",
    ]


@pytest.mark.parametrize("fixes", [["fenced"], ["fenced", "unfenced"]], ids=["alone", "side by side"])
def test_charts_are_written(tmp_path, monkeypatch, capsys, fixes):
    """With them, --out writes the lanes as PNG, SVG and one page that asks nobody for anything."""
    monkeypatch.chdir(tmp_path)
    chosen = [word for fix in fixes for word in ("--fix", fix)]
    assert cli.main(["replay", "report-generation", *chosen, "--out", "out"]) == 0
    png, svg, page = (Path("out", f"lanes.{ending}") for ending in ("png", "svg", "html"))

    assert "lanes.png, out/lanes.svg, out/lanes.html" in capsys.readouterr().out
    assert png.read_bytes().startswith(b"\x89PNG")
    assert all(text in svg.read_text(encoding="utf-8") for text in ("authority", "receiver", "lease 42", "refused"))
    assert "<script src" not in page.read_text(encoding="utf-8") and "<link" not in page.read_text(encoding="utf-8")
    assert '"editor": false' in page.read_text(encoding="utf-8")


def test_a_replay_loads_the_standard_library_only():
    """A replay loads no library but Python's own."""
    script = (
        "import sys; old = {*sys.modules}\nfrom fencinglab import cli\ncli.main(['replay', 'report-generation'])\n"
        "print(*({*sys.modules} - old))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment, encoding="utf-8", timeout=60
    )
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}

    assert done.returncode == 0, done.stderr
    assert loaded - {*sys.stdlib_module_names} == {"fencinglab"}
