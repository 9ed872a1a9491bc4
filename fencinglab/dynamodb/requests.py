"""Request files: the conditional writes of a team as data, in the shape that `aws dynamodb … --cli-input-json` takes.

One JSON object; `FILE` says what each of its names holds, and `data/requests/` has files to start from. In every text a
placeholder stands for what only a run knows: `PLACEHOLDERS` lists them. Attribute values may be typed ({"N": "60"}) or
plain (60), as boto3's resources take them. `bind` fills a request in, and the result runs unchanged with the AWS CLI.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fencinglab.errors import InputError

FILE = {
    "says": "one sentence: what these requests do or what is wrong with them",
    "comment": "anything, here and in an operation; nothing reads it",
    "table": "TableName, KeySchema and AttributeDefinitions of the table; of several, a list",
    "start": "the item before anybody acquires, or a list; {TableName, Item} where there are several tables",
    "operations": "name -> {kind, REQUEST: its input}, where REQUEST is one of the five of ACTIONS",
    "creates": "the operations by which an item comes to be, again after a deletion; may be left out",
    "program": "the operations in the order in which a worker uses them; `?` behind one that it may leave out",
    "token": "how a worker knows its token; left out: it is in the reply to the operation of the kind grant",
    "map": "column of the history -> attribute; looked up in the first item of `start`, then in the others",
    "terminal": "the statuses that nothing leaves",
    "given": "further placeholders -> what they stand for unless a run says otherwise",
    "claims": "invariants of the explorer that it holds and breaks, under which hazards; what is redundant without any",
}
PLACEHOLDERS = {
    "worker": "the name of the worker that sends it",
    "token": "the token of its grant",
    "now": "its clock, in seconds",
    "expiry": "now and the length of a lease, `lease` of `given`",
    "operation": "an id of this one operation, the same when it is repeated",
    "value": "the result that it brings",
    "NAME": "one of `given`",
    "OPERATION.ATTRIBUTE": "an attribute of the reply that an earlier operation of this worker got",
    "A + B": "a whole number, written ${now + 30} or ${look.fencingToken + 1}; `-` likewise",
}
ACTIONS = {
    "update-item": "update_item", "put-item": "put_item", "delete-item": "delete_item", "get-item": "get_item",
    "transact-write-items": "transact_write_items",
}  # fmt: skip
READ = "read"  # the kind of an operation that changes nothing
NUMBERS = ("token", "now", "expiry")
BOUND = ("worker", "operation", "value", *NUMBERS)
TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"})
SHORT = re.compile(r"\$(?:(\$)|\{([^{}$]*)\}|(\w+(?:\.\w+)?))")  # $$, ${now + 30}, $worker, $look.fencingToken
TERM = re.compile(r"\s*([+-])\s*")

Item = dict[str, Any]  # as DynamoDB writes it: {"fencingToken": {"N": "42"}}
Items = tuple[str | None, ...]  # the items as `frozen` writes them, None where there is none; in the order of `places`
Bindings = Mapping[str, Any]  # placeholder -> text or number; `OPERATION.ATTRIBUTE` -> typed value


class Place(NamedTuple):
    """Where an item lies."""

    table: str
    key: str  # its key attributes, frozen


class Operation(NamedTuple):
    """One request with its placeholders."""

    name: str
    kind: str  # of the history's kinds, or read
    action: str  # of ACTIONS
    input: dict[str, Any]
    expects: Item  # of a read: what the reply must show, or else the worker stops


class Use(NamedTuple):
    """One step of a worker's program."""

    operation: str
    optional: bool


class Claims(NamedTuple):
    """What the file says of itself; an exploration holds it to its word."""

    holds: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    redundant: tuple[str, ...] = ()  # `operation: condition`, for each that two workers do not need without a hazard


