"""Requests that ask less: without one part of a condition, or as a version has them that does not fence."""

from __future__ import annotations

from typing import Any

from fencinglab.dynamodb.expression import conjuncts, placeholders
from fencinglab.dynamodb.requests import READ, Operation, Requests, each, singles


def weaker(file: Requests, operation: str, condition: str) -> Requests:
    """The file with one condition of one operation less."""
    one = file.operations[operation]
    return file._replace(operations={**file.operations, operation: one._replace(input=without(one.input, condition))})


def without(given: dict[str, Any], condition: str) -> dict[str, Any]:
    """The input without that part of its conditions, and without the values that only it used."""
    return each(given, lambda one: _without(one, condition))


def _without(given: dict[str, Any], condition: str) -> dict[str, Any]:
    if condition not in conjuncts(given.get("ConditionExpression", "")):
        return given
    rest = [part for part in conjuncts(given["ConditionExpression"]) if part != condition]
    made = {name: value for name, value in given.items() if name != "ConditionExpression"}
    if rest:
        made["ConditionExpression"] = " AND ".join(rest)
    used = placeholders(" ".join(str(made.get(name, "")) for name in ("ConditionExpression", "UpdateExpression")))
    for name in ("ExpressionAttributeValues", "ExpressionAttributeNames"):
        kept = {key: value for key, value in made.pop(name, {}).items() if key in used}
        made |= {name: kept} if kept else {}
    return made


def unfenced(file: Requests) -> Requests:
    """The file as a version has it that asks for neither token nor owner, except when it acquires."""
    operations = {name: _unfenced(file, one) for name, one in file.operations.items()}
    return file._replace(operations=operations)


def _unfenced(file: Requests, one: Operation) -> Operation:
    if one.kind in ("grant", READ):
        return one
    asked = {file.map[column] for column in ("token", "holder", "written_token") if column in file.map}
    given = one.input
    for single in singles(file, [one.name]):
        for part in single.parts:
            if single.looked_at(part) & asked:
                given = without(given, part)
    return one._replace(input=given)
