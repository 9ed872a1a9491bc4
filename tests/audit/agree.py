"""Do the SQL of the audit and the oracle agree? `differences` asks it of one history, the script of thousands:

    python tests/audit/agree.py --histories 10000 --seed 1

Many histories go through the SQL at once: each gets a prefix on its resources, leases and sources, which
changes no rule, because no rule looks across resources.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb
import histories
import oracle
import pandas

from fencinglab import history
from fencinglab.audit import audit
from fencinglab.audit.rules import RULES

Row = dict[str, Any]
Verdict = dict[str, int | None]
NAMES = [rule.name for rule in RULES]
SETTINGS = (  # skew and retention, in microseconds
    (0, None),
    (0, 2 * histories.SECOND),
    (1_500_000, histories.DAY),
)


class Difference(NamedTuple):
    history: int
    source: str
    rule: str
    sql: int | None
    oracle: int | None


# --------------------------------------------------------------------------- both judges


def relation(con: duckdb.DuckDBPyConnection, rows: list[Row]) -> duckdb.DuckDBPyRelation:
    """The rows as a checked history relation, every value passed as text and cast as `history` says."""
    con.execute("set pandas_analyze_sample = 0")  # every object column is text, also where its first values are null
    texts = {name: [_text(row.get(name)) for row in rows] for name in history.NAMES}
    con.register("given_rows", pandas.DataFrame(texts, dtype=object))
    times = {c.name: f'make_timestamp("{c.name}"::bigint)' for c in history.COLUMNS if c.type == "TIMESTAMP"}
    text = history.select({name: times.get(name, f'"{name}"') for name in history.NAMES}, "given_rows")
    con.execute(f"create or replace temp table history_rows as {text}")
    return history.check(con.table("history_rows"))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def together(many: list[list[Row]]) -> list[Row]:
    """The rows of many histories as those of one; `source` says which row of which history."""
    rows = []
    for i, one in enumerate(many):
        for j, row in enumerate(one):
            lease = None if row.get("lease") is None else f"{i}/{row['lease']}"
            rows.append(row | {"resource": f"{i}/{row['resource']}", "lease": lease, "source": f"{i}#{j}"})
    return rows


def by_sql(many: list[list[Row]], skew: int = 0, retention: int | None = None) -> list[list[Verdict]]:
    """The SQL's verdicts for many histories, in one run."""
    rows = together(many)
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    judged = audit.judge(con, relation(con, rows), skew=skew, retention=retention)
    expected = ["source", "resource", "incarnation", *NAMES]
    if judged.columns != expected:
        raise AssertionError(f"columns are {judged.columns}, not {expected}")
    found: dict[tuple[int, int], Verdict] = {}
    for source, _, _, *values in judged.fetchall():
        i, _, j = source.partition("#")
        place = int(i), int(j)
        if place in found:
            raise AssertionError(f"two verdicts for {source}")
        found[place] = dict(zip(NAMES, values, strict=True))
    if len(found) != len(rows):
        raise AssertionError(f"{len(found)} verdicts for {len(rows)} rows")
    return [[found[i, j] for j in range(len(one))] for i, one in enumerate(many)]


def compare(
    many: list[list[Row]], skew: int = 0, retention: int | None = None, seen: Counter[tuple[str, Any]] | None = None
) -> list[Difference]:
    """Every rule of every row on which SQL and oracle differ; `seen` counts the oracle's values."""
    found = []
    for i, (one, sql) in enumerate(zip(many, by_sql(many, skew, retention), strict=True)):
        for row, left, right in zip(one, sql, oracle.judge(one, skew, retention), strict=True):
            if seen is not None:
                seen.update(right.items())
            differing = [rule for rule in NAMES if left[rule] != right[rule]]
            found += [Difference(i, row["source"], rule, left[rule], right[rule]) for rule in differing]
    return found


def differences(rows: list[Row], skew: int = 0, retention: int | None = None) -> list[str]:
    """One line for each rule of each row on which SQL and oracle differ."""
    return [f"{d.rule} of {d.source}: SQL {d.sql}, oracle {d.oracle}" for d in compare([rows], skew, retention)]


# --------------------------------------------------------------------------- shrinking


