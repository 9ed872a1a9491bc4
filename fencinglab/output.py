"""Files written whole or not at all, and tables whose cells no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

from fencinglab.errors import UsageError
from fencinglab.inert import inert

LONGEST = 32_000  # characters of a cell; a spreadsheet takes 32,767


def place(contents: Mapping[str, bytes | str | Iterable[str]], out: Path) -> list[Path]:
    """Write the files, each bytes, a text or its parts, beside their places first, then move each in one step.

    Returns the paths. A folder that cannot be written is a UsageError.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".fencinglab-", dir=out))
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror}); name a folder that you own") from None
    try:
        for name, content in contents.items():
            staged = staging / name
            staged.parent.mkdir(exist_ok=True)
            if isinstance(content, bytes):
                staged.write_bytes(content)
                continue
            with staged.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines([content] if isinstance(content, str) else content)
        for name in contents:
            (out / name).parent.mkdir(exist_ok=True)
            (staging / name).replace(out / name)
    except OSError as error:
        why = f"cannot be written ({error.strerror})"
        raise UsageError(f"--out {out}: {why}; free the place or name another folder") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [out / name for name in contents]


def document(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def written(paths: Iterable[Path]) -> str:
    """The line of a screen that names the files."""
    return "Written: " + ", ".join(str(path) for path in paths)


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a CSV file of the rows, whose values are texts, numbers or None."""
    yield _line(columns)
    for row in rows:
        yield _line([_cell(row.get(name)) for name in columns])


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> str:
    """The value as a cell without hidden characters; a text that a spreadsheet would run gets an apostrophe."""
    text = "" if value is None else inert(value, LONGEST)
    return "'" + text if not isinstance(value, Number) and text[:1] in ("=", "+", "-", "@") else text
