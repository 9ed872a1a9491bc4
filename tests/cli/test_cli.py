"""The command line: one question a verb, exit codes that a pipeline can trust, errors in one sentence."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import worlds

from fencinglab import cli
from fencinglab.audit.rules import RULES
from fencinglab.report import examine

ROOT = Path(__file__).parents[2]
HEAVY = ("duckdb", "pandas", "altair", "boto3", "jinja2", "numpy", "vl_convert")
DONE = ("--terminal", "DONE,FAILED")
Act = Callable[[worlds.Table, worlds.Worker, worlds.Worker], Any]


def log_of(*acts: Act | int, stores: tuple[str, ...] = worlds.STORES) -> str:
    """The stream of one job after these acts of two workers; a number lets seconds pass."""
    table = worlds.Table("jobs", "jobId", 1)
    a, b = (worlds.Worker(table, f"worker-{name}", stores=stores) for name in "ab")
    worlds.enqueue(table, "job-1")
    for act in acts:
        if isinstance(act, int):
            table.now += act
        else:
            act(table, a, b)
            table.now += 1
    return worlds.stream(table.records)


def a_takes(table, a, b):
    a.take("job-1")


def a_writes(table, a, b):
    a.write("job-1", status="RUNNING", resultHash=worlds.new_hash(table))


def a_overwrites(table, a, b):
    a.overwrite("job-1", resultHash=worlds.new_hash(table))


def b_takes(table, a, b):
    b.take("job-1")


def b_writes(table, a, b):
    b.write("job-1", resultHash=worlds.new_hash(table))


def b_schedules(table, a, b):
    b.write("job-1", nextPollAt=int(table.now) + 30)


def b_finishes(table, a, b):
    b.finish("job-1", "DONE", resultHash=worlds.new_hash(table))


HEALTHY = log_of(a_takes, a_writes, 90, b_takes, b_writes, b_finishes)
STALE = log_of(a_takes, a_writes, 90, b_takes, b_writes, a_overwrites, b_finishes)
EARLY = log_of(a_takes, a_writes, 90, b_takes, a_overwrites, b_writes, b_finishes)  # before B's first write
OVERLAP = log_of(a_takes, a_writes, b_takes, b_writes, b_finishes)
COST = log_of(a_takes, a_writes, 90, b_takes, b_finishes, b_schedules)
OPEN = log_of(a_takes, a_writes, 90, b_takes, b_writes, b_finishes, stores=())
ALONE = log_of(a_takes, a_writes)
GRANTS = log_of(a_takes)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Audit a text; the exit code, the screen and what went to the error stream."""
    monkeypatch.chdir(tmp_path)

    def of(text: str, *options: str, name: str = "log.jsonl") -> tuple[int, str, str]:
        Path(name).write_text(text, encoding="utf-8", newline="\n")
        code = cli.main(["audit", name, *options])
        return (code, *capsys.readouterr())

    return of


# --- exit codes

EXITS = {
    "healthy": (HEALTHY, [], 0, "Holds: "),
    "a stale write": (STALE, [], 1, "Violated: a write with an older token was accepted after a newer one, once."),
    "a stale write before the newer holder's first": (EARLY, [], 1, "Violated: a write was accepted after a newer token"),
    "no proof": (OPEN, [], 3, "No proof either way: the stream does not say which token a write carried. 1 resource"),
    "nothing exercised": (GRANTS, [], 3, "No proof either way: "),
    # --fail-on
    "a window": (OVERLAP, [], 0, "Holds: "),
    "a window that fails": (OVERLAP, ["--fail-on", "window"], 1, "Violated: the lease was granted to another while"),
    "a cost": (COST, [], 0, "Holds: "),
    "a cost that fails": (COST, ["--fail-on", "cost"], 1, "Violated: work went on after the resource was finished"),
    "both may fail": (OVERLAP, ["--fail-on", "cost,window"], 1, "Violated: "),
    "a window is no cost": (OVERLAP, ["--fail-on", "cost"], 0, "Holds: "),
    # --require order
    "order is enough": (EARLY, ["--require", "order"], 0, "Holds"),
    "order is broken": (STALE, ["--require", "order"], 1, "Violated: a write with an older token"),
    "order and no window": (EARLY, ["--require", "order", "--fail-on", "window"], 1, "Violated: "),
    # --require-exercised
    "exercised": (HEALTHY, ["--require-exercised"], 0, "Holds: "),
    "idle": (ALONE, [], 0, "Holds: "),
    "idle is not enough": (ALONE, ["--require-exercised"], 3, "No proof either way: "),
    # --accept
    "unknown is accepted": (OPEN, ["--accept", "unknown"], 0, "No proof either way: "),
    "another reason is accepted": (OPEN, ["--accept", "set-aside,broken-chain"], 3, "No proof either way: "),
    "an entry is set aside": (HEALTHY + "{cut\n", [], 3, "No proof either way: 1 entry could not be read."),
    "set aside is accepted": (HEALTHY + "{cut\n", ["--accept", "set-aside"], 0, "No proof either way: "),
    "a violation is never accepted": (STALE, ["--accept", "unknown,set-aside,broken-chain"], 1, "Violated: "),
    # --skip
    "a rule is skipped": (STALE, ["--skip", "token_went_back,stale_write_accepted"], 0, "Holds"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "code", "first"), EXITS.values(), ids=EXITS)
