"""The receiver: what it holds of one resource, and its decision on a mutation. Check and write are one step.

The two steps are `refusal` and `apply`, and `decide` is both at once. Only the guards that are named as broken are
run in two steps, so that something can happen in between.
"""

from __future__ import annotations

from typing import NamedTuple

from fencinglab.model.guard import GUARDS, Guard, Presented, Seen
from fencinglab.model.lease import Lease, held_by

DUPLICATES = {
    "none": "A repeated operation is not recognised.",
    "attempt": "An id names one operation of one attempt: its repetition is refused, another attempt's is not.",
    "job": "An id names one operation of the job, whoever does it: the first that arrives wins.",
}
LEFT_OPEN = ("alert",)  # what the terminal rule does not refuse: an alert may follow the final status


class Mutation(NamedTuple):
    """One requested change. Without a token it carries no condition at all: the work of a version without fencing."""

    kind: str  # write, finish, schedule, retry or alert
    writer: str
    value: str
    token: int | None
    version: int = 0  # the identity of the state that the writer knows
    operation: str = ""  # its id under the duplicate rule; empty = it has none
    artifact: str = ""  # what a finish points to from then on, in the same step
    reason: str = ""  # why it is finished without one


class Held(NamedTuple):
    """What the receiver holds of one resource."""

    token: int = 0  # the highest of the accepted mutations
    promised: int = 0  # the same mark, raised by grants too
    version: int = 0  # counts the accepted mutations
    value: str = ""
    status: str = ""
    reason: str = ""  # why it was finished so
    terminal_version: int = 0  # counts the transitions into a final status; above 0 the status is final
    next_poll: str = ""
    retry: str = ""  # the decision about a business retry
    alerts: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()  # the ids of the accepted operations


class Rules(NamedTuple):
    """By which rules a receiver decides."""

    guard: Guard = GUARDS["unguarded"]
    terminal_once: bool = False  # the terminal rule: a final status is left by nothing and reached once
    strict: bool = False  # refuses what presents no token


def operation_id(rule: str, writer: str, token: int | None, kind: str, number: int) -> str:
    """The id that a worker sends with the `number`-th operation of its kind in one attempt; empty without a rule."""
    return {"none": "", "attempt": f"{writer}/{token}/{kind}/{number}", "job": f"{kind}/{number}"}[rule]


def refusal(held: Held, lease: Lease, mutation: Mutation, now: int, rules: Rules) -> str:
    """Why the mutation is refused at this moment, in one word; empty when it is admitted."""
    if mutation.token is None:
        return "no_token" if rules.strict else ""
    if mutation.operation and mutation.operation in held.operations:  # first: to its sender it means success
        return "duplicate"
    seen = Seen(held.token, held.promised, lease.token, held_by(lease, now), held.version)
    if not rules.guard.admits(seen, Presented(mutation.token, mutation.writer, mutation.version)):
        return _reason(rules.guard, held, lease, mutation)
    if rules.terminal_once and held.terminal_version and mutation.kind not in LEFT_OPEN:
        return "terminal"
    return ""


def _reason(guard: Guard, held: Held, lease: Lease, mutation: Mutation) -> str:
    """The guard's refusal told apart: a newer token, not the holder, expired, the same token again, another state."""
    assert mutation.token is not None
    if guard.compares == "version":
        return "changed"
    if mutation.token < max(held.token, lease.token):
        return "newer_token"
    if mutation.token > lease.token or (guard.compares == "holder" and mutation.writer != lease.holder):
        return "not_held"
    return "expired" if guard.compares == "holder" else "equal_token"


def apply(held: Held, mutation: Mutation) -> Held:
    """What the receiver holds once the mutation is written."""
    token = mutation.token or 0
    marked = held._replace(
        token=max(held.token, token),
        promised=max(held.promised, token),
        version=held.version + 1,
        operations=(*held.operations, *filter(None, [mutation.operation])),
    )
    match mutation.kind:
        case "finish":
            ended = marked._replace(status=mutation.value, reason=mutation.reason)
            times, value = held.terminal_version + 1, mutation.artifact or held.value
            return ended._replace(terminal_version=times, value=value)
        case "schedule":
            return marked._replace(next_poll=mutation.value)
        case "retry":
            return marked._replace(retry=mutation.value)
        case "alert":
            return marked._replace(alerts=(*held.alerts, mutation.value))
        case _:
            return marked._replace(value=mutation.value)


def decide(held: Held, lease: Lease, mutation: Mutation, now: int, rules: Rules) -> tuple[Held, str]:
    """The receiver's decision in one step: what it holds afterwards, and why it refused (empty = accepted)."""
    refused = refusal(held, lease, mutation, now, rules)
    return (held, refused) if refused else (apply(held, mutation), "")
