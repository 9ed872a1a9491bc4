"""What stands in the items of a request file: who holds the lease, whether the job is finished, and what anybody reads.

An item is kept as text. What no condition, no update, no later request and no mapped column looks at is left out.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.expression import conjuncts, placeholders, read_by
from fencinglab.dynamodb.requests import READ, Items, Operation, Requests, each, singles

_FINAL = ("status", "terminal_version", "value")  # what stays once a job is finished
_COLUMNS = ("token", "holder", "expires_at", *_FINAL, "alert")  # what an invariant asks for


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

    def item(self, items: Items) -> dict[str, Any] | None:
        return None if items[0] is None else dict(json.loads(items[0]))

    def column(self, items: Items, column: str) -> Any:
        """The plain content of a mapped column, from the first item that has it."""
        attribute = self.file.map.get(column, "")
        for text in items:
            found = None if text is None else json.loads(text).get(attribute)
            if found is not None:
                return next(iter(found.values()))
        return None

    def holder(self, items: Items, now: int) -> str:
        """Whose unexpired lease it is; empty = nobody's."""
        holder, expiry = (self.column(items, column) for column in ("holder", "expires_at"))
        return str(holder) if holder and expiry is not None and int(expiry) > now else ""

    def later(self, items: Items, now: int) -> int:
        """The next tick: every lease has run out, also one that was granted by a clock that runs ahead."""
        expiry = self.column(items, "expires_at")
        return max(now + self.lease, int(expiry or 0)) + 1

    def finished(self, items: Items) -> bool:
        return self.column(items, "status") in self.file.terminal

    def undone(self, before: Items, after: Items) -> bool:
        """Whether a job was finished, and what it was finished with is another now."""
        return self.finished(before) and any(self.column(before, one) != self.column(after, one) for one in _FINAL)

    def removable(self, item: dict[str, Any]) -> bool:
        """Whether clean-up may remove the item: where the file writes a clean-up time, only items that carry one."""
        attribute = self.file.map.get("ttl", "")
        return not attribute or attribute in item


def without(given: dict[str, Any], condition: str) -> dict[str, Any]:
    """The input without that part of its conditions, and without the values that only it used."""
    return each(given, lambda one: _without(one, condition))


def _without(given: dict[str, Any], condition: str) -> dict[str, Any]:
    if condition not in conjuncts(given.get("ConditionExpression", "")):
        return given
    rest = [part for part in conjuncts(given["ConditionExpression"]) if part != condition]
    made = {name: value for name, value in given.items() if name != "ConditionExpression"}
    if rest:
        made["ConditionExpression"] = " AND ".join(rest)
    used = placeholders(" ".join(str(made.get(name, "")) for name in ("ConditionExpression", "UpdateExpression")))
    for name in ("ExpressionAttributeValues", "ExpressionAttributeNames"):
        kept = {key: value for key, value in made.pop(name, {}).items() if key in used}
        made |= {name: kept} if kept else {}
    return made


def unfenced(file: Requests) -> Requests:
    """The file as a version has it that asks for neither token nor owner, except when it acquires."""
    operations = {name: _unfenced(file, one) for name, one in file.operations.items()}
    return file._replace(operations=operations)


def _unfenced(file: Requests, one: Operation) -> Operation:
    if one.kind in ("grant", READ):
        return one
    asked = {file.map[column] for column in ("token", "holder", "written_token") if column in file.map}
    given = one.input
    for single in singles(file, [one.name]):
        for part in single.parts:
            if single.looked_at(part) & asked:
                given = without(given, part)
    return one._replace(input=given)