def test_exit_codes(run, text, options, code, first):
    """0 nothing unsafe and everything decided, 1 violated, 3 inconclusive; options widen or narrow what counts, and the sentence stays true."""
    found, out, err = run(text, *DONE, *options)

    assert (found, err) == (code, "")
    assert out.startswith(first)


def test_a_broken_chain(run):
    """A record that is missing makes it inconclusive, unless that is accepted; the verdict stays."""
    lines = HEALTHY.splitlines(keepends=True)
    text = "".join(lines[:2] + lines[3:])

    assert run(text, *DONE)[0] == 3
    code, out, _ = run(text, *DONE, "--accept", "broken-chain")
    assert (code, out.startswith("No proof either way: records are missing before 1 row")) == (0, True)


def test_the_weaker_requirement_is_named(run):
    """Who requires order only is told in the first line which stale writes that lets through, and not that there were none."""
    first = run(EARLY, *DONE, "--require", "order")[1].splitlines()[0]

    assert "--require order" in first
    assert "once" in first
    assert "none of" not in first


@pytest.mark.parametrize("rules", [("token_went_back", "stale_write_accepted"), [rule.name for rule in RULES]], ids=len)
def test_what_was_skipped_is_named(run, rules):
    """A core rule that was skipped is named in the first line, which does not say that it held."""
    code, out, _ = run(STALE, *DONE, "--skip", ",".join(rules))
    first = out.splitlines()[0]

    assert code == 0
    assert {rule.name for rule in RULES if rule.core and rule.name in rules} <= {
        *first.replace(",", " ").replace(".", " ").split()
    }
    assert "none of" not in first


