"""Several sources as one table: repeated records dropped, log lines joined with the records that they report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def drop_duplicates(con: duckdb.DuckDBPyConnection, table: str, form: str) -> int:
    """Delete all but one of the rows with the same event id; how many were deleted.

    In a stream a repeated record also has the same place in the order. The lines of two files have none in common.
    """
    place = ", order_scope, order_key" if form == "dynamodb-stream" else ""
    return _count(
        con,
        f"""delete from {table} where rowid in (
        select rowid from (
            select rowid, row_number() over (
                partition by resource, event_id{place} order by source, rowid) as nth
            from {table} where event_id is not null and hash(event_id) in (  -- few, or none
                select hash(event_id) from {table} where event_id is not null group by all having count(*) > 1))
        where nth > 1)""",
    )


def name_alike(con: duckdb.DuckDBPyConnection, stream: str, line: str) -> None:
    """Call the resource of log lines as the stream does, `table/key`, where its key is in one table only."""
    con.execute(f"""update {line} as line set resource = record.resource,
            lease = case when line.lease = line.resource then record.resource else line.lease end
        from (select item_key(resource) as key, min(resource) as resource from {stream}
            group by all having min(resource) = max(resource)) as record
        where line.resource = record.key""")


def leave_out_strangers(con: duckdb.DuckDBPyConnection, stream: str, line: str) -> bool:
    """Forget the writers of log lines where none of them is a holder in the stream, such as hosts beside ids of leases.

    Whether it did. Names of two kinds say nothing about who held what.
    """
    [(apart,)] = con.execute(f"""select exists(select 1 from {line} where writer <> '')
        and exists(select 1 from {stream} where after_holder <> '')
        and not exists(select 1 from {line} where writer in (select after_holder from {stream}))""").fetchall()
    if apart:
        con.execute(f"update {line} set writer = null")
    return bool(apart)


def match(con: duckdb.DuckDBPyConnection, stream: str, line: str) -> int:
    """Join log lines to the stream records that they report; how many lines found one.

    By resource and operation first, then by resource, token and kind, each where it leaves one record and one line
    that the receiver did not refuse. A record with a line's operation proves that it was accepted; the item's token
    does not: an unconditional write of another worker leaves it as it was, so there the line must say so itself.
    The record gains the line's writer, operation, sender's time and outcome; where its own token is not known, the
    line's. Lines that found their record leave the table; nothing is ordered by it.
    """
    by_operation = _joined(con, stream, line, "operation", "operation", ("accepted", "unknown"))
    by_token = "coalesce(token, after_token) as token, kind"
    return by_operation + _joined(con, stream, line, by_token, "token, kind", ("accepted",))


def _joined(
    con: duckdb.DuckDBPyConnection, stream: str, line: str, of_record: str, of_line: str, decisions: tuple[str, ...]
) -> int:
    con.execute(f"""create or replace temp table matched as
        select record, line from (
            select min(rowid) as record, resource, {of_record}
            from {stream} where kind not in ('delete', 'ttl_delete') group by all having count(*) = 1) as records
        join (select min(rowid) as line, resource, {of_line}
            from {line} where decision <> 'rejected' group by all
            having count(*) = 1 and list_contains({list(decisions)}, min(decision))) as reported
            using (resource, {of_line})""")
    gained = ", ".join(f"{c} = coalesce(record.{c}, line.{c})" for c in ("writer", "operation", "token", "fenced"))
    con.execute(f"""update {stream} as record set {gained}, sent_at = line.sent_at, outcome = line.outcome
        from matched join {line} as line on line.rowid = matched.line where record.rowid = matched.record""")
    return _count(con, f"delete from {line} where rowid in (select line from matched)")


def union(con: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> None:
    """Make the table `history` of the rows of all these tables; the first of them becomes it."""
    con.execute("drop table if exists history")
    first, *others = parts
    for other in others:
        con.execute(f"insert into {first} by name select * from {other}")
    con.execute(f"alter table {first} rename to history")


def drop(con: duckdb.DuckDBPyConnection, table: str, test: str) -> int:
    """Delete the rows for which the test is true; how many were deleted."""
    return _count(con, f"delete from {table} where {test}") if test else 0


def _count(con: duckdb.DuckDBPyConnection, sql: str) -> int:
    [(count,)] = con.execute(sql).fetchall()
    return int(count)
