"""The tools that read the source find nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "tool",
    [["ruff", "check", "--no-cache"], ["ruff", "format", "--check", "--no-cache"], ["mypy", "--no-incremental"]],
    ids=" ".join,
)
def test_a_tool_finds_nothing(tool: list[str]) -> None:
    """Linter, formatter and type checker, as pyproject.toml sets them up, have nothing to say."""
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
