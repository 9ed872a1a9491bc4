"""The files of an audit, written whole or not at all; the same input gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fencinglab import page, screen
from fencinglab.audit import evidence
from fencinglab.errors import UsageError
from fencinglab.examine import Examination
from fencinglab.inert import inert
from fencinglab.logs import read
from fencinglab.report import plain

LONGEST = 32_000  # characters of a cell; a spreadsheet takes 32,767
_FINDING = (
    "rule", "class", "resource", "source", "at", "kind", "writer", "token", "newer_token", "newer_holder", "newer_at",
    "before_token", "after_token", "before_holder", "after_holder", "before_status", "after_status", "says",
)  # fmt: skip


def write(done: Examination, out: Path, *, private: bool, more: Mapping[str, str]) -> list[Path]:
    """Write report.json, findings.csv, affected.csv, summary.md, report.html and what was set aside into `out`.

    `more` are further files by name. `private` also writes the raw lines that were set aside, which are payload.
    Returns the paths. A folder that cannot be written is a UsageError.
    """
    contents = {
        "report.json": json.dumps(done.report, ensure_ascii=False, indent=1) + "\n",
        "findings.csv": _csv(_FINDING, _findings(done)),
        "affected.csv": _csv(None, evidence.resources(done.con)),
        "summary.md": screen.summary(done.report),
        "report.html": page.html(done.report),
        **more,
    }
    if private and done.log.set_aside:
        contents["private/set_aside.jsonl"] = "".join(
            json.dumps(
                {"payload": True, "source": a.source, "reason": a.reason, "raw": a.raw.decode("utf-8", "replace")}
            )
            + "\n"
            for a in done.log.set_aside
        )
    return place(contents, out)


def place(contents: dict[str, str], out: Path) -> list[Path]:
    """Write the files beside their places first, then move each in one step."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".fencinglab-", dir=out))
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror}); name a folder that you own") from None
    try:
        for name, content in contents.items():
            staged = staging / name
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(content, encoding="utf-8", newline="\n")
        for name in contents:
            (out / name).parent.mkdir(exist_ok=True)
            (staging / name).replace(out / name)
    except OSError as error:
        raise UsageError(
            f"--out {out}: cannot be written ({error.strerror}); free the place or name another folder"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [out / name for name in contents]


def _findings(done: Examination) -> Iterable[dict[str, Any]]:
    found = evidence.findings(done.con, done.audit, None)
    placed = read.place(done.con, done.log, [row["row_id"] for rows in found.values() for row in rows])
    for rule, rows in found.items():
        for row in rows:
            yield {"rule": rule, "class": done.audit.of(rule).group} | row | {"source": placed[row["row_id"]]}


def _csv(columns: Iterable[str] | None, rows: Iterable[dict[str, Any]]) -> str:
    """The rows as CSV; a cell that a spreadsheet would run as a formula begins with an apostrophe."""
    rows = [plain(row) for row in rows]
    names = list(columns) if columns is not None else list(rows[0]) if rows else ["resource"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return text.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else inert(value, LONGEST)
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
