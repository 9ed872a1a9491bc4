"""Request files: the conditional writes of a team as data, in the shape that `aws dynamodb … --cli-input-json` takes.

One JSON object; `FILE` says what each of its names holds, and `data/requests/` has files to start from. Attribute
values may be typed ({"N": "60"}) or plain (60), as boto3's resources take them. `bind` fills the placeholders of a
request in, and the result runs unchanged with the AWS CLI.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fencinglab.dynamodb import expression
from fencinglab.dynamodb.placeholders import Bindings, Unbound, filled, names_in
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
ACTIONS = {
    "update-item": "update_item", "put-item": "put_item", "delete-item": "delete_item", "get-item": "get_item",
    "transact-write-items": "transact_write_items",
}  # fmt: skip
COLUMNS = (  # that `map` may name
    "token", "holder", "expires_at", "status", "terminal_version", "version", "value", "written_token", "writer",
    "operation", "next_poll", "alert", "ttl",
)  # fmt: skip
READ = "read"  # the kind of an operation that changes nothing

Item = dict[str, Any]  # as DynamoDB writes it: {"fencingToken": {"N": "42"}}
Items = tuple[str | None, ...]  # the items as `frozen` writes them, None where there is none; in the order of `places`


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
    """What the file says of itself, in the words of the explorer; `tests/explore/claims.py` holds files to it."""

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
    def replies(self) -> frozenset[str]:
        """The attributes of replies that a request, an expectation or the token names, each `OPERATION.ATTRIBUTE`."""
        every = [[one.input, one.expects] for one in self.operations.values()]
        return frozenset(name for name in names_in([every, self.token]) if "." in name)

    @property
    def token_from(self) -> frozenset[str]:
        """The operations whose replies tell the token."""
        return frozenset(name.partition(".")[0] for name in names_in(self.token) if "." in name)

    @property
    def taking(self) -> tuple[str, ...]:
        """What a worker sends to acquire: all up to the grant, and the reads behind it that its token comes from."""
        names = [use.operation for use in self.program]
        [grant, *_] = [place for place, name in enumerate(names) if self.operations[name].kind == "grant"]
        return (*names[: grant + 1], *(name for name in names[grant + 1 :] if name in self.token_from))

    def reads_before(self, name: str) -> tuple[str, ...]:
        """The reads directly before an operation of the program that expect something, or tell what it names."""
        names = [use.operation for use in self.program]
        told = {one.partition(".")[0] for one in names_in(self.operations[name].input) if "." in one}
        found: list[str] = []
        for before in reversed(names[: names.index(name)] if name in names else []):
            one = self.operations[before]
            if one.kind != READ or not (one.expects or before in told):
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


class Single(NamedTuple):
    """One single request of an operation, as the file has it or as it is sent; a transaction has several."""

    operation: str
    place: Place  # of the item that it is about
    key: Item  # of that item, as it stands here
    item: Item  # that it puts; empty: it puts none
    update: str
    condition: str
    names: dict[str, str]
    values: dict[str, Any]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its condition, which must all hold; none where it asks nothing."""
        return expression.conjuncts(self.condition)

    def looked_at(self, text: str) -> set[str]:
        """The attributes that its condition, or a part of it, looks at."""
        return expression.attributes(text, self.names)

    def compared(self, text: str) -> dict[str, Any]:
        """The values that its condition, or a part of it, compares with, by their placeholders."""
        return {name: self.values[name] for name in expression.placeholders(text) if name in self.values}

    def unmet(self, item: Item) -> list[str]:
        """The parts of its condition that an item (empty: there is none) does not meet."""
        return [part for part in self.parts if expression.fails(part, self.names, self.values, item)]


def bind(file: Requests, operation: str, bindings: Bindings) -> Request:
    """The request with every placeholder filled in; Unbound names the operation and the first that cannot be."""
    one = file.operations[operation]
    try:
        return Request(operation, one.action, frozen(filled(one.input, _known(file, bindings))))
    except Unbound as error:
        raise Unbound(f"{file.name}: operation `{operation}` needs {error}") from None


def token(file: Requests, bindings: Bindings) -> int:
    """The token by which the worker knows its grant, from the replies in `bindings`; Unbound where they lack it."""
    try:
        value = filled(file.token, _known(file, bindings))
        return int(next(iter(value.values())) if isinstance(value, dict) else value)
    except (Unbound, ValueError) as error:
        raise Unbound(f"{file.name}: the token, {file.token}, is not known ({error})") from None


def learned(operation: str, reply: Item | None) -> dict[str, Any]:
    """What a reply adds to the bindings of the worker that got it."""
    return {f"{operation}.{name}": value for name, value in (reply or {}).items()}


def expected(file: Requests, operation: str, reply: Item | None, bindings: Bindings) -> bool:
    """Whether a reply shows what the operation expects, so that the worker goes on; true where it expects nothing."""
    try:
        wanted = filled(file.operations[operation].expects, _known(file, bindings))
    except Unbound as error:
        raise Unbound(f"{file.name}: what operation `{operation}` expects needs {error}") from None
    return all((reply or {}).get(name) == value for name, value in wanted.items())


