"""The audit notebook, executed over the same log: what `--notebook` writes beside the report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fencinglab
from fencinglab.errors import FencinglabError, InputError, UsageError
from fencinglab.report.report import words

SOURCE = Path(fencinglab.__file__).parents[1] / "notebooks" / "06_audit_a_log.ipynb"
PARAMETERS = ("terminal", "order", "map", "rising", "protect", "retention", "skew", "redact")  # of its own; else `more`
NAME = "audit.ipynb"  # in the folder of the report
MARK = "fencinglab"  # in the metadata of a notebook that a run wrote, by which the next knows it
TIMEOUT = 3600  # seconds a cell may take


def refuse(logs: Sequence[str], out: Path) -> None:
    """Raise a UsageError where the notebook cannot be executed or written, before anything is read."""
    if not SOURCE.exists():
        raise UsageError(
            "--notebook: the notebooks lie in a checkout beside the package, and here there are none; clone it"
        )
    if "-" in logs:
        raise UsageError("--notebook cannot read standard input twice; give it a file")
    if (out / NAME).exists() and not written(out / NAME):
        raise UsageError(f"--out {out}: its {NAME} was not written by an audit; move it, or name another folder")


def written(path: Path) -> bool:
    """Whether the file is a notebook that a run of the audit wrote, not one of the user's own."""
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        return MARK in book["metadata"]
    except (OSError, ValueError, LookupError, TypeError):
        return False


def executed(logs: Sequence[str], options: Mapping[str, str], work: Path) -> str:
    """The executed notebook as text, without times and paths of its making, so that a second run gives the same.

    A failing cell is an InputError that names its error.
    """
    import papermill

    own = {name: value for name, value in options.items() if name in PARAMETERS}
    more = words({name: value for name, value in options.items() if name not in PARAMETERS})
    parameters: dict[str, Any] = {"log": shlex.join(logs), **own, "redact": "redact" in own, "more": shlex.join(more)}
    target = work / "executed.ipynb"
    try:
        papermill.execute_notebook(
            str(SOURCE),
            str(target),
            parameters,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=TIMEOUT,
            extra_arguments=["--log-level=ERROR"],
        )
    except FencinglabError:
        raise
    except Exception as error:  # papermill raises what the kernel, the cell or the disk raised
        raise InputError(
            f"--notebook: {SOURCE.name} could not be executed: {str(error).strip().splitlines()[-1]}"
        ) from None
    book = json.loads(target.read_text(encoding="utf-8"))
    book["metadata"].pop("papermill", None)
    book["metadata"][MARK] = {"written by": "fencinglab audit --notebook"}
    for number, cell in enumerate(book["cells"]):
        cell["metadata"].pop("papermill", None)
        cell["metadata"].pop("execution", None)
        if "injected-parameters" in cell["metadata"].get("tags", ()):
            cell["id"] = f"parameters-{number}"
            if options.get("redact"):
                cell["source"] = "# parameters are redacted\n"
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
