"""Imports go down the floors of the house, or within one wing in the order listed."""

import ast
import re
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A line is a floor, a tuple a wing: its modules in the order in which they may import each other. The package of a
# wing (`audit`) stands last in it. Wings of one floor do not know each other.
FLOORS = (
    [("", "errors", "inert", "output", "history", "parameters")],
    [
        (
            "model.lease", "model.guard", "model.receiver", "model.fix", "model.event", "model.legal", "model.timeline",
            "model.rows", "model.world", "model.leasing", "model.writing", "model.happening", "model.replay",
            "model.harm", "model.judged", "model.render", "model.facts", "model.shelf", "model.matrix", "model.runbook",
            "model.incident", "model",
        ),
        (
            "dynamodb.fidelity", "dynamodb.mock", "dynamodb.expression", "dynamodb.placeholders", "dynamodb.requests", "dynamodb.parse",
            "dynamodb.rest", "dynamodb.shelf", "dynamodb.sending", "dynamodb.hold", "dynamodb.takeover",
            "dynamodb",
        ),
        (
            "logs.mapping", "logs.values", "logs.decode", "logs.clean", "logs.detect", "logs.inputs", "logs.unwrap", "logs.places", "logs.filters",
            "logs.words", "logs.denial", "logs.sample", "logs.images", "logs.streams", "logs.carry", "logs.cells", "logs.mutations",
            "logs.layout", "logs.lines", "logs.tables", "logs.merge", "logs.read", "logs",
        ),
    ],
    [
        (
            "explore.hazards", "explore.receive", "explore.invariants", "explore.world", "explore.steps", "explore.search",
            "explore.run", "explore.matrix", "explore.standing", "explore.weaker", "explore.sender", "explore.program", "explore.team", "explore.walk", "explore.telling",
            "explore.recorded", "explore.needed", "explore.candidates", "explore.repair", "explore.apart", "explore",
        ),
        (
            "simulate.terms", "simulate.laws", "simulate.workload", "simulate.chance", "simulate.course", "simulate.running", "simulate.jobs",
            "simulate.measure", "simulate",
        ),
        ("drill.desk", "drill.process", "drill.plays", "drill.scenarios", "drill.capture", "drill.run", "drill"),
        ("audit.rules", "audit.audit", "audit.advice", "audit.evidence", "audit.gaps", "audit.timelines", "audit.whatif", "audit.proposal", "audit.fit", "audit"),
    ],
    [
        (
            "charts.library", "charts.style", "charts.picture", "charts.held", "charts.refused", "charts.scene",
            "charts.actors", "charts.tradeoff", "charts.grid", "charts",
        ),
    ],
    [
        (
            "report.undecided", "report.report", "report.screen", "report.page", "report.examine", "report.notebook",
            "report.files", "report.drilled", "report", "check.check", "check.told", "check.keep", "check.page",
            "check.files", "check", "compare.cells",
            "compare.advise", "compare.adoption", "compare.team", "compare.matrix", "compare.page", "compare.review",
            "compare.told", "compare",
        ),
        ("narrate",), ("exercise",),
    ],
    [("cli.options", "cli.audit", "cli.replay", "cli.check", "cli.compare", "cli.drill", "cli", "__main__")],
)  # fmt: skip

# Module -> (floor, wing, place in the wing), with the package's name in front.
PLACES = {
    f"fencinglab.{name}".rstrip("."): (floor, wing, place)
    for floor, wings in enumerate(FLOORS)
    for wing, names in enumerate(wings)
    for place, name in enumerate(names)
}

HEAVY = {"pandas", "altair", "duckdb", "boto3", "jinja2", "numpy", "nbformat", "papermill"}


