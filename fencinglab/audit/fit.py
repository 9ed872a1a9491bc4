"""What a log shows of its workers' times: how long holders held, stood still, came back late, how long takeovers took.

A *sign* of a grant is a record under its token: the grant, a renewal, a write, accepted or refused. Times between signs
are those of the receiver's clock; where it is coarse, so are they.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import duckdb

ENOUGH = 20  # observations, below which a time is not taken from the log
KEPT = 2001  # of more values so many quantiles are kept

# name -> what was observed; the first five are parameters of a simulation
SAYS = {
    "lease": "from a grant to the end of its lease",
    "renewal": "between two renewals of one grant",
    "work": "from a grant to its last accepted write, of grants that nobody superseded",
    "pause": "the longest silence of a grant, beyond the usual one",
    "message": "from the sender's time of a write to the receiver's",
    "takeover": "from the end of a lease to the grant to somebody else",
    "late": "from a newer grant to the first sign of the holder before",
}


class Observed(NamedTuple):
    """One kind of time, in microseconds, ascending."""

    name: str
    seen: int
    values: tuple[int, ...]  # all, or KEPT quantiles of them

    @property
    def enough(self) -> bool:
        """Whether there are enough to be used."""
        return self.seen >= ENOUGH

    @property
    def median(self) -> int:
        """The middle one; 0 without any."""
        return self.values[len(self.values) // 2] if self.values else 0


class Fit(NamedTuple):
    """All that a log shows of times, and two counts."""

    times: dict[str, Observed]
    grants: int
    vanished: int  # grants of which nothing was seen after they were superseded: crashed, or told and silent
    workers: int  # the most writers that one lease was granted to


_SIGNS = """
    create or replace temp table signs as
    select coalesce(lease, resource) as lease, order_scope,
        coalesce(token, case when kind = 'grant' then after_token end) as token,
        row_number() over (order by order_scope, order_key, rowid) as place, kind, decision, "at" as moment, sent_at,
        before_holder, after_holder, before_expires_at, after_expires_at,
        coalesce(nullif(after_holder, ''), writer) as holder
    from history where kind not in ('ttl_delete') and "at" is not null
"""
_ATTEMPTS = """
    create or replace temp table attempts as
    with signs_of as (
        select *, moment - lag(moment) over (partition by lease, order_scope, token order by place) as silence
        from signs where token is not null and not (kind = 'grant' and decision = 'rejected')),
    told as (
        select lease, order_scope, token, min(place) filter (kind = 'grant' and decision = 'accepted') as granted,
            min(moment) filter (kind = 'grant' and decision = 'accepted') as granted_at,
            max(moment) filter (decision = 'accepted' and kind not in ('grant', 'renew', 'release')) as wrote_at,
            max(silence) as silence, max(place) as last_place,
            arg_min(after_expires_at, place) filter (kind = 'grant' and decision = 'accepted') as expires_at,
            arg_min(holder, place) filter (kind = 'grant' and decision = 'accepted') as holder
        from signs_of group by all)
    select *, lead(granted_at) over following as next_at, lead(granted) over following as next_place
    from told where granted is not null
    window following as (partition by lease, order_scope order by granted)
"""
_VALUES = {
    "lease": "select epoch_us(expires_at) - epoch_us(granted_at) from attempts where expires_at > granted_at",
    "renewal": """
        select epoch_us(moment) - epoch_us(lag(moment) over (partition by lease, order_scope, token order by place))
        from signs where kind in ('grant', 'renew') and decision = 'accepted' and token is not null
        qualify kind = 'renew'""",
    "work": """select epoch_us(wrote_at) - epoch_us(granted_at) from attempts
        where next_at is null and wrote_at >= granted_at""",
    "pause": """select greatest(0, epoch_us(granted_at + silence) - epoch_us(granted_at)
            - (select median(epoch_us(granted_at + silence) - epoch_us(granted_at)) from attempts))::bigint
        from attempts where silence is not null""",
    "message": """select epoch_us(moment) - epoch_us(sent_at) from signs
        where sent_at <= moment and kind not in ('grant', 'renew', 'release')""",
    "takeover": """select epoch_us(moment) - epoch_us(before_expires_at) from signs
        where kind = 'grant' and decision = 'accepted' and before_holder <> '' and holder <> before_holder
            and before_expires_at <= moment""",
    "late": """select epoch_us(min(signs.moment)) - epoch_us(any_value(next_at)) from attempts join signs
        on signs.lease = attempts.lease and signs.order_scope is not distinct from attempts.order_scope
            and signs.token = attempts.token and signs.place > attempts.next_place
        group by attempts.lease, attempts.order_scope, attempts.token having min(signs.moment) >= any_value(next_at)""",
}


def fit(con: duckdb.DuckDBPyConnection) -> Fit:
    """The times that the table `history` shows, from its grants and what was done under their tokens."""
    con.execute(_SIGNS)
    con.execute(_ATTEMPTS)
    times = {name: _observed(con, name, query) for name, query in _VALUES.items()}
    [(grants, vanished)] = con.execute("""
        select count(*), count(*) filter (next_place is not null and last_place < next_place)
        from attempts""").fetchall()
    [(workers,)] = con.execute("""
        select coalesce(max(workers), 0) from (select count(distinct holder) as workers from attempts group by lease)
        """).fetchall()
    con.execute("drop table signs")
    con.execute("drop table attempts")
    return Fit(times, grants, vanished, workers)


def _observed(con: duckdb.DuckDBPyConnection, name: str, query: str) -> Observed:
    [(count, values)] = con.execute(f"""
        with found(value) as ({query}), counted as (select count(value) as n from found)
        select any_value(n), case when any_value(n) <= {KEPT} then list(value order by value) filter (value is not null)
            else quantile_disc(value, {[place / (KEPT - 1) for place in range(KEPT)]}) end
        from found, counted""").fetchall()
    return Observed(name, count or 0, tuple(int(value) for value in values or ()))
