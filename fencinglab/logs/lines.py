"""Application logs as history rows: JSON lines, alone or after other text, and delimited tables.

A line that reports no mutation is a record all the same: it is counted and not audited. What cannot be
read is set aside with its place and its reason. A log's quotes prove nothing about the receiver's types,
and a log has an order only by a mapped field or by the user's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fencinglab.logs import cells, layout, mutations, values
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.mutations import Read
from fencinglab.logs.unwrap import identifier, paths, text

if TYPE_CHECKING:
    import duckdb

_LONGEST = 1 << 25  # bytes of a line; inputs.py lets none in that is half as long
_POINTERS = 1 << layout.DEPTH  # of a field; a name of more dots than objects are opened is read by the first ones
_ONCE = ("resource", "token")  # of two fields of one name parsers take either

# A window without an order keeps the order of the lines, as row ids of a parallel scan do not.
_PLACE = "row_number() over () as place"
_LINE = {"scope": "name", "line": "place - begins + 1", "place": "place"}
_TIME = r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)\s"
_LAMBDA = "^(START|END|REPORT|INIT_START|INIT_REPORT|RESTORE_START|RESTORE_REPORT|XRAY|EXTENSION) "
# A lone half of a surrogate pair, as JSON.stringify writes it, is JSON but no text.
_SURROGATE = r"'\\u[dD][89a-fA-F][0-9a-fA-F]{2}', '\\ufffd', 'g'"
_MACROS = f"""create or replace temp macro sound_json(t) as case when json_valid(t) then t
    when json_valid(regexp_replace(t, {_SURROGATE})) then regexp_replace(t, {_SURROGATE}) end"""
_SCRATCH = ("counted", "lines", "lines_files", "text_files", "records", "record_lines", "record_lines_files")

fields, texts, holds_records = layout.fields, layout.texts, layout.holds_records  # as read.py asks every reader


def read(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> Read:
    """The history rows of the files in the table `log_lines`; `key` keys the value hashes.

    `source` is the line itself, and for a record of a delimited file the line on which it begins.
    """
    values.define(con)
    con.execute(_MACROS)
    con.execute("create or replace temp table counted (lines bigint, blank bigint)")
    by_line, delimited = layout.by_shape(files)
    parts = []
    with TemporaryDirectory() as work:
        if by_line:
            clean = _scan_clean(con, by_line, spec, key)
            parts.append(clean or _scan_lines(con, _one_newline(by_line, Path(work)), spec, key))
        if delimited:
            parts.append(_scan_records(con, _one_newline(delimited, Path(work)), spec, key))
        con.execute(f"create or replace temp view entries as {' union all by name '.join(parts)}")
        again = (lambda: _raw(_one_newline(by_line, Path(work)))) if by_line else None
        made = mutations.rows(con, "log_lines", spec, fields(con, files), again, several=len(files) > 1)
    [(lines, blank)] = con.execute("select sum(lines)::bigint, sum(blank)::bigint from counted").fetchall()
    con.execute("drop view entries")
    con.execute("".join(f"drop table if exists {name};" for name in (*_SCRATCH, *cells.TABLES)))
    return made._replace(blank=blank, beside=lines - blank - made.records - len(made.set_aside))


# --- from lines to texts ------------------------------------------------------------------------------


def _one_newline(files: Sequence[File], work: Path) -> list[File]:
    """The same files; those with carriage returns as copies without, since DuckDB would end a line at each."""
    copies: dict[Path, Path] = {}
    for path in dict.fromkeys(Path(file.path) for file in files):
        copies[path] = path
        with path.open("rb") as given:
            if any(b"\r" in chunk for chunk in iter(partial(given.read, 1 << 20), b"")):
                given.seek(0)
                copies[path] = work / f"{len(copies)}.log"
                with copies[path].open("wb") as copy:
                    while chunk := given.read(1 << 20):
                        while chunk.endswith(b"\r") and (more := given.read(1)):
                            chunk += more
                        copy.write(chunk.replace(b"\r\n", b"\n").replace(b"\r", b" "))
    return [file._replace(path=copies[Path(file.path)]) for file in files]


def _raw(files: Sequence[File]) -> str:
    """SQL: (place, path, text) of every line of the files."""
    return f"""select {_PLACE}, filename as path, line as text from read_csv({paths(files)}, filename = true,
        columns = {{line: 'varchar'}}, delim = '\n', quote = '', escape = '', new_line = '\\n', header = false,
        auto_detect = false, strict_mode = false, max_line_size = {_LONGEST}, buffer_size = {_LONGEST + (1 << 23)})"""


def _begin(con: duckdb.DuckDBPyConnection, files: Sequence[File], table: str) -> None:
    """Fill the table `{table}_files`: number and name of each file, and the place of its first line in `table`."""
    con.execute(f"create or replace temp table {table}_files (number int, name varchar, path varchar, begins bigint)")
    columns = [range(len(files)), (f.name for f in files), (str(f.path) for f in files), (f.first_line for f in files)]
    con.execute(f"insert into {table}_files select unnest(?), unnest(?), unnest(?), unnest(?)", [*map(list, columns)])
    con.execute(f"""update {table}_files as f set begins = begins + starts.start
        from (select path, min(place) as start from {table} group by path) as starts where starts.path = f.path""")


def _scan_clean(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> str | None:
    """SQL: the entries of JSON lines, read at half the cost; None unless each line is an object with a mapped field."""
    import duckdb

    seen = layout.of(files)
    names = mutations.wanted(spec, seen.inner)
    alike = len({name.lower() for name in names}) < len(names)
    if not names or seen.body or alike or any("." in name for name in names) or any(file.blank for file in files):
        return None
    made = mutations.texts(spec, identifier, names, key)
    columns = ", ".join(f"{text(name)}: 'varchar'" for name in names)
    try:
        con.execute(f"""create or replace temp table lines as select {_listed(made)} {_PLACE}, "(path)" as path
            from read_json({paths(files)}, filename = '(path)', columns = {{{columns}}},
                format = 'newline_delimited', records = 'true')""")
    except duckdb.InvalidInputException:  # a broken line, a line that is no object, a field that stands there twice
        return None
    mapped = " or ".join(f'"{column}" is not null' for column in made)
    if con.execute(f"select count(*) from lines where {mapped}").fetchone() != (sum(file.lines for file in files),):
        return None
    con.execute("insert into counted select count(*), 0 from lines")
    _begin(con, files, "lines")
    return f"select {mutations.entries('lines', made, _LINE)} from lines asof join lines_files on place >= begins"


def _scan_lines(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> str:
    """SQL: the entries of files of lines, whatever is in them."""
    seen = layout.of(files)
    columns = seen.columns(spec) if seen.body else []
    source = f"select *, null::varchar[] as cells, null::varchar as fault from ({_raw(files)})"
    if seen.body:
        pointers, found = _pointed(columns, "found")
        source = f"""select place, path, cells, null::varchar as fault,
                case when cells is null then text else {_json_in(_cell(columns, seen.body))} end as text
            from (select *, case when found is not null then [{", ".join(found.values())}] end as cells
            from (select *, json_extract_string(case when starts_with(text, '{{') then sound_json(text) end, {pointers})
                as found from ({_raw(files)})))"""
    scanned, made = _extract(source, "place, path", seen, columns, spec, key)
    con.execute(f"create or replace temp table lines as {scanned}")
    con.execute("insert into counted select count(*), count(*) filter (form = 0) from lines")
    _begin(con, files, "lines")
    con.execute("""create or replace temp table text_files as
        select number from lines asof join lines_files on place >= begins where form > 0
        group by number having max(dated) = 2 or 2 * count(*) filter (dated > 0) >= count(*)""")
    fault = {"fault": "case when form = 1 or text_files.number is null then lines.fault end"}
    return f"""select {mutations.entries("lines", [*made, "stamp"], _LINE | fault)}
        from lines asof join lines_files on place >= begins left join text_files using (number) where form > 0"""


def _scan_records(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> str:
    """SQL: the entries of delimited files."""
    seen = layout.of(files)
    columns = seen.columns(spec)
    con.execute(f"create or replace temp table record_lines as {_raw(files)}")
    con.execute(f"insert into counted select count(*), count(*) filter ({cells.BLANK}) from record_lines")
    _begin(con, files, "record_lines")
    lines = "record_lines asof join record_lines_files on place >= begins"
    cells.records(con, f"select number, place - begins + 1 as line, text from {lines}", columns)
    body = _json_in(_cell(columns, seen.body)) if seen.body else "null::varchar"
    source = f"select number, line, raw, cells, fault, {body} as text from csv_records"
    scanned, made = _extract(source, "number, line, raw", seen, columns, spec, key)
    con.execute(f"create or replace temp table records as {scanned}")
    return f"""select {mutations.entries("records", [*made, "stamp", "fault", "line", "raw"], {"scope": "name"})}
        from records join record_lines_files using (number)"""


def _json_in(body: str) -> str:
    """SQL: the body if it seems to hold JSON."""
    return f"case when regexp_matches({body}, '[{{]\\s*\"') then {body} end"


def _listed(made: Mapping[str, str]) -> str:
    return "".join(f'{sql} as "{column}", ' for column, sql in made.items())


def _cell(columns: Sequence[str], name: str) -> str:
    return f"cells[{columns.index(name) + 1}]"


def _pointers(name: str) -> list[str]:
    """The JSON pointers of a field: each dot in its name may stand for an inner object or for itself."""
    parts = name.replace("~", "~0").replace("/", "~1").split(".")
    between = islice(product("/.", repeat=len(parts) - 1), _POINTERS)
    return ["/" + "".join(map("".join, zip(parts, (*dots, ""), strict=True))) for dots in between]


def _pointed(names: Iterable[str], found: str) -> tuple[str, dict[str, str]]:
    """SQL: the list of JSON pointers of the fields; and by name the text that stands in `found` for it."""
    pointers: list[str] = []
    texts = {}
    for name in names:
        places = [f"{found}[{len(pointers) + n}]" for n, _ in enumerate(_pointers(name), 1)]
        texts[name] = f"coalesce({', '.join(places)})" if len(places) > 1 else places[0]
        pointers += _pointers(name)
    return f"[{', '.join(map(text, pointers))}]::varchar[]", texts


def _extract(
    source: str, keep: str, seen: layout.Layout, columns: Sequence[str], spec: MappingSpec, key: str
) -> tuple[str, dict[str, str]]:
    """SQL: of each row of `source` what `keep` names, form, dated, stamp, fault, and the mapped fields, given too.

    `source` has `text` (a line, or null), `cells` (the texts of the outer `columns`, or null) and `fault`. `form` is 0
    for a blank line, 1 for an entry, 2 for text without JSON; `dated` is 1 after a time and 2 for Lambda's own lines.
    """
    fields = mutations.wanted(spec, seen.names)
    pointers, inner = _pointed([name for name in fields if name in seen.inner or name not in columns], "found")

    def get(name: str) -> str:
        places = ([inner[name]] if name in inner else []) + ([_cell(columns, name)] if name in columns else [])
        return f"coalesce({', '.join(places)})" if len(places) > 1 else places[0]

    made = mutations.texts(spec, get, seen.names, key)
    twice = ""
    for name in (n for column in _ONCE for n in spec.names(column) if n in inner):
        within, _, last = name.rpartition(".")
        parent, two = text(_pointers(within)[0] if within else ""), text(f'%"{last}"%"{last}"%')
        counted = f"len(list_filter(json_keys(sound, {parent}), lambda k: k = {text(last)}))"
        twice += f"when body like {two} and {counted} > 1 then {text(f'two fields are named {name}')} "
    return (
        f"""
        select {keep}, {_listed(made)}
            coalesce({", ".join(["stamp", *(_cell(columns, name) for name in seen.times)])}) as stamp,
            case when by_lambda then 2 when stamp is not null then 1 else 0 end as dated,
            case when body is not null or cells is not null then 1 when {cells.BLANK} then 0 else 2 end as form,
            case
                when fault is not null then fault
                when body is null and cells is not null then null
                when body is null then case when json_valid(text) then 'JSON, but no object' else 'not JSON' end
                when sound is null and ends_with(rtrim(body), '}}') then 'malformed JSON'
                when sound is null then 'JSON that is cut off after ' || length(body) || ' characters'
                {twice}
            end as fault
        from (select *, json_extract_string(sound, {pointers}) as found
        from (select *,
            coalesce(sound_json(body), case when start > 1 then sound_json(regexp_extract(body, '^.*[}}]')) end)
                as sound
        from (select *,
            case when start = 1 or regexp_full_match(left(text, start - 1), '[^{{}}"]*') then substr(text, start) end
                as body,
            case when start = 1 then null else nullif(regexp_extract(text, {text(_TIME)}, 1), '') end as stamp,
            start is distinct from 1 and coalesce(regexp_matches(text, {text(_LAMBDA)}), false) as by_lambda
        from (select *,
            case when regexp_matches(text, '^\\s*[{{]') then 1 else nullif(instr(text, '{{"'), 0) end as start
        from ({source})))))""",
        made,
    )
