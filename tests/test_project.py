"""The files that describe the project agree with each other and with the package that is built from them."""

import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
import yaml  # not among our requirements: papermill requires it

import fencinglab

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")

CONDA_NAMES = {"duckdb": "python-duckdb"}  # where conda-forge calls a package by another name
NOT_IN_CONDA = {"minicheck", "ministack"}


def split(requirement: str) -> tuple[str, str]:
    """The name and the bound of a requirement: `duckdb>=2.0` gives `duckdb` and `>=2.0`."""
    name, bound = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()
    return name, bound


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that this tree builds, opened."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


def test_environment_agrees_with_pyproject():
    """environment.yml asks conda-forge for Python, pip and each requirement of pyproject.toml with the same bound."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *asked, last = environment["dependencies"]
    named = [CONDA_NAMES.get(n, n) + bound for n, bound in map(split, REQUIREMENTS) if n not in NOT_IN_CONDA]

    assert sorted(asked) == sorted(["python" + PROJECT["requires-python"], "pip", *named])
    assert last == {"pip": ["-e ."]}
    assert environment["name"] == PROJECT["name"]
    assert environment["channels"] == ["conda-forge", "nodefaults"]


def test_lock_holds_every_requirement():
    """The lock pins each direct requirement, at or above its lower bound."""
    pinned = dict(line.split(" ;")[0].split("==") for line in LOCK.splitlines())

    for name, bound in map(split, REQUIREMENTS):
        assert name in pinned, f"{name} is not in requirements.lock"
        assert numbers(pinned[name]) >= numbers(bound.removeprefix(">=")), f"{name} is locked below {bound}"


def numbers(version: str) -> list[int]:
    """The leading numbers of a version, to compare by: `1.9.0.post1` gives 1, 9, 0."""
    return [int(part) for part in re.match(r"\d+(\.\d+)*", version)[0].split(".")]


def test_lock_names_no_address():
    """The lock is pins and nothing else: no address, no index, no option, so any index serves it."""
    pin = re.compile(r"[a-z0-9-]+==[\w.]+( ; [^/@:]+)?")

    assert [line for line in LOCK.splitlines() if not pin.fullmatch(line)] == []


def test_wheel_holds_the_package_data(wheel):
    """The wheel holds every file of the package, its timelines, incidents and request files, and nothing else."""
    built = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "fencinglab").rglob("*") if path.is_file() and "__pycache__" not in path.parts]

    beside = {
        f"fencinglab/{path.relative_to(ROOT / 'data').as_posix()}"
        for folder in ("incidents", "timelines", "requests") for path in (ROOT / "data" / folder).iterdir()
    }  # fmt: skip

    assert built == {path.relative_to(ROOT).as_posix() for path in files} | beside
    assert {"fencinglab/py.typed", "fencinglab/audit/rules.sql"} <= built


def test_wheel_metadata(wheel):
    """The wheel carries the version of fencinglab/__init__.py, the licence, its text and the command `fencinglab`."""
    info = f"fencinglab-{fencinglab.__version__}.dist-info"
    metadata = message_from_string(wheel.read(f"{info}/METADATA").decode())

    assert metadata["Version"] == fencinglab.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
    assert "fencinglab = fencinglab.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()


def test_licence_is_apache():
    """LICENSE is the whole Apache License 2.0, as pyproject.toml says."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert PROJECT["license"] == "Apache-2.0"
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
