"""What an expression names, how a condition falls into parts, and whether an item meets one."""

from __future__ import annotations

import pytest

from fencinglab.dynamodb.expression import actions, attributes, conjuncts, fails, placeholders, read_by


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("", []),
        ("a = :a", ["a = :a"]),
        ("a = :a AND b = :b", ["a = :a", "b = :b"]),
        ("a = :a and (b = :b AND c = :c)", ["a = :a", "(b = :b AND c = :c)"]),
        ("a BETWEEN :x AND :y AND b = :b", ["a BETWEEN :x AND :y", "b = :b"]),
        ("a = :a OR b = :b AND c = :c", ["a = :a OR b = :b AND c = :c"]),  # AND binds tighter: no outermost one
        ("NOT contains(done, :o) AND attribute_not_exists(t)", ["NOT contains(done, :o)", "attribute_not_exists(t)"]),
        ("a = :or AND #between = :b AND c = :and", ["a = :or", "#between = :b", "c = :and"]),
        ("(a = :a OR b = :b) AND BANDANA = :c", ["(a = :a OR b = :b)", "BANDANA = :c"]),
    ],
)
def test_conjuncts(condition, parts):
    """A condition falls into what its outermost ANDs join; those of BETWEEN and inside brackets join nothing."""
    assert conjuncts(condition) == tuple(parts)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("attribute_not_exists(leaseOwner) OR leaseExpiresAt < :now", {"leaseOwner", "leaseExpiresAt"}),
        ("SET #s = :s, a.b[0] = :x REMOVE c ADD d :one", {"status", "a", "c", "d"}),
        ("SET t = if_not_exists(u, :zero) + :one", {"t", "u"}),
        ("a BETWEEN :x AND :y AND NOT b IN (:z)", {"a", "b"}),
    ],
)
def test_attributes(expression, found):
    """An expression looks at these attributes: no keyword, no function, no value, no inner name, aliases replaced."""
    assert attributes(expression, {"#s": "status"}) == found
    assert placeholders("SET #s = :s ADD n :one") == {"#s", ":s", ":one"}


@pytest.mark.parametrize(
    ("update", "parts", "read"),
    [
        ("", [], set()),
        (
            "SET a = :a, #s = :s REMOVE b ADD c :one, d :two",
            ["SET a = :a", "SET #s = :s", "REMOVE b", "ADD c :one", "ADD d :two"],
            set(),
        ),
        ("set a = if_not_exists(b, :zero) + :one", ["set a = if_not_exists(b, :zero) + :one"], {"b"}),
        ("SET a=:one+a, b = list_append(:l, #s)", ["SET a=:one+a", "SET b = list_append(:l, #s)"], {"a", "status"}),
        (
            "SET a.x = :a ADD b[1].n :one REMOVE #s.y, c",
            ["SET a.x = :a", "ADD b[1].n :one", "REMOVE #s.y", "REMOVE c"],
            {"a", "b", "status"},
        ),
        ("SET #add = :set, c = #delete", ["SET #add = :set", "SET c = #delete"], {"#delete"}),
    ],
)
def test_actions(update, parts, read):
    """An update falls into actions; it depends on what stands in its values and on what it changes inside."""
    assert actions(update) == parts
    assert read_by(update, {"#s": "status"}) == read


@pytest.mark.parametrize(
    ("condition", "item", "failed"),
    [
        ("t = :t", {"t": {"N": "42"}}, False),
        ("t = :t", {"t": {"N": "41"}}, True),
        ("t = :t", {}, True),
        ("t > :t", {"t": {"S": "42"}}, True),  # text and number: not met, whatever moto makes of it
        ("attribute_not_exists(t)", {}, False),
        ("NOT contains(done, :o)", {"done": {"SS": ["A/1"]}}, True),
        ("NOT contains(done, :o)", {}, False),
        ("#t = :t AND attribute_exists(#t)", {"t": {"N": "42"}}, False),
    ],
)
def test_fails(condition, item, failed):
    """Whether an item meets a condition, where there is none and where the types differ too."""
    assert fails(condition, {"#t": "t"}, {":t": {"N": "42"}, ":o": {"S": "A/1"}}, item) is failed
