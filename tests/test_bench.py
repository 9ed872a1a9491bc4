"""The benchmark of tests/bench runs and its audits agree; nothing is timed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "bench" / "audit_streams.py"


@pytest.mark.parametrize("variant", [(), ("--gz",)], ids=["plain", "gz"])
def test_it_prints_ratios_and_the_audits_agree(variant, tmp_path):
    """A small log gives every ratio, its goals, and the same counts by the audit and by pandas."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--records", "2000", "--runs", "1", "--data", str(tmp_path), *variant],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"audit / parse   CPU +[0-9.]+ +wall +[0-9.]+ +goal: CPU <= 3.2", done.stdout)
    assert re.search(r"\npandas / audit  CPU +[0-9.]+ +wall +[0-9.]+ +goal: wall >= 3.0", done.stdout)
    assert re.search(r"\naudit's peak +[0-9,]+ MiB", done.stdout)
    assert re.search(r"found exactly these, and agrees with pandas on the findings and cases of 21 rules", done.stdout)
