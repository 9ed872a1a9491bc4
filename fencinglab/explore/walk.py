"""A run of a team's requests walked again, with what each step did to the items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from fencinglab.dynamodb import requests as files
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import Items
from fencinglab.explore.invariants import INVARIANTS, Past, observe
from fencinglab.explore.search import Answer, Run, Verdict
from fencinglab.explore.sender import Message, Sender, Shared
from fencinglab.explore.team import Team
from fencinglab.explore.world import Move, Step

UNDONE, REISSUED = "what is finished can be changed", "a grant can issue no newer token"


class Happened(NamedTuple):
    """One step of a run."""

    says: str
    operation: str  # that was decided; empty = none
    before: Items
    after: Items
    token: int | None = None  # that the request presented
    breaks: tuple[str, ...] = ()  # the invariants that the step itself breaks


def walked(team: Team, run: Run) -> list[Happened]:
    """The steps of a run in sentences, with the items before and after each."""
    told, past = [], Past()
    for move, shared, worker in moves(team, run):
        step, after = move.step, move.shared.items
        operation = team.program[step.number].operation if step.accepted is not None else ""
        broken = frozenset[str]()
        if move.effect:
            past, broken, _ = observe(past, move.effect)
        token = _presented(team, operation, worker.copy if step.act == "copy arrives" else worker.waiting)
        says = _says(team, step, shared.items, after)
        if move.effect and move.effect.reissued:
            says += f"; it issued no newer token than the {shared.issued} that was issued before"
        told.append(Happened(says, operation, shared.items, after, token, tuple(sorted(broken))))
    return told


def harm(answer: Answer, invariant: str) -> str:
    """What the shortest run that breaks the invariant shows can happen."""
    run, team = answer.of(invariant).run, answer.model
    if run and isinstance(team, Team):
        effect = [move.effect for move, _, _ in moves(team, run)][-1]
        if effect and invariant == "terminal" and effect.undone:
            return UNDONE
        if effect and invariant == "ownership" and effect.reissued:
            return REISSUED
    return INVARIANTS[invariant].broken


def changed(happened: Happened) -> list[tuple[str | None, str | None]]:
    """The items before and after a request: the protected one, and each other one that it changed."""
    pairs = enumerate(zip(happened.before, happened.after, strict=True)) if happened.operation else ()
    return [(before, after) for place, (before, after) in pairs if before != after or not place]


def _presented(team: Team, operation: str, message: Message | None) -> int | None:
    """The token in a request; None where it has none."""
    if (
        not operation
        or message is None
        or not message.fenced
        or "token" not in names_in(team.file.operations[operation].input)
    ):
        return None
    token: int | None = dict(message.bindings).get("token")
    return token


def moves(team: Team, run: Run) -> Iterator[tuple[Move, Shared, Sender]]:
    """The moves of a run, each with what all shared and what its worker was before."""
    shared, workers = team.start, dict.fromkeys(team.names, team.idle)
    for step in run:
        name = step.worker
        worker = workers.get(name, team.idle)
        move = next(
            m for m in (team.of_worker(shared, worker, name) if name else team.common(shared)) if m.step == step
        )
        yield move, shared, worker
        shared = move.shared
        if name:
            workers[name] = move.worker


def ended(team: Team, run: Run) -> Shared:
    """What all share after a run."""
    shared = team.start
    for move, _, _ in moves(team, run):
        shared = move.shared
    return shared


def rescued(team: Team, verdict: Verdict) -> list[str]:
    """The steps of an undisturbed attempt that does not finish the job, in sentences."""
    return [_says(team, step, (), ()) for step in verdict.rescue]


def _says(team: Team, step: Step, before: Items, after: Items) -> str:
    who = step.worker
    operation = team.program[step.number].operation if who else ""
    match step.act:
        case "expire":
            return "time passes until every lease has run out"
        case "delete":
            which = f" {item(files.places(team.file)[step.number].key)}" if step.number else ""
            return f"clean-up deletes the item{which}"
        case "create":
            return "the item is created again"
        case "restore":
            return "the table comes back from a backup, older than the last grant"
        case "downgrade":
            return f"{who} goes on in a version that asks for neither token nor owner"
        case "crash":
            return f"{who} crashes and starts again, knowing nothing"
        case "send":
            return f"{who} sends {operation}"
        case "send early":
            return f"{who}, whose clock runs ahead, sends {operation}"
    late = "a late copy of " if step.act == "copy arrives" else ""
    lost = "; the reply is lost, and it is sent again" if step.act == "arrive, reply lost" else ""
    if not step.accepted:
        return f"{late}{who}'s {operation} is refused ({step.reason}){lost}"
    copies = "; a copy of it is still on its way" if step.again else ""
    changes = ", ".join(_changes(before, after))
    return f"{late}{who}'s {operation} is accepted{f': {changes}' if changes else ''}{lost}{copies}"


def _changes(before: Items, after: Items) -> Iterator[str]:
    """`fencingToken 40 → 41` for every attribute that differs."""
    for old, new in zip(before, after, strict=True):
        was, now = (json.loads(text) if text else {} for text in (old, new))
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                yield f"{name} {_plain(was.get(name))} → {_plain(now.get(name))}"


def item(text: str | None) -> str:
    """An item in plain words; a number that is stored as text stands in quotes."""
    if text is None:
        return "none"
    return ", ".join(f"{name} {_plain(value)}" for name, value in json.loads(text).items())


def _plain(value: dict[str, object] | None) -> str:
    if value is None:
        return "nothing"
    [(tag, content)] = value.items()
    if isinstance(content, list):
        return f"{{{' '.join(map(str, content))}}}"
    return f'"{content}"' if tag == "S" and str(content).isdecimal() else str(content)
