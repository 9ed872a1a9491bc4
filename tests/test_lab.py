"""lab.py sets up once, passes words and exit codes through, and says in one sentence what is missing."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fencinglab import cli

LAB = Path(__file__).parent.parent / "lab.py"

posix = pytest.mark.skipif(sys.platform == "win32", reason="makes executables with a #! line")


@pytest.fixture
def project(tmp_path):
    """A small project with lab.py in it, and no environment."""
    shutil.copy(LAB, tmp_path)
    (tmp_path / "requirements.lock").write_text("duckdb==2.0.1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


@pytest.fixture
def lab(project, monkeypatch):
    """The small project's lab.py as a module; PATH is its folder `path`, and `ran` lists what it would have run."""
    spec = importlib.util.spec_from_file_location("lab", project / "lab.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PATH", str(project / "path"))
    module.ran = []
    monkeypatch.setattr(module, "run", lambda command, folder: module.ran.append((command, folder)) or 0)
    return module


@pytest.fixture
def installed(lab, monkeypatch):
    """The commands of every set-up step, in place of running them; the environment gets a Python of zero bytes."""
    commands = []

    def pretend(command, words):
        commands.append(command)
        lab.PYTHON.parent.mkdir(exist_ok=True)
        lab.PYTHON.touch()

    monkeypatch.setattr(lab, "quietly", pretend)
    return commands


def executable(path: Path, body: str) -> None:
    """A Python script at `path` that can be called by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)


def said(capsys) -> str:
    """What was printed to stderr, without the line that a set-up begins with; must be one line."""
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("setting up")]
    assert len(lines) == 1, lines
    return lines[0]


# Words


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_bare_prints_three_lines(project, words):
    """Without a verb, lab.py prints learn, audit and review, each with a command, and sets up nothing."""
    done = subprocess.run([sys.executable, "lab.py", *words], cwd=project, capture_output=True, text=True, check=True)
    launcher = "py" if sys.platform == "win32" else "python3"
    titles = [line.split(f"  {launcher} lab.py ")[0].strip() for line in done.stdout.splitlines()]

    assert titles == ["learn", "audit", "review"]
    assert done.stderr == ""
    assert not (project / ".venv").exists()


def test_words_become_commands(lab, installed):
    """`test` is pytest in the project's folder; any other word is fencinglab's, in the caller's folder."""
    assert lab.main(["test", "-k", "floors"]) == 0
    assert lab.main(["audit", "a log.json", "--out", "x"]) == 0

    assert lab.ran == [
        ([str(lab.PYTHON), "-m", "pytest", "-k", "floors"], lab.HERE),
        ([str(lab.BIN / "fencinglab"), "audit", "a log.json", "--out", "x"], None),
    ]


def test_a_replay_needs_no_set_up(lab, installed):
    """`replay` runs the package from its source with this very Python, in the caller's folder; nothing is installed."""
    assert lab.main(["replay", "short-pause"]) == 0

    assert lab.ran == [([sys.executable, "-c", lab.BARE, str(lab.HERE), "replay", "short-pause"], None)]
    assert installed == []
    assert not lab.VENV.exists()


@pytest.mark.parametrize("words", [["audit", "--help"], ["check", "-h"], ["--version"]])
def test_help_needs_no_set_up(lab, installed, words):
    """The help of a verb and the version are printed by this very Python; nothing is installed for them."""
    assert lab.main(words) == 0

    assert lab.ran == [([sys.executable, "-c", lab.BARE, str(lab.HERE), *words], None)]
    assert installed == []


def test_an_unknown_verb_is_answered_with_all_there_are(lab, installed, capsys):
    """A misspelt verb is refused with every verb, those of lab.py too, before anything is installed."""
    assert lab.main(["notebook"]) == 2

    assert said(capsys).startswith("there is no `notebook`: type `")
    assert {*lab.VERBS} == {*cli.VERBS, "notebooks", "test"}
    assert (lab.ran, installed) == ([], [])


def test_a_replay_with_files_takes_the_set_up_that_is_there(lab):
    """With --out and a finished set-up `replay` runs inside it, which can draw; after a change of the lock it does not."""
    words = ["replay", "short-pause", "--out=here"]
    lab.VENV.mkdir()
    lab.PYTHON.parent.mkdir()
    lab.PYTHON.touch()
    lab.STAMP.write_text(lab.fingerprint())

    assert lab.child(words) == ([str(lab.BIN / "fencinglab"), *words], None)
    assert lab.child(words[:2])[0][0] == sys.executable
    (lab.HERE / "requirements.lock").write_text("duckdb==2.0.2\n")
    assert lab.child(words)[0][0] == sys.executable


