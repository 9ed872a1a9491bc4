"""What a worker of a team is, what it sends, and what all share: the parts of a state, as values that compare."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.requests import Items

Bindings = tuple[tuple[str, Any], ...]


class Message(NamedTuple):
    """A request on its way, as its sender bound it."""

    place: int  # in the program
    bindings: Bindings
    grant: int
    fenced: bool = True  # whether it is made by a version that asks for token and owner


class Sender(NamedTuple):
    """A worker, with what it knows."""

    place: int = 0  # the next operation of the program
    stopped: bool = False
    start: int = 1  # how often it started; part of the ids of its operations
    grant: int = 0
    token: int | None = None
    knows: Bindings = ()  # attributes of replies that later requests use
    waiting: Message | None = None
    copy: Message | None = None  # arrives some time later; nobody hears of it
    fenced: bool = True  # whether its version asks for token and owner

    def over(self, **more: Any) -> Sender:
        """The worker, done with what it was about and knowing nothing of it; what was sent may still arrive."""
        return Sender(start=self.start, copy=self.copy, fenced=self.fenced)._replace(**more)


class Shared(NamedTuple):
    """What all share."""

    items: Items
    now: int = 0
    grants: int = 0
    left: tuple[int, ...] = ()
    issued: int | None = None  # the highest token since the items were made or restored; None = none is known
    backup: Items | None = None  # what the items were before the last grant, where they may be restored


def frozen(bindings: dict[str, Any]) -> Bindings:
    """Bindings as a value that compares: typed values as text."""
    made = {name: files.frozen(value) if isinstance(value, dict) else value for name, value in bindings.items()}
    return tuple(sorted(made.items()))


def plain(bindings: dict[str, Any]) -> dict[str, Any]:
    """Bindings as a request takes them: an attribute of a reply is a typed value again."""
    return {n: json.loads(v) if "." in n and isinstance(v, str) else v for n, v in bindings.items()}
