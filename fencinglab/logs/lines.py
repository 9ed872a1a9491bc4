"""Application logs as history rows: JSON lines, with or without text before the JSON, and delimited tables.

A line that reports no mutation is a record all the same; it is counted and not audited. What cannot be
read is set aside with its place and its reason. A log's quotes prove nothing about the receiver's types,
and a log has an order only by a mapped field or by the user's word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files as resources
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from fencinglab import history
from fencinglab.logs import cells, detect, values, words
from fencinglab.logs.carry import carry
from fencinglab.logs.inputs import File, SetAside
from fencinglab.logs.mapping import FIELDS, MappingSpec, plain
from fencinglab.logs.unwrap import RAW, paths, text

if TYPE_CHECKING:
    import duckdb

NEVER = frozenset({"before_image", "after_image", "before_version", "fell", "token_width"})
COLUMNS = tuple(name for name, field in FIELDS.items() if field.line)

_LINES_SQL = resources("fencinglab.logs").joinpath("lines.sql").read_text(encoding="utf-8")
_SAMPLE_FILES, _SAMPLE_LINES, _DEPTH = 6, 2_000, 5
_LONGEST = 1 << 25  # bytes of a line
# Fields in which loggers, containers and Logs Insights keep a line that may itself be JSON.
_BODIES = ("@message", "message", "msg", "log", "body", "line")
_EVENT_IDS = ("@ptr", "eventid", "insertid")
_TIME = r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})?)\s"
_LAMBDA = r"^(START|END|REPORT|INIT_START|INIT_REPORT|RESTORE_START|RESTORE_REPORT|XRAY|EXTENSION)\b|Permission Check Successful"
_ABSENT = "('', 'null', 'none', 'nil', 'nan', 'undefined', '-')"


class Read(NamedTuple):
    """What a reader gives: a table of history rows, and what is not in it."""

    table: str  # the history's columns and `event_id` (text, null where the log has none)
    records: int
    set_aside: list[SetAside]
    never: frozenset[str]  # history columns that this format can never show
    notes: tuple[str, ...] = ()
    filtered: int = 0  # records that report no mutation: they are not in the table
    blank: int = 0
    beside: int = 0  # physical lines that are no entry: headers, further lines of a quoted value
    identity: bool = False  # the tokens are identities: they order nothing, and `token` is null


class _Look(NamedTuple):
    """What the beginning of a few files shows: where the fields are."""

    outer: tuple[str, ...]  # fields of a line, or columns
    inner: tuple[str, ...]  # fields of the JSON text inside `body`
    body: str | None
    csv: bool

    @property
    def hidden(self) -> frozenset[str]:
        """Outer fields that repeat what the inner ones say: the body itself, and its time where it has its own."""
        times = {plain(n) for known in FIELDS["at"].known for n in known}
        own_time = any(plain(n) in times for n in self.inner)
        shadowed = {n for n in self.outer if own_time and plain(n) in times} | {self.body or ""}
        return frozenset(shadowed - set(self.inner))


def fields(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[str]:
    """The names of the fields in the first lines of a few files, nested ones dotted, in order of appearance."""
    seen = _look(files)
    return list(dict.fromkeys([*seen.inner, *(n for n in seen.outer if n not in seen.hidden)]))


def read(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> Read:
    """The history rows of the files in the table `log_lines`; `key` keys the value hashes."""
    values.define(con)
    seen = _look(files)
    con.execute("set preserve_insertion_order = true")  # the place of a row in `scanned` is the place of its line
    con.execute("create or replace temp table files_read (number integer, name varchar, path varchar, first_line bigint)")
    con.executemany("insert into files_read values (?, ?, ?, ?)", [[i, f.name, str(f.path), f.first_line] for i, f in enumerate(files)])
    total, beside = _scan_csv(con, files, spec, seen, key) if seen.csv else _scan(con, files, spec, seen, key)
    ...


# --- what the fields are ------------------------------------------------------------------------------


def _beginnings(files: Sequence[File]) -> Iterator[list[str]]:
    """The first lines of a few files, the first and the last ones."""
    chosen = list(dict.fromkeys(f.path for f in files))
    half = _SAMPLE_FILES // 2
    for path in dict.fromkeys([*chosen[:half], *chosen[-half:]]):
        with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
            yield [line for line in islice(lines, _SAMPLE_LINES) if line.strip()]