@pytest.mark.parametrize(
    ("rest", "opens"),
    [
        ([], ["notebooks"]),
        (["01"], ["notebooks/01_paused_worker.ipynb"]),
        (["6"], ["notebooks/06_audit_a_log.ipynb"]),
        (["01", "--no-browser"], ["notebooks/01_paused_worker.ipynb", "--no-browser"]),
        (["--no-browser"], ["notebooks", "--no-browser"]),
    ],
)
def test_notebooks_are_found_by_number(lab, rest, opens):
    """`notebooks 01` opens the notebook whose name starts with that number; options go to JupyterLab."""
    for name in ("01_paused_worker", "06_audit_a_log"):
        (lab.HERE / "notebooks" / f"{name}.ipynb").touch()

    assert lab.child(["notebooks", *rest]) == ([str(lab.PYTHON), "-m", "jupyterlab", *opens], lab.HERE)


def test_notebooks_become_pages(lab, tmp_path, monkeypatch):
    """`notebooks --html DIR` executes every notebook, or the one with the number, and writes into the caller's DIR."""
    monkeypatch.chdir(tmp_path)
    books = [f"notebooks/{name}.ipynb" for name in ("01_paused_worker", "06_audit_a_log")]
    for book in books:
        (lab.HERE / book).touch()
    quiet = "--ExecutePreprocessor.extra_arguments=--IPKernelApp.log_level=40"
    written = [quiet, "--output-dir", str(tmp_path / "out")]
    command = ["-m", "nbconvert", "--execute", "--to", "html", "--template-file", "notebooks/page.html.j2", *written]

    assert lab.child(["notebooks", "--html", "out"]) == ([str(lab.PYTHON), *command, *books], lab.HERE)
    assert lab.child(["notebooks", "6", "--html", "out"]) == ([str(lab.PYTHON), *command, books[1]], lab.HERE)


@pytest.mark.parametrize("rest", [["--html"], ["--html", "a", "b"], ["01", "02", "--html", "a"]])
def test_pages_need_one_folder(lab, capsys, rest):
    """--html without its folder, or with more words, is answered with the command, before anything is installed."""
    assert lab.main(["notebooks", *rest]) == 2
    assert said(capsys).startswith("--html takes one folder to write into: type `")
    assert not lab.VENV.exists()


def test_unknown_notebook(lab, capsys):
    """A number without a notebook is answered with those that exist, before anything is installed."""
    (lab.HERE / "notebooks" / "06_audit_a_log.ipynb").touch()

    assert lab.main(["notebooks", "09"]) == 2
    sentence = said(capsys)
    assert sentence.startswith("there is no notebook 09: type `")
    assert sentence.endswith("lab.py notebooks NUMBER` with the number of 06_audit_a_log")
    assert not lab.VENV.exists()


def test_own_kernel_comes_first(lab):
    """Jupyter looks for its kernels in .venv first, then where the caller said, and for commands likewise."""
    changed = lab.activated({"PATH": "before", "JUPYTER_PATH": "mine", "PYTHONHOME": "elsewhere"})

    assert changed == {
        "VIRTUAL_ENV": str(lab.VENV),
        "PATH": f"{lab.BIN}{os.pathsep}before",
        "JUPYTER_PATH": f"{lab.VENV / 'share' / 'jupyter'}{os.pathsep}mine",
    }


