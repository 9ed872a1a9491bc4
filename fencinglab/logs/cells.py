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

BLANK = r"not coalesce(regexp_matches(text, '[^ \t\r\n\f\v]'), false)"  # SQL: whether a line is only white space

TABLES = ("csv_joined", "csv_headers", "csv_records")  # what `records` leaves behind
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
        for row in csv.reader(lines[1:], delimiter=delimiter):
            found.append(found[0] | dict(zip(names, row, strict=False)))
    return found


def records(con: duckdb.DuckDBPyConnection, lines: str, wanted: Sequence[str]) -> None:
    """Fill the table `csv_records` from the lines (number of the file, line, text) of the SQL text `lines`.

    A record has `number` and `line`, `raw`, `cells` (of the wanted columns in their order; null where empty or
    absent) and `fault`. Headers and blank lines are no records.
    """
    odd = """select *, (length(text) - length(replace(text, '"', ''))) % 2 = 1 as odd from"""
    joined = f"select number, line, 1 as lines, text from ({lines}) where not {BLANK}"
    if con.execute(f"select bool_or(odd) from ({odd} ({lines}))").fetchone() == (True,):
        con.execute(f"create or replace temp table csv_joined as {_joined(f'{odd} ({lines})')}")
        joined = "from csv_joined"
    con.execute(f"""create or replace temp table csv_headers as
        select number, min(line) as line, arg_min(text, line) as text from ({joined}) group by number""")
    con.execute("""create or replace temp table csv_records
        (number integer, line bigint, raw varchar, cells varchar[], fault varchar)""")
    for (first,) in con.execute("select text from csv_headers group by text order by min(number)").fetchall():
        con.execute(f"insert into csv_records {_split(first, joined, lines, wanted)}")


def _joined(lines: str) -> str:
    """SQL: the lines of one record as one; it begins on a line before which no quote is open."""
    return f"""
        select number, first as line, count(*) as lines, string_agg(coalesce(text, ''), chr(10) order by line) as text
        from (select *, max(case when not inside then line end) over (partition by number order by line) as first
            from (select *, count(case when odd then 1 end) over (partition by number order by line
                    rows between unbounded preceding and 1 preceding) % 2 = 1 as inside from ({lines})))
        where inside or not {BLANK}
        group by number, first"""


def _split(first: str, joined: str, lines: str, wanted: Sequence[str]) -> str:
    """SQL: the rows of `csv_records` from the files with this header."""
    delimiter, names = header(first)
    d, cell = text(delimiter), text(rf"""[{delimiter}]("(?:[^"]|"")*"|[^{delimiter}]*)""")
    found = f"""case when contains(text, '"') then regexp_extract_all({d} || text, {cell}, 1)
        else string_split(text, {d}) end as found"""
    chosen = ", ".join(_value(f"found[{names.index(n) + 1}]") if n in names else "null" for n in wanted)
    return f"""
        with these as (select number, line as above from csv_headers where text = {text(first)}),
        whole as (
            select j.*, {found} from ({joined}) as j semi join these on these.number = j.number and line > above
        ),
        broken as (select number, line as begins, lines from whole where lines > 1 and len(found) <> {len(names)}),
        again as (
            select l.number, line, text, {found} from ({lines}) as l semi join broken
            on broken.number = l.number and line >= begins and line < begins + lines where not {BLANK}
        )
        select number, line, text, [{chosen}], case
            when len(found) <> {len(names)} then len(found) || ' values under a header of {len(names)} columns'
            when contains(text, '"') and list_sum(list_transform(found, lambda v: length(v) + 1)) <> length(text) + 1
                then 'text follows a closing quote' end
        from (select number, line, text, found from whole where lines = 1 or len(found) = {len(names)}
            union all from again)"""


def _value(cell: str) -> str:
    """SQL: what a cell says, without its quotes; null where it is empty."""
    quoted = f"{cell}[1] = '\"' and {cell}[-1] = '\"' and length({cell}) > 1"
    return f"nullif(case when {quoted} then replace({cell}[2:-2], '\"\"', '\"') else {cell} end, '')"