class Requests(NamedTuple):
    """A request file, read and checked."""

    name: str
    says: str
    tables: tuple[dict[str, Any], ...]
    start: tuple[tuple[str, Item], ...]  # table and item, the protected resource first
    operations: dict[str, Operation]
    creates: tuple[str, ...]
    program: tuple[Use, ...]
    token: str
    map: dict[str, str]
    terminal: tuple[str, ...]
    given: dict[str, Any]
    claims: Claims
    rest: str = ""  # the file that supplied what this one lacks
    taken: tuple[str, ...] = ()  # the operations that it supplied

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The names of the operations of this kind, in the order of the program."""
        return tuple(use.operation for use in self.program if self.operations[use.operation].kind == kind)

    @property
    def taking(self) -> tuple[str, ...]:
        """What a worker sends to acquire: all up to the grant, and the reads behind it that its token comes from."""
        names = [use.operation for use in self.program]
        [grant, *_] = [place for place, name in enumerate(names) if self.operations[name].kind == "grant"]
        sources = {name.partition(".")[0] for name in names_in(self.token)}
        return (*names[: grant + 1], *(name for name in names[grant + 1 :] if name in sources))

    def reads_before(self, name: str) -> tuple[str, ...]:
        """The reads that stand directly before an operation of the program and have something that they expect."""
        names = [use.operation for use in self.program]
        found: list[str] = []
        for before in reversed(names[: names.index(name)] if name in names else []):
            if not self.operations[before].expects:
                break
            found.insert(0, before)
        return tuple(found)


class Request(NamedTuple):
    """A request as it is sent. `text` is its input as JSON with sorted names: equal texts are equal requests."""

    operation: str
    action: str
    text: str

    @property
    def input(self) -> dict[str, Any]:
        """What boto3's method takes as keywords, and `aws dynamodb ACTION --cli-input-json` as JSON."""
        made: dict[str, Any] = json.loads(self.text)
        return made


class Unbound(InputError):
    """A placeholder has no value at this moment, such as an attribute that a reply did not have."""


def bind(file: Requests, operation: str, bindings: Bindings) -> Request:
    """The request with every placeholder filled in; Unbound names the operation and the first that cannot be."""
    one = file.operations[operation]
    try:
        filled = _filled(one.input, _known(file, bindings))
    except Unbound as error:
        raise Unbound(f"{file.name}: operation `{operation}` needs {error}") from None
    return Request(operation, one.action, frozen(filled))


def token(file: Requests, bindings: Bindings) -> int:
    """The token by which the worker knows its grant, from the replies in `bindings`; Unbound where they lack it."""
    try:
        value = _filled(file.token, _known(file, bindings))
        return int(next(iter(value.values())) if isinstance(value, dict) else value)
    except (Unbound, ValueError) as error:
        raise Unbound(f"{file.name}: the token, {file.token}, is not known ({error})") from None


def learned(operation: str, reply: Item | None) -> dict[str, Any]:
    """What a reply adds to the bindings of the worker that got it."""
    return {f"{operation}.{name}": value for name, value in (reply or {}).items()}


def expected(file: Requests, operation: str, reply: Item | None, bindings: Bindings) -> bool:
    """Whether a reply shows what the operation expects, so that the worker goes on; true where it expects nothing."""
    wanted = _filled(file.operations[operation].expects, _known(file, bindings))
    return all((reply or {}).get(name) == value for name, value in wanted.items())


def places(file: Requests, bindings: Bindings | None = None) -> tuple[Place, ...]:
    """Where the items lie that the file's operations touch: those of `start` first, the protected resource foremost."""
    known = _known(file, {"now": 0, **(bindings or {})})
    keys = [(table, key_of(file, table, item)) for table, item in file.start]
    for one in file.operations.values():
        keys += [(s["TableName"], key_of(file, s["TableName"], s.get("Key") or s["Item"])) for s in singles(one.input)]
    try:
        return tuple(dict.fromkeys(Place(table, frozen(_filled(key, known))) for table, key in keys))
    except Unbound as error:
        raise InputError(f"{file.name}: a key needs {error}; it may be made of `given` only") from None


def places_of(file: Requests, operation: Operation) -> tuple[Place, ...]:
    """Where the single requests of one operation go, in their order."""
    return places(file._replace(start=(), operations={operation.name: operation}))


def begin(file: Requests, bindings: Bindings | None = None) -> Items:
    """The items of `start` in their places."""
    known = _known(file, {"now": 0, **(bindings or {})})
    lying = {Place(t, frozen(_filled(key_of(file, t, i), known))): frozen(_filled(i, known)) for t, i in file.start}
    return tuple(lying.get(place) for place in places(file, bindings))


def renamed(file: Requests, name: Callable[[str], str]) -> Requests:
    """The file with other names for its tables."""

    def table(one: Mapping[str, Any]) -> dict[str, Any]:
        return {**one, "TableName": name(one["TableName"])}

    def request(one: dict[str, Any]) -> dict[str, Any]:
        if "TransactItems" not in one:
            return table(one)
        return one | {"TransactItems": [{k: table(single) for k, single in e.items()} for e in one["TransactItems"]]}

    return file._replace(
        tables=tuple(map(table, file.tables)),
        start=tuple((name(old), item) for old, item in file.start),
        operations={known: one._replace(input=request(one.input)) for known, one in file.operations.items()},
    )


