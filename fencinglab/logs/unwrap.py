"""DynamoDB Streams records out of every wrapping they are archived in, as SQL over files.

A record may stand alone on a line, in a Lambda event, a bare array, a failure destination, a text that
holds JSON, pretty-printed over many lines or concatenated without any. What cannot be read is kept apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencinglab.logs.inputs import File, SetAside

if TYPE_CHECKING:
    import duckdb

# Where a wrapper keeps its records, outermost first; texts that hold JSON are opened too.
WRAPPERS = ("Records", "payload", "Body", "body", "Message", "detail", "Messages")
_DEPTH = 4
RAW = 1 << 16  # bytes of an unreadable entry that are kept


def text(value: str) -> str:
    """The value as a SQL text literal."""
    return "'" + value.replace("'", "''") + "'"


def paths(files: Sequence[File]) -> str:
    """The distinct paths of the files as a SQL list."""
    return "[" + ", ".join(text(p) for p in dict.fromkeys(str(f.path) for f in files)) + "]"


def _opened(value: str) -> str:
    """SQL: the list of JSON values inside one JSON value; a record stays itself."""
    inner = ", ".join(
        f"""case json_type({value}, '$."{w}"') when 'VARCHAR' then try_cast({value}->>'$."{w}"' as json)
            when 'ARRAY' then {value}->'$."{w}"' when 'OBJECT' then {value}->'$."{w}"' end"""
        for wrapper in WRAPPERS
        for w in dict.fromkeys((wrapper, wrapper.lower()))
    )
    return f"""case when json_type({value}) = 'ARRAY' then from_json({value}, '["JSON"]')
        when json_exists({value}, '$.dynamodb') then [{value}]
        else [coalesce({inner}, {value})] end"""


def records(source: str) -> str:
    """SQL: (path, line, record, index, siblings) of every record inside the JSON values (path, line, value) of `source`."""
    opened = "[value]"
    for _ in range(_DEPTH):
        opened = f"flatten(list_transform({opened}, lambda v: {_opened('v')}))"
    return f"""(select path, line, unnest(opened) as record, unnest(range(1, len(opened) + 1)) as index, len(opened) as siblings
        from (select path, line, {opened} as opened from {source} where value is not null))"""


def text_lines(files: Sequence[File]) -> str:
    """SQL: (path, line, value) of line-shaped files; value is null where the line is not JSON, blank lines are left out."""
    return f"""(select path, line, try_cast(raw as json) as value, raw from (
            select filename as path, line as raw, position - min(position) over (partition by filename) + 1 as line
            from (select filename, line, row_number() over () as position
                from read_csv({paths(files)}, delim = chr(1), quote = '', escape = '', header = false, auto_detect = false,
                    columns = {{line: 'VARCHAR'}}, filename = true, max_line_size = {1 << 25}, null_padding = true)))
        where trim(raw, chr(32) || chr(9) || chr(13)) <> '')"""


def documents(files: Sequence[File]) -> str:
    return f"""(select filename as path, null::bigint as line, json as value, null::varchar as raw
        from read_json_objects({paths(files)}, format = 'unstructured', filename = true))"""


_CONTAINER = re.compile(r'\{\s*"[Rr]ecords"\s*:\s*\[')
_RECORD = re.compile(r'(?m)^\{|\{\s*"eventID"')


def readable(con: duckdb.DuckDBPyConnection, file: File) -> bool:
    """Whether DuckDB can read every JSON value of a document file."""
    from duckdb import InvalidInputException

    try:
        con.execute(f"select count(*) from {documents([file])}").fetchall()
    except InvalidInputException:
        return False
    return True


def salvage(file: File, work: Path) -> tuple[File, tuple[SetAside, ...]]:
    """A line-shaped copy of a document file that DuckDB cannot read to its end, and what could not be read.

    Each JSON value keeps the line at which it starts, so that positions stay true.
    """
    content = file.path.read_text(encoding="utf-8-sig")
    decoder, at, line, aside = json.JSONDecoder(), 0, 1, []
    values: dict[int, list[str]] = {}
    while True:
        start = at
        while at < len(content) and content[at] in " \t\r\n,[]}":
            at += 1
        line += content.count("\n", start, at)
        if at >= len(content):
            break
        try:
            _, end = decoder.raw_decode(content, at)
            values.setdefault(line, []).append(content[at:end].replace("\n", " ").replace("\r", " "))
        except ValueError:
            if container := _CONTAINER.match(content, at):  # its whole records can still be read
                line += content.count("\n", at, container.end())
                at = container.end()
                continue
            following = _RECORD.search(content, at + 1)
            end = following.start() if following else len(content)
            aside.append(
                SetAside(f"{file.name}:{line}", "cut off or not JSON", content[at : min(end, at + RAW)].encode())
            )
        line += content.count("\n", at, end)
        at = end
    copy = work / f"salvaged-{file.sha256[:12]}.jsonl"
    copy.write_text(
        "".join(f"[{','.join(values[n])}]\n" if n in values else "\n" for n in range(1, max(values, default=0) + 1)),
        encoding="utf-8",
    )
    return file._replace(path=copy, first_line=0, lines=line), tuple(aside)


_ID = re.compile(rb'"(?:eventID|eventid|SequenceNumber|sequencenumber)"\s*:\s*"?([^",}\s]+)')
_SEQUENCE = re.compile(rb'"(?:SequenceNumber|sequencenumber)"\s*:')


def find(path: Path, wanted: set[str]) -> dict[str, tuple[int, str, bytes]]:
    """{id: (line, "#index" or "", raw line)} of the records with these event ids or sequence numbers.

    Looked up only for rows that are shown, since reading keeps no line numbers. `index` counts the
    records of a line that holds several.
    """
    found: dict[str, tuple[int, str, bytes]] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            for match in _ID.finditer(line):
                name = match[1].decode("utf-8", "replace")
                if name in wanted and name not in found:
                    several = len(_SEQUENCE.findall(line)) > 1
                    index = f"#{len(_SEQUENCE.findall(line, 0, match.start())) + 1}" if several else ""
                    found[name] = (number, index, line[:RAW])
            if len(found) == len(wanted):
                break
    return found
