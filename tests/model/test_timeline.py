"""A timeline is read from plain text and printed as the same; what is wrong with a file is one sentence with its line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from timelines import timelines

from fencinglab.errors import InputError
from fencinglab.model.event import Event
from fencinglab.model.fix import FIXES
from fencinglab.model.timeline import Timeline, parse

HEADER = """\
title: A worker writes late
workers: A, B
resources: report
first token: 41
lease length: 60 s
"""
TEXT = HEADER + "\nA acquires\nA writes x\n"


@given(timelines())
def test_a_timeline_is_read_as_it_was_printed(timeline):
    """Printing a timeline and reading the text gives the timeline, and printing it again the same text."""
    again = parse(str(timeline), "drawn.timeline")

    assert again == timeline
    assert str(again) == str(timeline)


def test_the_text_is_what_it_says():
    """Header and events come out as they stand; the name is the file's."""
    assert parse(TEXT, "some/where/late.timeline") == Timeline(
        "late",
        "A worker writes late",
        ("A", "B"),
        ("report",),
        41,
        60,
        (Event("acquire", "A"), Event("write", "A", value="x")),
    )


def test_comments_spaces_and_line_ends_do_not_matter():
    """Comments, empty lines, spaces, a byte order mark and Windows line ends change nothing; lines keep their numbers."""
    text = "\ufeff# why\n" + TEXT.replace("A writes", "\n# then\n  A   writes").replace("\n", "  # c\r\n").replace(
        "late  # c", "late"
    )

    assert parse(text, "late.timeline") == parse(TEXT, "late.timeline")
    assert [event.line for event in parse(TEXT + "# why\n\nA reads").events] == [7, 8, 11]


def test_a_lease_covers_the_resource_of_its_name_or_all():
    """A lease that has a resource's name covers that one, any other covers all."""
    timeline = parse(
        TEXT.replace("report", "report, index")
        .replace("writes x", "writes x to index")
        .replace("first", "leases: job, index\nfirst")
        .replace("acquires", "acquires job")
    )

    assert timeline.every_lease() == ("job", "index")
    assert timeline.covered("index") == ("index",)
    assert timeline.covered("job") == ("report", "index")


def test_what_comes_afterwards_stands_apart():
    """Events below `afterwards:` are read as such and printed below it."""
    timeline = parse(TEXT + "afterwards:\nA writes x\n")

    assert [str(event) for event in timeline.afterwards] == ["A writes x"]
    assert str(timeline).endswith("A acquires\nA writes x\nafterwards:\nA writes x\n")


def test_what_has_happened_says_where_it_is_told():
    """Sources, what is assumed and what was in place are read from the header and printed in it; `#` is text there."""
    more = "in place: identity\nsource: https://a.b/c/1, https://a.b/d\nassumed: times, and # 3\n"
    timeline = parse(TEXT.replace("first", more + "first"))

    assert (timeline.in_place, timeline.assumed) == ("identity", "times, and # 3")
    assert timeline.sources == ("https://a.b/c/1", "https://a.b/d")
    assert parse(str(timeline)) == timeline


def test_a_fix_is_tried_beside_what_was_in_place():
    """A measure that the fix does not take stays as it was; its own replaces what was there; it keeps its name."""
    there = parse(TEXT.replace("first", "in place: holder-id\nfirst"))

    assert there.tried(FIXES["longer-lease"])[:3] == FIXES["longer-lease"][:3]
    assert there.tried(FIXES["longer-lease"])[3:] == FIXES["holder-id"]._replace(times=5)[3:]
    assert there.tried(FIXES["fenced"])[3:] == FIXES["holder-id"]._replace(guard="at-or-above")[3:]
    assert parse(TEXT).tried(FIXES["fenced"]) == FIXES["fenced"]


WRONG = {
    "two fixes in place": (TEXT.replace("first", "in place: fenced, holder\nfirst"), r"f:4: one fix was in place; name it, or leave the line out"),
    "no fix in place": (TEXT.replace("first", "in place: fence\nfirst"), r"f:4: `fence` is no fix; nearest: fenced, .*"),
    "no event of the language": (TEXT + "A rites x\n", r"f:9: expected an event and found `A rites x`; nearest: `A writes x`"),
    "an event that can never happen": (TEXT + "B writes x\n", r"f:9: `B writes x`: B has acquired no lease before; nearest legal event: `B acquires`"),
    "one afterwards that can never happen": (TEXT + "afterwards:\nB resumes\n", r"f:10: `B resumes`: B is not paused; nearest legal event: `B pauses`"),
    "afterwards twice": (TEXT + "afterwards:\nafterwards:\n", r"f:10: expected an event and found `afterwards:`; .*"),
    "a header below the events": (TEXT + "title: x\n", r"f:9: expected an event and found `title: x`; .*"),
    "no events": (HEADER, r"f: there are no events; nearest legal event: `A acquires`"),
    "events afterwards only": (HEADER + "afterwards:\nA acquires\n", r"f: there are no events; .*"),
    "nothing at all": ("", r"f: the header says no `title`, `workers`.*; add lines such as `title: What this order of events shows`, `workers: A, B`.*"),
    "no workers": (TEXT.replace("workers: A, B\n", ""), r"f: the header says no `workers`; add a line such as `workers: A, B`"),
    "empty workers": (TEXT.replace("workers: A, B", "workers:"), r"f: the header says no `workers`; add a line such as `workers: A, B`"),
    "a worker twice": (TEXT.replace("A, B", "A, A"), r"f:2: a name stands twice in `workers`; keep one"),
    "a name with a space": (TEXT.replace("A, B", "A B"), r"f:2: `A B` is no name; .*"),
    "a name that is empty": (TEXT.replace("A, B", "A,,B"), r"f:2: `` is no name; .*"),
    "an unknown header line": (TEXT.replace("first token", "frist token"), r"f:4: `frist token` is no header line \(there are title, .*\); nearest: `first token`"),
    "a header line twice": (HEADER + TEXT, r"f:6: `title` stands in line 1 already; keep one"),
    "a token of 0": (TEXT.replace("41", "0"), r"f:4: `first token: 0` is no whole number above 0; write `first token: 1`"),
    "a token that is no number": (TEXT.replace("41", "many"), r"f:4: `first token: many` is no whole number above 0; .*"),
    "a lease without a unit": (TEXT.replace("60 s", "60"), r"f:5: `lease length: 60` is no whole number above 0; write `lease length: 60 s`"),
    "an unknown fix": (TEXT.replace("first", "fixes: fence\nfirst"), r"f:4: `fence` is no fix; nearest: fenced, .*"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence(text, sentence):
    """The error names the file, the line, what was expected or why not, and the nearest that is right."""
    with pytest.raises(InputError) as error:
        parse(text, "f")

    assert re.fullmatch(sentence, str(error.value)), str(error.value)
