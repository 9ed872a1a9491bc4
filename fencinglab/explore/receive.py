"""The receiver as the explorer sees it: a step function `(state, request) -> (state, reply)`, and who holds the lease.

The one here is that of the model, under a fix: it decides with `fencinglab.model.receiver` and nothing else. A state
is any value that can be compared; what no rule of the fix can see is left out of it, so that equal is equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from fencinglab.model.fix import Fix
from fencinglab.model.lease import Lease, fresh, grant, release, restore
from fencinglab.model.receiver import Held, Mutation, apply, decide, operation_id, refusal

FIRST_TOKEN = 41
State = Any  # that compares and can be hashed; each receiver has its own


class Request(NamedTuple):
    """What is asked of the receiver, or happens to it."""

    act: str  # acquire, read, release; check, put, decide (both in one); expire, delete, restore
    worker: str = ""
    token: int | None = None
    number: int = 0  # the how manieth of its kind in one attempt; of a restore the token that is found
    version: int = 0  # the identity of the state that the worker knows
    kind: str = ""  # of a mutation
    ahead: bool = False  # by a clock that runs ahead


class Reply(NamedTuple):
    """What comes back."""

    accepted: bool
    token: int = 0  # of a grant
    version: int = 0  # the identity of the state from now on
    reason: str = ""  # why not, in one word


class Receiver(NamedTuple):
    """A receiver: where it begins, its step function, and what can be read off a state."""

    start: State
    step: Callable[[State, Request], tuple[State, Reply]]
    holder: Callable[[State], str]  # whose unexpired lease it is; empty = nobody's
    finished: Callable[[State], bool]
    token: Callable[[State], int]  # the newest token issued


def pure(fix: Fix) -> Receiver:
    """The receiver of the model under a fix, which computes the answer to each state and request once.

    Time is whether the lease runs: second 0 until it has run out.
    """
    return Receiver(
        start=_seen(fix, fresh(FIRST_TOKEN), Held()),
        step=cache(partial(_step, fix)),
        holder=lambda state: state[0].holder,
        finished=lambda state: bool(state[1].terminal_version),
        token=lambda state: state[0].token,
    )


_State = tuple[Lease, Held]


def _step(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    lease, held = state
    match request.act:
        case "acquire":
            return _acquired(fix, state, request)
        case "read":
            return state, Reply(True, version=held.version)
        case "release":
            released = release(lease, request.worker, request.token or 0)
            return (released or lease, held), Reply(released is not None)
        case "expire":
            return (Lease(lease.token), held), Reply(True)
        case "delete":
            counter = restore(lease, FIRST_TOKEN - 1, fix.floor)
            return _seen(fix, counter, Held(version=held.version + 1)), Reply(True)
        case "restore":
            return (restore(lease, request.number, fix.floor), held), Reply(True)
        case _:
            return _mutated(fix, state, request)


def _acquired(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    """A grant: of a lease that runs only to a worker whose clock is ahead, of a finished resource never."""
    lease, held = state
    granted = None if held.terminal_version else grant(lease, request.worker, int(request.ahead), 1)
    if granted is None:
        return state, Reply(False, reason="terminal" if held.terminal_version else "held")
    promised = held._replace(promised=max(held.promised, granted.token))
    return _seen(fix, granted._replace(expires_at=1), promised), Reply(True, granted.token, held.version)


def _mutated(fix: Fix, state: _State, request: Request) -> tuple[_State, Reply]:
    """A decision in one step, or one half of a decision in two."""
    lease, held = state
    worker, token, kind = request.worker, request.token, request.kind
    operation = "" if token is None else operation_id(fix.duplicates, worker, token, kind, request.number)
    mutation = Mutation(kind, worker, "", token, request.version, operation)
    if request.act == "check":
        reason = refusal(held, lease, mutation, 0, fix.rules)
        return state, Reply(not reason, reason=reason)
    new, reason = (apply(held, mutation), "") if request.act == "put" else decide(held, lease, mutation, 0, fix.rules)
    seen = _seen(fix, lease, new)
    return seen, Reply(not reason, version=seen[1].version, reason=reason)


def _seen(fix: Fix, lease: Lease, held: Held) -> _State:
    """The state without what no rule of the fix can see."""
    by_version = fix.rules.guard.compares == "version"
    return lease, Held(
        held.token, held.promised, held.version if by_version else 0,
        terminal_version=min(held.terminal_version, 1), operations=tuple(sorted(held.operations)),
    )  # fmt: skip
