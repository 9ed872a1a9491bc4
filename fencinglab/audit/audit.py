"""Judge a history: every rule on every row, counted, with a status a rule and a verdict on the whole.

It reads a history wherever it came from and knows no log format. What a format can never show, and what
the user declared, come in as values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab import history
from fencinglab.audit.rules import RULES, Rule

if TYPE_CHECKING:
    import duckdb

RULES_SQL = files("fencinglab.audit").joinpath("rules.sql").read_text(encoding="utf-8")


def load(con: duckdb.DuckDBPyConnection, rows: duckdb.DuckDBPyRelation) -> None:
    """Make the table `history` of a history relation; everything below reads that table."""
    rows.query("rows", "create or replace temp table history as select * from rows")


def judge_all(
    con: duckdb.DuckDBPyConnection, *, skew: int = 0, retention: int | None = None, skip: Collection[str] = ()
) -> None:
    """Make the table `verdicts` of the table `history`: row_id (its rowid), incarnation, a column a rule.

    A rule's column is 1 broken, 0 held, -1 undecided, null no case. `skew` and `retention` are
    microseconds; retention None means that none is declared. A row that `token_went_back` alone would show
    is one of `stale_write_accepted` where the former is among the rules to `skip`.
    """
    # Equal stays equal in a hash, and a number is cheaper to partition by than a long key. (A null's hash is no null.)
    given = {
        name: f'case when "{name}" is not null then hash("{name}") end' for name in ("resource", "lease", "order_scope")
    }
    given |= {c.name: f'epoch_us(history."{c.name}")' for c in history.COLUMNS if c.type == "TIMESTAMP"}
    given |= _narrower(con)
    replaced = ", ".join(f'{value} as "{name}"' for name, value in given.items())
    con.execute(f"create or replace temp view events as select rowid as row_id, * replace ({replaced}) from history")
    con.execute(
        "create or replace temp table settings as select ?::bigint as skew, ?::bigint as retention", [skew, retention]
    )
    columns = {rule.name: rule.name for rule in RULES}
    if "token_went_back" in skip:
        columns["stale_write_accepted"] = "case when token_went_back = 1 then 1 else stale_write_accepted end"
    small = ", ".join(f"({sql})::tinyint as {name}" for name, sql in columns.items())
    # DuckDB would keep `narrow` for its few later uses, at more than what it costs to make again.
    rules = RULES_SQL.replace("narrow as (", "narrow as not materialized (", 1)
    con.execute(f"""create or replace table verdicts as
        select row_id, incarnation::int as incarnation, {small} from ({rules})""")


def _narrower(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """{column: SQL} of order keys and tokens as smaller numbers where all of them fit: they sort faster."""
    tokens = [c.name for c in history.COLUMNS if c.type.startswith("DECIMAL")]
    greatest = ", ".join(f'max("{name}")' for name in ("order_key", *tokens))
    [(last, *most)] = con.execute(f"select {greatest} from history").fetchall()
    fitting = {name: f'"{name}"::bigint' for name, token in zip(tokens, most, strict=True) if (token or 0) < 1 << 63}
    return fitting | ({"order_key": "order_key::hugeint"} if last and int(last) < 10**38 else {})


def judge(
    con: duckdb.DuckDBPyConnection, rows: duckdb.DuckDBPyRelation, *, skew: int = 0, retention: int | None = None
) -> duckdb.DuckDBPyRelation:
    """The verdicts of a history relation with each row's source and resource, in the order of its rows."""
    load(con, rows)
    judge_all(con, skew=skew, retention=retention)
    return con.sql(
        "select history.source, history.resource, verdicts.* exclude (row_id) from verdicts "
        "join history on history.rowid = verdicts.row_id order by verdicts.row_id"
    )


def audit_rows(rows: Iterable[Mapping[str, Any]]) -> Audit:
    """The audit of a history that is given as rows, such as a replay's; a column that a row does not have is null."""
    import duckdb
    import pandas

    frame = pandas.DataFrame(list(rows), columns=list(history.NAMES), dtype=object)  # a float is no token
    with duckdb.connect() as con:
        judge(con, history.read(con, frame))
        return assess(con)


class Declared(NamedTuple):
    """What the user said about the audit itself."""

    skip: frozenset[str] = frozenset()  # rules that do not apply
    no_terminal: bool = False  # --terminal none: nothing is ever final
    rising: bool = False  # fields that may only rise were named
    fail_on: frozenset[str] = frozenset()  # classes beside unsafe that exit 1
    require_order: bool = False  # a stale write before the newer holder's first write counts as window
    require_exercised: bool = False  # a core rule without a case is inconclusive
    accept: frozenset[str] = frozenset()  # of ACCEPTABLE: reasons that a scheduled run lives with


NOTHING_DECLARED = Declared()

ACCEPTABLE = {
    "unknown": "a core rule could not be decided, or the order is not known",
    "set-aside": "entries could not be read",
    "broken-chain": "records are missing",
}


class Result(NamedTuple):
    """One rule on one history: how often it was broken, in how many cases, and what was lacking."""

    rule: Rule
    group: str  # the rule's class, or window where the user chose the weaker requirement
    status: str  # violated, holds, idle, unknown, not_visible, not_applicable
    broken: int
    cases: int
    undecided: int
    missing: tuple[str, ...]  # history columns without which cases stay open


