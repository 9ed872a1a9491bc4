"""What leaves order rules open although the columns that they need have values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fencinglab.audit.audit import Audit
from fencinglab.audit.evidence import STALE

if TYPE_CHECKING:
    import duckdb


class Gaps(NamedTuple):
    """What may leave order rules open though every column has values."""

    counting_renewals: int  # resources, see renewal_counters
    granted_elsewhere: int  # resources, see granted_elsewhere
    unanswered: int  # writes with an older token whose decision is not known
    doubted: int  # grants of a newer token whose decision is not known
    decided: int  # mutations whose decision is known
    unjudged: int  # changes of other than protected attributes, see unjudged
    unplaced: int  # rows that are in no order, refusals apart
    apart: int  # resources that stand in two orders


def find_gaps(con: duckdb.DuckDBPyConnection, audit: Audit) -> Gaps:
    """The gaps of the tables `history` and `verdicts`."""
    return Gaps(
        renewal_counters(con, audit),
        granted_elsewhere(con, audit),
        *unanswered(con),
        unjudged(con),
        *unordered(con, audit),
    )


def renewal_counters(con: duckdb.DuckDBPyConnection, audit: Audit) -> int:
    """How many resources have a token that order rules left open although it is known, in order and was accepted.

    It rose under one holder before its lease ran out, as a version does (see `rises on renewals` in rules.py).
    """
    if not audit.of("token_went_back").undecided:
        return 0
    [(count,)] = con.execute("""select count(distinct history.resource)
        from history join verdicts on verdicts.row_id = history.rowid
        where token_went_back = -1 and decision = 'accepted' and fenced and token is not null
            and order_key is not null""").fetchall()
    return int(count)


def unanswered(con: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    """How many writes with an older token, and grants of a newer one than was accepted, have no known decision.

    And how many mutations have one.
    """
    older = " or ".join(f"{name} = -1" for name in STALE)
    [(writes, grants, known)] = con.execute(f"""
        with left_open as (
            select resource, min(token) as token from history join verdicts on verdicts.row_id = history.rowid
            where decision = 'accepted' and stale_write_accepted = -1 group by resource)
        select
            count(*) filter (decision = 'unknown' and history.token is not null and ({older})),
            count(*) filter (decision = 'unknown' and kind = 'grant'
                and coalesce(after_token, history.token) > left_open.token),
            count(*) filter (decision <> 'unknown')
        from history join verdicts on verdicts.row_id = history.rowid
        left join left_open on left_open.resource = history.resource""").fetchall()
    return int(writes), int(grants), int(known)


def unjudged(con: duckdb.DuckDBPyConnection) -> int:
    """How many accepted changes of an item that had been granted presented no token and changed nothing mapped."""
    [(count,)] = con.execute("""select count(*) from history
        where decision = 'accepted' and not protected and fenced is distinct from true
            and kind not in ('grant', 'delete', 'ttl_delete', 'poll', 'effect')
            and after_token is not distinct from before_token  -- the grant of another item raises it here too
            and (before_token > 0 or before_holder <> '')""").fetchall()
    return int(count)


def unordered(con: duckdb.DuckDBPyConnection, audit: Audit) -> tuple[int, int]:
    """How many rows have no place in an order, refusals apart, and how many resources have rows in two of them."""
    if not audit.of("order_unknown").broken:
        return 0, 0
    [(unplaced, apart)] = con.execute("""
        select count(*) filter (order_key is null),
            count(distinct history.resource) filter (order_key is not null)
        from history join verdicts on verdicts.row_id = history.rowid where order_unknown = 1""").fetchall()
    return int(unplaced), int(apart)


def granted_elsewhere(con: duckdb.DuckDBPyConnection, audit: Audit) -> int:
    """How many resources show no grant of the tokens that they were written with, where that leaves the audit open.

    Their lease is another item: the two have no common order, so that no takeover can be seen from the resource. It
    was taken over where two tokens were presented; one alone leaves open only whether anything was put to the test.
    """
    [(count, grants)] = con.execute(f"""select
            count(*) filter (not shown and least > 0 and (least < greatest or {audit.exercised} = 0)), sum(grants)
        from (select count(*) filter (kind = 'grant') as grants,
            bool_or(kind = 'grant' or coalesce(before_holder <> '', false) or current_token is not null) as shown,
            min(token) filter (kind <> 'grant' and token > 0) as least,
            max(token) filter (kind <> 'grant' and token > 0) as greatest
        from history where decision = 'accepted' group by resource)""").fetchall()
    return int(count) if grants else 0
