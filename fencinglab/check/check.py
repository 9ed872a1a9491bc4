"""A check of a team's own requests: the search, with a DynamoDB implementation as its receiver."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fencinglab.dynamodb import sending
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import Items, Requests, begin, learned, renamed
from fencinglab.dynamodb.sending import Step as Sent
from fencinglab.errors import InputError, nearest
from fencinglab.explore import program
from fencinglab.explore.apart import Apart, apart
from fencinglab.explore.hazards import HAZARDS, Hazard
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.needed import Needed, needed
from fencinglab.explore.repair import UNSAFE, Repair, repair
from fencinglab.explore.search import Answer, explore
from fencinglab.explore.team import Team


class Check(NamedTuple):
    """What a search found, of the model or with a team's requests."""

    answer: Answer
    calls: int = 0  # different requests on different items that a receiver was asked
    needed: tuple[Needed, ...] = ()  # for every condition what breaks without it; empty where that was not asked
    repair: Repair | None = None  # of a broken file, where that was asked
    idle: tuple[str, ...] = ()  # a sentence for each optional operation that was never carried out


def check(
    file: Requests,
    *,
    workers: int = 2,
    hazards: Sequence[Hazard] = (),
    optional: bool = False,
    conditions: bool = False,
    repaired: bool = False,
    most: int,
    endpoint_url: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Check:
    """Every order of events over the requests of the file, at the mock or at the receiver of that URL.

    `optional` also tries the optional renewals, schedules and retries. `conditions` searches once more for every
    condition, without it; `repaired` looks for the smallest repair of a file that is violated. A request that DynamoDB
    would refuse, a file by which nobody can ever be granted anything, or an operation that can never be accepted is an
    InputError.
    """
    with _team(file, workers, hazards, optional, endpoint_url) as team:
        answer = _searched(team, most, progress)
        calls, idle = team.calls, () if answer.stopped else tuple(says for says, _ in _idle(team))
        without = needed(team, answer, most, progress) if conditions else ()
        violated = any(answer.of(name).status == "violated" for name in UNSAFE)
        mended = repair(answer, most, progress) if repaired and violated and not answer.stopped else None
    return Check(answer, calls, tuple(without), mended, idle)


class Beside(NamedTuple):
    """What was found with each of two files, and what tells them apart."""

    answers: tuple[Answer, Answer]
    apart: Apart
    calls: int


def beside(
    first: Requests,
    second: Requests,
    *,
    workers: int = 2,
    hazards: Sequence[Hazard] = (),
    optional: bool = False,
    most: int,
    endpoint_url: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Beside:
    """Every order of events over the requests of each file, and the shortest run that tells them apart.

    Arguments and errors are those of `check`. Two files of one name are told apart as `first` and `second`.
    """
    if first.name == second.name:
        first, second = first._replace(name=f"first {first.name}"), second._replace(name=f"second {second.name}")
    if endpoint_url:  # one receiver for both, so the tables need other names
        second = renamed(second, lambda name: f"{name}-second")
    with (
        _team(first, workers, hazards, optional, endpoint_url) as one,
        _team(second, workers, hazards, optional, endpoint_url) as other,
    ):
        answers = _searched(one, most, progress), _searched(other, most, progress)
        found = apart(one, other, most, progress)
        return Beside(answers, found, one.calls + other.calls)


def _searched(team: Team, most: int, progress: Callable[[str], None]) -> Answer:
    """The answer of a search in which each operation of the program can be carried out; else an InputError."""
    answer = explore(team, most=most, progress=lambda states: progress(f"{states:,} states, {team.calls:,} requests"))
    if not answer.stopped:
        for says, optional in _idle(team):
            if not optional:
                raise InputError(f"{team.file.name}: {says}")
        _mapped(team)
    return answer


def _mapped(team: Team) -> None:
    """Refuse a file whose `map` names an attribute that never stands in an item: nothing would be seen of it."""
    items = {text for _, _, _, sent in team.asked_for for text in (*sent.items, *team.start.items) if text}
    stored = {name for text in items for name in json.loads(text)}
    for column in ("token", "holder", "expires_at", "status"):
        attribute = team.file.map.get(column)
        if attribute and attribute not in stored:
            near = nearest(attribute, sorted(stored), 1)[0]
            raise InputError(
                f"{team.file.name}: `map` has `{attribute}` for {column}, and no request ever stores it at the top of "
                f"an item; nearest: `{near}`"
            )


@contextmanager
def _team(
    file: Requests, workers: int, hazards: Sequence[Hazard], optional: bool, endpoint_url: str | None
) -> Iterator[Team]:
    """Workers whose receiver is there, with the tables of the file."""
    _claimed(file)
    sending.refused(file)
    with _receiver(endpoint_url) as receiver, sending.tables(receiver, file, streams=False):
        yield Team(file, lambda *asked: sending.step(receiver, *asked), begin(file), workers, hazards, optional)


def _claimed(file: Requests) -> None:
    """Refuse a claim about an invariant or a hazard that there is not."""
    for part, known in (("holds", INVARIANTS), ("breaks", INVARIANTS), ("hazards", HAZARDS)):
        for one in getattr(file.claims, part):
            if str(one).partition("=")[0] not in known:
                near = f"nearest: `{nearest(str(one), known, 1)[0]}`; allowed: {', '.join(known)}"
                raise InputError(f"{file.name}: `claims`: `{part}` has no `{one}` ({near})")


def _idle(team: Team) -> Iterator[tuple[str, bool]]:
    """A sentence for each operation that was never sent or never accepted; and whether a worker may leave it out."""
    asked: dict[str, list[tuple[Items, str, Sent]]] = {}
    known = set[str]()
    for operation, items, text, sent in team.asked_for:
        asked.setdefault(operation, []).append((items, text, sent))
        known |= learned(operation, json.loads(sent.reply or "null")).keys()
    if {name for name in names_in(team.file.token) if "." in name} <= known:
        known.add("token")
    for operation, optional in dict.fromkeys(team.program):
        answers = asked.get(operation, [])
        if not answers:
            lacking = ", ".join(f"${name}" for name in sorted(program.needs(team.file, operation) - known))
            why = f"no worker ever learns {lacking}" if lacking else "no worker ever comes to it"
            yield f"operation `{operation}` is never sent: {why}", optional
        elif all(sent.decision != "accepted" for _, _, sent in answers):
            grants = team.file.operations[operation].kind == "grant"
            what = "nobody can ever acquire" if grants else f"operation `{operation}` can never be accepted"
            yield f"{what}: {_never_met(team.file, operation, answers)}", optional


def _never_met(file: Requests, operation: str, answers: Sequence[tuple[Items, str, Sent]]) -> str:
    """What of an operation is never met, or kept it undecided."""
    parts = set[str].intersection(*(sending.unmet(file, operation, items, text) for items, text, _ in answers))
    undecided = [sent.reason for _, _, sent in answers if sent.decision == "unknown"]
    if undecided and not parts:
        return undecided[0]
    which = " and ".join(f"`{part}`" for part in sorted(parts)) or "the condition"
    return f"{which} of `{operation}` is never true here"


@contextmanager
def _receiver(endpoint_url: str | None) -> Iterator[Any]:
    if endpoint_url:
        yield client(endpoint_url)
        return
    with Mock() as mock:
        yield mock.client()
