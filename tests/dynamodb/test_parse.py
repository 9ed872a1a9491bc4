"""A request file that cannot be meant is refused in one sentence that names the file and the operation."""

from __future__ import annotations

import copy
import json

import pytest

from fencinglab.dynamodb.parse import parse
from fencinglab.dynamodb.sending import refused
from fencinglab.errors import InputError

KEY = {"id": {"S": "$resource"}}
GOOD = {
    "table": {
        "TableName": "jobs", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    },
    "start": {"id": "$resource", "token": 8, "kept": "9"},
    "operations": {
        "acquire": {"kind": "grant", "update-item": {
            "TableName": "jobs", "Key": KEY, "UpdateExpression": "SET leaseOwner = :w, #exp = :e ADD fencingToken :one",
            "ConditionExpression": "attribute_not_exists(leaseOwner) OR #exp <= :now",
            "ExpressionAttributeNames": {"#exp": "expires"}, "ReturnValues": "ALL_NEW",
            "ExpressionAttributeValues": {":w": "$worker", ":e": "$expiry", ":one": 1, ":now": {"N": "$now"}},
        }},
        "finish": {"kind": "finish", "update-item": {
            "TableName": "jobs", "Key": KEY, "UpdateExpression": "SET outcome = :v",
            "ConditionExpression": "fencingToken = :t", "ExpressionAttributeValues": {":v": "$value", ":t": "$token"},
        }},
    },
    "program": ["acquire", "finish"],
    "map": {"token": "fencingToken", "holder": "leaseOwner", "expires_at": "expires"},
    "given": {"resource": "job-1", "lease": 60},
}  # fmt: skip
DROP = object()


def changed(path: str, value: object) -> str:
    """The good file with one place changed, or dropped; the places of a path are joined by `/`."""
    made = copy.deepcopy(GOOD)
    *above, last = path.split("/")
    inner = made
    for name in above:
        inner = inner[int(name) if name.isdecimal() else name]
    if value is DROP:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(made)


def test_the_good_file_is_read():
    """What is written plainly is typed, kinds and names are kept, and a mock refuses none of its requests."""
    file = parse(json.dumps(GOOD), "jobs.json")

    assert file.start == (("jobs", {"id": {"?": "$resource"}, "token": {"N": "8"}, "kept": {"S": "9"}}),)
    assert [(use.operation, use.optional) for use in file.program] == [("acquire", False), ("finish", False)]
    assert file.of_kind("grant") == ("acquire",)
    assert file.token == "$acquire.fencingToken"
    assert refused(file) is None


