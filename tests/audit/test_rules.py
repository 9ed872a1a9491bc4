"""The SQL of the audit against the oracle, against injected violations, and against other engines' grammars."""

from __future__ import annotations

import re

import agree
import histories
import oracle
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from fencinglab.audit import audit
from fencinglab.audit.rules import RULES

UNSAFE = {rule.name for rule in RULES if rule.group == "unsafe"}
SEEDS = range(12)
quick = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
skews = st.sampled_from((0, histories.SECOND, 1_500_000))
retentions = st.sampled_from((None, 0, 2 * histories.SECOND, histories.DAY))


# --------------------------------------------------------------------------- SQL and oracle


@quick
@given(histories.arbitrary_histories(), skews, retentions)
def test_sql_and_oracle_agree_on_odd_histories(rows: list[agree.Row], skew: int, retention: int | None) -> None:
    """Whatever stands in the columns, both judges give the same value for every rule of every row."""
    assert agree.differences(rows, skew, retention) == []


@quick
@given(histories.realistic_histories(), skews, retentions)
def test_sql_and_oracle_agree_on_realistic_histories(rows: list[agree.Row], skew: int, retention: int | None) -> None:
    """On what workers and logs do, both judges give the same value for every rule of every row."""
    assert agree.differences(rows, skew, retention) == []


@pytest.mark.parametrize(("skew", "retention"), agree.SETTINGS)
def test_sql_and_oracle_agree_on_a_fixed_sample(skew: int, retention: int | None) -> None:
    """A few hundred histories, the same in every run, are judged the same, under every setting."""
    found = agree.compare(agree.sample(300, seed=7), skew, retention)
    assert [str(d) for d in found[:5]] == []


def test_a_wrong_judge_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: with one rule of the oracle turned around, it names that rule and shrinks to one row."""
    rows = [row | {"fell": "attempt"} for row in histories.healthy(3)]
    right = oracle.state_went_back
    monkeypatch.setitem(oracle.JUDGES, "state_went_back", lambda r: None if right(r) is None else 1 - right(r))
    found = [d for d in agree.compare([rows]) if d.rule == "state_went_back"]
    assert len(found) == sum(right(r) is not None for r in oracle._place(rows, 0, None)) > 1
    assert len(agree.shrink(rows, found[0], 0, None)) == 1


# --------------------------------------------------------------------------- recall and precision


@pytest.fixture(scope="module")
def injected() -> dict[str, list[tuple[list[agree.Verdict], int]]]:
    """For each rule, the SQL's verdicts on histories with one violation of it, and the row that it must name."""
    cases = [(rule.name, *histories.inject(rule.name, seed)) for rule in RULES for seed in SEEDS]
    verdicts = agree.by_sql([rows for _, rows, _ in cases], retention=histories.DAY)
    found: dict[str, list[tuple[list[agree.Verdict], int]]] = {}
    for (name, _, index), one in zip(cases, verdicts, strict=True):
        found.setdefault(name, []).append((one, index))
    return found


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_an_injected_violation_is_found_where_it_is(name: str, injected: dict) -> None:
    """Recall: the named rule breaks on the injected row and nowhere else."""
    for verdicts, index in injected[name]:
        broken = [i for i, verdict in enumerate(verdicts) if verdict[name] == 1]
        assert broken == [index]


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_an_injected_violation_breaks_nothing_else_unsafe(name: str, injected: dict) -> None:
    """Precision: no other unsafe rule breaks, except one that the same row necessarily breaks too."""
    allowed = {name} | histories.ALSO.get(name, set())
    for verdicts, _ in injected[name]:
        assert {rule for verdict in verdicts for rule in UNSAFE if verdict[rule] == 1} <= allowed


def test_a_healthy_history_breaks_no_unsafe_rule() -> None:
    """Precision: take-overs, refusals, clean-up and re-creation behind a receiver that compares tokens are no harm."""
    for verdicts in agree.by_sql([histories.healthy(seed) for seed in range(200)], retention=histories.DAY):
        assert {rule for verdict in verdicts for rule in UNSAFE if verdict[rule] == 1} == set()


def test_a_calm_history_breaks_no_rule() -> None:
    """Precision: where nobody is late or refused, every value is a case that held or no case."""
    for verdicts in agree.by_sql([histories.healthy(seed, calm=True) for seed in range(200)], retention=histories.DAY):
        assert {rule for verdict in verdicts for rule, value in verdict.items() if value not in (None, 0)} == set()


# --------------------------------------------------------------------------- the text


def test_every_rule_is_seen_broken_and_held() -> None:
    """No agreement is empty: in a fixed set, the SQL gives every rule as broken and as a case that held."""
    seen: dict[str, set[int | None]] = {rule.name: set() for rule in RULES}
    for verdicts in agree.by_sql(agree.sample(600, seed=3), retention=2 * histories.SECOND):
        for verdict in verdicts:
            for rule, value in verdict.items():
                seen[rule].add(value)
    assert {rule: values for rule, values in seen.items() if not {0, 1} <= values <= {0, 1, -1, None}} == {}


def test_the_columns_are_the_rules_in_order() -> None:
    """A verdict says which row it is of and then has a column a rule, in the order of RULES."""
    tree = sqlglot.parse_one(audit.RULES_SQL, read="duckdb")
    names = tree.named_selects
    assert names[-len(RULES) :] == [rule.name for rule in RULES]
    assert "incarnation" in names[: -len(RULES)]


@pytest.mark.parametrize("dialect", ["spark", "trino", "bigquery"])
def test_other_engines_can_read_the_rules(dialect: str) -> None:
    """The one text can be written for other engines, and what is written is their grammar."""
    (written,) = sqlglot.transpile(  # as Spark, which runs it unmodified
        audit.RULES_SQL, read="spark", write=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE
    )
    again = sqlglot.parse_one(written, read=dialect)
    assert again.named_selects[-len(RULES) :] == [rule.name for rule in RULES]


def test_no_window_name_is_followed_by_a_minus() -> None:
    """Spark takes `over upto - death` for a window named `upto-death`, which no grammar of sqlglot shows."""
    assert re.findall(r"over \w+\s*-", audit.RULES_SQL) == []


def test_no_cast_stands_in_the_rules() -> None:
    """Casts belong to the readers: the rules have none, in either spelling."""
    tree = sqlglot.parse_one(audit.RULES_SQL, read="duckdb")
    assert list(tree.find_all(exp.Cast, exp.TryCast)) == []
    code = "\n".join(line.partition("--")[0] for line in audit.RULES_SQL.splitlines())
    assert "::" not in code
    assert "cast" not in code.lower()
