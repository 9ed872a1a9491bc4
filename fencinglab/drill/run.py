"""A drill: the scenarios played at the same time on one receiver, and what they left, ready to be audited.

Bounded in requests and time. The tables that it made are removed at the end; of a table that was there (`table`) it
touches and removes only its own items.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from fencinglab.drill import capture
from fencinglab.drill.desk import Check, Desk, Notes, Stopped
from fencinglab.drill.scenarios import SCENARIOS, Scenario, not_played
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.requests import Requests, renamed
from fencinglab.dynamodb.sending import answering, tables
from fencinglab.errors import InputError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

AT_ONCE = 16  # scenarios
MOCKS = ("mock", "unlocked-mock")
LEAST = {"workers": 1, "rounds": 1, "lease": 2, "seconds": 1, "max_requests": 1}  # of a plan


class Receiver(NamedTuple):
    """Which receiver: `mock`, `unlocked-mock`, `endpoint` or `aws`, and its URL where that was given."""

    kind: str = "mock"
    url: str | None = None


class Plan(NamedTuple):
    """What is played, and within which bounds."""

    scenarios: tuple[str, ...] = ()  # none: all but those that are played only when named
    workers: int = 4  # that acquire at the same moment
    rounds: int = 10  # of that
    lease: int = 2  # seconds
    seconds: int = 300
    max_requests: int = 20_000
    seed: int = 1  # of how far apart workers are that begin together
    table: str = ""  # one that is there; empty: tables are made and removed


MOCK, ALL = Receiver(), Plan()


class Drilled(NamedTuple):
    """What came of a drill."""

    receiver: Receiver
    file: Requests  # with the names of the tables that were used
    played: tuple[Scenario, ...]
    left_out: tuple[tuple[str, str], ...]  # scenario and why it was not played
    checks: tuple[Check, ...]
    stopped: tuple[tuple[str, str], ...]  # scenario and which bound or error ended it
    stream: tuple[dict[str, Any], ...] | None  # records as they are archived; None: none could be read
    log: tuple[dict[str, Any], ...]  # the workers' log
    unlike: tuple[str, ...]  # resources whose item is not what the history says
    requests: int
    seconds: float


def drill(
    file: Requests, receiver: Receiver = MOCK, plan: Plan = ALL, progress: Callable[[str], None] = lambda _: None
) -> Drilled:
    """Play the scenarios; UsageError for one that there is not, InputError where the receiver cannot be used."""
    bounded(plan)
    chosen, left_out = choose(file, plan.scenarios)
    begun = time.monotonic()
    notes = Notes(plan.max_requests, begun + plan.seconds)
    with ExitStack() as stack:
        connect = stack.enter_context(_connected(receiver))
        main = _client(connect)
        run = uuid4().hex[:6]
        if plan.table:
            file = _named(file, plan.table, receiver, main)
            stack.enter_context(answering(main, file))
            stack.callback(_clear, main, notes)
        else:
            file = renamed(file, lambda name: f"{name}-drill-{run}")
            stack.enter_context(tables(main, file))
        stopped = _play(chosen, connect, file, notes, plan, run, progress)
        progress("reading what was left")
        names = [table["TableName"] for table in file.tables]
        streams = connect(service="dynamodbstreams")
        records = capture.settled(
            lambda: capture.stream(streams, names, notes.judged, receiver.kind == "aws"),
            lambda found: capture.unlike(main, notes.judged, found),
        )
        unlike = capture.unlike(main, notes.judged, records) if records else []
    return Drilled(
        receiver, file, tuple(chosen), tuple(left_out), tuple(notes.checks), tuple(stopped),
        None if records is None else tuple(records), tuple(capture.logged(notes.heard, file, records is None)),
        tuple(unlike), notes.requests, time.monotonic() - begun,
    )  # fmt: skip


def choose(file: Requests, names: Sequence[str]) -> tuple[list[Scenario], list[tuple[str, str]]]:
    """The scenarios to play, and those that are not played with the reason for each."""
    for name in names:
        if name not in SCENARIOS:
            near = ", ".join(nearest(name, SCENARIOS))
            raise UsageError(f"--scenario {name}: there is no such scenario (`list` tells all); nearest: {near}")
    chosen, left_out = [], []
    for name, scenario in SCENARIOS.items():
        why = not_played(scenario, file)
        if name in names and why:
            raise UsageError(f"--scenario {name}: cannot be played, since {why}")
        if names and name not in names:
            why = "not named"
        elif not names and scenario.named:
            why = f"shows {', '.join(scenario.shows)} on any receiver: name it to play it"
        if why:
            left_out.append((name, why))
        else:
            chosen.append(scenario)
    if not chosen:
        raise InputError(f"{file.name}: none of the scenarios can be played with it, since {left_out[0][1]}")
    return chosen, left_out


def bounded(plan: Plan) -> None:
    """Refuse a plan in which a number is too small."""
    for name, least in LEAST.items():
        if (value := getattr(plan, name)) < least:
            why = "; clocks tell whole seconds, so that one of 1 s may be over at once" if name == "lease" else ""
            raise UsageError(f"--{name.replace('_', '-')} {value}: must be {least} or more{why}")


def _play(
    chosen: Sequence[Scenario], connect: Callable[..., Any], file: Requests, notes: Notes, plan: Plan, run: str,
    progress: Callable[[str], None],
) -> list[tuple[str, str]]:  # fmt: skip
    """Play some scenarios at a time, each in a thread of its own; those that did not come to their end, and why."""
    from botocore.exceptions import BotoCoreError, ClientError

    def play(scenario: Scenario) -> str:
        desk = Desk(
            scenario.name, connect, file, notes,
            lease=plan.lease, workers=plan.workers, rounds=plan.rounds, run=run, seed=plan.seed,
        )  # fmt: skip
        try:
            scenario.play(desk)
        except (Stopped, InputError, BotoCoreError, ClientError) as why:
            return str(why)
        return ""

    pool = ThreadPoolExecutor(AT_ONCE)
    played = {pool.submit(play, scenario): scenario.name for scenario in chosen}
    try:
        while wait(played, timeout=0.1).not_done:
            begun = sum(one.running() or one.done() for one in played)
            progress(f"{begun} of {len(chosen)} scenarios begun, {notes.requests:,} requests")
    finally:
        notes.until = 0.0  # where the drill is interrupted, what still runs stops before its next request
        pool.shutdown(cancel_futures=True)
    return [(name, why) for one, name in played.items() if (why := one.result())]


@contextmanager
def _connected(receiver: Receiver) -> Iterator[Callable[..., Any]]:
    """What makes a client of the receiver; it can be sent to another process."""
    if receiver.kind not in MOCKS:
        yield partial(client, receiver.url, receiver.kind == "aws")
        return
    with Mock(atomic=receiver.kind == "mock") as mock, mock.served() as url:
        yield partial(client, url)


def _client(connect: Callable[..., Any]) -> Any:
    """A client of the receiver; UsageError where this machine says too little for one, such as no region."""
    from botocore.exceptions import BotoCoreError

    try:
        return connect()
    except BotoCoreError as error:
        why = f"{error}".rstrip(".")
        raise UsageError(f"--aws: {why}; AWS_DEFAULT_REGION and AWS_PROFILE count, as for the AWS CLI") from None
    except ValueError as error:
        raise UsageError(f"--endpoint-url: {error}; write http://HOST:PORT") from None


def _named(file: Requests, table: str, receiver: Receiver, main: Any) -> Requests:
    """The file on a table that is there."""
    from botocore.exceptions import BotoCoreError, ClientError

    if len(file.tables) > 1:
        raise UsageError(f"--table {table}: {file.name} has {len(file.tables)} tables; let the drill make its own")
    if receiver.kind in MOCKS:
        raise UsageError(f"--table {table}: the mock begins empty; leave it out, or give --endpoint-url or --aws")
    where = main.meta.endpoint_url
    try:
        found = main.describe_table(TableName=table)["Table"]
    except main.exceptions.ResourceNotFoundException:
        raise InputError(f"--table {table}: not at {where}; leave it out, and the drill makes its own") from None
    except (BotoCoreError, ClientError) as error:
        raise InputError(f"--table {table}: {where} does not show it: {error}") from None
    if _key(found) != _key(file.tables[0]):
        raise InputError(
            f"--table {table}: its key is {_key(found)}, that of {file.name} is {_key(file.tables[0])}; "
            "name another, or leave it out"
        )
    return renamed(file, lambda _: table)


def _key(table: dict[str, Any]) -> str:
    """The key of a table in words."""
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    return ", ".join(
        f"{part['AttributeName']} ({part['KeyType']}, {types[part['AttributeName']]})" for part in table["KeySchema"]
    )


def _clear(main: Any, notes: Notes) -> None:
    """Remove the drill's own items."""
    for place in (*notes.judged, *notes.beside):
        main.delete_item(TableName=place.table, Key=json.loads(place.key))
