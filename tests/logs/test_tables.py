"""Our own history becomes history rows as it is, a flat table in Parquet by the mapping of a log line."""

import json
from datetime import datetime
from decimal import Decimal

import duckdb
import pytest

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import detect, tables
from fencinglab.logs.detect import Detected
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec, resolve

ROW = "'r1' as resource, 'write' as kind, 'w1' as worker, 41 as token, 'ok' as decision"


@pytest.fixture
def con():
    return duckdb.connect()


@pytest.fixture
def parquet(con, tmp_path):
    """Write the rows of each query as a Parquet file (`t`, `t1`, …)."""

    def write(*queries):
        files = []
        for number, query in enumerate(queries):
            path = tmp_path / f"t{number or ''}"
            con.sql(query).write_parquet(str(path))
            files.append(File(path.name, path, 0, "", 0, 0, 0, Detected("table", "parquet")))
        return files

    return write


@pytest.fixture
def read(con, parquet):
    """Read queries, each a flat Parquet file, as one log: (what the reader gives, its rows as dictionaries)."""

    def read(*queries, **spec):
        files = parquet(*queries)
        found = tables.read(con, files, resolve(MappingSpec(**spec), tables.fields(con, files), "line"), "k")
        cursor = con.execute(f"select * from {found.table} order by source")
        names = [column[0] for column in cursor.description]
        return found, [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in cursor.fetchall()]

    return read


def test_columns_are_named_and_inner_ones_dotted(con, parquet):
    """`fields` names the columns of all files, those of structs dotted."""
    files = parquet("select 1 as a, {'token': 2, 'b': {'c': 'x'}} as ctx", "select 3 as d")

    assert tables.fields(con, files) == ["a", "ctx.token", "ctx.b.c", "d"]


def test_a_flat_table_is_read_like_a_log(read):
    """The same words, the same columns; a source is the file and the number of the row."""
    found, rows = read(f"select {ROW} union all by name select 'r2' as resource, 'acquired' as kind, 'w2' as worker")

    assert (found.records, found.filtered, found.set_aside) == (2, 0, [])
    assert [(row["source"], row["kind"], row["decision"], row.get("token")) for row in rows] == [
        ("t:1", "write", "accepted", 41),
        ("t:2", "grant", "accepted", None),
    ]


TOKENS = [
    ("9007199254740993::bigint", 9007199254740993),
    (f"{'9' * 38}::decimal(38,0)", int("9" * 38)),
    ("18446744073709551615::ubigint", 18446744073709551615),
    ("42.00::decimal(10,2)", 42), ("42::double", 42), ("'0042'", 42), ("null::bigint", None),
    ("16777215::float", 16777215),
]  # fmt: skip


@pytest.mark.parametrize(("written", "token"), TOKENS)
def test_tokens_of_any_type_are_exact(read, written, token):
    """Trap 3: whole numbers of every type are read to the last digit."""
    _, rows = read(f"select * replace ({written} as token) from (select {ROW})")

    assert rows[0].get("token") == (None if token is None else Decimal(token))


@pytest.mark.parametrize("written", ["9007199254740993::double", "1e20::double", "16777217::float", "41.5", "-1"])
def test_tokens_that_were_rounded_are_set_aside(read, written):
    """A float beyond its exact whole numbers, a fraction or a negative number is no token."""
    found, rows = read(f"select {ROW} union all by name select * replace ({written} as token) from (select {ROW})")

    assert [lost.source for lost in found.set_aside] in (["t:2"], ["t:1", "t:2"])  # one column has one type
    assert len(rows) + len(found.set_aside) == 2
    assert b'"resource":"r1"' in found.set_aside[0].raw


def test_times_of_any_type_are_read(read):
    """Timestamps with and without zone, dates, and numbers are times."""
    written = {
        "timestamp '2026-11-29 14:00:00.123'": datetime(2026, 11, 29, 14, 0, 0, 123_000),
        "timestamptz '2026-11-29 14:00:00+02'": datetime(2026, 11, 29, 12),
        "timestamp_ns '2026-11-29 14:00:00.123456789'": datetime(2026, 11, 29, 14, 0, 0, 123_456),
        "date '2026-11-29'": datetime(2026, 11, 29),
        "1764424800000": datetime(2025, 11, 29, 14),
        "1764424800.25::double": datetime(2025, 11, 29, 14, 0, 0, 250_000),
    }
    for sql, at in written.items():
        _, rows = read(f"select {ROW}, {sql} as ts")

        assert rows[0]["at"] == at, sql


def test_inner_fields_can_be_mapped(read):
    """A field of a struct is mapped by its dotted name."""
    fields = {"token": "ctx.token", "writer": 'ctx.it\'s "x"'}
    _, rows = read("select 'r1' as resource, {'token': 7, 'it''s \"x\"': 'w'} as ctx", fields=fields)

    assert (rows[0]["token"], rows[0]["writer"]) == (7, "w")


