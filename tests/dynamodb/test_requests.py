"""Placeholders are filled in, values typed, and equal requests have equal texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencinglab.dynamodb import requests, shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.dynamodb.placeholders import Unbound, names_in, typed
from fencinglab.dynamodb.requests import bind, expected, frozen, learned, singles, singles_sent, token

FILE = shelf.find("request-status")
KNOWN = {"worker": "A", "token": 41, "now": 1000, "operation": "A/1", "value": "hash"}


def of(update: dict, **more) -> requests.Requests:
    """A file with one more operation, `probe`, whose input has these parts."""
    key = {"requestId": {"S": "$resource"}}
    given = {
        "table": FILE.tables[0], "start": {"requestId": "r"}, "map": {"token": "fencingToken"},
        "given": {"resource": "r", "lease": 60, "delay": 30, "share": "a$b"}, "program": ["acquire", "look", "probe"],
        "operations": {
            "acquire": {"kind": "grant", "update-item": {"TableName": "request-status", "Key": key}},
            "look": {"get-item": {"TableName": "request-status", "Key": key}},
            "probe": {"put-item": {"TableName": "request-status", "Item": {"requestId": "r", **update}}},
        },
    }  # fmt: skip
    return parse(json.dumps(given | more), "probe.json")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ({"N": "$token"}, {"N": "41"}),
        ({"S": "$token"}, {"S": "41"}),
        ("$token", {"N": "41"}),  # plain: a number stays one
        ("$worker", {"S": "A"}),
        ({"N": "$expiry"}, {"N": "1060"}),
        ({"N": "${now + delay}"}, {"N": "1030"}),
        ("${now - 1 + delay}", {"N": "1029"}),
        ("${look.fencingToken + 1}", {"N": "43"}),
        ({"S": "${look.fencingToken}"}, {"S": "42"}),
        ("$look.fencingToken", {"N": "42"}),
        ("$look.done", {"SS": ["x"]}),  # the attribute as it is
        ("report#${resource}/$worker", {"S": "report#r/A"}),
        ("cost: $$5", {"S": "cost: $5"}),
        ({"S": "$share"}, {"S": "a$b"}),  # what is filled in is not looked at again
        ({"SS": ["$operation", "-"]}, {"SS": ["-", "A/1"]}),
        (["$token", {"deep": "$worker"}], {"L": [{"N": "41"}, {"M": {"deep": {"S": "A"}}}]}),
        (7, {"N": "7"}), (1.5, {"N": "1.5"}), (True, {"BOOL": True}), (None, {"NULL": True}), ("x", {"S": "x"}),
        (12345678901234567890123456789012345678, {"N": "12345678901234567890123456789012345678"}),
    ],
)  # fmt: skip
def test_values(written, sent):
    """A value is sent with its placeholders filled in and typed, whether it was written typed or plain."""
    file = of({"probe": written})
    known = KNOWN | learned("look", {"fencingToken": {"N": "42"}, "done": {"SS": ["x"]}})

    assert frozen(bind(file, "probe", known).input["Item"]["probe"]) == frozen(sent)


def test_what_is_not_known_is_named():
    """A placeholder without a value is an error that names the file, the operation and the placeholder."""
    with pytest.raises(
        Unbound, match=r"request-status.json: operation `finish` needs \$token, which has no value here"
    ):
        bind(FILE, "finish", {"worker": "A", "now": 1, "operation": "A/1", "value": "v"})
    with pytest.raises(Unbound, match=r"needs \$look.fencingToken"):
        bind(of({"t": "$look.fencingToken"}), "probe", KNOWN | learned("look", None))
    with pytest.raises(
        Unbound, match=r"operation `probe` needs \$\{now \+ worker\}, of which a part is no whole number"
    ):
        bind(of({"t": "${now + worker}"}), "probe", KNOWN)
    look = shelf.find("broken-check-then-write")
    with pytest.raises(
        Unbound, match=r"what operation `look_before_finish` expects needs \$worker, which has no value"
    ):
        expected(look, "look_before_finish", None, {})
    with pytest.raises(Unbound, match="the token, .* is not known"):
        token(FILE, {})


def test_token_is_found_where_the_file_says():
    """The token is in the reply to the grant, or what `token` says."""
    assert token(FILE, learned("acquire", {"fencingToken": {"N": "42"}})) == 42
    assert token(of({}, token="${look.fencingToken + 1}"), learned("look", {"fencingToken": {"S": "9"}})) == 10
    assert token(shelf.find("broken-token-read-after"), learned("learn_token", {"fencingToken": {"N": "7"}})) == 7


def test_a_read_may_expect():
    """A worker goes on after a read only if the reply shows all that the operation expects."""
    file = shelf.find("broken-check-then-write")
    held = {"leaseOwner": {"S": "A"}, "fencingToken": {"N": "41"}, "attempt": {"N": "1"}}

    assert expected(file, "look_before_finish", held, KNOWN)
    assert not expected(file, "look_before_finish", held | {"fencingToken": {"N": "42"}}, KNOWN)
    assert not expected(file, "look_before_finish", None, KNOWN)
    assert expected(file, "finish", None, KNOWN)


@given(st.dictionaries(st.text(max_size=3), st.sets(st.text(max_size=3), min_size=1)), st.randoms())
def test_frozen_is_equal_where_the_item_is(sets, random):
    """Neither the order of attributes nor that of a set's members changes the text of an item."""
    item = [(name, {"SS": list(members)}) for name, members in sets.items()]
    mixed = [(name, {"SS": random.sample(value["SS"], len(value["SS"]))}) for name, value in item]
    random.shuffle(mixed)

    assert frozen(dict(item)) == frozen(dict(mixed))
    assert frozen({"a": {"L": [{"N": "1"}, {"N": "2"}]}}) != frozen({"a": {"L": [{"N": "2"}, {"N": "1"}]}})


