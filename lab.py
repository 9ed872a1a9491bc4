#!/usr/bin/env python3
"""Set up fencinglab and run it; `python3 lab.py` alone says what to type.

`lab.py test ...` runs pytest, `lab.py notebooks [01]` opens JupyterLab or, with `--html DIR`, writes executed pages.
Any other verb goes to `fencinglab`.
`lab.py replay`, its charts apart, and the help of a verb need nothing but Python. For all else the first run makes
.venv beside this file; it is made anew when the lock, pyproject.toml or Python changed.

Standard library only, and no syntax newer than Python 3.6: an old Python must get far enough to say that it is old.
"""

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

OLDEST = (3, 11)
TRIED = ("3.14", "3.13", "3.12", "3.11")  # the versions that an old Python may point to, best first
WINDOWS = sys.platform == "win32"
LAUNCHER = "py" if WINDOWS else "python3"

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
BIN = VENV / ("Scripts" if WINDOWS else "bin")
PYTHON = BIN / ("python.exe" if WINDOWS else "python")
STAMP = VENV / "lab.stamp"  # locked during a set-up, holds the fingerprint of a finished one, marks .venv as ours

VERBS = ("replay", "audit", "check", "compare", "drill", "notebooks", "test")
GUIDE = f"""\
learn   {LAUNCHER} lab.py replay report-generation      see how a stale write does harm, step by step
audit   {LAUNCHER} lab.py audit YOUR-LOG                find the writes that a worker had no right to make
review  {LAUNCHER} lab.py audit YOUR-LOG --out report   the same as files, to take into a design review"""

# Runs the package from its source with any Python that is new enough, in the caller's folder.
BARE = "import sys; sys.path[0] = sys.argv.pop(1); from fencinglab.cli import main; sys.exit(main())"


class Stop(Exception):
    """One sentence for the user, with the command to type; lab.py ends with exit code 2."""


def main(words):
    """The exit code of what the words ask for; 2 when it could not be started."""
    try:
        check_python(sys.version_info, words)
        if not words or words[0] in ("-h", "--help", "help"):
            print(GUIDE)
            return 0
        command, folder = child(words)
        if command[0] != sys.executable:
            set_up(words)
        return run(command, folder)
    except Stop as stop:
        sentence = str(stop)
    except KeyboardInterrupt:
        sentence = f"interrupted: type {typed(words)} to go on"
    except OSError as error:
        fault = f"{Path(str(error.filename)).name}: {error.strerror}"
        remedy = "make sure that you may write here and that nothing runs from it, or delete it"
        sentence = f"cannot use .venv ({fault}): {remedy}, then type {typed(words)}"
    print(sentence, file=sys.stderr)
    return 2


def check_python(version, words):
    """Raise Stop, naming a Python on this machine that would do, when `version` is too old."""
    if version >= OLDEST:
        return
    numbers = ".".join(str(number) for number in version[:3])
    needs = f"this needs Python {OLDEST[0]}.{OLDEST[1]} or newer, you run {numbers}"
    newer = newer_python()
    if newer:
        raise Stop(f"{needs}: type {typed(words, newer)}")
    raise Stop(f"{needs}: install Python 3.12, then type {typed(words, 'py -3.12' if WINDOWS else 'python3.12')}")


def newer_python():
    """The command of an installed Python that is new enough, or None."""
    names = [f"py -{number}" if WINDOWS else f"python{number}" for number in TRIED]
    enough = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    return next((name for name in [*names, LAUNCHER] if works([*name.split(), "-c", enough])), None)


def works(command):
    """Whether the command is there and succeeds: a version manager's shim may be there and fail."""
    try:
        return not subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False


def typed(words, launcher=LAUNCHER):
    """The command line of these words as the user would type it, in backquotes."""
    quoted = subprocess.list2cmdline(words) if WINDOWS else " ".join(shlex.quote(word) for word in words)
    return f"`{launcher} lab.py {quoted}".rstrip() + "`"


def child(words):
    """The command that the words stand for, and the folder that it runs in (None: the caller's)."""
    verb, *rest = words
    if verb not in VERBS and not verb.startswith("-"):
        raise Stop(f"there is no `{verb}`: type {typed(['VERB'])} with one of {', '.join(VERBS)}")
    if verb == "test":
        return [str(PYTHON), "-m", "pytest", *rest], HERE
    if verb == "notebooks" and "--html" in rest:
        return [str(PYTHON), "-m", "nbconvert", *pages(rest)], HERE
    if verb == "notebooks":
        return [str(PYTHON), "-m", "jupyterlab", *notebook(rest)], HERE
    drawn = any(word.startswith("--out") for word in rest) and stamped() == fingerprint()
    if (verb == "replay" and not drawn) or verb.startswith("-") or {"-h", "--help"} & set(rest):
        return [sys.executable, "-c", BARE, str(HERE), *words], None
    return [str(BIN / "fencinglab"), *words], None