def modules() -> dict[str, str]:
    """The source of every module of the package, by name."""
    found = {}
    for path in (ROOT / "fencinglab").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def imported(source: str, known: Set[str]) -> set[str]:
    """The modules of the package that any import line names, also inside a function or for types only.

    The last word of `from fencinglab.audit import rules` is a module, that of `from fencinglab.history import NAMES` is
    not: `known`, the names of all modules, tells them apart. Relative names stay as they are written.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            whole = {f"{origin}.{alias.name}" for alias in node.names}
            names |= {name if name in known else origin for name in whole}
    return {name for name in names if name.split(".")[0] in ("fencinglab", "")}


def faults(sources: dict[str, str]) -> list[str]:
    """One sentence for each module that has no place and for each import that does not go down."""
    found = [f"{name} has no place in FLOORS: give it one" for name in sources if name not in PLACES]
    for name in sources.keys() & PLACES.keys():
        for target in imported(sources[name], sources.keys() | PLACES.keys()):
            if target.startswith("."):
                found.append(f"{name} imports {target}: write the whole name")
            elif target not in PLACES:
                found.append(f"{name} imports {target}, which has no place in FLOORS")
            elif not allowed(PLACES[name], PLACES[target]):
                found.append(f"{name} imports {target}, which is neither below it nor before it in its wing")
    return sorted(found)


def allowed(importer: tuple[int, int, int], target: tuple[int, int, int]) -> bool:
    """Whether the target is on a lower floor, or earlier in the importer's own wing."""
    return target[0] < importer[0] or (target[:2] == importer[:2] and target[2] < importer[2])


def test_imports_go_down():
    """Every module has a place, and imports only from floors below it or from before it in its own wing."""
    found = faults(modules())

    assert not found, "\n".join(found)


def test_the_readme_draws_the_house():
    """README's picture has every package and module of the top level on its floor, and no other."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^([0-5])  (\w+)(/?)(.*)$", readme, re.MULTILINE)
    shown = {(int(floor), name) for floor, first, _, more in drawn for name in (first, *more.split() * (floor == "0"))}
    tops = {(floor, name.removeprefix("fencinglab.").split(".")[0]) for name, (floor, _, _) in PLACES.items()}

    assert shown == tops - {(0, "fencinglab"), (5, "__main__")}
    assert {name for _, name, slash, _ in drawn if slash} == {
        p.parent.name for p in (ROOT / "fencinglab").glob("*/__init__.py")
    }


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("history", "import fencinglab.audit.rules"),  # up
        ("model.lease", "from fencinglab.logs import read"),  # into another wing
        ("report.report", "from fencinglab.check.told import screen"),  # into another wing of one floor
        ("logs.mapping", "from fencinglab.logs.read import read"),  # against the order of the wing
        ("audit.rules", "from fencinglab.audit import RULES"),  # from the package that it is part of
        ("charts", "def draw():\n    import fencinglab.cli"),  # up, out of sight
        ("charts", "import fencinglab.paint"),  # to a module without a place
        ("charts", "from .history import NAMES"),  # by a relative name
        ("paint", "import os"),  # a module without a place
    ],
)
def test_a_wrong_import_is_caught(name, line):
    """Each way to break the rule gives one sentence that names the module."""
    [sentence] = faults({f"fencinglab.{name}": line})

    assert sentence.startswith(f"fencinglab.{name} ")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("cli", "from fencinglab import __version__"),
        ("history", "from fencinglab.errors import InputError"),
        ("logs.read", "from fencinglab.logs import mapping, tables"),
        ("audit", "from fencinglab.audit.audit import audit"),
        ("report.page", "def page():\n    import jinja2"),
    ],
)
def test_a_right_import_passes(name, line):
    """Imports down, back in the same wing, and of other libraries are no fault."""
    assert faults({f"fencinglab.{name}": line}) == []


@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import fencinglab"],
        ["-c", "import fencinglab.errors, fencinglab.history"],
        ["-m", "fencinglab", "--help"],
    ],
    ids=["package", "floor 0", "help"],
)
def test_starting_is_light(command):
    """The package, its ground floor and the help of the command load none of the heavy libraries."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}

    assert done.returncode == 0, done.stderr.splitlines()[-1]
    assert "fencinglab" in loaded
    assert loaded & HEAVY == set()