class Audit(NamedTuple):
    """Every rule's result and what follows from them."""

    results: tuple[Result, ...]
    verdict: str  # holds, violated, inconclusive
    exit_code: int  # 0, 1 or 3
    reasons: tuple[tuple[str, str], ...]  # (name, sentence) of what makes it inconclusive
    exercised: int  # accepted writes after a grant

    def of(self, name: str) -> Result:
        """The result of the rule with this name."""
        return next(result for result in self.results if result.rule.name == name)


def assess(
    con: duckdb.DuckDBPyConnection,
    declared: Declared = NOTHING_DECLARED,
    *,
    never: frozenset[str] = frozenset(),
    set_aside: int = 0,
) -> Audit:
    """The audit of the tables `history` and `verdicts`; `never` are columns that the source can never show."""
    sums = ", ".join(f"count({r.name}), coalesce(sum({r.name}), 0), coalesce(sum(abs({r.name})), 0)" for r in RULES)
    [found] = con.execute(f"select {sums} from verdicts").fetchall()
    counts = [  # of 1, 0 and -1: filters would cost far more
        ((apart + sum_) // 2, cases - apart, (apart - sum_) // 2)
        for cases, sum_, apart in zip(found[::3], found[1::3], found[2::3], strict=True)
    ]
    needed = sorted({column for rule in RULES for need in rule.needs for column in need.split("|")})
    present = filled(con, needed)
    results = tuple(
        _result(con, rule, three, present, never, declared) for rule, three in zip(RULES, counts, strict=True)
    )
    return _conclude(results, declared, set_aside)


def filled(con: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> set[str]:
    """Those of the columns that the table `history` has a value for; who wrote with which token must not be known
    from grants alone."""
    own = "token", "fenced", "writer"
    tests = ", ".join(
        f"""count({f"case when kind <> 'grant' then {c} end" if c in own else f'"{c}"'}) > 0""" for c in columns
    )
    [full] = con.execute(f"select {tests} from history").fetchall()
    return {column for column, is_full in zip(columns, full, strict=True) if is_full}


def _result(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    counts: tuple[int, int, int],
    present: set[str],
    never: frozenset[str],
    declared: Declared,
) -> Result:
    broken, held, undecided = counts
    group = "window" if declared.require_order and rule.name == "stale_write_accepted" else rule.group
    lacking = tuple(need for need in rule.needs if not present & set(need.split("|")))
    status, missing = "holds", tuple[str, ...]()
    undeclared = ("terminal" if declared.no_terminal else "-", "-" if declared.rising else "fell")
    if rule.name in declared.skip or any(word in need for need in rule.needs for word in undeclared):
        status = "not_applicable"
    elif broken:
        status = "violated"
    elif any(set(need.split("|")) <= never for need in rule.needs):
        status, missing = "not_visible", lacking
    elif lacking:
        status, missing = "unknown", lacking
    elif undecided:
        status, missing = "unknown", _lacked(con, rule)
    elif not held:
        status = "idle"
    return Result(rule, group, status, broken, broken + held + undecided, undecided, missing)


def _lacked(con: duckdb.DuckDBPyConnection, rule: Rule) -> tuple[str, ...]:
    """Of the columns that the rule needs, those that are null on some row that it could not decide."""
    tests = ", ".join(
        "bool_or(" + " and ".join(f'history."{c}" is null' for c in need.split("|")) + ")" for need in rule.needs
    )
    [nulls] = con.execute(
        f"select {tests} from history join verdicts on verdicts.row_id = history.rowid where {rule.name} = -1"
    ).fetchall()
    return tuple(need for need, null in zip(rule.needs, nulls, strict=True) if null)


def _conclude(results: tuple[Result, ...], declared: Declared, set_aside: int) -> Audit:
    by_name = {result.rule.name: result for result in results}
    open_core = [r for r in results if r.rule.core and r.status in ("unknown", "not_visible")]
    idle_core = [r for r in results if r.rule.core and r.status == "idle"]
    exercised = by_name["unfenced_write"].cases
    reasons = []
    if open_core:
        reasons.append(("unknown", f"cannot be decided: {', '.join(r.rule.name for r in open_core)}"))
    if by_name["order_unknown"].status == "violated":
        reasons.append(("unknown", f"{_rows(by_name['order_unknown'].broken)} without a known order"))
    if by_name["chain_broken"].status == "violated":
        reasons.append(("broken-chain", f"records are missing before {_rows(by_name['chain_broken'].broken)}"))
    if set_aside:
        reasons.append(("set-aside", f"{set_aside:,} {'entry' if set_aside == 1 else 'entries'} could not be read"))
    if not exercised:
        reasons.append(("nothing-exercised", "no write after a grant was seen: nothing was put to the test"))
    if declared.require_exercised and idle_core:
        reasons.append(("idle", f"without a case: {', '.join(r.rule.name for r in idle_core)}"))
    failing = [r for r in results if r.status == "violated" and r.group in {"unsafe", *declared.fail_on}]
    stopping = [name for name, _ in reasons if name not in declared.accept]
    return Audit(
        results=results,
        verdict="violated" if failing else "inconclusive" if reasons else "holds",
        exit_code=1 if failing else 3 if stopping else 0,
        reasons=tuple(reasons),
        exercised=exercised,
    )


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
