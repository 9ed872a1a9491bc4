"""A request file read from JSON, and refused in one sentence where it cannot be meant.

Here is checked what the file alone shows: its names, its placeholders, its program, the shape of each request as the
AWS CLI checks it. `refused` asks a mock of its own about the rest, such as reserved words and overlapping paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from fencinglab.dynamodb import expression
from fencinglab.dynamodb.fidelity import kept
from fencinglab.dynamodb.mock import session
from fencinglab.dynamodb.placeholders import BOUND, names_in, typed
from fencinglab.dynamodb.requests import ACTIONS, COLUMNS, FILE, READ, Claims, Item, Operation, Requests, Use, entries
from fencinglab.errors import InputError, nearest
from fencinglab.history import KINDS

_LONGEST_LEASE = 10**9  # seconds
_VALUED = ("Key", "Item", "ExpressionAttributeValues")
_EXPRESSIONS = ("UpdateExpression", "ConditionExpression", "ProjectionExpression")
NO_ACQUIRE = (
    "no operation is of the kind grant, by which a worker acquires; add it, or let `check --rest request-status` "
    "supply what is missing"
)
NEEDED = ("table", "start", "operations", "program", "map")


def parse(text: str, name: str) -> Requests:
    """The request file in this text; `name` is how its errors call it."""
    return made(read(text, name), name)


def read(text: str, name: str) -> dict[str, Any]:
    """The JSON object that a request file is, whole or not."""
    try:
        raw = json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: not JSON (line {error.lineno}: {error.msg}); a request file is one object") from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{name}: has a number or a nesting of thousands; a request file is some pages of JSON"
        ) from None
    _object(raw, name, "the file")
    _only(name, "the file", raw, FILE)
    for part in ("map", "given", "operations"):
        _object(raw.get(part, {}), name, f"`{part}`")
    _only(name, "`map`", raw.get("map", {}), COLUMNS)
    for part in ("program", "creates", "terminal"):
        if not isinstance(raw.get(part, []), list) or not all(isinstance(one, str) for one in raw.get(part, [])):
            raise InputError(f"{name}: `{part}` is a list of texts ({FILE[part]})")
    for operation, one in raw.get("operations", {}).items():
        _object(one, name, f"operation `{operation}`")
    return dict(raw)


def made(raw: dict[str, Any], name: str) -> Requests:
    """The request file in an object as `read` gives it."""
    missing = next((needed for needed in NEEDED if raw.get(needed, {}) == {}), "")
    if missing and not any(one.get("kind") == "grant" for one in raw.get("operations", {}).values()):
        raise InputError(f"{name}: {NO_ACQUIRE}")
    if missing:
        raise InputError(f"{name}: `{missing}` is missing ({FILE[missing]}); `check --rest` takes it from another file")
    tables = _tables(raw["table"], name)
    start = tuple(_start(one, tables, name) for one in listed(raw["start"]))
    given = raw.get("given", {})
    for clash in given.keys() & {*BOUND}:
        raise InputError(f"{name}: `given` has `{clash}`, which a run binds by itself; choose another name")
    lease = given.get("lease", 1)
    if not isinstance(lease, int) or isinstance(lease, bool) or not 0 < lease <= _LONGEST_LEASE:
        said = json.dumps(lease, default=str)
        raise InputError(f"{name}: `given` has lease {said}; it is a length in whole seconds, 1 to {_LONGEST_LEASE:,}")
    for column, attribute in raw["map"].items():
        if not isinstance(attribute, str) or not attribute:
            raise InputError(f"{name}: `map` has {column} {attribute!r}; it is the name of an attribute")
    operations = {operation: _operation(operation, one, tables, name) for operation, one in raw["operations"].items()}
    creates = _named_operations(raw.get("creates", []), "creates", operations, name)
    program = _program(raw["program"], operations, creates, name)
    grants = [use.operation for use in program if operations[use.operation].kind == "grant"]
    token = raw.get("token") or f"${grants[0] if grants else 'acquire'}.{raw['map'].get('token', 'fencingToken')}"
    file = Requests(
        name, raw.get("says", ""), tables, start, operations, creates, program, token, dict(raw["map"]),
        tuple(raw.get("terminal", ())), given, _claims(raw.get("claims", {}), name),
    )  # fmt: skip
    _check_placeholders(file)
    return file


# --------------------------------------------------------------------------- the parts of a file


def _tables(raw: Any, name: str) -> tuple[dict[str, Any], ...]:
    tables = tuple(_object(one, name, "`table`") for one in listed(raw))
    if not tables:
        raise InputError(f"{name}: `table` is empty ({FILE['table']})")
    for table in tables:
        for needed in ("TableName", "KeySchema", "AttributeDefinitions"):
            if needed not in table:
                raise InputError(f"{name}: `table` lacks {needed}; it is what create-table takes")
        made = {"BillingMode": "PAY_PER_REQUEST", **table}
        if fault := _shape("CreateTable", made):
            raise InputError(f"{name}: `table` {table['TableName']}: {fault}")
    return tables


def _start(raw: Any, tables: tuple[dict[str, Any], ...], name: str) -> tuple[str, Item]:
    one = _object(raw, name, "`start`")
    whole = {*one} == {"TableName", "Item"}
    if len(tables) > 1 and not whole:
        raise InputError(f"{name}: an item of `start` does not say its table; write {{TableName, Item}}")
    table, item = (one["TableName"], one["Item"]) if whole else (tables[0]["TableName"], one)
    made = {attribute: typed(value) for attribute, value in item.items()}
    if fault := _shape("PutItem", {"TableName": table, "Item": made}):
        raise InputError(f"{name}: `start`: {fault}")
    _key_attributes(table, tables, name, "`start`", made)
    return table, made


def _operation(operation: str, one: dict[str, Any], tables: tuple[dict[str, Any], ...], name: str) -> Operation:
    where = f"operation `{operation}`"
    if not operation.isidentifier():
        raise InputError(f"{name}: {where}: a name is letters, digits and underscores")
    _only(name, where, one, {"kind", "expects", "comment", *ACTIONS})
    actions = [action for action in ACTIONS if action in one]
    if len(actions) != 1:
        raise InputError(f"{name}: {where} has {len(actions)} requests; it is exactly one of {', '.join(ACTIONS)}")
    [action] = actions
    kind = kind_of(one)
    if kind not in (READ, *KINDS):
        raise InputError(f"{name}: {where}: `{kind}` is no kind; allowed: {READ}, {', '.join(KINDS)}")
    expects = _object(one.get("expects", {}), name, f"{where}: `expects`")
    if (kind == READ or expects) and action != "get-item":
        raise InputError(f"{name}: {where}: only get-item reads and has something that it `expects`")
    request = _attribute_values(_object(one[action], name, where))
    made = Operation(operation, kind, action, request, {n: typed(v) for n, v in expects.items()})
    if fault := _shape("".join(part.capitalize() for part in action.split("-")), request):
        raise InputError(f"{name}: {where}: {fault}")
    for _, given in entries(request):
        _single(f"{name}: {where}", given)
        key = given.get("Key", given.get("Item", {}))
        _key_attributes(given["TableName"], tables, name, where, key)
    return made


def _single(where: str, request: Mapping[str, Any]) -> None:
    """Names and values that an expression uses are given, and the other way round."""
    texts = [request[text] for text in _EXPRESSIONS if text in request]
    used = set().union(*map(expression.placeholders, texts)) if texts else set()
    for sign, given in ((":", "ExpressionAttributeValues"), ("#", "ExpressionAttributeNames")):
        there, wanted = {*request.get(given, {})}, {one for one in used if one[0] == sign}
        for one in sorted(wanted - there):
            raise InputError(f"{where}: its expressions use {one}, which {given} does not give")
        for one in sorted(there - wanted):
            raise InputError(f"{where}: {given} gives {one}, which no expression uses; DynamoDB refuses that")


def _program(raw: list[str], operations: Mapping[str, Operation], creates: Iterable[str], name: str) -> tuple[Use, ...]:
    if not raw:
        raise InputError(
            f"{name}: `program` is a list of operations in the order of their use, `?` behind an optional one"
        )
    program = tuple(Use(one.removesuffix("?"), one.endswith("?")) for one in raw)
    names = _named_operations([use.operation for use in program], "program", operations, name)
    for one in operations:
        if one not in (*names, *creates):
            raise InputError(
                f"{name}: operation `{one}` is never used; name it in `program`, with `?` if it is optional"
            )
    return program


def _named_operations(raw: list[str], where: str, operations: Mapping[str, Operation], name: str) -> tuple[str, ...]:
    for one in raw:
        if one not in operations:
            raise InputError(f"{name}: `{where}` names `{one}`, which is no operation{_nearest(one, operations)}")
    return tuple(raw)


def _claims(raw: Any, name: str) -> Claims:
    one = _object(raw, name, "`claims`")
    _only(name, "`claims`", one, Claims._fields)
    for part in one:
        if not isinstance(one[part], list):
            raise InputError(f"{name}: `claims`: `{part}` is a list of names")
    return Claims(*(tuple(one.get(part, ())) for part in Claims._fields))


def _check_placeholders(file: Requests) -> None:
    """Every placeholder stands for something that a run can know when the operation is sent."""
    known = {*BOUND, *file.given}
    parts: list[tuple[str, Any]] = [("`token`", file.token)]
    parts += [(f"operation `{one.name}`", [one.input, one.expects]) for one in file.operations.values()]
    parts += [("`start`", [item for _, item in file.start])]
    for where, value in parts:
        for found in sorted(names_in(value)):
            head, dot, _ = found.partition(".")
            if dot and head not in file.operations:
                raise InputError(
                    f"{file.name}: {where}: `${found}` is of no operation{_nearest(head, file.operations)}"
                )
            if not dot and found not in known:
                raise InputError(f"{file.name}: {where}: unknown placeholder `${found}`{_nearest(found, known)}")
    if "lease" not in known and any("expiry" in names_in(one.input) for one in file.operations.values()):
        raise InputError(f"{file.name}: `$expiry` needs the length of a lease in seconds: `lease` in `given`")


# --------------------------------------------------------------------------- shapes


def _attribute_values(request: Any) -> Any:
    """The input of a request with all its attribute values typed; what has another shape is left for `_shape`."""
    if isinstance(request, list):
        return [_attribute_values(one) for one in request]
    if not isinstance(request, dict):
        return request
    return {
        part: {name: typed(one) for name, one in value.items()}
        if part in _VALUED and isinstance(value, dict)
        else _attribute_values(value)
        for part, value in request.items()
    }


def _shape(method: str, given: Mapping[str, Any]) -> str:
    """What is wrong with the names, types and numbers of a request, as the AWS CLI and DynamoDB find it; or nothing."""
    from botocore.validate import ParamValidator

    stood_in = _stood_in(given)
    shapes = session().get_service_model("dynamodb")
    report = ParamValidator().validate(stood_in, shapes.operation_model(method).input_shape)
    if report.has_errors():
        return str(report.generate_report()).splitlines()[0]
    try:
        json.loads(json.dumps(stood_in), object_hook=kept)
    except ValueError as error:
        return str(error)
    return ""


def _stood_in(value: Any, number: bool = False) -> Any:
    """The request with something of its type in place of each value that is known only in a run."""
    if isinstance(value, dict):
        return {"S": "?"} if {*value} == {"?"} else {n: _stood_in(v, n in ("N", "NS")) for n, v in value.items()}
    if isinstance(value, list):
        return [_stood_in(inner, number) for inner in value]
    return "0" if number and isinstance(value, str) and "$" in value else value


def _key_attributes(
    table: str, tables: tuple[dict[str, Any], ...], name: str, where: str, item: Mapping[str, Any]
) -> None:
    found = next((one for one in tables if one["TableName"] == table), None)
    if found is None:
        raise InputError(
            f"{name}: {where}: `{table}` is not in `table`; it has {', '.join(t['TableName'] for t in tables)}"
        )
    types = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    for attribute in (part["AttributeName"] for part in found["KeySchema"]):
        if attribute not in item:
            raise InputError(f"{name}: {where}: its key lacks {attribute}, a key attribute of {table}")
        [(tag, value)] = item[attribute].items()
        if tag not in ("?", types.get(attribute, tag)) or value == "":
            raise InputError(
                f"{name}: {where}: key attribute {attribute} is {json.dumps(item[attribute])}; "
                f"in `table` it is of type {types.get(attribute)}, and it cannot be empty"
            )


def _object(raw: Any, name: str, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InputError(f"{name}: {what} must be a JSON object, not {type(raw).__name__}")
    return raw


def _only(name: str, where: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    for one in given:
        if one not in {*allowed}:
            raise InputError(f"{name}: {where} has no `{one}`{_nearest(one, allowed)}")


def kind_of(one: Mapping[str, Any]) -> Any:
    """The kind of an operation as a file says it, which it need not for a read and a write."""
    return one.get("kind", READ if "get-item" in one else "write")


def listed(raw: Any) -> list[Any]:
    """The members of what may stand alone or in a list."""
    return raw if isinstance(raw, list) else [raw]


def _nearest(name: str, allowed: Iterable[str]) -> str:
    listed = list(allowed)
    return f" (nearest: `{nearest(name, listed, 1)[0]}`; allowed: {', '.join(listed)})"
