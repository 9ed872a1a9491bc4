"""Timelines for tests: drawn at random, and any event of the language."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from fencinglab.model import legal
from fencinglab.model.event import FORMS, Event
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import Run, replay
from fencinglab.model.timeline import Timeline, parse

HEADER = "title: t\nworkers: A, B\nresources: report\nfirst token: 41\nlease length: 60 s\n\n"


def replayed(events: str, fix: str, header: str = HEADER) -> Run:
    """The run of these events, told in one line, under the fix of that name."""
    return replay(parse(header + events.replace("; ", "\n")), FIXES[fix])


WORDS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_./:-]{0,7}", fullmatch=True)
NAMES = st.lists(WORDS, min_size=1, max_size=3, unique=True).map(tuple)
SENTENCES = st.lists(st.from_regex(r"[!-~]{1,9}", fullmatch=True), min_size=1, max_size=6).map(" ".join)
ADDRESSES = WORDS.map(lambda word: (f"https://example.org/{word}",))


@st.composite
def events(draw: st.DrawFn, workers: tuple[str, ...], resources: tuple[str, ...], leases: tuple[str, ...]) -> Event:
    """Any event about these; it need not be able to happen."""
    act = draw(st.sampled_from(sorted(FORMS)))
    form = FORMS[act]
    words = {
        "worker": workers, "resource": resources, "lease": leases, "value": ("old", "new", "to", "finish"),
        "reason": ("because",), "key": ("s3://under",),
    }  # fmt: skip
    given: dict[str, str] = {}
    for slot, names in words.items():
        optional = slot not in ("worker", "value") and re.search(rf"\[ \w* ?{{{slot}}}", form)
        if f"{{{slot}}}" in form and (not optional or len(names) > 1 or draw(st.booleans())):
            given[slot] = draw(st.sampled_from(names))
    kind = draw(st.sampled_from(["", "finish", "schedule", "retry", "alert"])) if "{kind}" in form else ""
    number = draw(st.integers(1, 200)) if "{number}" in form else 0
    return Event(act, **given, kind=kind, number=number, lost="{lost}" in form and draw(st.booleans()))


@st.composite
def timelines(draw: st.DrawFn, size: int = 25) -> Timeline:
    """A timeline whose events can all happen."""
    workers, resources = draw(NAMES), draw(NAMES)
    leases = draw(st.one_of(st.just(()), NAMES))
    told: list[Event] = []
    for event in draw(st.lists(events(workers, resources, leases or resources), max_size=size)):
        if not legal.first_fault([*told, event], workers, resources, leases or resources):
            told.append(event)
    told = told or [Event("acquire", workers[0], lease=(leases or resources)[0])]
    after = draw(st.integers(0, len(told) - 1))
    return Timeline(
        name="drawn", title=draw(SENTENCES), workers=workers, resources=resources, leases=leases,
        first_token=draw(st.integers(1, 10**20)), lease_length=draw(st.integers(1, 100)),
        fixes=draw(st.lists(st.sampled_from(sorted(FIXES)), max_size=3, unique=True).map(tuple)),
        in_place=draw(st.sampled_from(["", *FIXES])), sources=draw(st.one_of(st.just(()), ADDRESSES)),
        assumed=draw(st.one_of(st.just(""), SENTENCES)),
        also=draw(st.one_of(st.just(()), NAMES)), shows=draw(st.one_of(st.just(""), SENTENCES)),
        events=tuple(told[: len(told) - after]), afterwards=tuple(told[len(told) - after :]),
    )  # fmt: skip


TAKING = ("acquire", "acquire", "expire", "write", "write", "send", "arrive", "release", "renew", "finish", "restore")


@st.composite
def takeovers(draw: st.DrawFn) -> Timeline:
    """A timeline in which three workers take one lease from each other, and a stale write is likely."""
    told: list[Event] = []
    for n, (act, worker) in enumerate(
        draw(st.lists(st.tuples(st.sampled_from(TAKING), st.sampled_from("ABC")), min_size=40))
    ):
        sent = [event.value for event in told if event.act == "send" and event.worker == worker]
        value = draw(st.sampled_from(sent)) if act == "arrive" and sent else f"v{n}"
        event = {"expire": Event("expire"), "restore": Event("restore", number=draw(st.integers(1, 9)))}.get(
            act, Event(act, worker, value=value if act in ("write", "send", "arrive", "finish") else "")
        )
        if not legal.first_fault([*told, event], "ABC", ["job"], ["job"]):
            told.append(event)
    told = told or [Event("acquire", "A")]
    return Timeline("drawn", "Drawn", (*"ABC",), ("job",), draw(st.integers(1, 10**20)), 30, (*told,))
