"""Where what is shown stands in the files: reading keeps no line numbers, so that they are looked up afterwards."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fencinglab.logs.inputs import KEPT, File

if TYPE_CHECKING:
    import duckdb

_ID = re.compile(rb'"(eventID|eventid|SequenceNumber|sequencenumber)\\*"\s*:\s*(?:\\*")?([^\\",{}\[\]\s]+)')


class Places:
    """Where lines of the files that DuckDB read lie in what the user gave."""

    def __init__(self, files: Iterable[File]) -> None:
        self.files: dict[str, list[File]] = {}
        for file in files:
            self.files.setdefault(str(file.path), []).append(file)
        for sharing in self.files.values():
            sharing.sort(key=lambda file: file.first_line)

    def of(self, path: str, line: int | None, index: str = "") -> str:
        """`name:line[#index]`, with `?` for what is not known."""
        sharing = self.files.get(path, [])
        if not sharing or line is None:
            return f"{sharing[0].name if len(sharing) == 1 else '?'}:?"
        file = sharing[bisect_left(sharing, line, key=lambda file: file.first_line) - 1]
        return f"{file.name}:{line - file.first_line}{index}"


def of_rows(con: duckdb.DuckDBPyConnection, files: Iterable[File], row_ids: Iterable[int]) -> dict[int, str]:
    """{row id: `file:line[#index]`} of rows of the table `history`, looked up in the files."""
    rows = con.execute(
        """select rowid, source, event_id, rowid - first + 1 from history
            left join (select source, min(rowid) as first from history group by source) using (source)
            where rowid in (select unnest(?::bigint[]))""",
        [list(row_ids)],
    ).fetchall()
    places = Places(files)
    wanted: dict[str, dict[str, int]] = {}
    for _, source, event, guess in rows:
        if source in places.files:
            wanted.setdefault(source, {})[event or ""] = guess
    found = {}
    for path, events in wanted.items():  # rows are in the order of the lines, unless there were blank ones or others
        marks = places.files[path][0].marks if len(places.files[path]) == 1 else ()
        found[path] = find(Path(path), set(events), lines=events.values(), marks=marks)
        if len(found[path]) < len(events):
            found[path] = find(Path(path), set(events))
    placed = {}
    for row_id, source, event, _ in rows:
        placed[row_id] = source
        if source in found:
            line, index, _ = found[source].get(event, (None, "", b""))
            placed[row_id] = places.of(source, line, index)
    return placed


def event_of(raw: str) -> str | None:
    """The event id or sequence number in the text of a record."""
    match = _ID.search(raw.encode())
    return match[2].decode() if match else None


def find(
    path: Path, wanted: set[str], *, raw: bool = False, lines: Iterable[int] = (), marks: Sequence[tuple[int, int]] = ()
) -> dict[str, tuple[int, str, bytes]]:
    """{id: (line, "#index" or "", the line if `raw`)} of the records with these event ids or sequence numbers.

    `index` counts the records of a line that holds several. Only `lines` are looked at, if there are any; `marks` are
    those of a File.
    """
    found: dict[str, tuple[int, str, bytes]] = {}
    with path.open("rb") as file:
        for number, line in _lines(file, sorted(set(lines)), marks):
            counts = Counter[bytes]()
            here: dict[str, tuple[bytes, int]] = {}
            for match in _ID.finditer(line):
                counts[match[1]] += 1
                name = match[2].decode("utf-8", "replace")
                if name in wanted and name not in found:
                    here.setdefault(name, (match[1], counts[match[1]]))
            kept = line[:KEPT] if raw else b""
            found |= {name: (number, f"#{n}" if counts[of] > 1 else "", kept) for name, (of, n) in here.items()}
            if len(found) == len(wanted):
                break
    return found


def _lines(file: BinaryIO, wanted: Sequence[int], marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """(number, line) of the wanted lines, or of all; `marks` save reading what lies between."""
    if not wanted:
        yield from enumerate(file, 1)
        return
    at = 0
    for number in wanted:
        before, offset = marks[max(bisect_left(marks, (number, 0)) - 1, 0)] if marks else (0, 0)
        if before > at:
            file.seek(offset)
            at = before
        for line in islice(file, number - at - 1, number - at):
            yield number, line
        at = number