@posix
@pytest.mark.parametrize(("ending", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_exit_code_and_streams_pass_through(lab, project, ending, code):
    """The verb gets its words, folder and standard input as given; its exit code is lab.py's, 128 + n for signal n."""
    executable(lab.PYTHON, "")
    body = "import os, sys\nprint(os.path.basename(os.getcwd()), sys.argv[1:], sys.stdin.read(), flush=True)\n"
    executable(lab.BIN / "fencinglab", body + ending)
    lab.STAMP.write_text(lab.fingerprint())
    command = [sys.executable, "../lab.py", "audit", "-", "--order", "lines"]
    folder = project / "notebooks"
    done = subprocess.run(command, cwd=folder, input="a log", capture_output=True, text=True, check=False)

    assert done.stdout == "notebooks ['audit', '-', '--order', 'lines'] a log\n"
    assert done.stderr == ""
    assert done.returncode == code


# Set-up


def test_set_up_only_when_something_changed(lab, installed, monkeypatch, capsys):
    """Nothing is installed again until the lock, pyproject.toml, Python or the place of the project changed."""

    def steps():
        installed.clear()
        assert lab.main(["test"]) == 0
        return len(installed)

    assert steps() == 3  # venv, lock, package
    assert capsys.readouterr().err == "setting up .venv (once)\u2026\n"
    assert steps() == 0
    assert capsys.readouterr().err == ""
    (lab.HERE / "requirements.lock").write_text("duckdb==2.0.2\n")
    assert (steps(), steps()) == (3, 0)
    (lab.HERE / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert (steps(), steps()) == (3, 0)
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert (steps(), steps()) == (3, 0)
    lab.PYTHON.unlink()  # as after the Python below it was removed
    assert (steps(), steps()) == (3, 0)


@pytest.mark.parametrize("uv", [True, False])
def test_uv_when_on_path(lab, installed, monkeypatch, uv):
    """uv installs where it works, the environment's own pip elsewhere; nothing beside the lock is fetched."""
    monkeypatch.setattr(lab, "works", lambda command: uv)
    lab.main(["test"])
    make, *installs = installed

    assert ("--without-pip" in make) == uv
    assert all(("uv" in command) == uv for command in installs)
    assert all("--no-deps" in command for command in installs)
    assert "--no-build-isolation" in installs[-1]


def test_stale_environment_is_emptied(lab, installed):
    """A set-up that is not complete or not current leaves no file of it behind."""
    lab.main(["test"])
    left = lab.VENV / "lib" / "left.py"
    left.parent.mkdir()
    left.touch()
    lab.STAMP.write_text("")
    lab.main(["test"])

    assert not left.exists()
    assert lab.stamped() == lab.fingerprint()


def test_foreign_environment_is_left_alone(lab, installed, capsys):
    """A .venv that something else made is neither used nor emptied."""
    (lab.VENV / "bin").mkdir(parents=True)

    assert lab.main(["test"]) == 2
    assert said(capsys).startswith("the folder .venv was not made by lab.py: rename or delete it, then type `")
    assert installed == []


def test_two_at_once_set_up_once(lab, monkeypatch):
    """Of two set-ups that start together one installs, and the other waits and goes on."""
    steps = []

    def slow(command, words):
        time.sleep(0.1)
        steps.append(command)
        lab.PYTHON.parent.mkdir(exist_ok=True)
        lab.PYTHON.touch()

    monkeypatch.setattr(lab, "quietly", slow)
    both = [threading.Thread(target=lab.set_up, args=(["test"],)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert len(steps) == 3
    assert lab.stamped() == lab.fingerprint()


# What can be missing


def test_parses_on_old_python():
    """lab.py has no syntax newer than Python 3.6, or an old Python could not say that it is old."""
    ast.parse(LAB.read_text(encoding="utf-8"), feature_version=(3, 6))


@posix
def test_old_python_names_a_newer_one(lab, project):
    """An old Python is told the command with a newer one that is installed and starts, and its own words again."""
    executable(project / "path" / "python3.13", "raise SystemExit(127)")  # a version manager's shim without its Python
    executable(project / "path" / "python3.12", "")

    with pytest.raises(lab.Stop) as stop:
        lab.check_python((3, 8, 18, "final", 0), ["audit", "a log.json"])
    assert str(stop.value) == (
        "this needs Python 3.11 or newer, you run 3.8.18: type `python3.12 lab.py audit 'a log.json'`"
    )


def test_old_python_alone(lab):
    """Where no newer Python is installed, the sentence says to install one."""
    with pytest.raises(lab.Stop, match=r"you run 3\.6\.15: install Python 3\.12, then type `py.* lab\.py test`$"):
        lab.check_python((3, 6, 15), ["test"])


def test_missing_venv(lab, installed, monkeypatch, capsys):
    """Debian's Python without its venv package is told the package of its own version; .venv is not begun."""
    monkeypatch.setattr(lab, "find_spec", lambda name: None if name == "ensurepip" else name)
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"

    assert lab.main(["test"]) == 2
    assert f"type `apt install {package}` as root" in said(capsys)
    assert not lab.VENV.exists()


def test_offline(lab, monkeypatch, capsys):
    """A failing installer's last line is kept, without this machine's paths; the next run starts afresh."""
    lines = f"WARNING: Retrying\nERROR: No matching distribution found for duckdb==2.0.1 in {lab.HERE}\n\n"
    failing = subprocess.CompletedProcess([], 1, lines.encode())
    monkeypatch.setattr(lab.subprocess, "run", lambda *_, **__: failing)

    assert lab.main(["test"]) == 2
    assert said(capsys).startswith(
        "the set-up failed (ERROR: No matching distribution found for duckdb==2.0.1 in .): "
        "see that the package index can be reached, then type `"
    )
    assert lab.STAMP.read_text() == ""

    monkeypatch.setattr(lab, "quietly", lambda *_: lab.BIN.mkdir(exist_ok=True) or lab.PYTHON.touch())
    assert lab.main(["test"]) == 0
    assert lab.stamped() == lab.fingerprint()


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (KeyboardInterrupt(), r"interrupted: type `\w+ lab\.py test` to go on"),
        (
            PermissionError(13, "Permission denied", "/far/away/python"),
            r"cannot use \.venv \(python: Permission denied\): .* type `\w+ lab\.py test`",
        ),
    ],
)
def test_broken_off(lab, monkeypatch, capsys, fault, sentence):
    """Ctrl-C and a file that cannot be written end a set-up with one sentence, exit code 2 and no finished stamp."""

    def broken(command, words):
        raise fault

    monkeypatch.setattr(lab, "quietly", broken)

    assert lab.main(["test"]) == 2
    assert re.fullmatch(sentence, said(capsys))
    assert lab.STAMP.read_text() == ""
