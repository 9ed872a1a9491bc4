"""A request file with only some operations, completed by another one, whose table, item and other operations it takes.

An operation stands in for the one of its name, else for the first of its kind. Both files must mean the same item: the
same key of the table, and the same attribute for the same column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fencinglab.dynamodb.parse import NEEDED, kind_of, listed
from fencinglab.dynamodb.requests import ACTIONS, Requests, Use, places, singles
from fencinglab.errors import InputError

Raw = dict[str, Any]  # a file as JSON says it


def lacks(raw: Raw) -> bool:
    """Whether a file lacks a part, or an operation that its own program names."""
    named = {str(use).removesuffix("?") for use in [*(raw.get("program") or []), *(raw.get("creates") or [])]}
    return not raw.keys() >= {*NEEDED} or not named <= {*raw["operations"]}


def completed(raw: Raw, rest: Raw, name: str, of: str) -> Raw:
    """The file `raw`, called `name`, with what it lacks from the file `rest`, called `of`.

    `rest` is a whole file that can be read. What does not fit is an InputError.
    """
    own: dict[str, Raw] = raw.get("operations") or {}
    rest = _renamed(rest, *_table(own, rest, name, of))
    theirs: dict[str, Raw] = rest["operations"]
    own = {n: {"kind": kind_of(theirs[n]), **one} if n in theirs else one for n, one in own.items()}
    _keys(own, rest, name, of)
    mapped = _mapped(raw.get("map") or {}, rest["map"], name, of)
    program = raw.get("program") or _program(own, rest, name, of)
    creates = [*(raw.get("creates") or rest.get("creates") or [])]
    wanted = dict.fromkeys([*(str(use).removesuffix("?") for use in program), *creates])
    taken = {n: theirs[n] for n in wanted if n in theirs and n not in own}
    kept = {n: rest[n] for n in ("table", "start", "terminal", "token") if n in rest and n not in raw}
    if kept.get("token", "").strip("${}").partition(".")[0] not in {*own, *taken}:
        kept.pop("token", None)
    return raw | kept | {
        "operations": own | taken, "program": program, "map": mapped, "creates": creates,
        "given": rest.get("given", {}) | raw.get("given", {}),
    }  # fmt: skip


def told(file: Requests, own: Raw, rest: Requests) -> Requests:
    """The completed file with what was taken from `rest`; an operation of `own` on an item of its own is refused."""
    known = {*places(rest._replace(name=file.name)), *places(file._replace(operations={}))}
    for name, place in ((one.operation, one.place) for one in singles(file, own.get("operations", {}))):
        if place not in known:
            item = place.key if place.table == rest.tables[0]["TableName"] else f"{place.table} {place.key}"
            raise InputError(
                f"{file.name}: operation `{name}` is about the item {item}, which {rest.name} does not know; "
                f"name its key as {rest.name} does, and its placeholders in `given`"
            )
    return file._replace(rest=rest.name, taken=tuple(n for n in file.operations if n not in own.get("operations", {})))


def _table(own: Mapping[str, Raw], rest: Raw, name: str, of: str) -> tuple[str, str]:
    """The name of the table in the rest, and how the file calls it."""
    there = [table["TableName"] for table in listed(rest["table"])]
    here = dict.fromkeys(str(one.get("TableName")) for _, one in _requests(own))
    if not here.keys() - {*there}:
        return there[0], there[0]
    if len(here) > 1 or len(there) > 1:
        raise InputError(
            f"{name}: its tables {', '.join(here)} are not those of {of}, {', '.join(there)}; use one name"
        )
    return there[0], next(iter(here))


def _keys(own: Mapping[str, Raw], rest: Raw, name: str, of: str) -> None:
    """The operations name their items by the key of the rest's table."""
    keys = {
        table["TableName"]: [part["AttributeName"] for part in table["KeySchema"]] for table in listed(rest["table"])
    }
    for operation, one in _requests(own):
        wanted = keys.get(str(one.get("TableName")), [])
        found = one["Key"] if "Key" in one else [part for part in wanted if part in one.get("Item", ())]
        if isinstance(found, (dict, list)) and {*map(str, found)} != {*wanted}:
            raise InputError(
                f"{name}: operation `{operation}`: its key is {', '.join(map(str, found)) or 'missing'}, that of "
                f"{of} is {', '.join(wanted)}; --rest needs a file whose table has the same key"
            )


def _mapped(own: Mapping[str, str], theirs: Mapping[str, str], name: str, of: str) -> dict[str, str]:
    for column in own.keys() & theirs.keys():
        if own[column] != theirs[column]:
            raise InputError(
                f"{name}: `map` has `{own[column]}` for {column}, {of} has `{theirs[column]}`; --rest needs a file "
                f"that calls the attribute alike"
            )
    return {**theirs, **own}


def _program(own: Mapping[str, Raw], rest: Raw, name: str, of: str) -> list[str]:
    """The program of the rest, with the operations of the file in their places."""
    uses = [Use(use.removesuffix("?"), use.endswith("?")) for use in rest["program"]]
    for operation in (one for one in own if one not in rest["operations"]):
        kind, free = kind_of(own[operation]), [n for n, use in enumerate(uses) if use.operation not in own]
        place = next((n for n in free if kind_of(rest["operations"][uses[n].operation]) == kind), None)
        if place is None:
            raise InputError(
                f"{name}: operation `{operation}` is of the kind {kind}, of which the program of {of} has none to "
                f"stand in for; name it in `program`"
            )
        uses[place] = uses[place]._replace(operation=operation)
    return [f"{use.operation}{'?' * use.optional}" for use in uses]


def _requests(own: Mapping[str, Any]) -> Iterator[tuple[str, Raw]]:
    """The single requests of all operations, each with its operation; what is no request is left to the reader."""
    for name, one in own.items():
        for action in ACTIONS if isinstance(one, dict) else ():
            if isinstance(one.get(action), dict):
                yield from ((name, single) for single in _singles(one[action]))


def _singles(given: Raw) -> list[Raw]:
    """The single requests of an input whose shape nobody has checked yet."""
    entries = given.get("TransactItems", [{"": given}])
    whole = entries if isinstance(entries, list) else []
    found = (single for entry in whole if isinstance(entry, dict) for single in entry.values())
    return [single for single in found if isinstance(single, dict)]


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {n: new if n == "TableName" and v == old else _renamed(v, old, new) for n, v in value.items()}
    return [_renamed(inner, old, new) for inner in value] if isinstance(value, list) else value