def singles(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The single requests that an input is made of: those of a transaction, or the one."""
    entries = request.get("TransactItems")
    return [dict(request)] if entries is None else [one for entry in entries for one in entry.values()]


def conditions(file: Requests) -> list[dict[str, str]]:
    """A row for each single request of the file: its operation, the kind, and what it asks of the item."""
    return [
        {"operation": name, "kind": one.kind, "condition": single.get("ConditionExpression", "")}
        for name, one in file.operations.items()
        for single in singles(one.input)
    ]


def key_of(file: Requests, table: str, item: Item) -> Item:
    """The key attributes of an item of this table."""
    schema = next(t["KeySchema"] for t in file.tables if t["TableName"] == table)
    return {part["AttributeName"]: item[part["AttributeName"]] for part in schema}


def frozen(value: Any) -> str:
    """A JSON value as text that is equal where the value is: sorted names, sets in order."""
    return json.dumps(_in_order(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def typed(value: Any) -> Any:
    """A plain value as DynamoDB writes it; one that is typed stays, a placeholder takes the type of what it names."""
    from boto3.dynamodb.types import TypeSerializer

    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in TAGS:
            return value
        return {"M": {name: typed(inner) for name, inner in value.items()}}
    if isinstance(value, list):
        return {"L": [typed(inner) for inner in value]}
    if isinstance(value, str) and (match := SHORT.fullmatch(value)) and not match[1]:
        return {"?": value}  # its type is that of what it will stand for
    return TypeSerializer().serialize(value)


# --------------------------------------------------------------------------- placeholders


def _known(file: Requests, bindings: Bindings) -> dict[str, Any]:
    known = {**file.given, **bindings}
    if "now" in known and "lease" in known:
        known.setdefault("expiry", int(known["now"]) + int(known["lease"]))
    return known


def _filled(value: Any, known: Bindings) -> Any:
    """The value with the placeholders of all its texts filled in."""
    if isinstance(value, dict):
        if "?" in value and len(value) == 1:
            found = _text(value["?"], known)
            return found if isinstance(found, dict) else typed(found)
        if len(value) == 1 and isinstance(value.get("S", value.get("N")), str):  # numbers are written as text
            return {tag: str(_plain(_text(inner, known))) for tag, inner in value.items()}
        return {name: _filled(inner, known) for name, inner in value.items()}
    if isinstance(value, list):  # a text in a list is a member of a set
        return [str(_plain(_text(v, known))) if isinstance(v, str) else _filled(v, known) for v in value]
    return _text(value, known) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """The content of a typed scalar, as when the attribute of a reply stands inside another value."""
    return next(iter(value.values())) if isinstance(value, dict) and {*value} <= {"S", "N"} and value else value


def _text(text: str, known: Bindings) -> Any:
    """What a text stands for: a single placeholder keeps its type, several and those between letters give a text."""
    whole = SHORT.fullmatch(text)
    if whole and not whole[1]:
        return _value(whole[2] or whole[3], known)
    return SHORT.sub(lambda match: match[1] or str(_plain(_value(match[2] or match[3], known))), text)


def _value(expression: str, known: Bindings) -> Any:
    terms = TERM.split(expression.strip())
    if len(terms) == 1:
        return _named(terms[0], known)
    numbers = [int(_plain(_named(term, known))) for term in terms[::2]]
    return sum((n if sign == "+" else -n for sign, n in zip(terms[1::2], numbers[1:], strict=True)), numbers[0])


def _named(term: str, known: Bindings) -> Any:
    if term.isdecimal():
        return int(term)
    if term not in known:
        raise Unbound(f"${term}, which has no value here")
    return known[term]


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            n: sorted(v) if n in ("SS", "NS", "BS") and isinstance(v, list) else _in_order(v) for n, v in value.items()
        }
    return [_in_order(inner) for inner in value] if isinstance(value, list) else value


def names_in(value: Any) -> set[str]:
    """The names of all placeholders in a value with its texts."""
    if isinstance(value, dict):
        return set().union(*(names_in(inner) for inner in value.values()))
    if isinstance(value, list):
        return set().union(*(names_in(inner) for inner in value))
    if not isinstance(value, str):
        return set()
    found = (match[2] or match[3] for match in SHORT.finditer(value) if not match[1])
    return {term for expression in found for term in TERM.split(expression.strip())[::2] if not term.isdecimal()}