WRONG = {
    "no verb that is known": (["adit", "log"], "argument VERB: invalid choice: 'adit'"),
    "no log": (["audit"], "the following arguments are required: LOG"),
    "an unknown option": (["audit", "log", "--fast"], "unrecognized arguments: --fast"),
    "an abbreviated option": (["audit", "log", "--term", "X"], "unrecognized arguments: --term X"),
    "a class": (["audit", "log", "--fail-on", "unsave"], "--fail-on unsave: allowed: unsafe, window, cost"),
    "a requirement": (["audit", "log", "--require", "all"], "--require all: allowed: order"),
    "a rule": (["audit", "log", "--skip", "token_back"], "--skip token_back: allowed: token_went_back, "),
    "a reason": (["audit", "log", "--accept", "all"], "--accept all: allowed: unknown, set-aside, broken-chain"),
    "an order": (["audit", "log", "--order", "time"], "--order time: allowed is `lines`"),
    "a column": (["audit", "log", "--map", "tokn=x"], "`tokn` is not a column that can be mapped (nearest: token)"),
    "a duration": (["audit", "log", "--skew", "5"], "--skew 5: write a time such as 500ms"),
    "a mapping file": (["audit", "log", "--map", "nowhere.toml"], "--map nowhere.toml: no such file"),
    "two mapping files": (["audit", "log", "--map", "a.toml", "--map", "b.toml"], "--map names two files, a.toml and b.toml; keep one"),
    "a notebook without a place": (["audit", "log", "--notebook"], "--notebook needs --out DIR"),
    "a place that cannot be": (["audit", "log", *DONE, "--out", "log"], "--out log: cannot be written"),
    "a mapping that cannot be written": (["audit", "log", *DONE, "--save-map", "no/where.toml"], "--save-map no/where.toml cannot be written"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_one_sentence(tmp_path, monkeypatch, capsys, words, message):
    """What cannot be understood exits with 2 and one sentence with the word and what is allowed."""
    monkeypatch.chdir(tmp_path)
    Path("log").write_text(HEALTHY, encoding="utf-8")
    Path("a.toml").write_text("", encoding="utf-8")
    Path("b.toml").write_text("", encoding="utf-8")

    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert (err.startswith("fencinglab: "), err.count("\n")) == (True, 1)
    assert message in err


def test_a_hostile_word_is_inert(capsys):
    """What stands on the command line is shown without what would act on a terminal."""
    assert cli.main(["audit", "no\x1b[31m\u202efile"]) == 2
    assert not {"\x1b", "\u202e"} & set(capsys.readouterr().err)


# --- help


def python(*words: str, stdin: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run Python in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *words], input=stdin, capture_output=True, env=environment, timeout=60, **more
    )


@pytest.mark.parametrize("words", [[], ["--help"], ["audit", "--help"], ["--version"]], ids=" ".join)
def test_help_is_cheap(words):
    """Help and version load nothing heavy."""
    script = "import sys; from fencinglab import cli\ntry: cli.main(sys.argv[1:])\nexcept SystemExit: pass\nprint(*sys.modules)"
    done = python("-c", script, *words)

    assert done.returncode == 0
    assert not {*HEAVY} & {name.partition(".")[0] for name in done.stdout.decode().splitlines()[-1].split()}


def test_importing_the_package_is_cheap():
    """`import fencinglab` loads no library at all, nor does the command line."""
    done = python(
        "-c", "import sys; old = {*sys.modules}; import fencinglab, fencinglab.cli; print(*({*sys.modules} - old))"
    )
    loaded = {name.partition(".")[0] for name in done.stdout.decode().split()}

    assert loaded - {*sys.stdlib_module_names} == {"fencinglab"}


def test_the_help_of_the_verb_begins_with_its_question(capsys):
    """The verb says which question it answers, before anything else, in its own help and in the list."""
    for words, at in ((["audit", "--help"], "\n\n"), (["--help"], "audit ")):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        text = " ".join(capsys.readouterr().out.split(at, 1)[1].split())
        assert (ended.value.code, text.startswith("What happened?")) == (0, True), text


def test_the_help_names_every_exit_code(capsys):
    """All four exit codes are in the help of the verb."""
    with pytest.raises(SystemExit):
        cli.main(["audit", "--help"])

    text = " ".join(capsys.readouterr().out.split())
    assert "0 nothing unsafe and everything decided, 1 violated, 2 unusable input or usage, 3 inconclusive" in text


def test_no_verb_shows_the_help(capsys):
    """Without a verb the help is shown."""
    assert cli.main([]) == 0
    assert capsys.readouterr().out.startswith("usage: fencinglab")


# --- input and output


def test_standard_input(run, monkeypatch, capsys):
    """`-` reads standard input: the verdict is that of the file, the rows lie in <stdin>."""
    expected = run(STALE, *DONE)[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STALE.encode())))
    code = cli.main(["audit", "-", *DONE])

    assert (code, capsys.readouterr().out) == (1, expected.replace("log.jsonl", "<stdin>"))


def test_a_pipe_in_a_shell():
    """The same through a real pipe and the installed module."""
    done = python("-m", "fencinglab", "audit", "-", *DONE, stdin=STALE.encode())

    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode().startswith("Violated: ")


def test_a_reader_that_goes_away():
    """`| head -1` ends it quietly."""
    script = f'"{sys.executable}" -m fencinglab audit - {" ".join(DONE)} | head -c 1'
    done = subprocess.run(
        ["bash", "-c", script],
        input=STALE.encode(),
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )

    assert (done.stdout, done.stderr) == (b"V", b"")


