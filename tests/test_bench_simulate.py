"""The bench script of the simulator runs, and its engines agree; nothing is timed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "bench" / "simulate_jobs.py"


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workload", ["default", "facts"])
def test_three_engines_come_to_the_same_outcome(workload):
    """Simulator, heap loop and SimPy agree on each job (the script stops otherwise), and every fix has its line."""
    text = run("--jobs", "500", "--peers", "40", "--rounds", "1", "--workload", workload)

    assert len(re.findall(r"^[a-z-]+ +[0-9.]+ +[0-9.]+ +[0-9.]+   [0-9]+ ×$", text, re.MULTILINE)) == 8


def test_intervals_hold_as_often_as_they_should():
    """Wilson's interval holds a rare share in about as many samples as it should, Wald's in far fewer."""
    held = {
        name: float(share)
        for name, share in re.findall(r"(\w+) +holds the true share in ([0-9.]+)%", run("--coverage"))
    }

    assert held == {"Wald": 77.60, "Wilson": 93.44}


def test_memory_does_not_grow_with_the_jobs():
    """Eight times as many jobs, each time more than one block, take the same memory."""
    text = run("--blocks", "--jobs", "140000")
    few, many = (int(peak) for peak in re.findall(r"peak ([0-9]+) MiB", text))

    assert re.findall(r"^ *([0-9,]+) jobs under 8 fixes", text, re.MULTILINE) == ["17,500", "140,000"]
    assert many < few * 1.15
