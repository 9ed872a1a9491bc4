"""The receiver as the explorer sees it: a step function `(state, request) -> (state, reply)`, and who holds the lease.

The one here is that of the model, under a fix: it decides with `fencinglab.model.receiver` and nothing else. A state
is any value that can be compared; what no rule of the fix can see is left out of it, so that equal is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from fencinglab.model.fix import Fix
from fencinglab.model.lease import Lease, fresh, grant, release, restore
from fencinglab.model.receiver import Held, Mutation, Rules, apply, decide, operation_id, refusal

FIRST_TOKEN = 41


class Request(NamedTuple):
    """What is asked of the receiver, or happens to it."""

    act: str  # acquire, read, release, check, put, a kind of mutation; expire, delete, restore
    worker: str = ""
    token: int | None = None
    number: int = 0  # the how manieth of its kind in one attempt; of a restore the token that is found
    version: int = 0  # the identity of the state that the worker knows
    kind: str = ""  # of what is checked or put; else as `act`
    ahead: bool = False  # by a clock that runs ahead


class Reply(NamedTuple):
    """What comes back."""

    accepted: bool
    token: int = 0  # the newest token issued
    version: int = 0  # the identity of the state from now on
    reason: str = ""  # why not, in one word


class Receiver(NamedTuple):
    """A receiver: where it begins, its step function, and what can be read off a state."""

    start: Hashable
    step: Callable[[Hashable, Request], tuple[Hashable, Reply]]
    holder: Callable[[Hashable], str]  # whose unexpired lease it is; empty = nobody's
    finished: Callable[[Hashable], bool]
    token: Callable[[Hashable], int]  # the newest token issued


def pure(fix: Fix) -> Receiver:
    """The receiver of the model under a fix. Time is whether the lease runs: second 0 until it has run out."""
    start = _seen(fix, fresh(FIRST_TOKEN), Held())
    return Receiver(
        start,
        lambda state, request: _step(fix, state, request),  # type: ignore[arg-type]
        lambda state: state[0].holder,  # type: ignore[index]
        lambda state: bool(state[1].terminal_version),  # type: ignore[index]
        lambda state: state[0].token,  # type: ignore[index]
    )


def remembered(receiver: Receiver) -> Receiver:
    """The same receiver, asked once for each state and request."""
    known: dict[tuple[Hashable, Request], tuple[Hashable, Reply]] = {}

    def step(state: Hashable, request: Request) -> tuple[Hashable, Reply]:
        if (state, request) not in known:
            known[state, request] = receiver.step(state, request)
        return known[state, request]

    return receiver._replace(step=step)


_State = tuple[Lease, Held]


def _step(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    lease, held = state
    match request.act:
        case "acquire":
            return _acquired(fix, state, request)
        case "read":
            return state, Reply(True, lease.token, held.version)
        case "release":
            released = release(lease, request.worker, request.token or 0)
            return (released or lease, held), Reply(released is not None, lease.token)
        case "expire":
            return (Lease(lease.token), held), Reply(bool(lease.holder), lease.token)
        case "delete":
            counter = restore(lease, FIRST_TOKEN - 1, fix.floor)
            return _seen(fix, counter, Held(version=held.version + 1)), Reply(True, counter.token)
        case "restore":
            restored = restore(lease, request.number, fix.floor)
            return (restored, held), Reply(True, restored.token)
        case _:
            return _mutated(fix, state, request)


def _acquired(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    """A grant: of a lease that runs only to a worker whose clock is ahead, of a finished resource never."""
    lease, held = state
    granted = None if held.terminal_version else grant(lease, request.worker, int(request.ahead), 1)
    if granted is None:
        return state, Reply(False, lease.token, reason="terminal" if held.terminal_version else "held")
    promised = held._replace(promised=max(held.promised, granted.token))
    return _seen(fix, granted._replace(expires_at=1), promised), Reply(True, granted.token, held.version)


def _mutated(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    """A decision in one step, or one half of a decision in two."""
    lease, held = state
    kind, fenced = request.kind or request.act, request.token is not None
    operation = operation_id(fix.duplicates, request.worker, request.token, kind, request.number) if fenced else ""
    mutation = Mutation(kind, request.worker, "", request.token, request.version, operation)
    rules: Rules = fix.rules
    if request.act == "check":
        return state, _answered(refusal(held, lease, mutation, 0, rules), lease, held)
    new, reason = (apply(held, mutation), "") if request.act == "put" else decide(held, lease, mutation, 0, rules)
    seen = _seen(fix, lease, new)
    return seen, _answered(reason, lease, seen[1])


def _answered(reason: str, lease: Lease, held: Held) -> Reply:
    return Reply(not reason, lease.token, held.version, reason)


def _seen(fix: Fix, lease: Lease, held: Held) -> _State:
    """The state without what no rule of the fix can see."""
    by_version = fix.rules.guard.compares == "version"
    return lease, Held(
        held.token, held.promised, held.version if by_version else 0,
        terminal_version=min(held.terminal_version, 1), operations=tuple(sorted(held.operations)),
    )  # fmt: skip
