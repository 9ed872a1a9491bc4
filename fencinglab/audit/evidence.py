"""What stands behind a verdict: the rows in sentences, the suspects, who and what was affected, what is missing.

Everything is returned as plain data; report.py renders it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fencinglab.audit.advice import PROCESSES
from fencinglab.audit.audit import Audit, Result, filled
from fencinglab.audit.rules import RULES, Rule

if TYPE_CHECKING:
    import duckdb

UNSAFE = tuple(rule.name for rule in RULES if rule.group == "unsafe")
CORE = tuple(rule.name for rule in RULES if rule.core)
STALE = ("token_went_back", "stale_write_accepted")


# What an auditor wants to see, and the columns that show it.
QUESTIONS = (
    ("accepted writes", ("decision",)),
    ("refused writes and why", ("outcome",)),
    ("who wrote", ("writer",)),
    ("which token a write presented", ("fenced",)),
    ("which token the receiver held", ("before_token|after_token",)),
    ("who held the lease", ("after_holder|before_holder",)),
    ("when a lease ran out", ("before_expires_at|after_expires_at",)),
    ("the receiver's order", ("order_key",)),
    ("whether records are missing", ("before_image", "after_image")),
    ("the final status", ("after_terminal",)),
    ("repeated operations", ("operation",)),
    ("alerts", ("alert",)),
)

# The request-status article's decision rule, and the rules that decide each line.
DECISION_RULE = (
    ("one token owns the resource at a time", ("token_shared", "holder_without_token", "leases_overlap")),
    (
        "every write with a stale token fails",
        ("token_went_back", "stale_write_accepted", "unfenced_write", "unfenced_delete"),
    ),
    ("the terminal state is reached once", ("terminal_twice", "terminal_left")),
    ("polling stops", ("work_after_terminal",)),
    ("retries and alerts cannot double", ("operation_twice", "alert_twice")),
)  # fmt: skip
_GRANT = "kind = 'grant' and decision = 'accepted'"
_TAKEOVER = "before_holder <> after_holder and before_holder <> ''"  # of a grant; null where it is not known
_WORST = ("violated", "unknown", "not_visible", "not_applicable", "holds", "idle")


def sees(con: duckdb.DuckDBPyConnection, never: frozenset[str], remedy: Callable[[str], str]) -> list[dict[str, str]]:
    """[{question, answer: yes / no / not in this log, remedy}] for the table `history`; `remedy` is a column's.

    A column of `never` shows nothing even where some rows fill it: the first image of an item has none before it.
    """
    columns = sorted({c for _, needs in QUESTIONS for need in needs for c in need.split("|")})
    present = filled(con, columns) - never
    table = []
    for question, needs in QUESTIONS:
        lacking = [need.split("|") for need in needs if not present & set(need.split("|"))]
        answer = "yes" if not lacking else "no" if any(set(n) <= never for n in lacking) else "not in this log"
        table.append({"question": question, "answer": answer, "remedy": remedy(lacking[0][0]) if lacking else ""})
    return table


def decision_rule(audit: Audit) -> list[dict[str, Any]]:
    """[{line, status, rules, broken}]: the five lines, each with the worst status of the rules behind it."""
    lines = []
    for line, names in DECISION_RULE:
        results = [audit.of(name) for name in names]
        worst = min((r.status for r in results), key=_WORST.index)
        lines.append({
            "line": line, "status": worst, "rules": list(names),
            "broken": [r.rule.name for r in results if r.status == "violated"],
        })  # fmt: skip
    return lines


def findings(con: duckdb.DuckDBPyConnection, audit: Audit, limit: int) -> dict[str, list[dict[str, Any]]]:
    """{rule: rows} of every violated rule, first in order first, at most `limit` rows a rule.

    A row has row_id, resource, at, kind, writer, token, before and after of token, holder and status,
    `newer_token`, `newer_holder`, `newer_at` of the first newer grant or write before it, and `says`.
    """
    violated = [result.rule for result in audit.results if result.status == "violated"]
    return {rule.name: list(_rows(con, f"{rule.name} = 1", rule, limit)) for rule in violated}


def every_finding(con: duckdb.DuckDBPyConnection, audit: Audit) -> Iterator[tuple[Result, dict[str, Any]]]:
    """(result, row) of every row that broke a rule, as in `findings`, however many there are."""
    for result in audit.results:
        if result.status == "violated":
            for row in _rows(con, f"{result.rule.name} = 1", result.rule, None):
                yield result, row


def broken_rows(con: duckdb.DuckDBPyConnection, audit: Audit) -> list[int]:
    """The row ids of `every_finding`, each once."""
    tests = " or ".join(f"{r.rule.name} = 1" for r in audit.results if r.status == "violated") or "false"
    return [row_id for (row_id,) in con.execute(f"select row_id from verdicts where {tests}").fetchall()]


def undecided(con: duckdb.DuckDBPyConnection, rule: str, limit: int) -> list[dict[str, Any]]:
    """Rows that the rule could not decide, as in `findings` but without a sentence."""
    return list(_rows(con, f"{rule} = -1", None, limit))


_SHOWN = (
    "resource", "lease", "order_scope", "order_key", "at", "kind", "writer", "token", "operation", "alert", "decision",
    "reason", "before_token", "after_token", "before_holder", "after_holder", "before_status", "after_status",
    "before_expires_at", "current_token", "fell", "token_width", "expiry_unit", "source",
)  # fmt: skip


def _rows(con: duckdb.DuckDBPyConnection, test: str, rule: Rule | None, limit: int | None) -> Iterator[dict[str, Any]]:
    shown = ", ".join(f'history."{name}"' for name in _SHOWN)
    answer = con.execute(f"""
        with shown as (
            select verdicts.row_id, verdicts.incarnation,
                coalesce(history.lease, history.resource) as lease_key, {shown}
            from verdicts join history on history.rowid = verdicts.row_id
            where verdicts.{test}
            order by history.order_scope, history.order_key, verdicts.row_id
            {f"limit {limit}" if limit is not None else ""}),
        newer as (
            select shown.row_id, min(struct_pack(
                order_key := grants.order_key, token := grants.newer, holder := case
                    when grants.kind = 'grant' then coalesce(nullif(grants.after_holder, ''), grants.writer)
                    when grants.newer = grants.token then grants.writer
                    else nullif(grants.after_holder, '')
                end, "at" := grants."at")) as first
            from shown join (
                select rowid, *, case  -- a grant gave what is held then; a write presented its own, whatever is held
                    when kind = 'grant' or token is null then coalesce(after_token, token) else token end as newer
                from history where decision = 'accepted'
            ) as grants
                on coalesce(grants.lease, grants.resource) = shown.lease_key and grants.order_scope = shown.order_scope
                and grants.order_key < shown.order_key and grants.newer > shown.token
            join verdicts as lives on lives.row_id = grants.rowid
                and (lives.incarnation = shown.incarnation or grants.resource <> shown.resource)
            group by shown.row_id)
        select shown.* exclude (lease_key, incarnation),
            newer.first.token as newer_token, newer.first.holder as newer_holder, newer.first."at" as newer_at
        from shown left join newer on newer.row_id = shown.row_id
        order by shown.order_scope, shown.order_key, shown.row_id""")
    names = [d[0] for d in answer.description or ()]
    while batch := answer.fetchmany(10_000):
        for values in batch:
            row = dict(zip(names, values, strict=True))
            yield row | {"says": sentence(rule, row)} if rule else row


def sentence(rule: Rule, row: dict[str, Any]) -> str:
    """What the row says about the rule, with every name that is not known replaced by a word."""
    newer = row.get("newer_token") or row.get("current_token") or row.get("before_token")
    words = {
        "who": row["writer"] or "somebody",
        "newer": f"{newer}" + (f" ({row['newer_holder']})" if row.get("newer_holder") else "")
        if newer
        else "a newer one",
        "held": row["before_token"] if row["before_token"] is not None else "a newer one",
        "token": row["token"] if row["token"] is not None else row["after_token"],
    }
    known = {name: _word(value) for name, value in (row | words).items() if value not in (None, "")}
    return rule.says.format_map(_Words(known))


def _word(value: Any) -> Any:
    return time_text(value) if isinstance(value, datetime) else value


def time_text(moment: datetime) -> str:
    """The time in UTC as ISO text, with milliseconds where it has a fraction."""
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds") + "Z"


class _Words(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return {"before_holder": "nobody", "after_holder": "nobody", "token": "no token"}.get(key, "not known")


def resources(con: duckdb.DuckDBPyConnection, audit: Audit) -> list[dict[str, Any]]:
    """One row a resource that broke an unsafe or window rule or that a core rule could not decide, worst first.

    Columns: resource; core, unsafe and window (broken rows), undecided (rows that a core rule left open),
    holders (how many), writes, stale, unfenced, late, rules (names broken), first_seen, last_seen (UTC).
    """
    flagged = [r.rule.name for r in audit.results if r.rule.group in ("unsafe", "window") and r.broken]
    tests = [f"{name} = 1" for name in flagged]
    tests += [f"{r.rule.name} = -1" for r in audit.results if r.rule.core and r.undecided]
    if not tests:
        return []
    broken = " + ".join(f"coalesce(({name} = 1)::int, 0)" for name in UNSAFE)
    core = " + ".join(f"coalesce(({name} = 1)::int, 0)" for name in CORE)
    window = " + ".join(f"coalesce(({r.name} = 1)::int, 0)" for r in RULES if r.group == "window")
    left_open = " or ".join(f"{name} = -1" for name in CORE)
    names = ", ".join(f"case when bool_or({name} = 1) then '{name}' end" for name in flagged) or "null"
    relation = con.sql(f"""
        with affected as (
            select distinct history.resource from verdicts join history on history.rowid = verdicts.row_id
            where {" or ".join(tests)})
        select history.resource,
            sum({core})::bigint as core, sum({broken})::bigint as unsafe, sum({window})::bigint as "window",
            count(*) filter ({left_open}) as undecided,
            len(list_distinct(list_filter(flatten([list(before_holder), list(after_holder),
                list(writer) filter (kind = 'grant' and decision = 'accepted')]), lambda x: x <> ''))) as holders,
            count(*) filter (kind not in ('grant', 'poll') and decision = 'accepted') as writes,
            count(*) filter ({" or ".join(f"{name} = 1" for name in STALE)}) as stale,
            count(*) filter (unfenced_write = 1) as unfenced, count(*) filter (late_write_accepted = 1) as late,
            array_to_string(list_filter([{names}], lambda x: x is not null), ' ') as rules,
            min(history."at") as first_seen, max(history."at") as last_seen
        from verdicts join history on history.rowid = verdicts.row_id
        where history.resource in (select resource from affected)
        group by history.resource
        order by core desc, unsafe desc, undecided desc, holders desc, "window" desc, history.resource""")
    return [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]


def busiest(con: duckdb.DuckDBPyConnection, limit: int) -> list[str]:
    """The resources with the most takeovers, then the most grants: what to show where nothing is wrong."""
    found = con.execute(f"""select resource from history where {_GRANT}
        group by resource order by count(*) filter ({_TAKEOVER}) desc, count(*) desc, resource
        limit {limit}""").fetchall()
    return [resource for (resource,) in found]


# Random ids of one fleet: what differs between its members.
_RANDOM = r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{8,}|[0-9]{2,}"


def writers(con: duckdb.DuckDBPyConnection, audit: Audit, limit: int) -> list[dict[str, Any]]:
    """One row a writer, or a pattern where more than five names differ only in random ids; worst first.

    Columns: writer, names (how many), accepted, unfenced, stale, late, first_seen, last_seen (UTC).
    """

    def counted(*rules: str) -> str:
        tests = [f"{name} = 1" for name in rules if audit.of(name).broken]
        return f"count(*) filter ({' or '.join(tests)})" if tests else "0"

    relation = con.sql(f"""
        with single as (
            select writer, regexp_replace(writer, '{_RANDOM}', '*', 'g') as pattern,
                count(*) filter (decision = 'accepted') as accepted, {counted("unfenced_write")} as unfenced,
                {counted(*STALE)} as stale, {counted("late_write_accepted")} as late,
                min(history."at") as first_seen, max(history."at") as last_seen
            from history join verdicts on verdicts.row_id = history.rowid where writer is not null group by writer),
        named as (
            select *, case when count(*) over (partition by pattern) > 5 then pattern else writer end as name
            from single)
        select name as writer, count(*) as names, sum(accepted)::bigint as accepted, sum(unfenced)::bigint as unfenced,
            sum(stale)::bigint as stale, sum(late)::bigint as late,
            min(first_seen) as first_seen, max(last_seen) as last_seen
        from named group by name order by stale desc, unfenced desc, late desc, accepted desc, name limit {limit}""")
    return [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]


def statuses(con: duckdb.DuckDBPyConnection, limit: int = 20) -> list[dict[str, Any]]:
    """[{status, entered, left}] most often entered first: what `--terminal` could name."""
    relation = con.sql(f"""
        select status, sum(entered)::bigint as entered, sum(left_)::bigint as left from (
            select after_status as status, 1 as entered, 0 as left_ from history
            where decision = 'accepted' and after_status <> '' and after_status is distinct from before_status
            union all
            select before_status, 0, 1 from history
            where decision = 'accepted' and before_status <> '' and after_status <> before_status)
        group by status order by entered desc, status limit {limit}""")
    return [dict(zip(relation.columns, values, strict=True)) for values in relation.fetchall()]


def seen_statuses(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Every status that a row found or left, the most frequent first."""
    found = con.execute("""select status from (
            select after_status as status from history union all select before_status from history)
        where status <> '' group by status order by count(*) desc, status""").fetchall()
    return [status for (status,) in found]


