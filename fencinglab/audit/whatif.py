"""What every guard would have done on a recorded log: run over the log's own order, with the rows.

It says what a receiver with that guard would have decided on these very mutations. It does not say what would have
happened next: a writer that is refused may do something else, and the log knows only what it did.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.audit import evidence

if TYPE_CHECKING:
    import duckdb

WHATIF_SQL = files("fencinglab.audit").joinpath("whatif.sql").read_text(encoding="utf-8")
_STALE = f"coalesce({' or '.join(f'{name} = 1' for name in evidence.STALE)}, false)"


class WhatIf(NamedTuple):
    """One guard over the whole log, in numbers of mutations."""

    guard: str
    decided: int  # mutations of which it can be told
    refuses_stale: int  # accepted stale writes that it would have refused
    stale: int  # accepted stale writes in all
    refuses_late: int  # accepted late writes, which are not stale, that it would have refused
    late: int  # accepted late writes in all
    refuses_good: int  # other accepted writes that it would have refused
    admits_refused: int  # refused ones that it would have accepted
    open: int  # mutations of which it cannot be told: the token, the order or the holder is not known
    without_token: int  # mutations that carry no condition: no guard stops them


def judge_guards(con: duckdb.DuckDBPyConnection) -> None:
    """Make the table `whatif` of the tables `history`, `verdicts` and `settings`; `whatif.sql` says its columns.

    A guard's column is 1 where it admits the mutation, 0 where it refuses it, -1 where it cannot be told.
    """
    con.execute(f"create or replace temp table whatif as {WHATIF_SQL}")


def guards(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """The guards of the table `whatif`, in its order."""
    return tuple(name for name in con.table("whatif").columns if name != "row_id" and not name.startswith("held_"))


def counted(con: duckdb.DuckDBPyConnection) -> tuple[WhatIf, ...]:
    """What each guard would have done, from the tables that `judge_guards` reads and makes."""
    return tuple(_counted(con, name) for name in guards(con))


def _counted(con: duckdb.DuckDBPyConnection, guard: str) -> WhatIf:
    [found] = con.execute(f"""
        select
            count(*) filter (admits >= 0),
            count(*) filter (decision = 'accepted' and stale and admits = 0),
            count(*) filter (decision = 'accepted' and stale),
            count(*) filter (decision = 'accepted' and late and admits = 0),
            count(*) filter (decision = 'accepted' and late),
            count(*) filter (decision = 'accepted' and not stale and not late and admits = 0),
            count(*) filter (decision = 'rejected' and admits = 1),
            count(*) filter (admits < 0),
            count(*) filter (fenced = false)
        from ({_joined(guard)})""").fetchall()
    return WhatIf(guard, *found)


def rows(con: duckdb.DuckDBPyConnection, guard: str, limit: int) -> list[dict[str, Any]]:
    """The mutations that the guard would have decided otherwise, in order, at most `limit`.

    Columns: row_id, resource, source, at, kind, writer, token, newest (the newest token, where the row says it),
    decision (the log's), would (accept or refuse), stale and late (whether it was such a write, accepted).
    """
    relation = con.sql(f"""
        select row_id, resource, source, "at", kind, writer, token, newest, decision,
            case when admits = 1 then 'accept' else 'refuse' end as would, stale, late
        from ({_joined(guard)})
        where (decision = 'accepted' and admits = 0) or (decision = 'rejected' and admits = 1)
        order by stale desc, late desc, order_scope, order_key, row_id limit {limit}""")
    return [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]


def _joined(guard: str) -> str:
    return f"""
        select history.*, whatif.row_id, whatif."{guard}" as admits, {_STALE} as stale,
            coalesce(late_write_accepted = 1, false) and not {_STALE} as late,
            coalesce(before_token, current_token) as newest
        from whatif join history on history.rowid = whatif.row_id join verdicts on verdicts.row_id = whatif.row_id"""