def shrink(rows: list[Row], difference: Difference, skew: int, retention: int | None) -> list[Row]:
    """The smallest sub-list of rows, with the fewest known fields, on which that rule still differs so."""

    def differs(many: list[list[Row]]) -> list[bool]:
        hit = {d.history for d in compare(many, skew, retention) if (d.rule, d.sql, d.oracle) == difference[2:]}
        return [i in hit for i in range(len(many))]

    while True:
        smaller = [rows[:i] + rows[i + 1 :] for i in range(len(rows)) if len(rows) > 1]
        keep = next((one for one, hit in zip(smaller, differs(smaller), strict=True) if hit), None) if smaller else None
        if keep is None:
            break
        rows = keep
    needed = ("resource", "source", "order_scope", "kind", "decision")
    while True:  # one value less, as often as that goes; many at once where each of them goes alone
        cells = [(i, n) for i, row in enumerate(rows) for n, v in row.items() if n not in needed and v is not None]
        hits = differs([_without(rows, [cell]) for cell in cells]) if cells else []
        loose = [cell for cell, hit in zip(cells, hits, strict=True) if hit]
        if not loose:
            return rows
        while len(loose) > 1 and not differs([_without(rows, loose)])[0]:
            loose = loose[: len(loose) // 2]
        rows = _without(rows, loose)


def _without(rows: list[Row], cells: list[tuple[int, str]]) -> list[Row]:
    """The rows with those cells not known."""
    lost = set(cells)
    return [{n: None if (i, n) in lost else v for n, v in row.items()} for i, row in enumerate(rows)]


def show(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        known = {name: row[name] for name in history.NAMES if row.get(name) is not None}
        for name in known:
            if name == "order_key":
                known[name] = int(known[name])
            elif name in ("at", "sent_at") or name.endswith("expires_at"):
                known[name] = f"{(known[name] - histories.START) / histories.SECOND:+g}s"
        lines.append("      " + ", ".join(f"{name}={value!r}" for name, value in known.items()))
    return "\n".join(lines)


# --------------------------------------------------------------------------- script


def sample(count: int, seed: int) -> list[list[Row]]:
    """Realistic and arbitrary histories in turn, and now and then a healthy or an injected one."""
    kinds = (histories.realistic, histories.arbitrary)
    made = [kinds[i % 2](seed * 1_000_003 + i) for i in range(count)]
    for i in range(0, count, 50):
        made[i] = histories.healthy(seed * 1_000_003 + i)
    for i, rule in enumerate(NAMES):
        if 50 * i + 1 < count:
            made[50 * i + 1] = histories.inject(rule, seed * 1_000_003 + i)[0]
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=3, help="examples shrunk for each rule and pair of values")
    parser.add_argument("--all", action="store_true", help="name every differing row, not the first few of each kind")
    given = parser.parse_args()

    began = time.perf_counter()
    many = sample(given.histories, given.seed)
    seen: Counter[tuple[str, Any]] = Counter()
    kinds: dict[tuple[str, Any, Any], list[tuple[Difference, list[Row], int, int | None]]] = {}
    batch = 2_500
    for start in range(0, len(many), batch):
        part = many[start : start + batch]
        skew, retention = SETTINGS[start // batch % len(SETTINGS)]
        for d in compare(part, skew, retention, seen):
            whole = d._replace(history=start + d.history)
            kinds.setdefault(d[2:], []).append((whole, part[d.history], skew, retention))
    took = time.perf_counter() - began

    rows = sum(len(one) for one in many)
    print(f"{len(many):,} histories, {rows:,} rows, seed {given.seed}, {took:.1f} s\n")
    print(f"{'rule':26}{'broken':>9}{'held':>9}{'undecided':>11}")
    for rule in NAMES:
        print(f"{rule:26}{seen[rule, 1]:>9,}{seen[rule, 0]:>9,}{seen[rule, -1]:>11,}")
    differing = {d.history for cases in kinds.values() for d, *_ in cases}
    print(f"\n{sum(map(len, kinds.values())):,} differences in {len(differing):,} histories")
    for (rule, sql, right), cases in sorted(kinds.items(), key=str):
        print(f"\n{rule}: SQL {sql}, oracle {right}: {len(cases):,} rows")
        named = [f"{d.history}:{d.source}" for d, *_ in cases]
        print("   rows", ", ".join(named if given.all or len(named) <= 8 else [*named[:8], "…"]))
        for d, one, skew, retention in sorted(cases, key=lambda case: len(case[1]))[: given.shrink]:
            print(f"   history {d.history} (skew {skew}, retention {retention}) shrinks to")
            print(show(shrink(one, d, skew, retention)))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
