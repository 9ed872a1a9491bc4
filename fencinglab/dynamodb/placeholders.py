"""Placeholders: in every text of a request file they stand for what only a run knows.

`$worker` or `${worker}`: a name is one of `BOUND`, one of the file's `given`, or OPERATION.ATTRIBUTE, an attribute of
the reply that an earlier operation of this worker got. `${now + 30}` and `${look.fencingToken - 1}` are whole numbers,
and `$$` is a dollar sign.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from fencinglab.errors import InputError

BOUND = {  # what a run binds by itself
    "worker": "the name of the worker that sends it",
    "token": "the token of its grant",
    "now": "its clock, in seconds",
    "expiry": "now and the length of a lease, `lease` of `given`",
    "operation": "an id of this one operation, the same when it is repeated",
    "value": "the result that it brings",
}
_SHORT = re.compile(r"\$(?:(\$)|\{([^{}$]*)\}|(\w+(?:\.\w+)?))")  # $$, ${now + 30}, $worker, $look.fencingToken
_TERM = re.compile(r"\s*([+-])\s*")
_TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"})

Bindings = Mapping[str, Any]  # placeholder -> text or number; `OPERATION.ATTRIBUTE` -> typed value


class Unbound(InputError):
    """A placeholder has no value at this moment, such as an attribute that a reply did not have, or one of no use."""


def typed(value: Any) -> Any:
    """A plain value as DynamoDB writes it; one that is typed stays, a placeholder takes the type of what it names."""
    from boto3.dynamodb.types import TypeSerializer

    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in _TAGS:
            return value
        return {"M": {name: typed(inner) for name, inner in value.items()}}
    if isinstance(value, list):
        return {"L": [typed(inner) for inner in value]}
    if isinstance(value, str) and (match := _SHORT.fullmatch(value)) and not match[1]:
        return {"?": value}  # its type is that of what it will stand for
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return {"N": str(value)}  # boto3 raises an arithmetic error where a number is too long
    return TypeSerializer().serialize(value)


def names_in(value: Any) -> set[str]:
    """The names of all placeholders in a value with its texts."""
    if isinstance(value, dict):
        return set().union(*(names_in(inner) for inner in value.values()))
    if isinstance(value, list):
        return set().union(*(names_in(inner) for inner in value))
    if not isinstance(value, str):
        return set()
    found = (match[2] or match[3] for match in _SHORT.finditer(value) if not match[1])
    return {term for expression in found for term in _TERM.split(expression.strip())[::2] if not term.isdecimal()}


def filled(value: Any, known: Bindings) -> Any:
    """The value with the placeholders of all its texts filled in; Unbound names the first that cannot be."""
    if isinstance(value, dict):
        if "?" in value and len(value) == 1:
            found = _text(value["?"], known)
            return found if isinstance(found, dict) else typed(found)
        if len(value) == 1 and isinstance(value.get("S", value.get("N")), str):  # numbers are written as text
            return {tag: str(_plain(_text(inner, known))) for tag, inner in value.items()}
        return {name: filled(inner, known) for name, inner in value.items()}
    if isinstance(value, list):  # a text in a list is a member of a set
        return [str(_plain(_text(v, known))) if isinstance(v, str) else filled(v, known) for v in value]
    return _text(value, known) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """The content of a typed scalar, as when the attribute of a reply stands inside another value."""
    return next(iter(value.values())) if isinstance(value, dict) and {*value} <= {"S", "N"} and value else value


def _text(text: str, known: Bindings) -> Any:
    """What a text stands for: a single placeholder keeps its type, several and those between letters give a text."""
    whole = _SHORT.fullmatch(text)
    if whole and not whole[1]:
        return _value(whole[2] or whole[3], known)
    return _SHORT.sub(lambda match: match[1] or str(_plain(_value(match[2] or match[3], known))), text)


def _value(expression: str, known: Bindings) -> Any:
    terms = _TERM.split(expression.strip())
    if len(terms) == 1:
        return _named(terms[0], known)
    try:
        numbers = [int(_plain(_named(term, known))) for term in terms[::2]]
    except (TypeError, ValueError):
        raise Unbound(f"${{{expression}}}, of which a part is no whole number") from None
    return sum((n if sign == "+" else -n for sign, n in zip(terms[1::2], numbers[1:], strict=True)), numbers[0])


def _named(term: str, known: Bindings) -> Any:
    if term.isdecimal():
        return int(term)
    if term not in known:
        raise Unbound(f"${term}, which has no value here")
    return known[term]
