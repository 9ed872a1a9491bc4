"""How values are written in logs: whole numbers, times, keys and hashes, as the macros read them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencinglab.logs import values

MOMENT = datetime(2013, 11, 2, 17, 30, 52)
EPOCH = 1383413452


@pytest.fixture(scope="module")
def value():
    """The value of a macro of one text (or of several), as Python has it."""
    with duckdb.connect() as con:
        values.define(con)

        def of(macro: str, *texts: str | None) -> Any:
            marks = ", ".join("?::varchar" for _ in texts)
            return con.execute(f"select {macro}({marks})", list(texts)).fetchall()[0][0]

        yield of


# --- whole numbers ---

WHOLE = {
    "0": 0, "42": 42, "042": 42, "9" * 38: 10**38 - 1, "1" + "0" * 37: 10**37, "9007199254740993": 2**53 + 1,
    "42.0": 42, "42.000": 42, "9" * 38 + ".0": 10**38 - 1,
    # no whole number, or not exactly one
    "9" * 39: None, "1e3": None, "8.00E+20": None, "1E+100": None, "42.5": None, "-1": None, "+1": None, "": None,
    " 42": None, "0x2a": None, "1,234": None, "NaN": None, "Infinity": None, "٤٢": None, "42\n": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WHOLE.items(), ids=lambda v: str(v)[:40])
def test_whole_numbers(value, text, expected):
    """A number of up to 38 digits is exact; `42.0` is 42; whatever else is written is not known."""
    found = value("whole_number", text)

    assert (None if found is None else int(found)) == expected


# --- times: trap 14, every notation ---

TIMES = {
    # epochs by magnitude
    "1383413452": (MOMENT, "s"),
    "1383413452.0": (MOMENT, "s"),
    "1383413452.25": (MOMENT + timedelta(milliseconds=250), "s"),
    "1.383413452E9": (MOMENT, "s"),
    "1383413452123": (MOMENT + timedelta(milliseconds=123), "ms"),
    "1383413452123.5": (MOMENT + timedelta(microseconds=123_500), "ms"),
    "1383413452123456": (MOMENT + timedelta(microseconds=123_456), "us"),
    "1383413452123456789": (MOMENT + timedelta(microseconds=123_456), "ns"),
    "0": (datetime(1970, 1, 1), "s"),
    # written
    "2013-11-02T17:30:52Z": (MOMENT, "text"),
    "2013-11-02T17:30:52.123Z": (MOMENT + timedelta(milliseconds=123), "text"),
    "2013-11-02T17:30:52.123456Z": (MOMENT + timedelta(microseconds=123_456), "text"),
    "2013-11-02T17:30:52.123456789Z": (MOMENT + timedelta(microseconds=123_456), "text"),
    "2013-11-02T17:30:52+00:00": (MOMENT, "text"),
    "2013-11-02T19:30:52+02:00": (MOMENT, "text"),
    "2013-11-02T12:00:52-0530": (MOMENT, "text"),
    "2013-11-02 17:30:52": (MOMENT, "text"),
    "2013-11-02T17:30:52": (MOMENT, "text"),
    "2013-11-02 17:30:52.123": (MOMENT + timedelta(milliseconds=123), "text"),
    "2013-11-02 17:30:52,123": (MOMENT + timedelta(milliseconds=123), "text"),
    "2013-11-02 17:30:52 UTC": (MOMENT, "text"),
    "2013-11-02": (datetime(2013, 11, 2), "text"),
    "Sat Nov 02 17:30:52 2013": (MOMENT, "text"),
    "Sat, 02 Nov 2013 17:30:52 GMT": (MOMENT, "text"),
    # none
    "soon": (None, "text"),
    "": (None, "text"),
    "2013-13-02T17:30:52Z": (None, "text"),
    "-5": (None, "text"),
    "1e400": (None, "ns"),
    "9" * 30: (None, "ns"),
}


@pytest.mark.parametrize(("text", "expected"), TIMES.items(), ids=lambda v: str(v)[:32])
def test_trap_14_times_in_every_notation(value, text, expected):
    """Epochs are told by their magnitude, written times by their look, UTC where no zone is written; what is no time is not known."""
    assert (value("moment", text), value("time_unit", text)) == expected


def test_times_do_not_depend_on_the_zone_of_the_machine(value):
    """The connection's zone is UTC, whatever the machine's is."""
    assert value("current_setting", "timezone") == "UTC"


@given(st.integers(0, 4_000_000_000), st.sampled_from(((1, "s"), (10**3, "ms"), (10**6, "us"), (10**9, "ns"))))
@settings(deadline=None)
def test_an_epoch_is_the_same_in_every_unit(value, seconds, unit):
    """Seconds, milliseconds, microseconds and nanoseconds of one moment after 1973 are one moment."""
    factor, name = unit
    seconds = max(seconds, 100_000_000)

    assert value("moment", str(seconds * factor)) == datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    assert value("time_unit", str(seconds * factor)) == name


# --- keys ---

KEYS = {
    '{"jobId":{"S":"job-7"}}': "job-7",
    '{"n":{"N":"101"}}': "101",
    '{"n":{"N":"101.0"}}': "101",
    '{"n":{"N":"1.5"}}': "1.5",
    '{"b":{"B":"AAEqQQ=="}}': "AAEqQQ==",
    # names in their order, whatever the order in the log
    '{"sk":{"N":"7"},"pk":{"S":"a"}}': "a|7",
    '{"pk":{"S":"a"},"sk":{"N":"7"}}': "a|7",
    '{"pk":{"S":"a|b"},"sk":{"S":"c"}}': r"a\|b|c",
    '{"pk":{"S":"a|b"}}': r"a\|b",
    '{"pk":{"S":"a\\"b"}}': 'a"b',
    '{"pk":{"S":"a\\\\b"}}': "a\\b",
    '{"pk":{"S":"ä\\u00e9"}}': "äé",
    # lower-cased, and not typed
    '{"jobid":{"s":"job-7"}}': "job-7",
    '{"n":{"n":"101"}}': "101",
    '{"b":{"b":"AAEqQQ=="}}': "AAEqQQ==",
    '{"jobId":"job-7"}': "job-7",
    '{"n":101}': "101",
    '{"n":101.0}': "101",
    '{"v":"v1.0"}': "v1.0",
    # attributes that are called like types
    '{"S":{"S":"x"}}': "x",
    '{"N":{"N":"5"},"S":{"S":"x"}}': "5|x",
    # hostile names
    '{"a\\"b":{"S":"x"}}': "x",
    '{"a.b":{"S":"x"}}': "x",
    '{"a\'b":{"S":"x"}}': "x",
    '{"$*":{"S":"x"}}': "x",
    '{"":{"S":"x"}}': "x",
    # no keys
    "{}": None,
    '"x"': None,
    "[1]": None,
    "null": None,
}  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), KEYS.items(), ids=lambda v: str(v)[:40])
def test_keys_of_items(value, keys, expected):
    """The key of an item is its value; of a composite one the values in the order of the names, `|` between them."""
    assert value("key_text", keys) == expected


def test_composite_keys_do_not_collide(value):
    """A `|` inside a value is not the one between values."""
    one, other = ({"pk": {"S": p}, "sk": {"S": s}} for p, s in (("a|b", "c"), ("a", "b|c")))

    assert value("key_text", json.dumps(one)) != value("key_text", json.dumps(other))


@pytest.mark.parametrize(
    ("resource", "key"), [("jobs/job-1", "job-1"), ("jobs/a/b", "a/b"), ("job-1", "job-1"), ("", "")]
)
def test_the_key_in_a_resource(value, resource, key):
    """A resource of a stream is `table/key`; one without a table is its own key."""
    assert value("item_key", resource) == key


# --- hashes ---

EQUAL = [
    ('{"M":{"a":{"N":"1"},"b":{"S":"x"}}}', '{"M":{"b":{"S":"x"},"a":{"N":"1"}}}'),
    ('{"SS":["Zebra","Giraffe"]}', '{"SS":["Giraffe","Zebra"]}'),
    ('{"NS":["1","2","3"]}', '{"NS":["3","1","2"]}'),
    ('{"BS":["AAE=","QSo="]}', '{"BS":["QSo=","AAE="]}'),
]
DIFFERENT = [
    ('{"SS":["a"]}', '{"SS":["b"]}'),
    ('{"SS":["a","b"]}', '{"SS":["a"]}'),
    ('{"M":{"a":{"N":"1"}}}', '{"M":{"a":{"N":"2"}}}'),
    ('{"M":{"a":{"N":"1"}}}', '{"M":{"a":{"S":"1"}}}'),
    ('{"M":{"a":{"N":"1"}}}', '{"M":{"b":{"N":"1"}}}'),
    ('{"L":[{"N":"12"}]}', '{"L":[{"N":"1"},{"N":"2"}]}'),
    ('{"S":"a"}', '{"S":""}'),
    ('{"NULL":true}', '{"BOOL":true}'),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_trap_05_order_in_maps_and_sets_counts_for_nothing(value, one, other):
    """The fingerprint of a value is the same whatever the order of its members and set elements."""
    assert value("fingerprint", one) == value("fingerprint", other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_fingerprints_tell_values_apart(value, one, other):
    """Another value, type, name or number of elements is another fingerprint."""
    assert value("fingerprint", one) != value("fingerprint", other)


scalars = st.fixed_dictionaries({"S": st.text(max_size=4)}) | st.fixed_dictionaries({"N": st.integers().map(str)})
attributes = st.recursive(
    scalars,
    lambda inner: (
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(lambda m: {"M": m})
        | st.lists(inner, max_size=3).map(lambda found: {"L": found})
    ),
    max_leaves=6,
)


def turned(given_value: Any) -> Any:
    """The same value, every map written the other way round."""
    if isinstance(given_value, dict):
        return {name: turned(inner) for name, inner in reversed(given_value.items())}
    return [turned(inner) for inner in given_value] if isinstance(given_value, list) else given_value


@settings(deadline=None, max_examples=60)
@given(attributes)
def test_fingerprints_do_not_see_the_order_of_members(value, attribute):
    """Whatever the value holds, writing its maps the other way round gives the same fingerprint."""
    one, other = (json.dumps(v, separators=(",", ":")) for v in (attribute, turned(attribute)))

    assert value("fingerprint", one) == value("fingerprint", other)


def test_hashes_of_values_are_keyed(value):
    """One value under two keys has two hashes, each short and without the value."""
    hashes = [value("keyed", key, "secret-result") for key in ("k1", "k2", "k1")]

    assert hashes[0] == hashes[2] != hashes[1]
    assert all(re.fullmatch("[0-9A-F]{1,16}", found) for found in hashes)


def test_null_stays_null(value):
    """What is not there has no number, time, key or hash."""
    names = ("whole_number", "moment", "time_unit", "key_text", "fingerprint")

    assert [value(name, None) for name in names] == [None] * len(names)
    assert value("keyed", "k", None) is None