def notebook(rest):
    """What JupyterLab opens, and its options: the folder, or the notebook that has the number in front of `rest`."""
    if not rest or rest[0].startswith("-"):
        return ["notebooks", *rest]
    number, *options = rest
    found = {path.name.split("_")[0]: path for path in sorted(HERE.glob("notebooks/[0-9]*.ipynb"))}
    if number.zfill(2) not in found:
        listed = ", ".join(path.stem for path in found.values()) or "none yet"
        raise Stop(f"there is no notebook {number}: type {typed(['notebooks', 'NUMBER'])} with the number of {listed}")
    return [found[number.zfill(2)].relative_to(HERE).as_posix(), *options]


def pages(rest):
    """What nbconvert executes and writes, and where: every notebook, or the one whose number stands before --html."""
    place = rest.index("--html")
    if len(rest) != place + 2 or place > 1:
        raise Stop(f"--html takes one folder to write into: type {typed(['notebooks', '--html', 'DIR'])}")
    [chosen] = notebook(rest[:place])
    books = [chosen] if rest[:place] else [f"notebooks/{path.name}" for path in sorted(HERE.glob("notebooks/*.ipynb"))]
    written = ["--output-dir", str(Path.cwd() / rest[-1])]  # the child runs in another folder
    quiet = ["--ExecutePreprocessor.extra_arguments=--IPKernelApp.log_level=40"]  # a kernel warns of its own socket
    return ["--execute", "--to", "html", "--template-file", "notebooks/page.html.j2", *quiet, *written, *books]


def set_up(words):
    """Make .venv unless it is up to date; of several lab.py that start at once, one makes it and the others wait."""
    wanted = fingerprint()
    if stamped() == wanted:
        return
    if VENV.exists() and not STAMP.exists() and any(VENV.iterdir()):
        raise Stop(f"the folder .venv was not made by lab.py: rename or delete it, then type {typed(words)}")
    uv = works(["uv", "--version"])
    if not uv and not (find_spec("venv") and find_spec("ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info)
        raise Stop(
            f"this Python cannot make a virtual environment: type `apt install {package}` as root "
            f"(where there is no apt: install uv), then {typed(words)}"
        )
    VENV.mkdir(exist_ok=True)
    with STAMP.open("a+") as stamp:
        lock(stamp)
        if stamped() == wanted:
            return
        print("setting up .venv (once)\u2026", file=sys.stderr, flush=True)
        stamp.truncate(0)
        clear()
        install(uv, words)
        stamp.write(wanted)


def fingerprint():
    """A digest of all that a set-up depends on; of the folder too, as a copied .venv still points to the old one."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {HERE}".encode())
    for name in ("requirements.lock", "pyproject.toml"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def stamped():
    """The fingerprint of the set-up that .venv came from; empty when there is none or it was not finished."""
    return STAMP.read_text() if PYTHON.exists() and STAMP.exists() else ""


def lock(file):
    """Wait for the lock on this file, which is then held until the file is closed or this process is killed."""
    if not WINDOWS:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        return
    import msvcrt

    os.lseek(file.fileno(), 1 << 30, os.SEEK_SET)  # a byte far behind the text, which others may go on reading
    held = False
    while not held:
        with contextlib.suppress(OSError):  # it gives up after ten seconds
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            held = True


def clear():
    """Empty .venv, except for the stamp: an unfinished or outdated environment cannot be repaired with certainty."""
    for entry in VENV.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(str(entry))
        elif entry != STAMP:
            entry.unlink()


def install(uv, words):
    """Fill .venv with the lock and this package, built by what the lock brought."""
    # Inside an environment (perhaps this very one) only the Python behind it makes one that stands by itself.
    base = getattr(sys, "_base_executable", None) or sys.executable
    quietly([base, "-m", "venv", *(["--without-pip"] if uv else []), str(VENV)], words)
    if uv:
        pip = ["uv", "pip", "install", "--python", str(PYTHON)]
    else:
        pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    quietly([*pip, "--no-deps", "-r", "requirements.lock"], words)
    quietly([*pip, "--no-deps", "--no-build-isolation", "-e", "."], words)


def quietly(command, words):
    """Run one step of the set-up; raise Stop with the last line that it printed if it fails."""
    done = subprocess.run(
        command, cwd=str(HERE), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        lines = done.stdout.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {done.returncode}")
        last = last.replace(str(HERE), ".").replace(str(Path.home()), "~")
        raise Stop(f"the set-up failed ({last}): see that the package index can be reached, then type {typed(words)}")


def run(command, folder):
    """The exit code of the command, run inside .venv; killed by a signal it is 128 + the signal, as in a shell."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches the child as well, which decides what it means
    process = subprocess.Popen(command, cwd=folder, env=activated(os.environ))
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    return code if code >= 0 else 128 - code


def activated(environment):
    """The environment as activating .venv would leave it, with .venv's Jupyter kernels before all others."""

    def first(entry, name):
        return os.pathsep.join([str(entry), *filter(None, [environment.get(name)])])

    changed = dict(environment, VIRTUAL_ENV=str(VENV), PATH=first(BIN, "PATH"))
    changed["JUPYTER_PATH"] = first(VENV / "share" / "jupyter", "JUPYTER_PATH")
    changed.pop("PYTHONHOME", None)
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
