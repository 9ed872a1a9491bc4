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

# name -> what was observed; all but `late` are parameters of a simulation
SAYS = {
    "lease": "from a grant to the end of its lease",
    "renewal": "between two renewals of one grant",
    "work": "from a grant to its last accepted write, less its pause, of grants that nobody superseded",
    "pause": "the longest silence of a grant beyond the usual one; long work without a sign is taken for one",
    "message": "from the sender's time of a write to the receiver's",
    "takeover": "from the end of a lease to the grant to somebody else",
    "late": "from a newer grant to the first sign of the holder before",
}


class Observed(NamedTuple):
    """One kind of time, in microseconds, ascending."""

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
    """All that a log shows of times, and counts."""

    times: dict[str, Observed]
    grants: int
    known: int  # grants of which it can be told whether they vanished
    vanished: int  # did not end, and no sign of them after a newer grant: crashed, or told and silent
    workers: int  # the most writers that one lease was granted to


_SIGNS = """
    create or replace temp table signs as
    select coalesce(lease, resource) as lease, coalesce(order_scope, '') as order_scope, kind, decision, writer,
        coalesce(token, case when kind = 'grant' then after_token end) as token,
        decision = 'accepted' and kind = 'grant' as grants,
        decision = 'accepted' and kind not in ('grant', 'renew', 'release') as writes,
        case when decision = 'accepted' and (kind in ('release', 'finish', 'delete') or after_terminal)
            then coalesce(token, before_token) end as ended,
        row_number() over (order by order_scope, order_key, rowid) as place,
        epoch_us("at") as moment, epoch_us(sent_at) as sent, before_holder, epoch_us(before_expires_at) as before_until,
        epoch_us(after_expires_at) as until, coalesce(nullif(after_holder, ''), writer) as holder
    from history where kind <> 'ttl_delete'
"""
_ATTEMPTS = """
    create or replace temp table attempts as
    with own as (
        select *, moment - lag(moment) over sooner as silence
        from signs where token is not null and not (kind = 'grant' and decision = 'rejected')
        window sooner as (partition by lease, order_scope, token order by place)),
    so_far as (
        select *, max(silence) over sooner as longest from own
        window sooner as (partition by lease, order_scope, token order by place)),
    told as (
        select lease, order_scope, token, max(place) as last_place, max(silence) as silence,
            min(place) filter (grants) as granted, min(moment) filter (grants) as granted_at,
            arg_min(until, place) filter (grants) as until, arg_min(holder, place) filter (grants) as holder,
            arg_min(writer, place) filter (grants) as granted_by,
            max(moment) filter (writes) as wrote_at, arg_max(longest, place) filter (writes) as until_written
        from so_far group by all)
    select *, median(silence) over () as usual, lead(granted_at) over following as next_at,
        lead(granted) over following as next_place
    from told where granted is not null
    window following as (partition by lease, order_scope order by granted)
"""
_VALUES = {
    "lease": "select until - granted_at from attempts where until > granted_at",
    "renewal": """
        select moment - lag(moment) over (partition by lease, order_scope, token order by place)
        from signs where (grants or kind = 'renew' and decision = 'accepted') and token is not null
        qualify kind = 'renew'""",
    "work": """
        select (wrote_at - granted_at - greatest(0, until_written - usual))::bigint
        from attempts where next_place is null and wrote_at >= granted_at""",
    "pause": "select greatest(0, silence - usual)::bigint from attempts where silence is not null",
    "message": """
        select moment - sent from signs where sent <= moment and kind not in ('grant', 'renew', 'release')""",
    "takeover": """
        select moment - before_until from signs
        where grants and before_holder <> '' and holder <> before_holder and before_until <= moment""",
    "late": """
        select min(moment) - any_value(next_at) from attempts join signs using (lease, order_scope, token)
        where place > next_place
        group by lease, order_scope, token having min(moment) >= any_value(next_at)""",
}
# Of a grant that ended or was given back before the next one nothing more need be seen. It cannot be told whether one
# vanished where its holder, or somebody unknown, did something after the next one without saying under which token, or
# where no log shows refusals.
_ENDS = """
    with ends as (
        select lease, order_scope, ended as token, min(place) as place from signs where ended is not null group by all),
    untold as (
        select lease, order_scope, writer, max(place) as place from signs
        where token is null and kind <> 'grant' group by all),
    told as (
        select next_place is not null and last_place < next_place
                and coalesce(any_value(ends.place) > next_place, true) as silent,
            coalesce(max(untold.place) > next_place, false) or (select count(outcome) = 0 from history) as unclear
        from attempts left join ends using (lease, order_scope, token)
        left join untold on untold.lease = attempts.lease and untold.order_scope = attempts.order_scope
            and coalesce(writer in (holder, granted_by), true)
        group by attempts.lease, attempts.order_scope, attempts.token, last_place, next_place)
    select count(*), count(*) filter (not silent or not unclear), count(*) filter (silent and not unclear) from told
"""


def fit(con: duckdb.DuckDBPyConnection) -> Fit:
    """The times that the table `history` shows, from its grants and what was done under their tokens."""
    con.execute(_SIGNS)
    con.execute(_ATTEMPTS)
    times = {name: _observed(con, query) for name, query in _VALUES.items()}
    [(grants, known, vanished)] = con.execute(_ENDS).fetchall()
    [(workers,)] = con.execute("""
        select coalesce(max(workers), 0) from (select count(distinct holder) as workers from attempts group by lease)
        """).fetchall()
    con.execute("drop table signs")
    con.execute("drop table attempts")
    return Fit(times, grants, known, vanished, workers)


def _observed(con: duckdb.DuckDBPyConnection, query: str) -> Observed:
    [(count, values)] = con.execute(f"""
        with found(value) as ({query}), counted as (select count(value) as n from found)
        select any_value(n), case when any_value(n) <= {KEPT} then list(value order by value) filter (value is not null)
            else quantile_disc(value, {[place / (KEPT - 1) for place in range(KEPT)]}) end
        from found, counted""").fetchall()
    return Observed(count or 0, tuple(int(value) for value in values or ()))
