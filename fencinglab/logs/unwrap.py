"""DynamoDB Streams records out of every wrapping they are archived in, as SQL over files.

A record may stand alone on a line, in a Lambda event, a bare array, a failure destination, a text that
holds JSON, pretty-printed over many lines or concatenated without any. Of a text that is cut off or broken
the whole values are read, and what cannot be read is kept apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencinglab.logs.inputs import KEPT, File, SetAside

if TYPE_CHECKING:
    import duckdb

# Where a wrapper keeps its records, outermost first; texts that hold JSON are opened too.
WRAPPERS = ("Records", "payload", "Body", "body", "Message", "detail", "Messages")
_DEPTH = 6  # a text in a message in a queue in an event, and an array round it
_LONGEST = 1 << 25  # bytes of a line; inputs.py lets none in that is half as long
BROKEN = "cut off or not JSON"


def text(value: str) -> str:
    """The value as a SQL text literal."""
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def paths(files: Sequence[File]) -> str:
    """The distinct paths of the files as a SQL list."""
    return "[" + ", ".join(text(p) for p in dict.fromkeys(str(f.path) for f in files)) + "]"


def _opened(value: str) -> str:
    """SQL: the list of JSON values inside one JSON value; a record stays itself."""
    names = ", ".join(text(w) for wrapper in WRAPPERS for w in dict.fromkeys((wrapper, wrapper.lower())))
    wrapper = f"list_filter([{names}], lambda w: json_exists({value}, '$.' || w))[1]"
    return f"""case when json_type({value}) = 'ARRAY' then from_json({value}, '["JSON"]')
        when json_exists({value}, '$.dynamodb') then [{value}]
        else list_transform([json_extract({value}, '$.' || {wrapper})], lambda held: case json_type(held)
            when 'VARCHAR' then [try_cast(held->>'$' as json)] when 'ARRAY' then from_json(held, '["JSON"]')
            when 'OBJECT' then [held] else [{value}] end)[1] end"""


def records(source: str) -> str:
    """SQL: (path, line, record, index, siblings) of every record in the JSON values (path, line, value) of `source`."""
    opened = "[value]"
    for _ in range(_DEPTH):
        opened = f"flatten(list_transform({opened}, lambda v: {_opened('v')}))"
    return f"""(select path, line, unnest(opened) as record, unnest(range(1, len(opened) + 1)) as index,
            len(opened) as siblings
        from (select path, line, {opened} as opened from {source} where value is not null))"""


def sample(files: Sequence[File]) -> str:
    """SQL: (path, line, value) of line-shaped files for a look: quickly, without lines that are not JSON."""
    return f"""(select null::varchar as path, null::bigint as line, json as value
        from read_json_objects({paths(files)}, format = 'newline_delimited', ignore_errors = true))"""


def text_lines(files: Sequence[File], work: Path) -> str:
    """SQL: (path, line, value, raw) of the lines of files, without blank ones; value is null where one is not JSON."""
    read = {str(_one_newline(path, work)): str(path) for path in dict.fromkeys(file.path for file in files)}
    copies = " ".join(f"when {text(copy)} then {text(path)}" for copy, path in read.items() if copy != path)
    path = f"case filename {copies} else filename end" if copies else "filename"
    return f"""(select {path} as path, line, try_cast(raw as json) as value, raw from (
            select filename, line as raw, position - min(position) over (partition by filename) + 1 as line
            from (select filename, line, row_number() over () as position
                from read_csv([{", ".join(map(text, read))}], filename = true, columns = {{line: 'varchar'}},
                    delim = '\n', quote = '', escape = '', new_line = '\\n', header = false, auto_detect = false,
                    strict_mode = false, max_line_size = {_LONGEST}, buffer_size = {_LONGEST + (1 << 23)})))
        where trim(raw, chr(32) || chr(9) || chr(11) || chr(12)) <> '')"""


def _one_newline(path: Path, work: Path) -> Path:
    """The file, or where it has carriage returns a copy without: DuckDB would end a line at each."""
    with path.open("rb") as file:
        if not any(b"\r" in chunk for chunk in iter(lambda: file.read(1 << 20), b"")):
            return path
        file.seek(0)
        target = work / f"lines-{len(list(work.glob('lines-*')))}.log"
        with target.open("wb") as copy:
            while chunk := file.read(1 << 20):
                while chunk.endswith(b"\r") and (more := file.read(1)):
                    chunk += more
                copy.write(chunk.replace(b"\r\n", b"\n").replace(b"\r", b" "))
    return target


def documents(files: Sequence[File]) -> str:
    """SQL: (path, line, value, raw) of the JSON values of document files; their lines are not known."""
    return f"""(select filename as path, null::bigint as line, json as value, null::varchar as raw
        from read_json_objects({paths(files)}, format = 'unstructured', filename = true))"""


def unreadable(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[File]:
    """The document files that DuckDB cannot read to their end, or in which it finds something that is no record."""
    from duckdb import InvalidInputException

    if not files:
        return []
    strange = "not coalesce(json_type(record, '$.dynamodb') = 'OBJECT', false)"
    try:
        found = con.execute(f"select distinct path from {records(documents(files))} where {strange}").fetchall()
    except InvalidInputException:
        half = len(files) // 2
        return [*unreadable(con, files[:half]), *unreadable(con, files[half:])] if half else [*files]
    return [file for file in files if (str(file.path),) in found]


_CONTAINER = re.compile(r'\{\s*"[Rr]ecords"\s*:\s*\[')
_RECORD = re.compile(r'(?m)^\{|\{\s*"eventID"')
_BEFORE_RECORDS = re.compile(r'(?s).*"[Rr]ecords"\s*:\s*\[\s*')
_MEMBER = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*')
_BETWEEN = re.compile(r"[\s,\[\]}]*")


def pieces(content: str) -> Iterator[tuple[int, int, bool]]:
    """(begin, end, whether it is JSON) of each value in a text, in an array or `Records` singly, and of broken ones."""
    decoder, at, inside = json.JSONDecoder(), 0, False
    while (at := _BETWEEN.match(content, at).end()) < len(content):  # type: ignore[union-attr]
        if container := _CONTAINER.match(content, at):
            at, inside = container.end(), True
            continue
        member = _MEMBER.match(content, at) if inside else None  # what stands after the records in their object
        try:
            _, end = decoder.raw_decode(content, member.end() if member else at)
            if not member:
                yield at, end, True
        except (ValueError, RecursionError):
            following = _RECORD.search(content, at + 1)
            end = following.start() if following else len(content)
            if following and _BEFORE_RECORDS.fullmatch(content, at, end):
                inside = True
            else:
                yield at, end, False
        at = end


def salvage(file: File, work: Path) -> tuple[File, tuple[SetAside, ...]]:
    """A line-shaped copy of a document file that is not `readable`, and what could not be read.

    Each JSON value keeps the line at which it starts, so that positions stay true.
    """
    with file.path.open(encoding="utf-8-sig", newline="\n") as whole_file:
        content = whole_file.read()
    values: dict[int, list[str]] = {}
    line, counted, aside = 1, 0, []
    for begin, end, whole in pieces(content):
        line, counted = line + content.count("\n", counted, begin), begin
        if whole:
            values.setdefault(line, []).append(re.sub(r"[\r\n]", " ", content[begin:end]))
        else:
            aside.append(SetAside(f"{file.name}:{line}", BROKEN, content[begin : min(end, begin + KEPT)].encode()))
    last = max(values, default=0)
    copy = work / f"salvaged-{len(list(work.glob('salvaged-*')))}.jsonl"
    with copy.open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(f"[{','.join(values[n])}]\n" if n in values else "\n" for n in range(1, last + 1))
    return file._replace(path=copy, first_line=0, lines=last), tuple(aside)


def mend(con: duckdb.DuckDBPyConnection, files: Sequence[File], work: Path) -> str:
    """SQL: (path, line, value, raw) of the lines that are not JSON: their whole values, and as `raw` what is broken."""
    found = con.execute(f"select path, line, raw from {text_lines(files, work)} where value is null")
    target = work / f"mended-{len(list(work.glob('mended-*')))}.jsonl"
    with target.open("w", encoding="utf-8", newline="\n") as copy:
        while rows := found.fetchmany(100):
            for path, line, raw in rows:
                for begin, end, whole in [*pieces(raw)] or [(0, len(raw), False)]:
                    part = {"value": raw[begin:end]} if whole else {"raw": raw[begin : min(end, begin + KEPT)]}
                    copy.write(json.dumps({"path": path, "line": line, **part}) + "\n")
    columns = "{path: 'varchar', line: 'bigint', value: 'varchar', raw: 'varchar'}"
    return f"""(select path, line, try_cast(value as json) as value, coalesce(raw, left(value, {KEPT})) as raw
        from read_json([{text(str(target))}], columns = {columns}, format = 'newline_delimited', records = 'true',
            maximum_object_size = {8 * _LONGEST}))"""