FINISH, ACQUIRE = "operations/finish/update-item", "operations/acquire/update-item"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("table", DROP, "`table` is missing"),
        ("programme", [], "the file has no `programme`.*nearest: `program`"),
        ("table/KeySchema", DROP, "`table` lacks KeySchema"),
        ("table/KeySchema/0/KeyType", "MAIN", DROP),
        ("start", {"token": 1}, "`start`: its key lacks id"),
        ("start", [{"TableName": "job", "Item": {"id": "x"}}], "`job` is not in `table`; it has jobs"),
        ("operations/finish", {"update-item": {}, "put-item": {}}, "operation `finish` has 2 requests; it is exactly one"),
        ("operations/finish/update-itme", {}, "operation `finish` has no `update-itme`.*nearest: `update-item`"),
        ("operations/finish/kind", "ending", "`ending` is no kind; allowed: read, delete"),
        ("operations/finish/kind", "read", "only get-item reads"),
        ("operations/finish/expects", {"a": 1}, "only get-item reads"),
        (f"{FINISH}/Key", DROP, 'operation `finish`: Missing required parameter in input: "Key"'),
        (f"{FINISH}/Kye", {}, 'operation `finish`: Unknown parameter in input: "Kye"'),
        (f"{FINISH}/TableName", "work", "operation `finish`: `work` is not in `table`"),
        (f"{FINISH}/Key", {"ID": "x"}, "operation `finish`: its key lacks id"),
        (f"{FINISH}/ExpressionAttributeValues/:v", "$valeu", r"operation `finish`: unknown placeholder `\$valeu` \(nearest: `value`"),
        (f"{FINISH}/ExpressionAttributeValues/:v", "$aquire.x", r"`\$aquire.x` is of no operation \(nearest: `acquire`"),
        (f"{FINISH}/ExpressionAttributeValues/:v", {"N": 41}, "operation `finish`: Invalid type for parameter"),
        (f"{FINISH}/ExpressionAttributeValues/:x", 1, "operation `finish`: ExpressionAttributeValues gives :x, which no expression"),
        (f"{FINISH}/ConditionExpression", "fencingToken = :tok", "operation `finish`: its expressions use :tok"),
        (f"{FINISH}/ConditionExpression", "#t = :t", "operation `finish`: its expressions use #t"),
        ("program", [], "`program` is a list"),
        ("program", ["acquire", "finsh"], "`program` names `finsh`, which is no operation .nearest: `finish`"),
        ("program", ["acquire"], "operation `finish` is never used"),
        ("creates", ["enqueue"], "`creates` names `enqueue`"),
        ("creates", "acquire", "`creates` is a list of texts"),
        ("terminal", "DONE", "`terminal` is a list of texts"),
        ("table", [], "`table` is empty"),
        ("operations", {}, "no operation is of the kind grant"),
        ("given/now", 1, "`given` has `now`, which a run binds"),
        ("given/lease", DROP, r"`\$expiry` needs the length of a lease"),
        ("given/resource", DROP, r"unknown placeholder `\$resource`"),
        ("given/lease", -1, "`given` has lease -1; it is a length in whole seconds, 1 to"),
        ("given/lease", 1e300, "`given` has lease .1E.300."),
        ("given/lease", "60", "`given` has lease .60."),
        ("map/holder", {}, "`map` has holder {}; it is the name of an attribute"),
        ("start/fencingToken", {"N": "abc"}, "`start`: {.N.: .abc.} is no number of at most 38 digits"),
        ("start/fencingToken", {"N": "9" * 39}, "is no number of at most 38 digits"),
        ("start/fencingToken", 10**38 + 1, "is no number of at most 38 digits"),
        ("start/fencingToken", 12 * 10**400, "is no number of at most 38 digits"),
        ("start/fencingToken", {"N": 1}, "`start`: Invalid type for parameter"),
        ("start/id", {"N": "1"}, "`start`: key attribute id is {.N.: .1.}; in `table` it is of type S"),
        (f"{FINISH}/Key", {"id": ""}, "operation `finish`: key attribute id is {.S.: ..}"),
        (f"{FINISH}/ExpressionAttributeValues/:v", {"N": "x"}, "operation `finish`: {.N.: .x.} is no number"),
        (f"{FINISH}/ExpressionAttributeValues/:v", {"NS": ["$token", "x"]}, "operation `finish`: {.N.: .x.} is no number"),
        ("claims", {"hold": []}, "`claims` has no `hold`"),
        ("claims", {"holds": "order"}, "`claims`: `holds` is a list"),
        ("map", [], "`map` must be a JSON object, not list"),
        ("map/tokn", "fencingToken", "`map` has no `tokn` .nearest: `token`; allowed: token, holder"),
        ("operations/fi nish", {"get-item": {"TableName": "jobs", "Key": KEY}}, "`fi nish`: a name is letters"),
    ],
)  # fmt: skip
def test_a_fault_of_the_file_is_named(path, value, sentence):
    """Each fault that the file alone shows is one sentence with the file's name and the operation's."""
    with pytest.raises(InputError, match="jobs.json: " + ("" if sentence is DROP else ".*" + sentence)) as caught:
        file = parse(changed(path, value), "jobs.json")
        refused(file)  # what only DynamoDB says, such as an unknown key type
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("UpdateExpression", "SET result = :v", "Attribute name is a reserved keyword; reserved keyword: result"),
        ("ConditionExpression", "fencingToken = :t AND status = :t", "reserved keyword"),
        ("UpdateExpression", "SET a = :v, a = :t", "Two document paths overlap"),
        ("UpdateExpression", "SET a = :v, a.b = :v", "Two document paths overlap"),
        ("UpdateExpression", "SETT a = :v", "Syntax error"),
        ("UpdateExpression", "SET id = :v", "part of the key"),
        ("UpdateExpression", "SET a = :v ADD kept :t", "incorrect"),
        ("ConditionExpression", "fencingToken = = :t", "Bad comparison"),
        ("ConditionExpression", "(fencingToken = :t", "Unmatched"),
        ("ConditionExpression", "attribute_exist(a) AND fencingToken = :t", ""),
        ("ReturnValues", "ALL", "Return values set to invalid value"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("token", [8, 9], ids=["met", "not met"])
def test_what_dynamodb_would_refuse_is_named(part, value, message, token):
    """Reserved words, overlapping paths and bad syntax are told before anything runs, whatever the condition says."""
    raw = json.loads(changed(f"{FINISH}/{part}", value))
    raw["start"]["fencingToken"] = token
    file = parse(json.dumps(raw), "jobs.json")

    with pytest.raises(InputError, match=f"jobs.json: operation `finish` would be refused: .*{message}"):
        refused(file)


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "null", '{"table": 3}', "9" * 5000, "[" * 100_000])
def test_what_is_no_file_is_said(text):
    """A text that is not JSON, not an object or beyond what can be read is refused in one sentence."""
    with pytest.raises(InputError, match=r"^jobs.json: ") as caught:
        parse(text, "jobs.json")
    assert "\n" not in str(caught.value)
