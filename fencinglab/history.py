"""The history: one table that every source writes and every judge, chart and report reads.

One row is one attempted mutation of one resource, in the order in which the receiver decided.
This module is the only place that defines its columns and words. A history may be a DuckDB
relation, a pandas frame or a Parquet file; `read` makes a checked relation of any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.errors import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas

TOKEN_DIGITS = 38
ORDER_DIGITS = 40

# A label, the first that fits. Rules test columns; the first three and `grant` are exact because
# nothing stands before them.
KINDS = (
    "delete", "ttl_delete", "grant", "finish", "alert", "release",
    "renew", "retry", "schedule", "poll", "effect", "write",
)  # fmt: skip
DECISIONS = ("accepted", "rejected", "unknown")
OUTCOMES = ("ok", "failed", "unknown")
# Why a receiver refused. A source may say more; these are the words that rules understand.
REASONS = ("not_held", "newer_token", "expired", "terminal", "duplicate")
EXPIRY_UNITS = ("s", "ms", "us", "ns", "text")

NOBODY = ""  # before_holder or after_holder: known that nobody holds (null = not known)
ABSENT = 0  # before_image or after_image: known that there is no item (null = not known)


class Column(NamedTuple):
    """Name, DuckDB type and meaning of one column; null always means *not known*."""

    name: str
    type: str
    meaning: str


_TOKEN = f"DECIMAL({TOKEN_DIGITS},0)"
_STATE = (
    Column("token", _TOKEN, "the lease's token that the receiver held"),
    Column("holder", "VARCHAR", "the lease's holder; empty = nobody"),
    Column("expires_at", "TIMESTAMP", "when that holder's lease runs out, UTC"),
    Column("status", "VARCHAR", "the resource's status"),
    Column("terminal", "BOOLEAN", "whether that status is one that nothing leaves"),
    Column("terminal_version", _TOKEN, "a counter that only terminal transitions raise"),
    Column("version", _TOKEN, "a counter that every mutation raises"),
    Column("value", "VARCHAR", "keyed hash of the mapped result attributes"),
    Column("image", "UBIGINT", "hash of everything that the receiver held; 0 = no item"),
)

COLUMNS = (
    Column("resource", "VARCHAR", "what is protected: table and key, job, report; never null"),
    Column("lease", "VARCHAR", "the key whose grants issue this token; tokens compare only within one"),
    Column("order_key", "VARCHAR", f"the source's own order, text padded to {ORDER_DIGITS} digits"),
    Column("order_scope", "VARCHAR", "order keys compare only within one scope: stream label, log, file"),
    Column("at", "TIMESTAMP", "the receiver's time, UTC, microseconds; a label, never the order"),
    Column("sent_at", "TIMESTAMP", "the sender's time, UTC, microseconds"),
    Column("at_precision", "BIGINT", "microseconds by which `at` may lie before the true time"),
    Column("kind", "VARCHAR", "a label: " + ", ".join(KINDS)),
    Column("writer", "VARCHAR", "who mutated"),
    Column("token", _TOKEN, "the fencing token that this mutation presented"),
    Column("fenced", "BOOLEAN", "true = it presented a token, false = known to have presented none"),
    Column("protected", "BOOLEAN", "whether it changed an attribute that only the holder may change"),
    Column("operation", "VARCHAR", "the id of this one operation, where this mutation set it"),
    Column("decision", "VARCHAR", "the receiver's word: " + ", ".join(DECISIONS)),
    Column("reason", "VARCHAR", "why it was refused: " + ", ".join(REASONS) + ", or the source's text"),
    Column("outcome", "VARCHAR", "what the sender learned: " + ", ".join(OUTCOMES)),
    *(Column(f"before_{c.name}", c.type, c.meaning + ", before this mutation") for c in _STATE),
    *(Column(f"after_{c.name}", c.type, c.meaning + ", after this mutation") for c in _STATE),
    Column("alert", "VARCHAR", "the id of the alert that this mutation raised"),
    Column("fell", "VARCHAR", "the declared rising field that fell in this mutation; empty = none did"),
    Column("token_width", "INTEGER", "characters of the stored token where it is text, 0 where a number"),
    Column("expiry_unit", "VARCHAR", "how the expiry was written: " + ", ".join(EXPIRY_UNITS)),
    Column("current_token", _TOKEN, "the newest token of this lease granted at that moment"),
    Column("source", "VARCHAR", "file:line[#index], or the step that made it"),
)
NAMES = tuple(column.name for column in COLUMNS)
_CHOICES = {"kind": KINDS, "decision": DECISIONS, "outcome": OUTCOMES}


def select(expressions: Mapping[str, str], source: str) -> str:
    """The SQL text of a history: every column in order, cast, null where no expression is given.

    `source` is what follows FROM. A name that is no column raises KeyError: it is a slip in a reader.
    """
    unknown = set(expressions) - set(NAMES)
    if unknown:
        raise KeyError(f"not a history column: {sorted(unknown)}")
    listed = ", ".join(f'cast({expressions.get(c.name, "null")} as {c.type}) as "{c.name}"' for c in COLUMNS)
    return f"select {listed} from {source}"


def table(name: str, made: Mapping[str, str], *more: str) -> str:
    """The SQL that makes an empty history table; columns in `made` take no room, their expression gives them.

    `more` are definitions of columns beside the history's.
    """
    listed = (
        f'"{c.name}" {c.type}'
        + (f" generated always as (cast({made[c.name]} as {c.type})) virtual" if c.name in made else "")
        for c in COLUMNS
    )
    return f"create or replace table {name} ({', '.join((*listed, *more))})"


def store(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Give every column of a history table room of its own, so that each can be updated."""
    con.execute(f"create or replace table stored as select * from {name}")
    con.execute(f"drop table {name}")
    con.execute(f"alter table stored rename to {name}")


