"""What stands in the items of a request file: who holds the lease, whether the job is finished, and what anybody reads.

An item is kept as text. What no condition, no update, no later request and no mapped column looks at is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.expression import read_by
from fencinglab.dynamodb.requests import Items, Requests, singles
from fencinglab.errors import InputError

_FINAL = ("status", "terminal_version", "value")  # what stays once a job is finished
_COLUMNS = ("token", "holder", "expires_at", *_FINAL, "alert", "ttl")  # what an invariant or a hazard asks for


class Standing:
    """How the items of one file are read."""

    def __init__(self, file: Requests) -> None:
        self.file = file

    @cached_property
    def lease(self) -> int:
        return int(self.file.given.get("lease", 60))

    @cached_property
    def used(self) -> frozenset[str]:
        """The attributes of replies that a worker needs to know later."""
        return self.file.replies

    @cached_property
    def read(self) -> frozenset[str]:
        """The attributes that a condition, an update, a later request or a mapped column looks at."""
        looked = {name.partition(".")[2] for name in self.used}
        looked |= {self.file.map[column] for column in _COLUMNS if column in self.file.map}
        for one in singles(self.file):
            looked |= one.looked_at(one.condition) | read_by(one.update, one.names)
        for table in self.file.tables:
            looked |= {part["AttributeName"] for part in table["KeySchema"]}
        return frozenset(looked)

    def seen(self, items: Items) -> Items:
        """The items without what nobody looks at."""

        def kept(text: str) -> str:
            return files.frozen({name: value for name, value in json.loads(text).items() if name in self.read})

        return tuple(None if text is None else kept(text) for text in items)

    def column(self, items: Items, column: str) -> Any:
        """The plain content of a mapped column, from the first item that has it."""
        return next(iter(self._typed(items, column).values()), None)

    def _typed(self, items: Items, column: str) -> dict[str, Any]:
        attribute = self.file.map.get(column, "")
        found = (json.loads(text).get(attribute) for text in items if text is not None)
        return next((value for value in found if value is not None), {})

    def number(self, items: Items, column: str) -> int | None:
        """The content of a mapped column that counts; InputError where it is no whole number, or a time as text."""
        for tag, found in self._typed(items, column).items():
            if (tag == "N" or column == "token") and re.fullmatch(r"-?\d+", str(found)):
                return int(found)
            raise InputError(
                f"{self.file.name}: `map` has `{self.file.map[column]}` for {column}, and {json.dumps({tag: found})} "
                f"stands in it; a search needs a whole number there, so leave {column} out of `map` or store one"
            )
        return None

    def runs(self, items: Items, now: int) -> bool:
        """Whether somebody's lease runs, by what `map` names of its holder and of when it runs out."""
        held = "holder" not in self.file.map or self.column(items, "holder")
        return bool(held) and ("expires_at" not in self.file.map or (self.number(items, "expires_at") or 0) > now)

    def later(self, items: Items, now: int) -> int:
        """The next tick: every lease has run out, also one that was granted by a clock that runs ahead."""
        return max(now + self.lease, self.number(items, "expires_at") or 0) + 1

    def finished(self, items: Items) -> bool:
        return self.column(items, "status") in self.file.terminal

    def undone(self, before: Items, after: Items) -> bool:
        """Whether a job was finished, and what it was finished with is another now."""
        return self.finished(before) and any(self.column(before, one) != self.column(after, one) for one in _FINAL)

    def removable(self, items: Items) -> Iterator[int]:
        """The places of the items that clean-up may remove: those that carry the clean-up time that `map` names.

        Where it names none, the protected item and those that a grant changes, in which the token counter lies.
        """
        attribute = self.file.map.get("ttl", "")
        for place, text in enumerate(items):
            if text is not None and (attribute in json.loads(text) if attribute else place in self._counters):
                yield place

    @cached_property
    def _counters(self) -> frozenset[int]:
        places = files.places(self.file)
        return frozenset([0, *map(places.index, files.counters(self.file))])
