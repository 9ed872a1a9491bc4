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

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import (
    detect,
    inputs,
    lines,
    merge,
    mutations,
    places,
    sample,
    streams,
    tables,
    unwrap,
    values,
    words,
)
from fencinglab.logs.filters import EVERYTHING, Filters, outside
from fencinglab.logs.inputs import File, SetAside
from fencinglab.logs.mapping import FIELDS, MappingSpec, plain, resolve

if TYPE_CHECKING:
    import duckdb


RESIDENT = 1_300_000_000  # bytes of logs; of more, the rows go to a database on disk, which packs them
_MENDED = "read as U+FFFD"  # how inputs.py ends its reason for an entry that is read all the same


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
    quotes: tuple[str, ...]  # notes that quote the log: a redacted report has none of them
    identities: tuple[str, ...]  # fields of tokens that hold identities, no numbers
    others: tuple[str, ...]  # attributes of a stream's items that nothing is mapped to
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
    quotes: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def read(
    con: duckdb.DuckDBPyConnection,
    given: Sequence[str],
    spec: MappingSpec,
    work: Path,
    *,
    form: str | None = None,
    filters: Filters = EVERYTHING,
    stdin: BinaryIO | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Log:
    """Make the table `history` of everything in `given`: files, folders, `-`.

    Raises InputError where nothing can be judged: a missing file, a format that is not read, no lease
    field, no readable record.
    """
    values.define(con)
    key = secrets.token_hex(16)  # value hashes are keyed anew for every report
    left_out = outside(con, filters)
    progress("looking at the files")
    taken = inputs.collect(given, work, stdin, wanted=detect.named(form) if form else None)
    if sum(file.size for file in taken.files) > RESIDENT:
        con.execute(f"attach {unwrap.text(str(work / 'rows.duckdb'))} as rows")
        con.execute("use rows")
    groups: dict[str, list[File]] = {}
    for file in taken.files:
        if file.detected.format in detect.NOT_READ:
            raise detect.refuse(file.detected, file.name)
        if file.detected != detect.EMPTY:
            groups.setdefault(_reader(file.detected), []).append(file)
    named = ", ".join(given[:5]) + (", …" if len(given) > 5 else "")
    if not groups:
        raise InputError(f"{named}: no readable record: every file is empty")
    lines_there = sum(file.lines - file.blank for files in groups.values() for file in files)
    if 0 < lines_there <= sum(not lost.reason.endswith(_MENDED) for lost in taken.set_aside):
        raise _no_record(named, taken.files, taken.set_aside)
    parts: dict[str, _Part] = {}
    seen: dict[str, tuple[str, ...]] = {}
    for name, files in groups.items():
        progress(f"reading {len(files):,} {'file' if len(files) == 1 else 'files'} ({name})")
        parts[name] = _READERS[name](con, files, spec, key, work, taken.files, seen, len(groups) > 1)
    _all_mapped(spec, seen)
    records = sum(part.records for part in parts.values())
    mended = sum(lost.reason.endswith(_MENDED) for lost in taken.set_aside)
    aside = (
        *(lost for lost in taken.set_aside if not lost.reason.endswith(_MENDED)),
        *(lost for part in parts.values() for lost in part.set_aside),
    )
    if not records:
        raise _no_record(named, taken.files, aside)
    progress("putting records in order")
    if len(parts) > 1 and "dynamodb-stream" in parts:
        history.store(con, "stream")
    duplicates = sum(merge.drop_duplicates(con, part.table, name) for name, part in parts.items())
    beside = [parts[name].table for name in ("log-lines", "table") if name in parts and "dynamodb-stream" in parts]
    for table in beside:
        merge.name_alike(con, parts["dynamodb-stream"].table, table)
    filtered = sum(part.filtered + merge.drop(con, part.table, left_out) for part in parts.values())
    strangers = [merge.leave_out_strangers(con, parts["dynamodb-stream"].table, table) for table in beside]
    matched = sum(merge.match(con, parts["dynamodb-stream"].table, table) for table in beside)
    merge.union(con, [part.table for part in parts.values()])
    blank = sum(file.blank for file in taken.files)
    entries = Entries(
        read=records + blank + len(aside), blank=blank, set_aside=len(aside), records=records,
        duplicates=duplicates, filtered=filtered, audited=records - duplicates - filtered,
    )  # fmt: skip
    if not entries.audited:
        raise InputError(
            f"no record is left of {records:,}: {duplicates:,} duplicates, {filtered:,} filtered; "
            "see --since, --until, --key-prefix, --resource"
        )
    notes = [note for part in parts.values() for note in part.notes]
    if any(strangers):
        notes.append("the log lines name no worker that the stream names as a holder, so who wrote is left out of them")
    if spec.order == "lines" and not parts.keys() & {"log-lines", "table"}:
        notes.append("--order lines says nothing here: it is for log lines; these records have their own order")
    if mended:
        notes.append(f"{mended:,} lines hold bytes that are not UTF-8, {_MENDED}")
    return Log(
        files=taken.files,
        mappings={name: part.mapping for name, part in parts.items()},
        entries=entries,
        set_aside=aside,
        never=frozenset.intersection(*(part.never for part in parts.values())),
        notes=tuple(notes),
        quotes=tuple(quote for part in parts.values() for quote in part.quotes),
        identities=tuple(name for part in parts.values() for name in part.identities),
        others=tuple(name for part in parts.values() for name in part.others),
        matched=matched,
        paths=(*taken.files, *(copy for part in parts.values() for copy in part.copies)),
    )


def _reader(detected: detect.Detected) -> str:
    return "log-lines" if detected.format == "csv" else detected.format


def _fields_of(spec: MappingSpec, names: Iterable[str], of: str, several: bool) -> MappingSpec:
    """The mapping as far as it is about this format, where several formats are given together."""
    if not several:
        return spec
    there = set(names)
    fields = {k: v for k, v in spec.fields.items() if v == "none" or set(v.split(",")) & there}
    return replace(
        spec,
        fields={k: v for k, v in fields.items() if getattr(FIELDS[k], of)},
        rising=tuple(n for n in spec.rising if n in there),
        protect=tuple(n for n in spec.protect if n in there),
    )


def _all_mapped(spec: MappingSpec, seen: dict[str, tuple[str, ...]]) -> None:
    everything = {name for names in seen.values() for name in names}
    for key, field in spec.fields.items():
        for name in field.split(","):
            if name != "none" and name not in everything and seen:
                raise InputError(f"--map {key}={field}: no record has a field `{name}`")


def _no_record(named: str, files: Sequence[File], aside: Sequence[SetAside]) -> InputError:
    why = ""
    if aside:
        [(reason, _)] = Counter(lost.reason for lost in aside).most_common(1)
        why = f": {reason} ({next(lost.source for lost in aside if lost.reason == reason)})"
    return InputError(f"{named}: no readable record in {sum(file.lines for file in files):,} lines{why}")


def _no_lease(names: Sequence[str], files: Sequence[File]) -> InputError:
    listed = ", ".join(f"`{n}`" for n in names[:20]) or "none"
    return InputError(
        f"{files[0].name}: no lease field is recognised among {listed}; "
        "say which field is which, for example --map token=… --map holder=…"
    )


def _streams(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    documents = [f for f in files if f.detected.shape != "lines"]
    aside: list[SetAside] = []
    copies = []
    for file in unwrap.unreadable(con, documents):
        copy, lost = unwrap.salvage(file, work)
        copies.append(copy)
        aside += lost
        documents.remove(file)
    by_line = [*(f for f in files if f.detected.shape == "lines"), *copies]
    shown = sample.look(con, by_line, documents, work)
    seen["dynamodb-stream"] = tuple(shown.attributes)
    mapping = resolve(_fields_of(spec, shown.attributes, "stream", several), shown.attributes, "stream")
    mapped = (name for key in mapping.fields for name in mapping.names(key))
    named = {*shown.of_key, *mapping.rising, *mapping.protect, *mapped}
    notes, identities = list[str](), list[str]()
    if not any(mapping.get(k) for k in ("token", "written_token", "holder", "expires_at", "version")):
        if shown.views != {"KEYS_ONLY"}:
            raise _no_lease(seen["dynamodb-stream"], files)
        notes.append("the stream is KEYS_ONLY: it shows that items changed, not how; choose NEW_AND_OLD_IMAGES")
    if shown.views == {"OLD_IMAGE"}:
        notes.append("the stream is OLD_IMAGE: it shows what writes found, not their effect; choose NEW_AND_OLD_IMAGES")
    for role in ("token", "written_token"):
        if (name := mapping.get(role)) and sample.identity_tokens(con, shown, name):
            notes.append(f"`{name}` holds identities, not numbers: they protect identity, not order")
            identities.append(name)
            mapping = replace(mapping, fields={k: v for k, v in mapping.fields.items() if k != role})
    if (by := mapping.get("writer")) and (owner := mapping.get("holder")) and sample.names_apart(con, shown, by, owner):
        notes.append(f"`{by}` names nobody that `{owner}` names, so it does not say which holder wrote and is left out")
        mapping = replace(mapping, fields={k: v for k, v in mapping.fields.items() if k != "writer"})
    if (version := mapping.get("version")) and (stored := mapping.get("written_token")):
        notes.append(
            f"a write that raised `{version}` is taken to have stored `{stored}` itself: a client that raises the one "
            "and leaves the other as it was would pass for the holder"
        )
    streams.read(con, by_line, documents, mapping, shown, key, work)
    aside += _set_aside_records(con, [*all_files, *copies])
    if "version" in mapping.recognised and (count := streams.grants_without_version(con)):
        left = "a grant leaves" if count == 1 else f"{count:,} grants leave"
        notes.append(
            f"{left} `{version}` as it was: not every mutation raises it, so it proves of no write that it carried no "
            f"token; if every write does raise it: --map version={version}"
        )
    [(records,)] = con.execute("select count(*) from stream").fetchall()
    never = streams.NEVER.union(*(streams.NEVER_IN[view] for view in shown.views if len(shown.views) == 1))
    return _Part(
        "stream", records, tuple(aside), never, tuple(notes), 0, mapping, tuple(copies), identities=tuple(identities),
        others=tuple(name for name in shown.attributes if name not in named and not name.startswith("aws:")),
    )  # fmt: skip


def _set_aside_records(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[SetAside]:
    """What the stream reader could not use, with line and raw text; such rows leave the table `stream`."""
    located = places.Places(files)
    aside = []
    unread = con.execute("select path, line, index, reason, raw from unread order by all").fetchall()
    for path, line, index, reason, raw in unread:
        if line is None and (event := places.event_of(raw)):
            line, _, _ = places.find(Path(path), {event}).get(event, (None, "", b""))
        aside.append(SetAside(located.of(path, line, f"#{index}" if index else ""), reason, (raw or "").encode()))
    rows = con.execute("select source, event_id, fault from stream where fault is not null order by all").fetchall()
    wanted: dict[str, set[str]] = {}
    for path, event, _ in rows:
        wanted.setdefault(path, set()).add(event or "")
    found = {path: places.find(Path(path), events, raw=True) for path, events in wanted.items()}
    for path, event, fault in rows:
        line, index, raw = found[path].get(event, (None, "", b""))
        aside.append(SetAside(located.of(path, line, index), fault, raw))
    con.execute("delete from stream where fault is not null")
    con.execute("alter table stream drop column fault")
    return aside


def _lines(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    name, reader = ("table", tables) if files[0].detected.format == "table" else ("log-lines", lines)
    names = reader.fields(con, files)
    seen[name] = tuple(names)
    if reader is lines and lines.holds_records(con, files, names):
        raise detect.refuse_inside(files[0].detected, files[0].name)
    results = [name for name in names if plain(name.rpartition(".")[2]) == "result"]
    decisions = [name for name in results if words.decide(con, reader.texts(con, files, name))]
    mapping = resolve(_fields_of(spec, names, "line", several), names, "line", decisions)
    if not any(mapping.get(k) for k in ("token", "holder", "before_token", "expires_at")):
        raise _no_lease(names, files)
    if not mapping.get("resource"):
        listed = ", ".join(f"`{n}`" for n in names[:20])
        raise InputError(
            f"{files[0].name}: no field says what is protected among {listed}; say which by --map resource=…"
        )
    part = reader.read(con, files, mapping, key)
    notes = part.notes
    if part.denied:
        denying = " or ".join(f"`{name}`" for name in mutations.denying(mapping, names))
        notes += (f"lines that deny a success in {denying}, and so are not taken as accepted: {part.denied:,}",)
    return _Part(
        part.table, part.records, tuple(part.set_aside), part.never, notes, part.filtered, mapping,
        quotes=part.quotes, identities=(mapping.fields["token"],) if part.identity else (),
    )  # fmt: skip


def _history(con, files, spec, key, work, all_files, seen, several) -> _Part:  # type: ignore[no-untyped-def]
    part = tables.read_history(con, files)
    return _Part(part.table, part.records, tuple(part.set_aside), part.never, tuple(part.notes), part.filtered, spec)


_READERS = {"dynamodb-stream": _streams, "log-lines": _lines, "table": _lines, "history": _history}
