"""Records come out of every wrapping they are archived in, and whole values out of broken texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from fencinglab.logs import unwrap
from fencinglab.logs.detect import Detected
from fencinglab.logs.inputs import File

RECORDS = worlds.jobs()[:4]
ONE, TWO, THREE, FOUR = RECORDS
SHAPES = {"lines": Detected("dynamodb-stream", "lines"), "documents": Detected("dynamodb-stream", "documents")}


@pytest.fixture
def con():
    """A fresh database."""
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def put(tmp_path):
    """Write a file of some shape and give it as inputs.py does."""

    def write(text: str, shape: str = "lines", name: str = "log.json") -> File:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return File(name, path, 0, "0" * 64, len(text), text.count("\n") + 1, 0, SHAPES[shape])

    return write


@pytest.fixture
def work(tmp_path):
    """An empty folder for copies."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def opened(con: duckdb.DuckDBPyConnection, value: Any) -> list[Any]:
    """What is inside one JSON value."""
    source = "(select 'p' as path, 1::bigint as line, ?::json as value)"
    found = con.execute(f"select record, index, siblings from {unwrap.records(source)}", [dumps(value)]).fetchall()
    assert [(index, siblings) for _, index, siblings in found] == [(n, len(found)) for n in range(1, len(found) + 1)]
    return [None if record is None else json.loads(record) for record, _, _ in found]


# --- what is inside a value ---

EVENT = {"Records": RECORDS}
SNS = {"Type": "Notification", "Message": dumps(EVENT), "MessageId": "m"}
WRAPPED = {
    "a record": (ONE, [ONE]),
    "an array": (RECORDS, RECORDS),
    "a Lambda event": (EVENT, RECORDS),
    "an event in lower case": ({"records": [ONE, TWO]}, [ONE, TWO]),
    "an array of events": ([{"Records": [ONE, TWO]}, {"Records": [THREE]}], [ONE, TWO, THREE]),
    "a time window": ({"Records": [ONE], "window": {"start": "s", "end": "e"}, "state": {}, "shardId": "x"}, [ONE]),
    "a failure destination": ({"version": "1.0", "DDBStreamBatchInfo": {}, "payload": EVENT}, RECORDS),
    "a failure destination with a text": ({"payload": dumps(EVENT)}, RECORDS),
    "EventBridge": ({"detail-type": "x", "source": "y", "detail": ONE}, [ONE]),
    "SQS messages, each an event": ({"Messages": [{"Body": dumps(EVENT)}]}, RECORDS),
    "SQS to Lambda, each body a record": ({"Records": [{"body": dumps(ONE)}, {"body": dumps(TWO)}]}, [ONE, TWO]),
    "SNS": (SNS, RECORDS),
    "SNS in SQS": ({"Messages": [{"Body": dumps(SNS)}, {"Body": dumps(SNS)}]}, RECORDS * 2),
    "SNS in SQS to Lambda": ({"Records": [{"body": dumps(SNS)}]}, RECORDS),
    "nothing": ({"Records": []}, []),
    "no events": ([], []),
    # no record: the value itself, so that it can be set aside
    "another object": ({"a": 1}, [{"a": 1}]),
    "a number": (5, [5]),
    "a message that is no JSON": ({"Body": "hello"}, [None]),
    "null": (None, [None]),
}


@pytest.mark.parametrize(("value", "expected"), WRAPPED.values(), ids=WRAPPED)
def test_trap_10_records_out_of_every_wrapping(con, value, expected):
    """Each wrapper gives its records in their order, texts that hold JSON are opened, and what is no record stays to be seen."""
    assert opened(con, value) == expected


def test_a_record_is_not_opened_further(con):
    """A record whose item has attributes called like wrappers stays whole."""
    record = ONE | {"dynamodb": {"Keys": {"Records": {"S": "x"}}, "NewImage": {"Message": {"S": "{}"}}}}

    assert opened(con, record) == [record]


# --- whole values in a broken text ---

