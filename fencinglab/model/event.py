"""The events of a timeline as lines of plain text: `A acquires`, `lease expires`, `B writes new-result`.

`FORMS` is the whole language. A word in braces is filled in, what stands in brackets may be left out. Reading and
printing use the same forms, so that each gives back what the other was given.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

FORMS = {
    # the worker and the authority
    "acquire": "{worker} acquires[ {lease}]",
    "renew": "{worker} renews[ {lease}]",
    "release": "{worker} releases[ {lease}]",
    "check": "{worker} checks its lease",
    # the worker and what it protects
    "read": "{worker} reads[ {resource}]",
    "write": "{worker} writes {value}[ to {resource}][, {lost}]",
    "finish": "{worker} finishes as {value}[ because {reason}][ for {resource}][, {lost}]",
    "schedule": "{worker} schedules {value}[ for {resource}][, {lost}]",
    "retry": "{worker} decides {value}[ for {resource}][, {lost}]",
    "alert": "{worker} raises alert {value}[ for {resource}][, {lost}]",
    # beyond the receiver
    "poll": "{worker} polls {value}[ for {resource}]",
    "effect": "{worker} causes {value} outside[ for {resource}]",
    "store": "{worker} stores {value}[ under {key}][ for {resource}]",
    # a mutation on its way
    "send": "{worker} sends [{kind} ]{value}[ to {resource}]",
    "arrive": "{worker}'s {value} arrives[, {lost}]",
    "repeat": "{worker}'s {value} arrives again[, {lost}]",
    "duplicate": "{worker}'s {value} is duplicated",
    "lose": "{worker}'s {value} is lost",
    "inspect": "{worker}'s {value} is checked",
    # what happens to a worker
    "pause": "{worker} pauses",
    "resume": "{worker} resumes",
    "crash": "{worker} crashes",
    "restart": "{worker} restarts",
    "part": "{worker} is cut off",
    "rejoin": "{worker} is back",
    "ahead": "{worker}'s clock runs {number} s ahead",
    "behind": "{worker}'s clock runs {number} s behind",
    "downgrade": "{worker} runs without fencing",
    "upgrade": "{worker} runs with fencing",
    # what happens to everybody
    "expire": "lease[ {lease}] expires",
    "pass": "{number} s pass",
    "delete": "TTL deletes {resource}",
    "restore": "authority is restored to {number}[ for {lease}]",
}
MUTATIONS = ("write", "finish", "schedule", "retry", "alert")  # what the receiver decides
WORD = r"\w[\w./:-]*"
_SLOTS = {
    **dict.fromkeys(("worker", "lease", "resource", "value", "reason", "key"), WORD),
    "kind": "|".join(MUTATIONS[1:]),  # a write needs no word
    "number": r"[0-9]{1,37}",
    "lost": "reply lost",
}
_PATTERNS = {
    act: re.compile(
        re.sub(
            r"{(\w+)}", lambda slot: f"(?P<{slot[1]}>{_SLOTS[slot[1]]})", form.replace("[", "(?:").replace("]", ")?")
        )
    )
    for act, form in FORMS.items()
}


@dataclass(frozen=True)
class Event:
    """One event: which form it has, what fills it in, and in which line it stands (0 = in none)."""

    act: str
    worker: str = ""
    lease: str = ""
    resource: str = ""
    kind: str = ""  # of what is sent; empty = a write
    value: str = ""
    reason: str = ""  # why a resource is finished without a result
    key: str = ""  # under which bytes are stored; empty = one of the execution's own
    number: int = 0  # seconds, or the token that the authority falls back to
    lost: bool = False  # whether the reply is lost
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        """The event as a line of a timeline."""
        given = {name: text for name, text in _texts(self).items() if text}
        form = re.sub(
            r"\[([^]]*)\]",
            lambda part: part[1] if set(re.findall(r"{(\w+)}", part[1])) <= given.keys() else "",
            FORMS[self.act],
        )
        return form.format(**given)

    def but(self, **words: Any) -> Event:
        """The same event in other words."""
        return replace(self, **words)


def _texts(event: Event) -> dict[str, str]:
    texts = {f.name: str(getattr(event, f.name) or "") for f in fields(event) if f.name not in ("act", "line")}
    return texts | {"number": str(event.number), "lost": "reply lost" if event.lost else ""}


def read(text: str, line: int = 0) -> Event | None:
    """The event that the text is, or None."""
    for act, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(text):
            given = {name: filled for name, filled in found.groupdict().items() if filled}
            number = int(given.pop("number", 0))
            lost = bool(given.pop("lost", ""))
            return Event(act, **given, number=number, lost=lost, line=line)
    return None


def nearest(text: str) -> str:
    """The event that the text most resembles, filled in with the text's own words; its verb counts most."""
    words = text.split()

    def resemblance(line: str, form: str) -> float:
        verbs = {word for word in form.split() if word.isalpha()} & {*words}
        return len(verbs) + difflib.SequenceMatcher(None, line, text).ratio() - abs(len(form.split()) - len(words)) / 4

    forms = [re.sub(r"\[[^]]*\]", "", form) for form in FORMS.values()]
    lines = [" ".join(_filled(part, words, place) for place, part in enumerate(form.split())) for form in forms]
    return max(zip(lines, forms, strict=True), key=lambda pair: resemblance(*pair))[0]


def _filled(part: str, words: list[str], place: int) -> str:
    """A word of a form, its slot filled with the word of the text in the same place, or the last, where that fits."""
    slot = re.search(r"{(\w+)}", part)
    if slot is None:
        return part
    ending = part[slot.end() :]
    last = words[-1] if slot[1] == "value" and len(words) > 2 else ""
    word = (words[place] if place < len(words) else last).removesuffix(ending).strip(",'")
    blank = {"number": "20", "worker": "A", "value": "VALUE", "resource": "RESOURCE"}.get(slot[1], slot[1])
    return (word if re.fullmatch(_SLOTS[slot[1]], word) else blank) + ending
