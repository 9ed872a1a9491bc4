"""From what the user named to one table `history` on a DuckDB connection, with every entry accounted for.

Always: entries read = records + blank + set aside, and records = audited + duplicates + filtered.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from fencinglab.errors import InputError, UsageError
from fencinglab.logs import detect, inputs, lines, streams, tables, unwrap, values
from fencinglab.logs.inputs import File, SetAside
from fencinglab.logs.mapping import FIELDS, MappingSpec, resolve

if TYPE_CHECKING:
    import duckdb


class Filters(NamedTuple):
    """Which records to audit; times are what `moment` of values.py reads."""

    since: str | None = None
    until: str | None = None
    key_prefix: str | None = None
    resource: str | None = None


class Entries(NamedTuple):
    """Where every entry went."""

    read: int
    blank: int
    set_aside: int
    records: int
    duplicates: int
    filtered: int
    audited: int


class Log(NamedTuple):
    """What was read; its rows are the table `history`, whose extra column `event_id` finds a row's line."""

    files: tuple[File, ...]
    mappings: dict[str, MappingSpec]  # by format
    entries: Entries
    set_aside: tuple[SetAside, ...]
    never: frozenset[str]  # history columns that none of these formats can show
    notes: tuple[str, ...]
    matched: int  # log lines that were joined to a stream record
    paths: tuple[File, ...]  # `files` and the copies that were read in their stead


class _Part(NamedTuple):
    table: str
    records: int
    set_aside: tuple[SetAside, ...]
    never: frozenset[str]
    notes: tuple[str, ...]
    filtered: int
    mapping: MappingSpec
    copies: tuple[File, ...] = ()  # of files that could only be read from a copy