A, B = '{"eventID":"a"}', '{"eventID":"b"}'
TEXTS = {
    "one value": (A, [A]),
    "two without anything between": (A + B, [A, B]),
    "two on two lines": (f"{A}\n{B}\n", [A, B]),
    "an array": (f"[{A},{B}]", [A, B]),
    "a container": (f'{{"Records":[{A},{B}]}}', [A, B]),
    "a container with members after it": (f'{{"Records": [{A}], "window": {{"a": "]}}"}}, "x": 1}} {B}', [A, B]),
    "two containers": (f'{{"Records":[{A}]}}{{"records":[{B}]}}', [A, B]),
    "a container that is cut": (f'{{"Records":[{A},{{"eventID":"b","dyna', [A, ('{"eventID":"b","dyna',)]),
    "an array that is cut": (f"[{A},{B[:5]}", [A, (B[:5],)]),
    "a broken value first": (f'{{"eventID":"b",,}}{A}', [('{"eventID":"b",,}',), A]),
    "a broken value between": (f'[{A},{{"eventID":x}},{B}]', [A, ('{"eventID":x},',), B]),
    "a wrapper that is cut": (f'{{"v":"1.0","payload":{{"Records":[{A},{{"even', [A, ('{"even',)]),
    "text": ("hello", [("hello",)]),
    "text before": (f"hello {A}", [("hello ",), A]),
    "a member alone": ('"status": "x",', [('"status"',), (': "x",',)]),
    "brackets alone": ("]}, ]", []),
    "nothing": ("", []),
    "deep nesting": ("[" * 50, []),
    "deep objects": ('{"a":' * 100_000, [('{"a":' * 100_000,)]),
}


def texts(content: str) -> list[Any]:
    """What `pieces` finds: a text for a value, a tuple of it for what is broken; a JSON text counts as broken here too."""
    found = [(content[begin:end], whole) for begin, end, whole in unwrap.pieces(content)]
    return [text if whole and text.startswith("{") else (text,) for text, whole in found]


@pytest.mark.parametrize(("content", "expected"), TEXTS.values(), ids=TEXTS)
def test_whole_values_in_a_text(content, expected):
    """Every whole value is found, and every stretch that is none is given once, with what stands round it left out."""
    assert texts(content) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.sampled_from(["eventID", "a", "}{", "Records\\"]), values, min_size=1, max_size=3)


@settings(deadline=None)
@given(st.lists(objects, max_size=4), st.sampled_from(["\n", "", ",", " \n\t"]), st.integers(0, 60))
def test_what_stands_before_a_cut_is_found(found, between, cut):
    """Of values one after the other, cut off anywhere, those before the cut are found whole, and one broken one at most."""
    parts = [dumps(value) for value in found]
    ends = [len(between.join(parts[: n + 1])) for n in range(len(parts))]
    content = between.join(parts)[: max(0, ends[-1] - cut)] if parts else ""
    pieces = [(content[begin:end], whole) for begin, end, whole in unwrap.pieces(content)]

    assert [text for text, whole in pieces if whole] == parts[: sum(end <= len(content) for end in ends)]
    assert sum(not whole for _, whole in pieces) <= 1


# --- lines ---


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_keep_their_numbers(con, put, work, newline):
    """Blank lines are left out and counted, whatever ends a line; what is no JSON has no value."""
    content = newline.join(["", dumps(ONE), "  ", "{cut", dumps(TWO), "", "\x01\x02", "[]"]) + newline
    found = con.execute(
        f"select line, value is null from {unwrap.text_lines([put(content)], work)} order by line"
    ).fetchall()

    assert found == [(2, False), (4, True), (5, False), (7, True), (8, False)]


def test_newlines_may_be_mixed(con, put, work):
    """Both newlines in one file, and a carriage return inside a value, are no fault; the path stays that of the file."""
    file = put(f'{dumps(ONE)}\r\n{{"a":\r1}}\n\r\n{dumps(TWO)}')
    found = con.execute(f"select path, line, value from {unwrap.text_lines([file], work)} order by line").fetchall()

    assert [(path, line) for path, line, _ in found] == [(str(file.path), n) for n in (1, 2, 4)]
    assert [json.loads(value) for _, _, value in found] == [ONE, {"a": 1}, TWO]