def test_order_by_a_column_or_by_rows(read):
    """A mapped sequence orders all files; `--order lines` the rows of each."""

    def order(**spec):
        _, rows = read(f"select {ROW}, 5 as seq", f"select {ROW}, 10 as seq", **spec)
        return {row["source"]: (int(row["order_key"]), row["order_scope"]) for row in rows}

    assert order() == {"t:1": (5, "order_key"), "t1:1": (10, "order_key")}
    assert order(order="lines") == {"t:1": (1, "t"), "t1:1": (1, "t1")}


def test_rows_without_resource_are_set_aside(read):
    """A row that says nothing of what it changed cannot be judged."""
    found, rows = read(f"select * replace (null::varchar as resource) from (select {ROW}) union all select {ROW}")

    [lost] = found.set_aside
    assert (lost.source, lost.reason) == ("t:1", "no value in resource, the mapped resource")
    assert len(rows) == 1


def test_tables_with_other_columns_are_read_together(read):
    """A column that a file lacks is not known there."""
    _, rows = read(f"select {ROW}", "select 'r2' as resource, 'write' as kind")

    assert [(row["source"], row.get("token")) for row in rows] == [("t1:1", None), ("t:1", 41)]


def test_a_damaged_table_is_an_input_error(con, parquet):
    """A file that cannot be read is named in one sentence."""
    [file] = parquet(f"select {ROW}")
    file.path.write_bytes(file.path.read_bytes()[:100])

    with pytest.raises(InputError, match=r"^t cannot be read as Parquet: "):
        tables.fields(con, [file])


def test_our_own_history_is_read_as_it_is(con, parquet):
    """A history that was written is the same when it is read, its source included; a missing source is its row."""
    known = {"kind": "'write'", "decision": "'accepted'"}
    said = {"resource": "'r1'", "token": "7", "source": "'old:3'", "after_image": "12"}
    first = history.select(known | said, "range(1)")
    second = history.select({**known, "resource": "'r2'"}, "range(2)")
    found = tables.read_history(con, parquet(first, second))

    rows = con.execute(
        "select resource, token, source, after_image, event_id from history_rows order by source"
    ).fetchall()
    assert (found.records, found.set_aside, found.never) == (3, [], frozenset())
    assert rows == [("r1", 7, "old:3", 12, None), ("r2", None, "t1:1", None, None), ("r2", None, "t1:2", None, None)]


def test_a_history_with_a_fault_is_an_input_error(con, parquet):
    """A history that breaks its own rules is refused with the first fault and the file's name."""
    wrong = history.select({"resource": "'r1'", "kind": "'theft'", "decision": "'accepted'"}, "range(1)")

    with pytest.raises(InputError, match=r"^t: kind is none of"):
        tables.read_history(con, parquet(wrong))


def test_a_history_of_other_types_is_an_input_error(con, parquet):
    """A column that does not fit the history's type is refused in one sentence."""
    with pytest.raises(InputError, match=r"^t cannot be read as Parquet: "):
        tables.read_history(
            con,
            parquet(f"select * exclude (worker) replace ('x' as token, 'accepted' as decision) from (select {ROW})"),
        )


def test_a_history_in_json_lines_is_exact(con, tmp_path):
    """JSON lines are read as they are: all digits, nobody apart from not known; a copy that files share is read once."""
    first = {
        "resource": "r",
        "kind": "grant",
        "decision": "accepted",
        "token": 10**38 - 1,
        "before_holder": "",
        "source": "t:1",
    }
    second = {**first, "token": str(10**38 - 2), "before_holder": None, "at": "2026-03-02T09:00:00Z", "source": "t:2"}
    path = tmp_path / "h.jsonl"
    lines = [json.dumps(dict.fromkeys(history.NAMES) | row) for row in (first, second)]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    file = File("h", path, 0, "", 0, 3, 1, detect.detect(path, "h"))
    found = tables.read_history(con, [file, file._replace(name="again")])

    rows = con.execute('select token::varchar, before_holder, "at", source from history_rows').fetchall()
    assert (file.detected, found.records) == (detect.Detected("history", "lines"), 2)
    assert rows == [
        ("9" * 38, "", None, "t:1"),
        ("9" * 37 + "8", None, datetime(2026, 3, 2, 9), "t:2"),
    ]


def test_a_broken_history_in_json_lines_is_an_input_error(con, tmp_path):
    """A line that is no JSON stops the reading with the file's name: a history is whole or it is none."""
    path = tmp_path / "h.jsonl"
    path.write_text(json.dumps(dict.fromkeys(history.NAMES, "1")) + "\n{oops\n", encoding="utf-8")
    file = File("h", path, 0, "", 0, 2, 0, detect.detect(path, "h"))

    with pytest.raises(InputError, match=r"^h cannot be read as a history in JSON lines: "):
        tables.read_history(con, [file])
