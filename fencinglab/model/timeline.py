"""Timelines: an order of events as plain text, one event a line under a small header; read and printed.

    title: A worker pauses and writes late
    workers: A, B
    resources: report
    first token: 41
    lease length: 60 s

    A acquires
    A pauses
    lease expires
    ...

A `#` begins a comment. More header lines may stand: `leases` (where a lease is not simply that of a resource: then
each covers all resources), `fixes` (which ones tell the story best), `also` (a timeline with the same events in another
order) and `shows` (what to look for); of what has really happened, `in place` (the fix that was there: others are tried
beside it), `source` (where it is told) and `assumed` (what was filled in). Events below a line `afterwards:` are tried
after the end: they belong to the history and change neither the final value nor the harms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from fencinglab.errors import InputError, nearest
from fencinglab.model import event, fix, legal
from fencinglab.model.event import WORD, Event
from fencinglab.model.fix import Fix

_REQUIRED = {
    "title": "title: What this order of events shows",
    "workers": "workers: A, B",
    "resources": "resources: report",
    "first token": "first token: 1",
    "lease length": "lease length: 60 s",
}
_KEYS = (*_REQUIRED, "leases", "in place", "fixes", "also", "shows", "source", "assumed")
_PROSE = ("title", "shows", "assumed")  # a `#` in it is no comment
_AFTERWARDS = "afterwards:"
_HEADER = re.compile(r"([a-z][a-z ]*):(?: (.*))?")


@dataclass(frozen=True)
class Timeline:
    """A header and its events. Two are equal when they say the same; where a line stands does not matter."""

    name: str
    title: str
    workers: tuple[str, ...]
    resources: tuple[str, ...]
    first_token: int
    lease_length: int  # seconds
    events: tuple[Event, ...]
    leases: tuple[str, ...] = ()  # empty = one for each resource, with its name
    fixes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    shows: str = ""
    afterwards: tuple[Event, ...] = ()  # tried when the final value has been taken
    in_place: str = ""  # the fix that was there
    sources: tuple[str, ...] = ()  # addresses
    assumed: str = ""

    def every_lease(self) -> tuple[str, ...]:
        """The leases by name."""
        return self.leases or self.resources

    def covered(self, lease: str) -> tuple[str, ...]:
        """The resources that the holder of the lease may write."""
        return (lease,) if lease in self.resources else self.resources

    def tried(self, chosen: Fix) -> Fix:
        """The fix beside what was in place: a measure that it does not take itself stays as it was."""
        there = fix.named(self.in_place) if self.in_place else chosen
        own = Fix._field_defaults
        return chosen._replace(**{name: getattr(there, name) for name in own if getattr(chosen, name) == own[name]})

    def __str__(self) -> str:
        """The timeline as text, ready to be read again."""
        header = {
            "title": self.title,
            "workers": ", ".join(self.workers),
            "resources": ", ".join(self.resources),
            "first token": str(self.first_token),
            "lease length": f"{self.lease_length} s",
            "leases": ", ".join(self.leases),
            "in place": self.in_place,
            "fixes": ", ".join(self.fixes),
            "also": ", ".join(self.also),
            "shows": self.shows,
            "source": ", ".join(self.sources),
            "assumed": self.assumed,
        }
        lines = [f"{key}: {value}" for key, value in header.items() if value]
        tried = [_AFTERWARDS, *map(str, self.afterwards)] if self.afterwards else []
        return "\n".join([*lines, "", *map(str, self.events), *tried]) + "\n"


def parse(text: str, file: str = "given.timeline") -> Timeline:
    """The timeline that the text is; its name is that of the file without folder and ending.

    What is not in the language, and an event that can never happen, is an InputError with file and line.
    """
    header: dict[str, tuple[int, str]] = {}
    events: list[Event] = []
    tried: list[Event] | None = None
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        place = f"{file}:{number}"
        line = " ".join(raw.split())
        found = _HEADER.fullmatch(line)
        if found and not events and line != _AFTERWARDS:
            key = _key(found[1], place)
            if key in header:
                raise InputError(f"{place}: `{key}` stands in line {header[key][0]} already; keep one")
            header[key] = (number, found[2] or "" if key in _PROSE else _bare(found[2] or ""))
        elif line == _AFTERWARDS and tried is None:
            tried = []
        elif bare := _bare(line):
            (events if tried is None else tried).append(_event(bare, number, place))
    return _checked(header, events, tried or [], file)


def _bare(line: str) -> str:
    """The line without its comment."""
    return re.sub(r"(^|\s)#.*", "", line).strip()


def _key(word: str, place: str) -> str:
    if word in _KEYS:
        return word
    [close] = nearest(word, _KEYS, 1)
    raise InputError(f"{place}: `{word}` is no header line (there are {', '.join(_KEYS)}); nearest: `{close}`")


def _event(text: str, number: int, place: str) -> Event:
    if found := event.read(text, number):
        return found
    raise InputError(f"{place}: expected an event and found `{text}`; nearest: `{event.nearest(text)}`")


def _checked(header: dict[str, tuple[int, str]], events: list[Event], tried: list[Event], file: str) -> Timeline:
    def said(key: str) -> str:
        return header.get(key, (0, ""))[1]

    if lacking := [key for key in _REQUIRED if not said(key)]:
        keys, lines = (", ".join(f"`{word}`" for word in words) for words in (lacking, map(_REQUIRED.get, lacking)))
        such = "a line such as" if len(lacking) == 1 else "lines such as"
        raise InputError(f"{file}: the header says no {keys}; add {such} {lines}")

    def place(key: str) -> str:
        return f"{file}:{header[key][0]}"

    def names(key: str) -> tuple[str, ...]:
        listed = [name.strip() for name in said(key).split(",")] if said(key) else []
        for name in listed:
            if not re.fullmatch(WORD, name):
                raise InputError(f"{place(key)}: `{name}` is no name; letters, digits and - . _ / : make one")
        if len({*listed}) < len(listed):
            raise InputError(f"{place(key)}: a name stands twice in `{key}`; keep one")
        return tuple(listed)

    def whole(key: str, pattern: str) -> int:
        found = re.fullmatch(pattern, said(key))
        if not found or not int(found[1]):
            raise InputError(f"{place(key)}: `{key}: {said(key)}` is no whole number above 0; write `{_REQUIRED[key]}`")
        return int(found[1])

    for key in ("fixes", "in place"):
        for name in names(key):
            try:
                fix.named(name)
            except InputError as error:
                raise InputError(f"{place(key)}: {error}") from None
    if len(names("in place")) > 1:
        raise InputError(f"{place('in place')}: one fix was in place; name it, or leave the line out")
    timeline = Timeline(
        name=PurePath(file).name.removesuffix(".timeline"),
        title=said("title"),
        workers=names("workers"),
        resources=names("resources"),
        first_token=whole("first token", r"([0-9]{1,37})"),
        lease_length=whole("lease length", r"([0-9]{1,7}) s"),
        events=tuple(events),
        afterwards=tuple(tried),
        leases=names("leases"),
        fixes=names("fixes"),
        also=names("also"),
        shows=said("shows"),
        in_place=said("in place"),
        sources=names("source"),
        assumed=said("assumed"),
    )
    if not events:
        raise InputError(f"{file}: there are no events; nearest legal event: `{timeline.workers[0]} acquires`")
    if fault := legal.first_fault([*events, *tried], timeline.workers, timeline.resources, timeline.every_lease()):
        raise InputError(
            f"{file}:{fault.event.line}: `{fault.event}`: {fault.says}; nearest legal event: `{fault.instead}`"
        )
    return timeline