def counts(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many rows are failed acquires (contention), unrelated changes, grants, takeovers, and accepted writes.

    Takeovers are None where no grant shows who held before.
    """
    relation = con.sql(f"""select
        count(*) filter (kind = 'grant' and decision = 'rejected') as contention,
        count(*) filter (protected = false and decision = 'accepted') as unrelated,
        count(*) filter ({_GRANT}) as grants,
        sum(({_TAKEOVER})::int) filter ({_GRANT})::bigint as takeovers,
        count(*) filter (kind not in ('grant', 'delete', 'ttl_delete', 'poll') and decision = 'accepted') as writes
        from history""")
    [values] = relation.fetchall()
    return dict(zip(relation.columns, values, strict=True))


def processes(con: duckdb.DuckDBPyConnection) -> dict[str, bool]:
    """{process: whether a writer or holder of the table `history` is named like it}."""
    tests = ", ".join(f"coalesce(bool_or(regexp_matches(name, '{pattern}')), false)" for pattern in PROCESSES.values())
    [seen] = con.execute(f"""select {tests} from (
        select distinct lower(coalesce(writer, after_holder)) as name from history)""").fetchall()
    return dict(zip(PROCESSES, seen, strict=True))


def story(con: duckdb.DuckDBPyConnection, resource: str, limit: int) -> list[dict[str, Any]]:
    """Every row of one resource in order, with the grant of the token that it carried and the next newer grant.

    Columns: those of a finding, `granted_at`, `expires_at`, and `broken`, the rules that the row broke.
    """
    broken = ", ".join(f"case when {r.name} = 1 then '{r.name}' end" for r in RULES if r.group != "evidence")
    shown = ", ".join(f'history."{name}"' for name in _SHOWN)
    relation = con.execute(
        f"""
        with told as (select verdicts.row_id, {shown}, history.outcome, history.after_expires_at,
                array_to_string(list_filter([{broken}], lambda x: x is not null), ' ') as broken
            from history join verdicts on verdicts.row_id = history.rowid where history.resource = ?),
        grants as (
            select coalesce(after_token, token) as token, min("at") as granted_at, min(after_expires_at) as expires_at,
                min(coalesce(nullif(after_holder, ''), writer)) as holder
            from told where kind = 'grant' and decision = 'accepted' group by 1)
        select told.*, own.granted_at,
            coalesce(told.after_expires_at, own.expires_at, told.before_expires_at) as expires_at,
            newer.token as newer_token, newer.granted_at as newer_at, newer.holder as newer_holder
        from told left join grants as own on own.token = told.token
        left join grants as newer on newer.token = (select min(token) from grants where token > told.token)
        order by told.order_scope, told.order_key, told.row_id limit {limit}""",
        [resource],
    )
    names = [d[0] for d in relation.description or ()]
    return [dict(zip(names, values, strict=True)) for values in relation.fetchall()]