def entries(request: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The single requests that an input is made of, each with what it is: those of a transaction, or the one."""
    if "TransactItems" not in request:
        return [("", dict(request))]
    return [found for entry in request["TransactItems"] for found in entry.items()]


def each(request: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """The input with each of its single requests changed."""
    if "TransactItems" not in request:
        return change(request)
    made = [{what: change(one) for what, one in entry.items()} for entry in request["TransactItems"]]
    return request | {"TransactItems": made}


def singles(file: Requests, of: Iterable[str] | None = None, bindings: Bindings | None = None) -> list[Single]:
    """The single requests of these operations of the file, else of all, in their order and with their placeholders.

    Where their items lie `bindings` and the file's `given` say; InputError where a key needs more.
    """
    known = _known(file, {"now": 0, **(bindings or {})})
    names = file.operations if of is None else of
    return [_single(file, name, one, known) for name in names for _, one in entries(file.operations[name].input)]


def singles_sent(file: Requests, request: Request) -> list[Single]:
    """The single requests of a request, as they are sent."""
    return [_single(file, request.operation, one, None) for _, one in entries(request.input)]


def conditions(file: Requests) -> list[dict[str, str]]:
    """A row for each single request of the file: its operation, the kind, and what it asks of the item."""
    return [
        {"operation": one.operation, "kind": file.operations[one.operation].kind, "condition": one.condition}
        for one in singles(file)
    ]


def places(file: Requests, bindings: Bindings | None = None) -> tuple[Place, ...]:
    """Where the items lie that the file's operations touch: those of `start` first, the protected resource foremost."""
    known = _known(file, {"now": 0, **(bindings or {})})
    start = (_place(file, table, key_of(file, table, item), known) for table, item in file.start)
    return tuple(dict.fromkeys((*start, *(one.place for one in singles(file, bindings=bindings)))))


def place_of(file: Requests, request: Mapping[str, Any]) -> Place:
    """Where the item lies that a single request of the file is about."""
    return _place(file, request["TableName"], key_in(file, request), _known(file, {"now": 0}))


def counters(file: Requests, bindings: Bindings | None = None) -> frozenset[Place]:
    """Where the items lie that a grant changes, with the token counter."""
    known = _known(file, {"now": 0, **(bindings or {})})
    grants = [one.input for one in file.operations.values() if one.kind == "grant"]
    changed = [one for given in grants for what, one in entries(given) if what != "ConditionCheck"]
    return frozenset(_place(file, one["TableName"], key_in(file, one), known) for one in changed)


def begin(file: Requests, bindings: Bindings | None = None) -> Items:
    """The items of `start` in their places."""
    known = _known(file, {"now": 0, **(bindings or {})})
    lying = {_place(file, t, key_of(file, t, item), known): frozen(filled(item, known)) for t, item in file.start}
    return tuple(lying.get(place) for place in places(file, bindings))


def renamed(file: Requests, name: Callable[[str], str]) -> Requests:
    """The file with other names for its tables."""

    def table(one: Mapping[str, Any]) -> dict[str, Any]:
        return {**one, "TableName": name(one["TableName"])}

    return file._replace(
        tables=tuple(map(table, file.tables)),
        start=tuple((name(old), item) for old, item in file.start),
        operations={known: one._replace(input=each(one.input, table)) for known, one in file.operations.items()},
    )


def key_of(file: Requests, table: str, item: Item) -> Item:
    """The key attributes of an item of this table."""
    schema = next(t["KeySchema"] for t in file.tables if t["TableName"] == table)
    return {part["AttributeName"]: item[part["AttributeName"]] for part in schema}


def key_in(file: Requests, request: Mapping[str, Any]) -> Item:
    """The key attributes of the item that a single request is about."""
    return key_of(file, request["TableName"], request.get("Key") or request["Item"])


def frozen(value: Any) -> str:
    """A JSON value as text that is equal where the value is: sorted names, sets in order."""
    return json.dumps(_in_order(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _single(file: Requests, operation: str, one: dict[str, Any], known: Bindings | None) -> Single:
    key = key_in(file, one)
    return Single(
        operation, _place(file, one["TableName"], key, known), key, one.get("Item", {}),
        one.get("UpdateExpression", ""), one.get("ConditionExpression", ""),
        one.get("ExpressionAttributeNames", {}), one.get("ExpressionAttributeValues", {}),
    )  # fmt: skip


def _place(file: Requests, table: str, key: Item, known: Bindings | None) -> Place:
    """Where the item of this key lies; without `known` it has no placeholders."""
    try:
        return Place(table, frozen(key if known is None else filled(key, known)))
    except Unbound as error:
        raise InputError(f"{file.name}: a key needs {error}; it may be made of `given` only") from None


def _known(file: Requests, bindings: Bindings) -> dict[str, Any]:
    known = {**file.given, **bindings}
    if "now" in known and "lease" in known:
        known.setdefault("expiry", int(known["now"]) + int(known["lease"]))
    return known


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            n: sorted(v) if n in ("SS", "NS", "BS") and isinstance(v, list) else _in_order(v) for n, v in value.items()
        }
    return [_in_order(inner) for inner in value] if isinstance(value, list) else value
