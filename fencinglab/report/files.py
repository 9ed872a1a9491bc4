"""The files of an audit, written whole or not at all; the same input gives the same bytes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencinglab.audit import evidence, timelines
from fencinglab.logs import places
from fencinglab.output import place, table
from fencinglab.report import notebook, page, screen
from fencinglab.report.examine import Examination
from fencinglab.report.report import plain

_FINDING = (
    "rule", "class", "resource", "source", "at", "kind", "writer", "token", "newer_token", "newer_holder", "newer_at",
    "before_token", "after_token", "before_holder", "after_holder", "before_status", "after_status", "says",
)  # fmt: skip


def write(done: Examination, out: Path, *, private: bool, more: Mapping[str, str]) -> list[Path]:
    """Write report.json, findings.csv, affected.csv, summary.md, report.html and what was set aside into `out`.

    The worst accepted stale writes are written as timelines below `findings/`.
    `more` are further files by name. `private` also writes the raw lines that were set aside, which are payload.
    Returns the paths. A folder that cannot be written is a UsageError.
    """
    affected = evidence.resources(done.con, done.audit)
    contents: dict[str, str | Iterable[str]] = {
        "report.json": json.dumps(done.report, indent=1) + "\n",
        "findings.csv": _csv(_FINDING, _findings(done)),
        "affected.csv": _csv(list(affected[0]) if affected else ["resource"], affected),
        "summary.md": screen.summary(done.report),
        "report.html": page.html(done.report),
        **{replay["file"]: "\n".join(replay["lines"]) + "\n" for replay in done.report["replays"]},
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
    earlier = ["private/set_aside.jsonl", *(f"findings/{n}.timeline" for n in range(1, timelines.WORST + 1))]
    earlier += [notebook.NAME] if notebook.written(out / notebook.NAME) else []
    for name in earlier:
        left = out / name
        if name not in contents and left.exists():
            left.unlink()
            with contextlib.suppress(OSError):
                left.parent.rmdir()
    return place(contents, out)


def _findings(done: Examination) -> Iterator[dict[str, Any]]:
    placed = places.of_rows(done.con, done.log.paths, evidence.broken_rows(done.con, done.audit))
    for result, row in evidence.every_finding(done.con, done.audit):
        yield {"rule": result.rule.name, "class": result.group} | row | {"source": placed[row["row_id"]]}


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of a CSV file of the rows."""
    return table(columns, ({name: plain(row.get(name)) for name in columns} for row in rows))
