"""An event is read from its line and printed as the same line; what is none is answered with the nearest."""

from __future__ import annotations

import pytest
from hypothesis import given
from timelines import events

from fencinglab.model.event import FORMS, MUTATIONS, Event, nearest, read
from fencinglab.model.replay import _ACTS

LINES = {
    "A acquires": Event("acquire", "A"),
    "A acquires job-1": Event("acquire", "A", lease="job-1"),
    "A checks its lease": Event("check", "A"),
    "A reads": Event("read", "A"),
    "A writes old-result": Event("write", "A", value="old-result"),
    "A writes v:2 to s3/report, reply lost": Event("write", "A", value="v:2", resource="s3/report", lost=True),
    "A finishes as DONE": Event("finish", "A", value="DONE"),
    "A finishes as FAILED because too-large for job": Event(
        "finish", "A", value="FAILED", reason="too-large", resource="job"
    ),
    "A stores pixels": Event("store", "A", value="pixels"),
    "A stores pixels under s3/key for job": Event("store", "A", value="pixels", key="s3/key", resource="job"),
    "A raises alert stuck for job": Event("alert", "A", value="stuck", resource="job"),
    "A sends old-result": Event("send", "A", value="old-result"),
    "A sends finish DONE": Event("send", "A", kind="finish", value="DONE"),
    "A sends finish": Event("send", "A", value="finish"),  # a write of that value
    "A's old-result arrives again": Event("repeat", "A", value="old-result"),
    "A's clock runs 5 s ahead": Event("ahead", "A", number=5),
    "lease expires": Event("expire"),
    "lease job-1 expires": Event("expire", lease="job-1"),
    "20 s pass": Event("pass", number=20),
    "TTL deletes report": Event("delete", resource="report"),
    "authority is restored to 40": Event("restore", number=40),
}


@pytest.mark.parametrize(("line", "event"), LINES.items(), ids=LINES)
def test_a_line_is_an_event(line, event):
    """These lines read like the table of an incident, each is that event and is printed as it was read."""
    assert read(line) == event
    assert str(event) == line


@given(events(("A", "cron-2", "B/1"), ("report", "to", "s3://x"), ("job", "for")))
def test_every_event_is_read_as_it_was_printed(event):
    """Printing an event and reading the line gives the event."""
    assert read(str(event)) == event


def test_the_line_number_is_no_part_of_what_an_event_says():
    """Two events are equal when they say the same, wherever they stand."""
    assert read("A reads", 7) == read("A reads", 8)
    assert read("A reads", 7).line == 7


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("A rites old-result", "A writes old-result"),
        ("A acquire", "A acquires"),
        ("cron resume", "cron resumes"),
        ("leases expire", "lease expires"),
        ("20 seconds pass", "20 s pass"),
        ("A clock runs 5 s ahead", "A's clock runs 5 s ahead"),
        ("A's old-result arives", "A's old-result arrives"),
        ("A checks", "A checks its lease"),
        ("TTL delete report", "TTL deletes report"),
        ("A finishes DONE", "A finishes as DONE"),
        ("A store pixels", "A stores pixels"),
        ("", "A acquires"),
    ],
)  # fmt: skip
def test_the_nearest_event(line, near):
    """What is no event is answered with one that is, in its own words where they fit."""
    assert read(line) is None
    assert nearest(line) == near
    assert read(near)


def test_every_form_can_be_replayed():
    """There is an effect for every form of the language, and for nothing else."""
    assert {*FORMS} == {*_ACTS}
    assert {*MUTATIONS} <= {*FORMS}
