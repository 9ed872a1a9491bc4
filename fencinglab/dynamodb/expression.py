"""What an expression of DynamoDB names: attributes, placeholders, parts of a condition, actions of an update."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fencinglab.dynamodb.fidelity import mend

_WORD = re.compile(r"(?P<name>[#A-Za-z_]\w*)(?P<call>\s*\()?|(?P<value>:\w+)|(?P<rest>\.\s*[#\w]+|\[\d+\])")
_KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"})
_SECTION = re.compile(r"(?<![#:\w])(SET|ADD|REMOVE|DELETE)\b", re.IGNORECASE)
_COMMA = re.compile(r",\s*(?![^()]*\))")  # between the actions of an update, outside of a function


def attributes(expression: str, names: Mapping[str, str]) -> set[str]:
    """The top-level attributes that an expression looks at, `#names` replaced; keywords and functions apart."""
    found = {m["name"] for m in _WORD.finditer(expression) if m["name"] and not m["call"]}
    return {names.get(name, name) for name in found if name.upper() not in _KEYWORDS}


def placeholders(expression: str) -> set[str]:
    """The `:values` and `#names` that an expression uses."""
    return set(re.findall(r"[:#]\w+", expression))


def conjuncts(condition: str) -> tuple[str, ...]:
    """The parts of a condition that its outermost ANDs join, in their order; none of an empty one."""
    parts, depth, begin, between = [], 0, 0, False
    for match in re.finditer(r"[()]|(?<![:#])\b(?:AND|OR|BETWEEN)\b", condition, re.IGNORECASE):
        word = match[0].upper()
        if word in "()":
            depth += 1 if word == "(" else -1
        elif depth:
            continue
        elif word == "BETWEEN":
            between = True
        elif word == "OR":
            return (condition.strip(),)
        elif between:
            between = False  # the AND of BETWEEN a AND b
        else:
            parts.append(condition[begin : match.start()].strip())
            begin = match.end()
    return (*parts, condition[begin:].strip()) if condition else ()


def actions(update: str) -> list[str]:
    """The actions of an update in their order, each with its section: `ADD fencingToken :one`."""
    sections = _SECTION.split(update)[1:]
    return [
        f"{word} {action.strip()}"
        for word, text in zip(sections[::2], sections[1::2], strict=True)
        for action in _COMMA.split(text)
    ]


def read_by(update: str, names: Mapping[str, str]) -> set[str]:
    """The attributes on which an update depends: those in a value that it sets, and those that it changes inside."""
    found = set[str]()
    for action in actions(update):
        path, _, value = action.partition("=")
        found |= attributes(f"{path} {value}" if re.search(r"[.\[]", path) else value, names)
    return found


def fails(condition: str, names: Mapping[str, str], values: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Whether a condition is not met by an item (empty: there is none), judged by moto, which the mock is made of."""
    from moto.dynamodb.comparisons import get_filter_expression
    from moto.dynamodb.models.dynamo_type import DynamoType
    from moto.dynamodb.models.dynamo_type import Item as Stored

    mend()
    parsed = get_filter_expression(condition, dict(names), dict(values))
    return not parsed.expr(Stored(DynamoType({"S": ""}), None, dict(item)))
