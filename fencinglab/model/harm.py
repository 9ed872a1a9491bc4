"""What went wrong in a run, told from its decisions; and whether the timeline put anything to the test.

A grant is known here by its place among all grants, not by its token: so a harm is seen also where tokens start again,
come from two authorities, or are not presented. An audit sees only the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from fencinglab.model.event import MUTATIONS
from fencinglab.model.replay import Run, Step
from fencinglab.model.rows import ASKED
from fencinglab.model.world import Decision

CLASSES = ("unsafe", "window", "cost")  # those of the audit's rules that an order of events can break; the worst first
HARMS = {  # name -> (class, what happened)
    "order": ("unsafe", "an older holder's write was accepted after a newer holder's"),
    "ownership": ("unsafe", "a write was accepted after a newer grant"),
    "terminal": ("unsafe", "what was finished was finished or written again"),
    "twice": ("unsafe", "an alert, an effect or an order to others was given twice"),
    "bytes": ("unsafe", "the bytes to which the finished job points were replaced"),
    "final": ("unsafe", "what stands in the end is not the newest writer's"),
    "overlap": ("window", "the lease was granted while another's still ran"),
    "late": ("window", "a write was accepted after its lease had ended, with no newer grant"),
    "wasted": ("cost", "the newest holder's write was refused though it was no repetition"),
    "misled": ("cost", "a holder was refused by its own success, whose reply had been lost"),
}
_ONCE = ("alert", "schedule", "retry", "effect")  # what others act upon each time that it is accepted


class Harm(NamedTuple):
    """One kind of harm in a run, and the lines of the timeline in which it happened, from the top down."""

    name: str
    lines: tuple[int, ...]

    @property
    def group(self) -> str:
        """One of CLASSES."""
        return HARMS[self.name][0]

    @property
    def says(self) -> str:
        """What happened."""
        return HARMS[self.name][1]


def harms(run: Run) -> tuple[Harm, ...]:
    """Every harm of the run, the worst first."""
    found = [("bytes", stored.line) for stored in run.stored if stored.final]
    for resource in run.timeline.resources:
        found += _of_one(run, resource)
    lines = {name: sorted({line for what, line in found if what == name}) for name in HARMS}
    return tuple(Harm(name, tuple(where)) for name, where in lines.items() if where)


def unsafe(run: Run) -> tuple[Harm, ...]:
    """The harms of the class unsafe."""
    return tuple(harm for harm in harms(run) if harm.group == "unsafe")


def stale_attempts(run: Run) -> tuple[Step, ...]:
    """The steps in which a write that was older than the newest grant reached the receiver."""
    return tuple(step for step in run.steps if any(_stale(d) and _kind(d) in MUTATIONS for d in step.decisions))


def why_idle(run: Run) -> str:
    """Why no stale write reached the receiver, as far as the order of events says; empty where one did."""
    if stale_attempts(run):
        return ""
    reasons = [*_paused_too_early(run), *_never_came_back(run)]
    if not reasons and max((decision.newest for decision in run.decisions), default=0) < 2:
        return "nobody took over"
    return "; ".join(reasons) or "every write came from the newest holder"


def _paused_too_early(run: Run) -> Iterator[str]:
    asked = set()
    for event in run.timeline.events:
        if event.act == "acquire":
            asked.add(event.worker)
        elif event.act == "pause" and event.worker not in asked:
            yield f"{event.worker} paused in line {event.line} before it had acquired, so it held no token to grow old"


def _never_came_back(run: Run) -> Iterator[str]:
    gone = {event.worker: event.line for event in run.timeline.events if event.act == "crash"}
    for worker in {event.worker for event in run.timeline.events if event.act == "restart"}:
        gone.pop(worker, None)
    for worker, line in gone.items():
        yield f"{worker} crashed in line {line} and never came back, and nothing of it arrived after a newer grant"


class _Life:
    """What has happened to one resource since it began to exist; grants and lines by kind, and of any kind under ""."""

    def __init__(self) -> None:
        self.newest = 0  # of the accepted writes
        self.last, self.tried = Counter[str](), Counter[str]()  # the last accepted, the newest that was tried
        self.lines = dict[str, int]()  # where either was set last
        self.given = Counter[tuple[str, str]]()
        self.unheard = set[tuple[int, str, str]]()  # grant, kind and value of what was accepted and not answered


def _of_one(run: Run, resource: str) -> Iterator[tuple[str, int]]:
    """The harms on one resource by name, each with its line. A deletion ends its life and begins another."""
    life, running = _Life(), dict[str, tuple[str, datetime]]()  # who holds each lease, until when
    for line, decision in ((step.event.line, d) for step in run.steps for d in step.decisions):
        row, kind = decision.row, _kind(decision)
        if row["resource"] != resource:
            continue
        if kind == "ttl_delete":
            life = _Life()
        accepted = row["decision"] == "accepted"
        if accepted and kind in ASKED:
            others = (until for holder, until in running.values() if holder != row["writer"])
            if kind == "grant" and any(until > row["at"] for until in others):
                yield "overlap", line
            running |= {row["lease"]: (row["writer"], row["after_expires_at"] or row["at"])}
        if accepted and kind in (*_ONCE, "finish") and decision.value:
            given = kind, "" if kind == "finish" else decision.value
            life.given[given] += 1
            if life.given[given] > 1:
                yield "terminal" if kind == "finish" else "twice", line
        if kind in MUTATIONS:
            yield from ((name, line) for name in _of_write(decision, accepted, life))
            _remember(decision, accepted, line, life)
    if not run.flying:
        yield from (("final", life.lines[kind]) for kind in life.tried if life.last[kind] < life.tried[kind])


def _of_write(decision: Decision, accepted: bool, life: _Life) -> Iterator[str]:
    """The harms that a write is, accepted or refused."""
    if not accepted:
        if not _stale(decision) and not decision.again:
            yield "wasted"
        if _named(decision) in life.unheard and decision.row["reason"] != "duplicate":  # which to its sender is success
            yield "misled"
        return
    if decision.grant < life.newest:
        yield "order"
    if _stale(decision):
        yield "ownership"
    row = decision.row
    if row["before_terminal"] and row["before_value"] != row["after_value"]:
        yield "terminal"
    if decision.late:
        yield "late"


def _remember(decision: Decision, accepted: bool, line: int, life: _Life) -> None:
    """Add a write to the life, of any kind and of its own; what was stale when it was tried claims no place."""
    for kind in ("", _kind(decision)):
        tried = 0 if _stale(decision) else decision.grant
        if accepted or tried > life.tried[kind]:
            life.lines[kind] = line
        life.tried[kind] = max(life.tried[kind], tried)
        if accepted:
            life.last[kind] = decision.grant
    if accepted:
        life.newest = max(life.newest, decision.grant)
        if decision.row["outcome"] == "unknown":
            life.unheard.add(_named(decision))


def _stale(decision: Decision) -> bool:
    return decision.grant < decision.newest


def _named(decision: Decision) -> tuple[int, str, str]:
    return decision.grant, _kind(decision), decision.value


def _kind(decision: Decision) -> str:
    return str(decision.row["kind"])
