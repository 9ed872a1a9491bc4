"""From verdicts to a status a rule, a verdict on the whole and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import agree
import duckdb
import histories
import pytest

from fencinglab.audit import audit
from fencinglab.audit.audit import Audit, Declared, assess
from fencinglab.audit.rules import BY_NAME, RULES
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay

CORE = [rule.name for rule in RULES if rule.core]
BY_CLASS = {
    group: [rule.name for rule in RULES if rule.group == group] for group in ("unsafe", "window", "cost", "evidence")
}
Column = Sequence[int | None]


@pytest.fixture(scope="module")
def con():
    """A database with a history in which everything is known."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        load(connection, [FULL] * 3)
        yield connection


def load(con: duckdb.DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Make the table `history` of rows."""
    audit.load(con, agree.relation(con, [dict(row) for row in rows]))


FULL = {  # a row in which everything is known that any rule needs
    "resource": "r", "lease": "l", "kind": "write", "decision": "accepted", "outcome": "ok", "reason": "expired", "writer": "a",
    "token": 2, "fenced": True, "operation": "op", "alert": "al", "order_key": "0" * 40, "order_scope": "s", "at": 0,
    "before_token": 2, "after_token": 2, "before_holder": "a", "after_holder": "a", "before_expires_at": 9, "after_expires_at": 9,
    "before_terminal": False, "after_terminal": False, "before_image": 1, "after_image": 1, "current_token": 2, "fell": "",
    "token_width": 0, "expiry_unit": "s",
}  # fmt: skip


def assessed(
    con: duckdb.DuckDBPyConnection,
    verdicts: Mapping[str, Column],
    declared: Declared = Declared(rising=True),
    *,
    rest: int | None = 0,
    without: Sequence[str] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> Audit:
    """The audit of these verdicts, `rest` for every other rule; `rows` say what differs from a full row, `without` what none has."""
    count = max([1, *map(len, verdicts.values())])
    special = bool(rows or without)
    if special:
        given = [*rows, *[{}] * count][:count]
        load(con, [FULL | dict(row) | dict.fromkeys(without) for row in given])
    texts = []
    for n in range(count):
        columns = {rule.name: rest for rule in RULES} | {
            name: [*values, *[None] * count][n] for name, values in verdicts.items()
        }
        listed = ", ".join(f'{"null" if v is None else v}::integer as "{name}"' for name, v in columns.items())
        texts.append(f"select {n} as row_id, 0 as incarnation, {listed}")
    con.execute(f"create or replace table verdicts as {' union all '.join(texts)}")
    found = assess(con, declared, **more)
    if special:
        load(con, [FULL] * 3)
    return found


def test_rows_are_audited_as_they_are():
    """Rows that were made elsewhere are judged without a log: a write with an older token is found, its absence holds."""
    ordered = [
        {"resource": "r", "kind": kind, "decision": "accepted", "writer": who, "token": token, "fenced": True,
         "order_key": str(n).zfill(40), "order_scope": "s", "after_token": max(token, n), "after_holder": who}
        for n, (kind, who, token) in enumerate([("grant", "a", 1), ("grant", "b", 2), ("write", "b", 2), ("write", "a", 1)])
    ]  # fmt: skip

    assert audit.audit_rows(ordered).of("token_went_back").broken == 1
    assert audit.audit_rows(ordered[:3]).of("token_went_back").broken == 0


def test_tokens_of_rows_are_exact():
    """Tokens that a float cannot tell apart, with others of the column not known, are told apart."""
    story = replace(shelf.find("report-generation"), first_token=2**53)

    assert audit.audit_rows(replay(story, FIXES["unfenced"]).rows).of("token_went_back").broken == 1


# --- the status of a rule

Expected = tuple[str, int, int, int, tuple[str, ...]]  # status, broken, cases, undecided, missing
HOLDER = ("after_holder", "writer")
STATUS: dict[str, tuple[dict[str, Any], Expected]] = {
    "cases, all decided": ({"verdicts": [0, None, 0]}, ("holds", 0, 2, 0, ())),
    "broken": ({"verdicts": [0, 1, 1]}, ("violated", 2, 3, 0, ())),
    "broken, and open": ({"verdicts": [1, -1, None]}, ("violated", 1, 2, 1, ())),
    "decidable, no case": ({"verdicts": [None, None]}, ("idle", 0, 0, 0, ())),
    "a case lacked a field": (
        {"verdicts": [0, -1], "rows": [{}, {"token": None, "after_token": None}]}, ("unknown", 0, 2, 1, ("token|after_token",))),
    "a case lacked a field that others have": (
        {"verdicts": [-1, 0], "rows": [{"after_holder": None, "writer": None}, {}]},
        ("unknown", 0, 2, 1, ("after_holder|writer",))),
    "a case lacked no field": ({"verdicts": [-1]}, ("unknown", 0, 1, 1, ())),
    "one of two names is enough": ({"verdicts": [0], "without": ["writer"]}, ("holds", 0, 1, 0, ())),
    "no row has the field": (
        {"verdicts": [None], "without": HOLDER}, ("unknown", 0, 0, 0, ("after_holder|writer",))),
    "no row has the field, though cases held": (
        {"verdicts": [0], "without": HOLDER}, ("unknown", 0, 1, 0, ("after_holder|writer",))),
    "only grants say who wrote": (
        {"verdicts": [0], "without": ["after_holder"], "rows": [{"kind": "grant"}]}, ("unknown", 0, 1, 0, ("after_holder|writer",))),
    "the format can never show it": (
        {"verdicts": [None], "without": HOLDER, "never": frozenset(HOLDER)}, ("not_visible", 0, 0, 0, ("after_holder|writer",))),
    "the format shows one of the two": (
        {"verdicts": [0], "without": ["writer"], "never": frozenset({"writer"})}, ("holds", 0, 1, 0, ())),
    "broken although never visible": (
        {"verdicts": [1], "never": frozenset(HOLDER)}, ("violated", 1, 1, 0, ())),
    "skipped": ({"verdicts": [0, 1], "declared": Declared(skip=frozenset({"token_shared"}))}, ("not_applicable", 1, 2, 0, ())),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), STATUS.values(), ids=STATUS)
def test_the_status_of_a_rule(con, given, expected):
    """Each combination of verdicts, fields and declarations gives one status, its counts, and the fields that were lacking."""
    given = dict(given)
    result = assessed(con, {"token_shared": given.pop("verdicts")}, **given).of("token_shared")

    assert (result.status, result.broken, result.cases, result.undecided, result.missing) == expected
    assert result.group == "unsafe"


def test_nothing_final_makes_its_rules_not_applicable(con):
    """With --terminal none exactly the rules that need to know what is final do not apply."""
    found = assessed(con, {}, Declared(no_terminal=True, rising=True))
    expected = {rule.name for rule in RULES if any("terminal" in need for need in rule.needs)}

    assert {r.rule.name for r in found.results if r.status == "not_applicable"} == expected
    assert expected == {"terminal_twice", "terminal_left", "ttl_removed_live", "work_after_terminal", "rejected_done"}


def test_rising_fields_must_be_declared(con):
    """A rule on fields that may only rise applies where some were named."""
    assert assessed(con, {}, Declared()).of("state_went_back").status == "not_applicable"
    assert assessed(con, {}, Declared(rising=True)).of("state_went_back").status == "holds"


@pytest.mark.parametrize("name", [rule.name for rule in RULES if rule.needs])
def test_every_rule_says_what_it_needs(con, name):
    """A rule without the columns that it needs is unknown and names them; with a source that never has them, not visible."""
    needs = BY_NAME[name].needs
    columns = [column for need in needs for column in need.split("|")]
    missing = assessed(con, {name: [None]}, without=columns).of(name)
    never = assessed(con, {name: [None]}, without=columns, never=frozenset(columns)).of(name)

    assert (missing.status, missing.missing) == ("unknown", needs)
    assert (never.status, never.missing) == ("not_visible", needs)


# --- the verdict and the exit code

CASES: dict[str, tuple[dict[str, Any], str, int, list[str]]] = {  # verdict, exit code, reasons
    "everything held": ({}, "holds", 0, []),
    "a rule of the log itself": ({"time_went_back": [1], "clock_mixed": [1]}, "holds", 0, []),
    "missing records": ({"chain_broken": [1]}, "inconclusive", 3, ["broken-chain"]),
    "no order": ({"order_unknown": [1]}, "inconclusive", 3, ["unknown"]),
    "a core rule is open": ({"token_shared": [-1]}, "inconclusive", 3, ["unknown"]),
    "another rule is open": ({"alert_twice": [-1]}, "holds", 0, []),
    "nothing was put to the test": ({"unfenced_write": [None]}, "inconclusive", 3, ["nothing-exercised"]),
    "a core rule is idle": ({"token_shared": [None]}, "holds", 0, []),
}  # fmt: skip


@pytest.mark.parametrize(("verdicts", "verdict", "code", "reasons"), CASES.values(), ids=CASES)
def test_the_verdict_on_the_whole(con, verdicts, verdict, code, reasons):
    """0 only where nothing unsafe is violated, every core rule is decided, and a write after a grant was seen."""
    found = assessed(con, verdicts)

    assert (found.verdict, found.exit_code, [name for name, _ in found.reasons]) == (verdict, code, reasons)


@pytest.mark.parametrize("group", BY_CLASS)
@pytest.mark.parametrize("fail_on", [(), ("window",), ("cost",), ("window", "cost")], ids=",".join)
def test_what_fails(con, group, fail_on):
    """Every unsafe rule fails the run; every window and every cost where it was asked for; the log itself never."""
    for name in BY_CLASS[group]:
        found = assessed(con, {name: [1, 0]}, Declared(fail_on=frozenset(fail_on), rising=True))
        fails = group in ("unsafe", *fail_on)
        assert (found.verdict == "violated", found.exit_code == 1) == (fails, fails), name
        assert found.of(name).status == "violated"


@pytest.mark.parametrize("name", CORE)
def test_every_core_rule_must_be_decided(con, name):
    """A core rule that is unknown or can never be seen makes it inconclusive, and is named in the reason."""
    needs = frozenset(column for need in BY_NAME[name].needs for column in need.split("|"))
    for found in (assessed(con, {name: [-1]}), assessed(con, {name: [None]}, without=[*needs], never=needs)):
        assert (found.verdict, found.exit_code) == ("inconclusive", 3)
        [sentence] = [text for reason, text in found.reasons if reason == "unknown"]
        assert name in sentence


def test_entries_set_aside(con):
    """What could not be read makes it inconclusive, with its number."""
    assert [assessed(con, {}, set_aside=n).reasons for n in (0, 1, 1234)] == [
        (), (("set-aside", "1 entry could not be read"),), (("set-aside", "1,234 entries could not be read"),),
    ]  # fmt: skip


ACCEPTED = {
    "unknown": ({"token_shared": [-1]}, {}, "unknown"),
    "order": ({"order_unknown": [1]}, {}, "unknown"),
    "set-aside": ({}, {"set_aside": 3}, "set-aside"),
    "broken-chain": ({"chain_broken": [1]}, {}, "broken-chain"),
}


@pytest.mark.parametrize(("verdicts", "more", "word"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_reason_can_be_accepted(con, verdicts, more, word):
    """A named reason no longer makes the run fail; the verdict and the reason stay, and other reasons are not accepted with it."""
    others = frozenset(audit.ACCEPTABLE) - {word}
    codes = [assessed(con, verdicts, Declared(accept=a, rising=True), **more) for a in (frozenset({word}), others)]

    assert [(found.verdict, found.exit_code) for found in codes] == [("inconclusive", 0), ("inconclusive", 3)]
    assert codes[0].reasons == codes[1].reasons != ()


def test_nothing_exercised_cannot_be_accepted(con):
    """An audit that put nothing to the test proves nothing, whatever is accepted."""
    found = assessed(con, {"unfenced_write": [None]}, Declared(accept=frozenset(audit.ACCEPTABLE), rising=True))

    assert found.exit_code == 3


def test_a_violation_stands_above_all_reasons(con):
    """A violation exits with 1 although much is open, and what is open is said too."""
    verdicts = {"token_went_back": [1], "token_shared": [-1], "chain_broken": [1]}
    found = assessed(con, verdicts, Declared(accept=frozenset(audit.ACCEPTABLE), rising=True), set_aside=1)

    assert (found.verdict, found.exit_code) == ("violated", 1)
    assert [name for name, _ in found.reasons] == ["unknown", "broken-chain", "set-aside"]


def test_the_weaker_requirement(con):
    """With --require order a stale write before the newer holder's first one is a window; after it, it is not."""
    order = Declared(require_order=True, rising=True)
    early = assessed(con, {"stale_write_accepted": [1]}, order)

    assert (early.of("stale_write_accepted").group, early.exit_code, early.verdict) == ("window", 0, "holds")
    assert assessed(con, {"stale_write_accepted": [1]}, order._replace(fail_on=frozenset({"window"}))).exit_code == 1
    assert assessed(con, {"token_went_back": [1]}, order).exit_code == 1
    assert assessed(con, {"stale_write_accepted": [-1]}, order).exit_code == 3


def test_idle_rules_where_they_must_be_exercised(con):
    """With --require-exercised an idle core rule is inconclusive and named; an idle rule that is not core is not."""
    strict = Declared(require_exercised=True, rising=True)
    found = assessed(con, {"terminal_twice": [None], "alert_twice": [None]}, strict)

    assert found.reasons == (("idle", "without a case: terminal_twice"),)
    assert (found.verdict, found.exit_code) == ("inconclusive", 3)
    assert assessed(con, {"alert_twice": [None]}, strict).exit_code == 0


def test_what_was_exercised(con):
    """How many accepted writes after a grant were seen is the number of cases of the rule on unfenced writes."""
    assert assessed(con, {"unfenced_write": [0, 1, -1, None]}).exercised == 3


def test_results_come_in_the_order_of_the_rules(con):
    """Every rule has one result."""
    found = assessed(con, {})

    assert [result.rule for result in found.results] == list(RULES)
    with pytest.raises(StopIteration):
        found.of("no_rule")


# --- with the real judge


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_an_injected_violation_is_reported(con, name):
    """A history with one violation has its rule violated, and fails, is inconclusive or holds as its class says."""
    rows, _ = histories.inject(name, 5)
    load(con, rows)
    audit.judge_all(con, retention=histories.DAY)
    found = assess(con, Declared(rising=True))
    load(con, [FULL] * 3)

    assert found.of(name).status == "violated"
    assert (found.verdict == "violated") == (BY_NAME[name].group == "unsafe")
    assert (found.exit_code == 1) == (BY_NAME[name].group == "unsafe")


def test_what_a_skipped_rule_alone_would_show_is_shown_by_the_other(con):
    """A token that went back is a stale write too: with the one rule skipped, the other is violated by that row."""
    rows, _ = histories.inject("token_went_back", 5)
    for skip, broken in ((frozenset(), 0), (frozenset({"token_went_back"}), 1)):
        load(con, rows)
        audit.judge_all(con, skip=skip)
        found = assess(con, Declared(skip=skip))
        load(con, [FULL] * 3)

        assert (found.verdict, found.of("stale_write_accepted").broken) == ("violated", broken)


def test_a_calm_history_holds(con):
    """A history in which nothing goes wrong holds and exits with 0."""
    load(con, histories.healthy(3, calm=True))
    audit.judge_all(con)
    found = assess(con, Declared(rising=True))
    load(con, [FULL] * 3)

    assert (found.verdict, found.exit_code, found.reasons) == ("holds", 0, ())
    assert found.exercised > 0