@given(st.text())
def test_text_without_a_dollar_stands_for_itself(text):
    """A text is sent as it is written, except for the dollar sign, which is doubled."""
    file = of({"probe": {"S": text.replace("$", "$$")}})

    assert bind(file, "probe", KNOWN).input["Item"]["probe"] == {"S": text}
    assert names_in(text.replace("$", "$$")) == set()


def test_typed_leaves_typed():
    """A typed value stays; a map with one attribute that is named as no type is a map."""
    assert typed({"N": "1"}) == {"N": "1"}
    assert typed({"n": 1}) == {"M": {"n": {"N": "1"}}}


@pytest.mark.parametrize("name", shelf.names())
def test_single_requests(name):
    """Written or sent, an operation has the same single requests, and all parts of a condition together are the condition."""
    file = shelf.find(name)
    for operation, one in file.operations.items():
        replies = {name: {"N": "1"} for name in names_in(one.input) if "." in name}
        request = bind(file, operation, KNOWN | replies)
        written, sent = singles(file, [operation]), singles_sent(file, request)

        assert [s._replace(key={}, item={}, values={}) for s in written] == [
            s._replace(key={}, item={}, values={}) for s in sent
        ]
        assert [frozen(s.key) for s in sent] == [s.place.key for s in written]
        assert len(sent) == request.text.count('"TableName"')
        assert [" AND ".join(s.parts) for s in sent] == [s.condition for s in sent]


def test_conditions_are_listed():
    """Every single request has a row, those of a transaction each its own."""
    rows = requests.conditions(shelf.find("lease-beside-resource"))

    assert [row["operation"] for row in rows].count("finish") == 2
    assert all("fencingToken = :token" in row["condition"] for row in rows if row["kind"] in ("renew", "release"))


def test_a_read_is_sent_before_what_names_its_reply():
    """A read directly before an operation that takes something from it belongs to it, also where it expects nothing."""
    file = shelf.find("broken-check-then-write")
    look = file.operations["look_before_response"]._replace(expects={})
    other = file._replace(operations={**file.operations, look.name: look})
    write = file.operations["record_response"]
    named = write._replace(input={**write.input, "Key": {"requestId": {"S": f"${look.name}.requestId"}}})

    assert file.reads_before("record_response") == ("look_before_response",)
    assert other.reads_before("record_response") == ()
    assert other._replace(operations={**other.operations, write.name: named}).reads_before("record_response") == (
        "look_before_response",
    )
