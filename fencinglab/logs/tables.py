"""History rows from a history that fencinglab wrote (Parquet, JSON lines) and from a flat Parquet table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import mutations, values
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.mutations import Read
from fencinglab.logs.unwrap import identifier, paths, text

if TYPE_CHECKING:
    import duckdb

_TEXTS = dict.fromkeys(history.NAMES, "VARCHAR")  # numbers and times in JSON lines, cast as the history says
_SAMPLE = 2_000
_FLOATS = {"float": 1 << 24, "double": 1 << 53}  # from here on not every whole number has its own


def fields(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> list[str]:
    """The names of the columns, those inside a struct dotted."""
    return list(_columns(con, files))


def texts(con: duckdb.DuckDBPyConnection, files: Sequence[File], name: str) -> set[str]:
    """The texts of a column in the first rows."""
    first = f"(select {_columns(con, files)[name]} as t from {_read(files)} limit {_SAMPLE})"
    return {t for (t,) in con.execute(f"select distinct t from {first} where t <> ''").fetchall()}


def read(con: duckdb.DuckDBPyConnection, files: Sequence[File], spec: MappingSpec, key: str) -> Read:
    """The history rows of flat tables in the table `table_rows`; `source` counts the rows of a file from 1."""
    values.define(con)
    columns = _columns(con, files)
    texts = mutations.texts(spec, columns.__getitem__, columns, key)
    listed = ", ".join(f'{sql} as "{column}"' for column, sql in texts.items())
    con.execute("create or replace temp table table_files (name varchar, path varchar)")
    names, places = [file.name for file in files], [str(file.path) for file in files]
    con.execute("insert into table_files select unnest(?), unnest(?)", [names, places])
    place = {"scope": "name", "line": "row_number + 1", "raw": "entry"}
    with _readable(files):
        con.execute(f"""create or replace temp view entries as select {mutations.entries("rows_read", texts, place)}
            from (select "(path)" as path, file_row_number as row_number, to_json("(row)")::varchar as entry, {listed}
                from {_read(files)} as "(row)") as rows_read
            join table_files using (path)""")
        found = mutations.rows(con, "table_rows", spec, columns, several=len(files) > 1)
    con.execute("drop view entries; drop table table_files")
    return found


def read_history(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> Read:
    """Histories as they are, checked, in the table `history_rows`; there is no column that they cannot show."""
    con.execute(f"create or replace temp table history_rows as {mutations.EMPTY}")
    for file in {file.path: file for file in files}.values():  # many small texts share a copy
        lines = file.detected.shape == "lines"
        with _readable([file], "a history in JSON lines" if lines else "Parquet"):
            path = str(file.path)
            given = con.read_json(path, format="newline_delimited", columns=_TEXTS) if lines else con.read_parquet(path)
            checked = history.check(given, file.name)
            source = f"coalesce(source, {text(file.name)} || ':' || row_number() over ())"
            checked.query(
                "checked",
                f"""insert into history_rows by name
                select * replace ({source} as source) from checked""",
            )
    [(records,)] = con.execute("select count(*) from history_rows").fetchall()
    return Read("history_rows", records, [], never=frozenset())


def _read(files: Sequence[File]) -> str:
    """SQL: all rows of the files, with the columns of any."""
    return f"""read_parquet({paths(files)}, union_by_name = true, hive_partitioning = false,
        filename = '(path)', file_row_number = true)"""


def _columns(con: duckdb.DuckDBPyConnection, files: Sequence[File]) -> dict[str, str]:
    """{name of a column: SQL of its text}."""
    with _readable(files):
        found = con.sql(f'select * exclude ("(path)", file_row_number) from {_read(files)}')
        return dict(_scalars(zip(found.columns, found.types, strict=True)))


def _scalars(columns: Iterable[tuple[str, Any]], within: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """(dotted name, SQL of its text) of every column; of a struct those inside."""
    for name, of in columns:
        parts = [*within, name]
        sql = ".".join(map(identifier, parts))
        if of.id == "struct":
            yield from _scalars(of.children, parts)
            continue
        shown = f"{sql}::varchar"
        if of.id in _FLOATS:  # one that is rounded stays recognisable: `9007199254740992.0e0`
            rounded = f"abs({sql}) >= {_FLOATS[of.id]} and not contains({shown}, 'e')"
            shown += f" || case when {rounded} then 'e0' else '' end"
        elif of.id == "decimal":  # exact: `42.00` is 42
            shown = f"regexp_replace({shown}, '[.]0+$', '')"
        yield ".".join(parts), shown


@contextmanager
def _readable(files: Sequence[File], what: str = "Parquet") -> Iterator[None]:
    """What DuckDB cannot read is an InputError."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = re.sub(r"""(["']).*\1""", "…", str(error).splitlines()[0])  # what it quotes is payload, or a path
        raise InputError(f"{files[0].name} cannot be read as {what}: {reason}") from None
