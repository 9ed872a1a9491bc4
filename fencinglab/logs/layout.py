"""Which fields log lines have, and in which part of a line, by the first lines of a few files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.logs import cells, mutations
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import FIELDS, MappingSpec, plain

if TYPE_CHECKING:
    import duckdb

DEPTH = 5  # of the objects in a line that are opened
_SAMPLE_FILES, _SAMPLE_LINES = 6, 2_000
# Fields in which loggers, containers and Logs Insights keep a whole line, which may be JSON itself.
_BODIES = ("@message", "message", "msg", "log", "body", "line")


def _known(*columns: str) -> frozenset[str]:
    return frozenset(plain(name) for column in columns for known in FIELDS[column].known for name in known)


_AT, _VALUES, _HELD = _known("at"), _known("value"), _known("token", "holder")
_LEASE = _HELD | _known("resource")


class Layout(NamedTuple):
    """Where the fields of lines are."""

    inner: tuple[str, ...]  # fields of the JSON line, alone or in `body`
    outer: tuple[str, ...] = ()  # columns, or fields of a line that keeps another in `body`
    body: str | None = None

    @property
    def times(self) -> tuple[str, ...]:
        """The outer times where the inner line has its own: they stand in where that is missing."""
        own = any(plain(name) in _AT for name in self.inner)
        return tuple(name for name in self.outer if own and plain(name) in _AT and name not in self.inner)

    @property
    def names(self) -> tuple[str, ...]:
        """What can be mapped."""
        return tuple(dict.fromkeys([*self.inner, *(n for n in self.outer if n != self.body and n not in self.times)]))

    def columns(self, spec: MappingSpec) -> list[str]:
        """The outer fields that are read."""
        wanted = [name for name in mutations.wanted(spec, self.outer) if name in self.outer]
        return list(dict.fromkeys([*wanted, *self.times, *([self.body] if self.body else [])]))


def of(files: Sequence[File]) -> Layout:
    """Where the fields of the files are, which are all lines or all delimited."""
    rows = [row for beginning in _beginnings(files) for row in beginning]
    outer = _names(rows)
    for body in _BODIES:
        texts = [row[body] for row in rows if row.get(body) and isinstance(row[body], str)]
        inner = _names(value for value in map(_object, texts) if value is not None)
        whole = sum(one.lstrip().startswith("{") for one in texts)
        if inner and (2 * whole > len(texts) or (_some(inner, _LEASE) and not _some(outer, _LEASE))):
            return Layout(inner, outer, body)
    return Layout((), outer) if files[0].detected.shape == "csv" else Layout(outer)


def fields(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[str]:
    """The names of the fields in the first lines of a few files, nested ones dotted, in order of appearance."""
    return list(dict.fromkeys(name for group in by_shape(files) if group for name in of(group).names))


def texts(con: duckdb.DuckDBPyConnection, files: Sequence[File], name: str) -> set[str]:
    """The texts of a field in the first lines of a few files; half a surrogate pair, which is no text, is `?`."""
    return {str(value).encode("utf-8", "replace").decode() for value in _values(files, name) if value not in (None, "")}


def holds_records(con: duckdb.DuckDBPyConnection, files: Sequence[File], names: Sequence[str]) -> bool:
    """Whether the lines hold records of a stream, and no lease of their own beside them."""
    own = [name for name in names if "dynamodb" not in name.lower().split(".")]
    inner = len(own) < len(names) or any(
        isinstance(one, dict) and "dynamodb" in one
        for name in own
        if plain(name).endswith("records")
        for found in _values(files, name)
        for one in (found if isinstance(found, list) else ())
    )
    return inner and not _some(own, _HELD)


def _values(files: Sequence[File], name: str) -> Iterator[Any]:
    """The values of a field in the first lines of a few files."""
    for group in filter(None, by_shape(files)):
        body = of(group).body
        for row in (row for beginning in _beginnings(group) for row in beginning):
            inner = _object(row[body]) if body and isinstance(row.get(body), str) else None
            yield _at(inner or {}, name)
            yield _at(row, name)


def by_shape(files: Sequence[File]) -> tuple[list[File], list[File]]:
    """The files of lines, and the delimited ones."""
    return [f for f in files if f.detected.shape != "csv"], [f for f in files if f.detected.shape == "csv"]


def _beginnings(files: Sequence[File]) -> Iterator[Iterable[dict[str, Any]]]:
    """The records in the first lines of the first and the last few files."""
    shapes = {Path(file.path): file.detected.shape for file in files}
    half = _SAMPLE_FILES // 2
    for path in dict.fromkeys([*list(shapes)[:half], *list(shapes)[-half:]]):
        with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
            lines = [line for line in islice(file, _SAMPLE_LINES) if line.strip()]
        if shapes[path] == "csv" and lines:
            yield cells.sample(lines)
        else:
            yield [value for value in map(_object, lines) if value is not None]


def _object(line: str) -> dict[str, Any] | None:
    """The JSON object that a line is, or that ends after other text with its last brace."""
    start, end = (0, None) if line.startswith("{") else (line.find('{"'), line.rfind("}") + 1)
    try:
        value = json.loads(line[start:end], parse_int=str, parse_float=str) if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _at(row: dict[str, Any], name: str) -> Any:
    """The value of a field, whose dots may stand for inner objects."""
    if name in row:
        return row[name]
    outer, _, rest = name.partition(".")
    return _at(row[outer], rest) if rest and isinstance(row.get(outer), dict) else None


def _some(names: Iterable[str], known: Collection[str]) -> bool:
    """Whether one of the names, or the last part of a dotted one, is known."""
    return any(plain(name.rpartition(".")[2]) in known for name in names)


def _names(rows: Iterable[dict[str, Any]], within: str = "", depth: int = DEPTH) -> tuple[str, ...]:
    """The names of what the objects hold: of an inner object its fields, dotted; itself only if it may be a result.

    Splunk keeps a whole line in `result`: what holds a lease is none.
    """
    found: dict[str, None] = {}
    objects = set()
    for row in rows:
        for name, value in row.items():
            inner = isinstance(value, dict) and depth > 0
            if not inner or plain(name) in _VALUES:
                found[within + name] = None
            if inner:
                objects.add(within + name)
                found.update(dict.fromkeys(_names([value], f"{within}{name}.", depth - 1)))
    lines = {name for name in objects if _some((one for one in found if one.startswith(f"{name}.")), _HELD)}
    return tuple(name for name in found if name not in lines)