def test_lines_of_several_files(con, put, work):
    """Each file counts its own lines."""
    files = [put(f"\n{dumps(ONE)}\n", name="a"), put(f"{dumps(TWO)}\n\n\n{dumps(THREE)}", name="b")]
    found = con.execute(f"select path, line from {unwrap.text_lines(files, work)} order by all").fetchall()

    assert [(Path(path).name, line) for path, line in found] == [("a", 2), ("b", 1), ("b", 4)]


def test_whole_values_of_broken_lines(con, put, work):
    """A line that is no JSON gives its whole values, and what is left of it to be set aside, with its number."""
    lines = [
        dumps(ONE),
        dumps(TWO) + dumps(THREE),
        f'{{"Records":[{dumps(FOUR)},{{"eventID"',
        "hello",
        "}",
        '{"a":"\\ud800"}',
    ]
    found = con.execute(
        f"select line, value, raw from {unwrap.mend(con, [put(chr(10).join(lines))], work)} order by line"
    ).fetchall()

    assert [(line, value and json.loads(value)["eventID"], None if value else raw) for line, value, raw in found] == [
        (2, TWO["eventID"], None), (2, THREE["eventID"], None), (3, FOUR["eventID"], None), (3, None, '{"eventID"'),
        (4, None, "hello"), (5, None, "}"), (6, None, '{"a":"\\ud800"}'),
    ]  # fmt: skip


# --- documents ---


def test_documents_that_can_be_read(con, put):
    """Documents of records need no help; one that is cut, or holds anything else, is named."""
    good = put(json.dumps({"Records": RECORDS}, indent=1), "documents", "good.json")
    cut = put(json.dumps({"Records": RECORDS}, indent=1)[:-200], "documents", "cut.json")
    other = put(json.dumps([ONE, {"a": 1}], indent=1), "documents", "other.json")
    concatenated = put(dumps(ONE) + dumps(TWO), "documents", "joined.json")
    empty = put('{"Records": []}\n', "documents", "empty.json")

    assert [f.name for f in unwrap.unreadable(con, [good, cut, concatenated, other, empty])] == [
        "cut.json",
        "other.json",
    ]
    assert unwrap.unreadable(con, []) == []


def test_a_document_that_is_cut_is_salvaged(put, work):
    """Every whole record of a broken document is kept on the line on which it begins; the rest is set aside with its line."""
    content = "\n" + json.dumps({"Records": [ONE, TWO]}, indent=2)
    content = content[: content.rindex('"eventVersion"')]
    copy, aside = unwrap.salvage(put(content, "documents"), work)
    lines = copy.path.read_text(encoding="utf-8").split("\n")
    begins = [n for n, line in enumerate(content.split("\n")) if line == "    {"]

    assert (copy.name, copy.first_line, copy.lines) == ("log.json", 0, begins[0] + 1)
    assert {n: json.loads(line) for n, line in enumerate(lines) if line} == {begins[0]: [ONE]}
    assert [(entry.source, entry.reason) for entry in aside] == [(f"log.json:{begins[1] + 1}", "cut off or not JSON")]
    assert aside[0].raw.decode() == content[content.rindex('{\n      "eventID"') :]


def test_salvaged_copies_do_not_share_a_name(put, work):
    """Two broken files of one content are two copies."""
    copies = [unwrap.salvage(put("[{", "documents", name), work)[0].path for name in ("a", "b")]

    assert len({*copies}) == 2


@pytest.mark.parametrize("value", ["plain", "it's", "a'; drop table x; --", "", "ä\n"])
def test_texts_are_literals(con, value):
    """Any text is a SQL literal of itself."""
    assert con.execute(f"select {unwrap.text(value)}").fetchone() == (value,)
