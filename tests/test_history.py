"""The one table that everything writes and reads: its columns, its checks, and its three shapes without loss."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencinglab import history
from fencinglab.errors import InputError

LONGEST = 10**history.TOKEN_DIGITS - 1
DEEPEST = 2**64 - 1
TYPES = {column.name: column.type for column in history.COLUMNS}
LEAST = {"resource": "job-1", "kind": "write", "decision": "unknown"}
ROW = LEAST | {"decision": "accepted", "outcome": "ok"}


@pytest.fixture
def con():
    """A fresh database."""
    with duckdb.connect() as connection:
        yield connection


def literal(value: Any) -> str:
    """The value as SQL."""
    if value is None or isinstance(value, bool | int):
        return "null" if value is None else str(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def relation(con: duckdb.DuckDBPyConnection, *rows: dict[str, Any]) -> duckdb.DuckDBPyRelation:
    """The rows as a relation with every column of a history."""
    texts = [history.select({name: literal(value) for name, value in row.items()}, "range(1)") for row in rows]
    return con.sql(" union all ".join(texts))


def values(rows: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """The rows of a relation without what is null, decimals as ints."""
    found = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    return [{n: int(v) if isinstance(v, Decimal) else v for n, v in row.items() if v is not None} for row in found]


# --- select ---


def test_select_gives_every_column_in_order(con):
    """A selection has every column of a history, in order and with its type, null where nothing is said."""
    found = con.sql(history.select({"token": "'42'", "resource": "'a'"}, "range(2)"))

    assert found.columns == list(history.NAMES)
    assert [str(of) for of in found.types] == [column.type for column in history.COLUMNS]
    assert values(found) == [{"resource": "a", "token": 42}] * 2


def test_select_refuses_a_name_that_is_no_column():
    """A slip in a reader is a KeyError with the name, before any SQL runs."""
    with pytest.raises(KeyError, match="not a history column: .'fence'"):
        history.select({"fence": "1", "token": "2"}, "range(1)")


def test_every_column_says_what_it_means():
    """Every column has a meaning in words, and no two have one name."""
    assert all(column.meaning for column in history.COLUMNS)
    assert len(set(history.NAMES)) == len(history.NAMES)


# --- check ---

FAULTS = {
    "a null resource": ({"resource": None}, "resource is null in 1 rows"),
    "no kind": ({"kind": None}, r"kind or decision is null \(.*\) in 1 rows"),
    "no decision": ({"decision": None}, r"kind or decision is null \(.*\) in 1 rows"),
    "an order key without zeros": ({"order_key": "42", "order_scope": "s"}, "order_key is not 40 digits in 1 rows"),
    "an order key that is no number": (
        {"order_key": "x" * 40, "order_scope": "s"}, "order_key is not 40 digits in 1 rows"
    ),
    "an order key alone": ({"order_key": "0" * 40}, "order_key stands without order_scope in 1 rows"),
    "a negative token": ({"token": -1}, "a token is negative in 1 rows"),
    "a negative token before": ({"token": 5, "before_token": -1}, "a token is negative in 1 rows"),
    "a negative token after": ({"after_token": -7}, "a token is negative in 1 rows"),
    "a negative current token": ({"current_token": -1}, "a token is negative in 1 rows"),
    "a kind of another word": ({"kind": "lock"}, "kind is none of delete, ttl_delete, grant, .* in 1 rows"),
    "a decision of another word": ({"decision": "yes"}, "decision is none of accepted, rejected, unknown in 1 rows"),
    "an outcome of another word": ({"outcome": "lost"}, "outcome is none of ok, failed, unknown in 1 rows"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(con, change, message):
    """Each thing that a history may not say is an InputError that names the fault and how many rows have it."""
    with pytest.raises(InputError, match=f"^log.parquet: {message}"):
        history.check(relation(con, ROW, ROW | change), "log.parquet")


def test_what_is_not_known_is_no_fault(con):
    """Null is no fault anywhere but in `resource`, `kind` and `decision`, which have a word for not known."""
    assert values(history.check(relation(con, LEAST))) == [LEAST]


def test_an_unknown_column_is_refused(con):
    """A column with another name is refused with its name and with what to do about it."""
    with pytest.raises(InputError, match=r"^frame: `fence` is not a history column .*token.*--map$"):
        history.read(con, pandas.DataFrame([{"resource": "a", "fence": 1}]))


def test_columns_may_come_in_any_order_and_be_absent(con):
    """A table with some of the columns, in any order and of any type that can be cast, becomes a whole history."""
    given_ = "select 7 as token, '2026-03-02 09:00:00' as \"at\", 'unknown' as decision, 'job-1' as resource, 'write' as kind"
    found = history.check(con.sql(given_))

    assert found.columns == list(history.NAMES)
    assert values(found) == [LEAST | {"token": 7, "at": datetime(2026, 3, 2, 9)}]


# --- the three shapes ---

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
OF_TYPE = {
    "VARCHAR": texts,
    "BOOLEAN": st.booleans(),
    "TIMESTAMP": st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)),
    "BIGINT": st.integers(0, 2**62),
    "INTEGER": st.integers(0, 2**31 - 1),
    "UBIGINT": st.integers(0, DEEPEST),
    f"DECIMAL({history.TOKEN_DIGITS},0)": st.integers(0, LONGEST),
}
EXACT = {
    "resource": texts,
    "order_key": st.integers(0, 10**40 - 1).map(lambda n: f"{n:040}"),
    "order_scope": texts,
    "kind": st.sampled_from(history.KINDS),
    "decision": st.sampled_from(history.DECISIONS),
    "outcome": st.sampled_from(history.OUTCOMES),
}
NEVER_NULL = ("resource", "kind", "decision", "order_scope")
rows_of_a_history = st.lists(
    st.fixed_dictionaries(
        {
            name: EXACT.get(name, OF_TYPE[of]) if name in NEVER_NULL else st.none() | EXACT.get(name, OF_TYPE[of])
            for name, of in TYPES.items()
        }
    ),
    min_size=1,
    max_size=3,
)


def known(row: dict[str, Any]) -> dict[str, Any]:
    """The row without what is null."""
    return {name: value for name, value in row.items() if value is not None}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows_of_a_history)
def test_nothing_is_lost_between_the_shapes(tmp_path_factory, rows):
    """DuckDB relation, Parquet file and pandas frame give the same rows back, whichever way and however often."""
    path = tmp_path_factory.mktemp("history") / "h.parquet"
    with duckdb.connect() as con:
        as_relation = history.check(relation(con, *rows))
        history.write(as_relation, path)
        as_frame = history.frame(history.read(con, path))
        again = history.read(con, as_frame)
        history.write(again, path)

        assert values(as_relation) == [known(row) for row in rows]
        assert values(again) == [known(row) for row in rows]
        assert values(history.read(con, str(path))) == [known(row) for row in rows]


@pytest.mark.parametrize("token", [0, 2**53 + 1, 2**64, LONGEST, LONGEST - 1])
def test_tokens_of_38_digits_survive(con, tmp_path: Path, token):
    """A token keeps all of its digits in a frame, in Parquet and on the way back, beside rows that have none."""
    path = tmp_path / "h.parquet"
    history.write(relation(con, ROW | {"token": token, "after_image": DEEPEST}, ROW), path)
    frame = history.frame(history.read(con, path))

    assert list(frame["token"]) == [token, None]
    assert list(frame["after_image"]) == [DEEPEST, None]
    assert {type(frame["token"][0]), type(frame["after_image"][0])} == {int}
    assert [row.get("token") for row in values(history.read(con, frame))] == [token, None]


def test_a_frame_made_by_hand_is_read(con):
    """A frame with plain ints, floats for missing values and None is a history."""
    frame = pandas.DataFrame([LEAST | {"token": 41}, LEAST | {"token": None}])

    assert values(history.read(con, frame)) == [LEAST | {"token": 41}, LEAST]


def test_a_frame_leaves_the_given_table_as_it_is(con):
    """Reading a frame does not change it."""
    frame = pandas.DataFrame([LEAST | {"token": 41}])
    history.read(con, frame)

    assert frame.to_dict("records") == [LEAST | {"token": 41}]
