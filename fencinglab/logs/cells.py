"""Records of delimited files (`,` `;` tab `|`), each with the line on which it begins.

A quoted value may hold delimiters, doubled quotes and line breaks. Which lines belong together is told by
the quotes that are open; a record of several lines that comes out with the wrong number of values is read
line by line instead, so that one stray quote costs one line.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from fencinglab.logs.unwrap import text

if TYPE_CHECKING:
    import duckdb

_DELIMITERS = ",;\t|"


def header(line: str) -> tuple[str, list[str]]:
    """The delimiter and the column names of a header."""
    unquoted = "".join(line.split('"')[::2])
    delimiter = max(_DELIMITERS, key=unquoted.count)
    return delimiter, [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]


def sample(lines: Sequence[str]) -> list[dict[str, str]]:
    """The first records of a delimited file by its first lines, the header among them with empty values."""
    delimiter, names = header(lines[0].strip("\r\n"))
    found = [dict.fromkeys(names, "")]
    with suppress(csv.Error):  # a value beyond csv's limit ends the sample
        found += ({**found[0], **dict(zip(names, row, strict=False))} for row in csv.reader(lines[1:], delimiter=delimiter))
    return found


def records(con: duckdb.DuckDBPyConnection, lines: str, wanted: Sequence[str]) -> None:
    """Fill the table `csv_records` from the lines (number of the file, line, text) of the SQL text `lines`.

    A record has `number`, `line`, `raw`, `cells` (of the wanted columns in their order; null where empty or
    absent) and `fault`. Headers and blank lines are no records.
    """
    con.execute(f"""create or replace temp table csv_lines as
        select *, (length(text) - length(replace(text, '"', ''))) % 2 = 1 as odd from ({lines})""")
    several = con.execute("select bool_or(odd) from csv_lines").fetchone() == (True,)
    con.execute(f"create or replace temp table csv_joined as {_JOINED if several else _SINGLE}")
    con.execute("""create or replace temp table csv_headers as
        select number, min(line) as line, arg_min(text, line) as text from csv_joined group by number""")
    con.execute("""create or replace temp table csv_records
        (number integer, line bigint, raw varchar, cells varchar[], fault varchar)""")
    for (first,) in con.execute("select text from csv_headers group by text order by min(number)").fetchall():
        con.execute(f"insert into csv_records {_split(first, wanted)}")


_BLANK = "trim(coalesce(text, ''), chr(32) || chr(9) || chr(13)) = ''"
_SINGLE = f"select number, line, 1 as lines, text from csv_lines where not {_BLANK}"
# A record begins on a line before which no quote is open.
_JOINED = f"""
    select number, first as line, count(*) as lines, string_agg(coalesce(text, ''), chr(10) order by line) as text
    from (select *, max(case when not inside then line end) over (partition by number order by line) as first
        from (select *, count(case when odd then 1 end) over (partition by number order by line
                rows between unbounded preceding and 1 preceding) % 2 = 1 as inside from csv_lines))
    where inside or not {_BLANK}
    group by number, first"""


def _split(first: str, wanted: Sequence[str]) -> str:
    """SQL: the rows of `csv_records` from the files with this header."""
    delimiter, names = header(first)
    d, quoted = text(delimiter), text(rf"""[{delimiter}]("(?:[^"]|"")*"|[^{delimiter}]*)""")

    def found(line: str) -> str:
        return f"""case when contains({line}, '"') then regexp_extract_all({d} || {line}, {quoted}, 1)
            else string_split({line}, {d}) end as found"""

    chosen = ", ".join(_value(f"found[{names.index(n) + 1}]") if n in names else "null" for n in wanted)
    return f"""
        with whole as (
            select j.*, {found("j.text")} from csv_joined j join csv_headers h using (number)
            where h.text = {text(first)} and j.line > h.line
        ),
        broken as (select number, line, lines from whole where lines > 1 and len(found) <> {len(names)}),
        again as (
            select l.number, l.line, l.text, {found("l.text")} from csv_lines l join broken b
            on b.number = l.number and l.line between b.line and b.line + b.lines - 1 where not {_BLANK.replace("text", "l.text")}
        )
        select number, line, text, [{chosen}], case
            when len(found) <> {len(names)} then len(found) || ' values under a header of {len(names)} columns'
            when contains(text, '"') and list_sum(list_transform(found, lambda v: length(v) + 1)) <> length(text) + 1
                then 'text follows a closing quote' end
        from (select number, line, text, found from whole anti join broken using (number, line) union all from again)"""


def _value(cell: str) -> str:
    """SQL: what a cell says, without its quotes; null where it is empty."""
    bare = f"replace({cell}[2:-2], '\"\"', '\"')"
    return f"nullif(case when {cell}[1] = '\"' and {cell}[-1] = '\"' and length({cell}) > 1 then {bare} else {cell} end, '')"