def test_an_interrupt_is_no_traceback(run, monkeypatch):
    """Ctrl-C says that nothing was written."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(examine, "examine", stop)

    assert run(HEALTHY, "--out", "out") == (130, "", "fencinglab: stopped; nothing was written\n")


def test_progress_is_for_terminals_only(run, monkeypatch, capsys):
    """Nothing is written to an error stream that is no terminal; on one there are lines that erase each other, and --quiet has none."""
    assert run(HEALTHY, *DONE)[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.chdir(".")

    _, out, err = run(HEALTHY, *DONE)
    assert out.startswith("Holds: ")
    assert err.endswith("\r\x1b[K")
    assert "judging" in err
    assert run(HEALTHY, *DONE, "--quiet")[2] == ""


# --- mappings


def test_a_saved_mapping_gives_the_same_report(run, capsys):
    """--save-map writes what was mapped, and --map with that file says the same of the same log."""
    text = STALE.replace("fencingToken", "myFence")
    said = ["--map", "token=myFence", *DONE, "--rising", "version", "--skew", "500ms", "--retention", "7d"]
    code, out, _ = run(text, *said, "--save-map", "jobs.toml", "--out", "one")
    again, out_again, _ = run(text, "--map", "jobs.toml", "--out", "other")
    one, other = (json.loads(Path(name, "report.json").read_text(encoding="utf-8")) for name in ("one", "other"))
    differing = ("command", "options", "decision_rule", "mapping")

    assert code == again == 1
    assert "The mapping is in jobs.toml: use it by --map jobs.toml" in out
    assert out.splitlines()[0] == out_again.splitlines()[0]
    assert {n: v for n, v in one.items() if n not in differing} == {
        n: v for n, v in other.items() if n not in differing
    }
    assert one["mapping"]["dynamodb-stream"]["fields"] == other["mapping"]["dynamodb-stream"]["fields"]


def test_options_win_over_a_mapping_file(run):
    """What is said on the command line counts more than what the file says."""
    Path("jobs.toml").write_text('terminal = ["QUEUED"]\n[map]\nvalue = "status"\n', encoding="utf-8")
    code, out, _ = run(HEALTHY, "--map", "jobs.toml", *DONE, "--map", "value=resultHash")

    assert (code, "value=resultHash (said)" in out) == (0, True)


def test_several_maps(run):
    """--map may be given often, and a column may have several fields."""
    text = HEALTHY.replace("fencingToken", "myFence")
    code, out, _ = run(text, "--map", "token=myFence", "--map", "value=resultHash,status", *DONE)

    assert code == 0
    assert "token=myFence (said)" in out
    assert "value=resultHash,status (said)" in out


# --- the story of a resource


def test_the_story_of_a_resource(run):
    """--resource prints what happened to it: the write, the token that it carried, its grant and expiry, the newer grant."""
    code, out, _ = run(STALE, *DONE, "--resource", "job-1")
    story = out[out.index("The story of jobs/job-1:") :].splitlines()
    [stale] = [line for line in story if "✕" in line]

    assert code == 1
    assert len(story) == 1 + len(STALE.splitlines())
    assert "by worker-a with 1" in stale
    for word in (
        "granted 2026-03-02T09:",
        "runs out 2026-03-02T09:",
        "but 2 to worker-b at 2026-03-02T09:",
        "token_went_back",
    ):
        assert word in stale


def test_the_story_of_a_healthy_resource(run):
    """A resource with nothing wrong has a story too, under its whole name."""
    _, out, _ = run(worlds.stream(worlds.jobs()), *DONE, "--resource", "job-3")

    assert "The story of jobs/job-3:\n" in out
    assert "grant by worker-c with 2" in out


def test_the_story_is_for_one_resource_only(run):
    """Without --resource there is none."""
    assert "The story of" not in run(STALE, *DONE)[1]


def test_audit_takes_what_a_notebook_may_type():
    """The options of the verb that say how a log is read and judged are those that `audit_logs` takes, and no others."""
    words = vars(cli.parser().parse_args(["audit", "log"]))

    assert {*words} - {"verb", "logs", "out", "notebook", "quiet", "save_map"} == {*examine.OPTIONS}
