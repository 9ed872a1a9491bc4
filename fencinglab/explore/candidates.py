"""The conditions that a repair may add to the operations of a request file, in the file's own names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.expression import conjuncts
from fencinglab.dynamodb.placeholders import Unbound
from fencinglab.dynamodb.requests import READ, Item, Operation, Place, Requests, singles
from fencinglab.explore.team import Team

NAMES = {  # in the order in which they are preferred
    "token": "the token is the worker's",
    "owner": "the lease is the worker's",
    "not terminal": "it is not finished",
    "operation unused": "this operation was not carried out before",
    "unexpired": "the lease has not run out",
}
_TERMINAL = "terminal"  # with a number: that one of the terminal statuses
_ENTRIES = {"update-item": "Update", "put-item": "Put", "delete-item": "Delete"}


class Candidate(NamedTuple):
    """A condition that an operation could have."""

    name: str  # of NAMES
    operation: str
    place: Place  # of the item that it asks
    attribute: str
    form: str  # of the condition, with {} for the attribute and the placeholders of the file for values
    tag: str = "S"  # of the attribute's values

    @property
    def why(self) -> str:
        """What it asks, in words."""
        return NAMES[self.name]

    @property
    def says(self) -> str:
        """The condition, with its placeholders as values."""
        return self.form.format(self.attribute).replace("$", ":")


def candidates(team: Team) -> list[Candidate]:
    """Every condition that a repair may add, the most telling first; none that an operation already has."""
    return [
        one
        for name in NAMES
        for use in dict.fromkeys(use.operation for use in team.program)
        for one in _of(team, name, team.file.operations[use])
        if not _there(team.file, one)
    ]


def repaired(team: Team, chosen: Iterable[Candidate]) -> Requests:
    """The file of the team with these conditions in it."""
    operations = dict(team.file.operations)
    for one in chosen:
        operations[one.operation] = _added(team.file, operations[one.operation], one)
    return team.file._replace(operations=operations)


def _of(team: Team, name: str, operation: Operation) -> Iterator[Candidate]:
    """The condition of that name for an operation, where the file has what it asks for."""
    file, kind = team.file, operation.kind
    if kind == READ or (kind == "grant" and name != "not terminal"):
        return
    match name:
        case "token" if _token_known(team):
            yield from _at(team, name, operation, "token", "{} = $token")
        case "owner":
            yield from _at(team, name, operation, "holder", "{} = $worker")
        case "unexpired":
            yield from _at(team, name, operation, "expires_at", "{} > $now")
        case "not terminal":
            ended = [*_at(team, name, operation, "terminal_version", "attribute_not_exists({})")]
            statuses = ", ".join(f"${_TERMINAL}{number}" for number in range(len(file.terminal)))
            yield from ended or (_at(team, name, operation, "status", f"NOT {{}} IN ({statuses})") if statuses else ())
        case "operation unused":
            yield from _unused(file, operation)


def _at(team: Team, name: str, operation: Operation, column: str, form: str) -> Iterator[Candidate]:
    attribute = team.file.map.get(column, "")
    if found := _seen(team, attribute):
        yield Candidate(name, operation.name, files.places(team.file)[found[0]], attribute, form, found[1])


def _seen(team: Team, attribute: str) -> tuple[int, str] | None:
    """The number of the first item in which the attribute was ever seen, and the type of its value."""
    return min(
        (
            (number, tag)
            for _, _, _, sent in team.asked_for
            for number, text in enumerate(sent.items)
            for tag in json.loads(text or "{}").get(attribute, ())
        ),
        default=None,
    )


def _token_known(team: Team) -> bool:
    """Whether a worker learns its token."""
    for operation, _, _, sent in team.asked_for:
        if sent.decision == "accepted" and sent.reply is not None:
            try:
                files.token(team.file, files.learned(operation, json.loads(sent.reply)))
            except Unbound:
                continue
            return True
    return False


def _unused(file: Requests, operation: Operation) -> Iterator[Candidate]:
    """By the set to which the operation adds its id, else by the attribute in which it stores it."""
    for single in singles(file, [operation.name]):
        for form, given, between in (
            ("NOT contains({}, $operation)", {"SS": ["$operation"]}, r"\s+"),
            ("{} <> $operation", {"S": "$operation"}, r"\s*=\s*"),
        ):
            own = "|".join(re.escape(name) for name, value in single.values.items() if value == given)
            if own and (found := re.search(rf"([#\w]+){between}(?:{own})\b", single.update)):
                attribute = single.names.get(found[1], found[1])
                yield Candidate("operation unused", operation.name, single.place, attribute, form)
                return


def _there(file: Requests, one: Candidate) -> bool:
    """Whether the operation has the condition already."""
    operation = file.operations[one.operation]
    return _added(file, operation, one) == operation


# --------------------------------------------------------------------------- into a request


def _added(file: Requests, operation: Operation, one: Candidate) -> Operation:
    """The operation with the condition, in a transaction where it asks an item that the operation does not touch."""
    given = operation.input
    if one.place not in {files.place_of(file, single) for _, single in files.entries(given)}:
        check = {
            "TableName": one.place.table,
            "Key": _key(file, one.place),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        entry = {"ConditionCheck": _with(check, file, one)}
        alone = {name: value for name, value in given.items() if name != "ReturnValues"}
        others = given.get("TransactItems") or [{_ENTRIES[operation.action]: alone}]
        return operation._replace(action="transact-write-items", input={"TransactItems": [entry, *others]})

    def asking(single: dict[str, Any]) -> dict[str, Any]:
        return _with(single, file, one) if files.place_of(file, single) == one.place else single

    return operation._replace(input=files.each(given, asking))


def _key(file: Requests, place: Place) -> Item:
    """The key of the item as the file writes it."""
    return next((single.key for single in singles(file) if single.place == place), json.loads(place.key))


def _with(single: dict[str, Any], file: Requests, one: Candidate) -> dict[str, Any]:
    """The single request with the condition, unless it has it; names and values that are there are used again."""
    names, values = dict(single.get("ExpressionAttributeNames", {})), dict(single.get("ExpressionAttributeValues", {}))
    attribute = _name(names, one.attribute)
    form = one.form.format(attribute)
    for placeholder in re.findall(r"\$(\w+)", form):
        number = placeholder.removeprefix(_TERMINAL)
        text = file.terminal[int(number)] if number.isdecimal() else f"${placeholder}"
        form = re.sub(rf"\${placeholder}\b", _value(values, placeholder, {one.tag: text}), form)
    condition = single.get("ConditionExpression", "")
    parts = conjuncts(condition)
    if form in parts:
        return single
    if len(parts) == 1 and re.search(r"\bOR\b", condition, re.IGNORECASE):
        condition = f"({condition})"
    expressions = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    made = {**single, "ConditionExpression": f"{condition} AND {form}" if condition else form}
    return made | {name: given for name, given in expressions.items() if given}


def _name(names: dict[str, str], attribute: str) -> str:
    """How an expression names the attribute; a reserved word gets a name of its own."""
    from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

    for name, meant in names.items():
        if meant == attribute:
            return name
    if re.fullmatch(r"[A-Za-z_]\w*", attribute) and attribute.upper() not in ReservedKeywords.get_reserved_keywords():
        return attribute
    name = "#" + re.sub(r"\W", "_", attribute)
    names[name] = attribute
    return name


def _value(values: dict[str, Any], wanted: str, value: Any) -> str:
    """The name of this value in an expression, a new one where there is none."""
    for name, given in values.items():
        if given in (value, {"?": value.get("S", value.get("N"))}):
            return name
    name = ":" + re.sub(r"\W", "_", wanted)
    while name in values:
        name += "_"
    values[name] = value
    return name