def check(relation: duckdb.DuckDBPyRelation, name: str = "history") -> duckdb.DuckDBPyRelation:
    """The same relation with the history's columns in order, or an InputError that names the first fault.

    Columns may come in any order and absent ones are taken as null; a column with another name, a
    null resource, an order key that is not padded, a negative token or a word outside its list is an error.
    """
    unknown = [c for c in relation.columns if c not in NAMES]
    if unknown:
        raise InputError(
            f"{name}: `{unknown[0]}` is not a history column (it has {', '.join(NAMES)}); "
            "a table of another shape is read as a flat table with --map"
        )
    given = {c: f'"{c}"' for c in relation.columns}
    checked = _query(relation, select(given, "given"))
    faults = {
        "resource is null": "resource is null",
        "kind or decision is null (say write, or unknown)": "kind is null or decision is null",
        f"order_key is not {ORDER_DIGITS} digits": f"not regexp_full_match(order_key, '[0-9]{{{ORDER_DIGITS}}}')",
        "order_key stands without order_scope": "order_key is not null and order_scope is null",
        "a token is negative": "least(token, before_token, after_token, current_token) < 0",
    }
    for column, words in _CHOICES.items():
        listed = ", ".join(f"'{word}'" for word in words)
        faults[f"{column} is none of {', '.join(words)}"] = f"{column} not in ({listed})"
    counts = checked.aggregate(", ".join(f"count(*) filter (where {test})" for test in faults.values()))
    for fault, count in zip(faults, counts.fetchall()[0], strict=True):
        if count:
            raise InputError(f"{name}: {fault} in {count:,} rows; see fencinglab/history.py for every column")
    return checked


def read(con: duckdb.DuckDBPyConnection, given: Any) -> duckdb.DuckDBPyRelation:
    """A checked history relation on `con` from a Parquet path, a pandas frame or a DuckDB relation."""
    if isinstance(given, (str, Path)):
        return check(con.read_parquet(str(given)), str(given))
    if hasattr(given, "dtypes") and hasattr(given, "to_parquet"):
        return check(con.from_df(_exact(given)), "frame")
    return check(given)


def write(relation: duckdb.DuckDBPyRelation, path: str | Path) -> None:
    """Write a history as Parquet; tokens keep all 38 digits."""
    relation.write_parquet(str(path))


def frame(relation: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The history as a pandas frame: tokens, versions and images are Python ints, never floats."""
    exact = [c.name for c in COLUMNS if c.type in (_TOKEN, "UBIGINT") and c.name in relation.columns]
    texts = ", ".join(f'"{c}"::varchar as "{c}"' if c in exact else f'"{c}"' for c in relation.columns)
    import pandas

    table = _query(relation, f"select {texts} from given").df()
    integers = {c: [None if _missing(v) else int(v) for v in table[c].astype(object)] for c in exact}
    return table.assign(**{c: pandas.Series(v, dtype=object, index=table.index) for c, v in integers.items()})


def _query(relation: duckdb.DuckDBPyRelation, sql: str) -> duckdb.DuckDBPyRelation:
    """The relation that a select over `given` makes."""
    made = relation.query("given", sql)
    assert made is not None  # only a statement without a result gives None
    return made


def _exact(table: pandas.DataFrame) -> pandas.DataFrame:
    """The frame with big integers as text, which the cast in `select` reads back without loss."""
    exact = [c.name for c in COLUMNS if c.type in (_TOKEN, "UBIGINT") and c.name in table.columns]
    return table.assign(**{c: [None if _missing(v) else str(int(v)) for v in table[c].astype(object)] for c in exact})


def _missing(value: Any) -> bool:
    return value is None or value != value
