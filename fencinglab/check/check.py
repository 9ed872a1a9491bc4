"""A check of a team's own requests: the search, with a DynamoDB implementation as its receiver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fencinglab.dynamodb import sending
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.requests import Requests, begin
from fencinglab.errors import InputError
from fencinglab.explore import walk
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.repair import UNSAFE, Repair, repair
from fencinglab.explore.search import Answer, explore
from fencinglab.explore.team import Team
from fencinglab.explore.walk import Needed, needed


class Check(NamedTuple):
    """What a search with a team's requests found."""

    answer: Answer
    calls: int  # different requests on different items that the receiver was asked
    needed: tuple[Needed, ...]  # for every condition what breaks without it; empty where that was not asked
    repair: Repair | None = None  # of a broken file, where that was asked


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
    sending.refused(file)
    with _receiver(endpoint_url) as receiver, sending.tables(receiver, file, streams=False):
        team = Team(
            file, lambda of, items, operation, bound: sending.step(receiver, of, items, operation, bound),
            begin(file), workers, hazards, optional,
        )  # fmt: skip
        answer = explore(
            team, most=most,
            progress=lambda states: progress(f"{states:,} states, {team.calls:,} requests"),
        )  # fmt: skip
        calls = team.calls
        if not answer.stopped:
            _possible(team)
        without = needed(team, answer, most, progress) if conditions else ()
        violated = any(answer.of(name).status == "violated" for name in UNSAFE)
        mended = repair(answer, most, progress) if repaired and violated and not answer.stopped else None
    return Check(answer, calls, tuple(without), mended)


def _possible(team: Team) -> None:
    """Raise InputError for the first operation that can never be sent, or is always refused, with the reason."""
    sent = {operation for operation, _, _, _ in team.asked_for}
    for operation, why in team.unable.items():
        if operation not in sent:
            raise InputError(f"{why}: no worker can ever send it")
    for operation, unmet in walk.never(team).items():
        grants = team.file.operations[operation].kind == "grant"
        what = "nobody can ever acquire" if grants else f"operation `{operation}` can never be accepted"
        which = " and ".join(f"`{condition}`" for condition in unmet) or "its condition"
        raise InputError(f"{team.file.name}: {what}: {which} of `{operation}` is never true here")


@contextmanager
def _receiver(endpoint_url: str | None) -> Iterator[Any]:
    if endpoint_url:
        yield client(endpoint_url)
        return
    with Mock() as mock:
        yield mock.client()