def read(
    con: duckdb.DuckDBPyConnection,
    given: Sequence[str],
    spec: MappingSpec,
    work: Path,
    *,
    form: str | None = None,
    filters: Filters = Filters(),
    stdin: BinaryIO | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Log:
    """Make the table `history` of everything in `given`: files, folders, `-`.

    Raises InputError where nothing can be judged: a missing file, a format that is not read, no lease
    field, no readable record.
    """
    values.define(con)
    key = secrets.token_hex(16)  # value hashes are keyed anew for every report
    progress("looking at the files")
    taken = inputs.collect(given, work, stdin, wanted=detect.named(form) if form else None)
    groups: dict[str, list[File]] = {}
    for file in taken.files:
        if file.detected.format in detect.NOT_READ:
            raise detect.refuse(file.detected, file.name)
        if file.detected != detect.EMPTY:
            groups.setdefault(_reader(file.detected), []).append(file)
    if not groups:
        raise InputError(f"{', '.join(given)}: no readable record: every file is empty")
    parts: dict[str, _Part] = {}
    seen: dict[str, tuple[str, ...]] = {}
    for name, files in groups.items():
        progress(f"reading {len(files):,} {'file' if len(files) == 1 else 'files'} ({name})")
        parts[name] = _READERS[name](con, files, spec, key, work, taken.files, seen, len(groups) > 1)
    _all_mapped(spec, seen)
    records = sum(part.records for part in parts.values())
    aside = (*taken.set_aside, *(lost for part in parts.values() for lost in part.set_aside))
    if not records:
        reasons = Counter(lost.reason for lost in aside).most_common(1)
        why = f": {reasons[0][0]} ({aside[0].source})" if reasons else ""
        raise InputError(f"{', '.join(given)}: no readable record in {sum(f.lines for f in taken.files):,} lines{why}")
    progress("putting records in order")
    duplicates = sum(_drop_duplicates(con, part.table) for part in parts.values())
    matched = _match(con, parts["dynamodb-stream"].table, parts["log-lines"].table) if len(parts) > 1 else 0
    _union(con, [part.table for part in parts.values()])
    filtered = sum(part.filtered for part in parts.values()) + _filter(con, filters)
    blank = sum(file.blank for file in taken.files)
    entries = Entries(
        read=records + blank + len(aside), blank=blank, set_aside=len(aside), records=records,
        duplicates=duplicates, filtered=filtered, audited=records - duplicates - filtered,
    )  # fmt: skip
    if not entries.audited:
        raise InputError(f"no record is left of {records:,}: {duplicates:,} duplicates, {filtered:,} filtered; see --since, --until, --key-prefix, --resource")
    return Log(
        files=taken.files,
        mappings={name: part.mapping for name, part in parts.items()},
        entries=entries,
        set_aside=aside,
        never=frozenset.intersection(*(part.never for part in parts.values())),
        notes=tuple(note for part in parts.values() for note in part.notes),
        matched=matched,
        paths=(*taken.files, *(copy for part in parts.values() for copy in part.copies)),
    )


def _reader(detected: detect.Detected) -> str:
    return {"csv": "log-lines", "table": "log-lines"}.get(detected.format, detected.format)


def _fields_of(spec: MappingSpec, names: Iterable[str], of: str, several: bool) -> MappingSpec:
    """The mapping as far as it is about this format, where several formats are given together."""
    if not several:
        return spec
    there = set(names)
    fields = {k: v for k, v in spec.fields.items() if getattr(FIELDS[k], of) and (v == "none" or set(v.split(",")) & there)}
    return replace(
        spec, fields=fields, rising=tuple(n for n in spec.rising if n in there), protect=tuple(n for n in spec.protect if n in there)
    )


def _all_mapped(spec: MappingSpec, seen: dict[str, tuple[str, ...]]) -> None:
    everything = {name for names in seen.values() for name in names}
    for key, field in spec.fields.items():
        for name in field.split(","):
            if name != "none" and name not in everything and seen:
                raise InputError(f"--map {key}={field}: no record has a field `{name}`")


def _no_lease(names: Sequence[str], files: Sequence[File]) -> InputError:
    listed = ", ".join(f"`{n}`" for n in names[:20]) or "none"
    return InputError(
        f"{files[0].name}: no lease field is recognised among {listed}; "
        "say which field is which, for example --map token=… --map holder=…"
    )


def _streams(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    by_line = [f for f in files if f.detected.shape == "lines"]
    documents, aside, copies = [], [], []
    for file in files:
        if file.detected.shape != "lines":
            if unwrap.readable(con, file):
                documents.append(file)
            else:
                copy, lost = unwrap.salvage(file, work)
                copies.append(copy)
                aside += lost
    by_line += copies
    sample = streams.look(con, by_line, documents)
    seen["dynamodb-stream"] = sample.attributes
    mapping = resolve(_fields_of(spec, sample.attributes, "stream", several), sample.attributes, "stream")
    notes = []
    if not any(mapping.get(k) for k in ("token", "written_token", "holder", "expires_at", "version")):
        if sample.views != {"KEYS_ONLY"}:
            raise _no_lease(sample.attributes, files)
        notes.append("the stream is KEYS_ONLY: it shows that items changed, not how; choose NEW_AND_OLD_IMAGES")
    for role in ("token", "written_token"):
        if (name := mapping.get(role)) and streams.identity_tokens(con, sample, name):
            notes.append(f"`{name}` holds identities, not numbers: they protect identity, not order")
            mapping = replace(mapping, fields={k: v for k, v in mapping.fields.items() if k != role})
    streams.read(con, by_line, documents, mapping, sample, key)
    aside += _set_aside_records(con, [*all_files, *copies])
    [(records,)] = con.execute("select count(*) from stream").fetchall()
    never = streams.NEVER
    if "NEW_AND_OLD_IMAGES" not in sample.views:
        never |= {"before_image"} | ({"after_image", "after_token", "after_holder", "fenced", "token"} if sample.views == {"KEYS_ONLY"} else set())
    return _Part("stream", records, tuple(aside), never, tuple(notes), 0, mapping, tuple(copies))


def _set_aside_records(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[SetAside]:
    """What the stream reader could not use, with line and raw text; such rows leave the table `stream`."""
    aside = []
    for path, line, reason, raw in con.execute("select path, line, reason, raw from unread order by all").fetchall():
        aside.append(SetAside(inputs.locate(files, path, line or 1), reason, (raw or "").encode()))
    rows = con.execute("select source, event_id, fault from stream where fault is not null order by all").fetchall()
    for path in dict.fromkeys(row[0] for row in rows):
        found = unwrap.find(Path(path), {event for p, event, _ in rows if p == path and event})
        for _, event, fault in (row for row in rows if row[0] == path):
            number, index, raw = found.get(event, (0, "", b""))
            aside.append(SetAside(inputs.locate(files, path, number) + index, fault, raw))
    con.execute("delete from stream where fault is not null")
    return aside


def _lines(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    reader = tables if files[0].detected.format == "table" else lines
    names = reader.fields(con, files)
    seen["log-lines"] = tuple(names)
    mapping = resolve(_fields_of(spec, names, "line", several), names, "line")
    if not mapping.get("resource"):
        raise InputError(f"{files[0].name}: no field says what is protected among {', '.join(f'`{n}`' for n in names[:20])}; say which by --map resource=…")
    if not any(mapping.get(k) for k in ("token", "holder", "before_token", "expires_at")):
        raise _no_lease(names, files)
    part = reader.read(con, files, mapping, key)
    return _Part(part.table, part.records, tuple(part.set_aside), part.never, tuple(part.notes), part.filtered, mapping)


def _history(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    part = tables.read_history(con, files)
    return _Part(part.table, part.records, tuple(part.set_aside), part.never, tuple(part.notes), part.filtered, spec)


_READERS = {"dynamodb-stream": _streams, "log-lines": _lines, "history": _history}


def _drop_duplicates(con: duckdb.DuckDBPyConnection, table: str) -> int:
    """Delete all but one of the rows that carry the same event id at the same place; how many were deleted."""
    return con.execute(f"""delete from {table} where rowid in (
        select rowid from (
            select rowid, row_number() over (partition by resource, order_scope, order_key, event_id order by source, rowid) as nth
            from {table} where event_id is not null)
        where nth > 1)""").fetchall()[0][0]


def _match(con: duckdb.DuckDBPyConnection, stream: str, line: str) -> int:
    """Join log lines to the stream records that they report, where resource, token and kind leave one of each.

    The record gains the line's writer, operation, sender's time and outcome; where its own token is not
    known, the line's. Lines that found their record leave the table; nothing is ordered by it.
    """
    con.execute(f"""create or replace temp table matched as
        with records as (select rowid as row_id, resource, item_key(resource) as key, coalesce(token, after_token) as token, kind from {stream}),
        reported as (select rowid as row_id, resource as key, token, kind from {line} where decision <> 'rejected' and token is not null)
        select any_value(records.row_id) as record, any_value(reported.row_id) as line
        from records join reported on (reported.key = records.key or reported.key = records.resource)
            and reported.token = records.token and reported.kind = records.kind
        group by records.resource, records.token, records.kind
        having count(distinct records.row_id) = 1 and count(distinct reported.row_id) = 1""")
    con.execute(f"""update {stream} as record set writer = coalesce(record.writer, line.writer), operation = coalesce(record.operation, line.operation),
            sent_at = line.sent_at, outcome = line.outcome, token = coalesce(record.token, line.token), fenced = coalesce(record.fenced, line.fenced)
        from matched join {line} as line on line.rowid = matched.line where record.rowid = matched.record""")
    con.execute(f"""update {line} as line set resource = record.resource, lease = record.resource
        from (select distinct resource, item_key(resource) as key from {stream}) as record where line.resource = record.key""")
    return con.execute(f"delete from {line} where rowid in (select line from matched)").fetchall()[0][0]


def _union(con: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> None:
    con.execute("drop table if exists history")
    first, *others = parts
    for other in others:
        con.execute(f"insert into {first} by name select * from {other}")
    con.execute(f"alter table {first} rename to history")


def _filter(con: duckdb.DuckDBPyConnection, filters: Filters) -> int:
    """Delete the rows outside the filters from `history`; how many were deleted."""
    tests = []
    for option, value, compare in (("--since", filters.since, "<"), ("--until", filters.until, ">=")):
        if value is not None:
            [(moment,)] = con.execute("select moment(?)::varchar", [value]).fetchall()
            if moment is None:
                raise UsageError(f"{option} {value}: write a time such as 2026-11-29T14:00:00Z")
            tests.append(f"""history."at" {compare} timestamp {unwrap.text(moment)}""")
    if filters.key_prefix is not None:
        tests.append(f"not starts_with(item_key(resource), {unwrap.text(filters.key_prefix)}) and not starts_with(resource, {unwrap.text(filters.key_prefix)})")
    if filters.resource is not None:
        tests.append(f"item_key(resource) <> {unwrap.text(filters.resource)} and resource <> {unwrap.text(filters.resource)}")
    if not tests:
        return 0
    return con.execute(f"delete from history where {' or '.join(f'({t})' for t in tests)}").fetchall()[0][0]


def place(con: duckdb.DuckDBPyConnection, log: Log, row_ids: Iterable[int]) -> dict[int, str]:
    """{row id: `file:line[#index]`} of rows of the table `history`, looked up in the files."""
    rows = con.execute(
        "select rowid, source, event_id from history where rowid in (select unnest(?::bigint[]))", [list(row_ids)]
    ).fetchall()
    paths = {str(f.path) for f in log.paths}
    wanted: dict[str, set[str]] = {}
    for _, source, event in rows:
        if source in paths and event:
            wanted.setdefault(source, set()).add(event)
    found = {path: unwrap.find(Path(path), events) for path, events in wanted.items()}
    placed = {}
    for row_id, source, event in rows:
        number, index, _ = found.get(source, {}).get(event, (0, "", b""))
        placed[row_id] = inputs.locate(log.paths, source, number) + index if number else source
    return placed
