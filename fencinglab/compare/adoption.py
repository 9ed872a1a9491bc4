"""What a team that adopts a fix must know and do: the card of questions, filled from its requests, and the roll-out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from fencinglab.dynamodb.expression import actions
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import READ, Requests, Single, singles


def card(file: Requests | None = None) -> list[dict[str, Any]]:
    """[{name, values, hint}] of the adoption card; values that no request file says are empty: a blank to fill in."""
    return [
        {"name": name, "values": filled(file) if file and filled else [], "hint": hint} for name, hint, filled in CARD
    ]


def _issues(file: Requests) -> list[str]:
    """The grant, and how it raises the token."""
    token = file.map.get("token", "")
    told = []
    for one in singles(file, file.of_kind("grant")):
        raised = (_spelled(one, action) for action in actions(one.update))
        told += [f"`{how}` in `{one.operation}`" for how in raised if how.split()[1] == token]
        told += [f"the item that `{one.operation}` puts"] if token in one.item else []
    return [*dict.fromkeys(told), f"a worker knows it from `{file.token}`"] if told else []


def _survives(file: Requests) -> list[str]:
    """How an item that comes to be again gets its token."""
    token, told = file.map.get("token", ""), []
    for one in singles(file, file.creates):
        if begins := one.item.get(token):
            value = str(next(iter(begins.values())))
            kept = any("." in name for name in names_in(value))
            told.append(f"`{value}` in `{one.operation}`: " + ("another item keeps it" if kept else "it begins again"))
    return told


def _enforces(file: Requests) -> list[str]:
    told = _parts(file, lambda one, part: "token" in names_in(one.compared(part)))
    fenced = {one.operation for one in singles(file) if "token" in names_in(one.compared(one.condition))}
    written = [name for name, one in file.operations.items() if one.kind not in ("grant", READ)]
    bare = [name for name in written if name not in {*fenced, *file.creates}]
    return [*told, *([f"no token in the condition of {_listed(bare)}"] if bare else [])]


def _acquires(file: Requests) -> list[str]:
    return _parts(file, lambda one, part: True, file.of_kind("grant"))


def _final(file: Requests) -> list[str]:
    looked = {file.map[column] for column in ("status", "terminal_version") if column in file.map}
    parts = _parts(file, lambda one, part: bool(looked & one.looked_at(part)))
    return [f"final: {', '.join(file.terminal)}", *parts] if file.terminal else []


def _operation(file: Requests) -> list[str]:
    return _parts(file, lambda one, part: "operation" in names_in(one.compared(part)))


CARD: tuple[tuple[str, str, Callable[[Requests], list[str]] | None], ...] = (  # name, hint, what fills it in
    ("Who issues tokens", "one authority a lease, in the same step as the grant, such as ADD fencingToken 1", _issues),
    ("What makes the sequence survive", "deletion, TTL, restoring a backup: a floor out of their reach", _survives),
    ("Which request enforces it", "the condition on every write, in that write: fencingToken = :token", _enforces),
    ("Which request acquires", "the condition under which a lease is taken over, and by whose clock", _acquires),
    ("What is final", "the statuses that nothing leaves, and the condition that says so", _final),
    ("What names one operation", "an id that stays the same when it is repeated, and where it is compared", _operation),
    ("Which effects lie outside", "mails, payments, calls; which key each carries", None),
    ("Who writes without a lease", "operators, migrations, clean-up: how each takes a grant or is refused", None),
    ("Who watches", "which number, which threshold, who is called", None),
)  # fmt: skip


def _parts(file: Requests, wanted: Callable[[Single, str], bool], of: Iterable[str] | None = None) -> list[str]:
    """Each part of a condition that is wanted, once, with those of the operations that have it."""
    found: dict[str, dict[str, None]] = {}
    for one in singles(file, of):
        for part in one.parts:
            if wanted(one, part):
                found.setdefault(_spelled(one, part), {})[one.operation] = None
    return [f"`{part}` in {_listed(names)}" for part, names in found.items()]


def _spelled(one: Single, text: str) -> str:
    """The text with its `#names` written out."""
    return re.sub(r"#\w+", lambda match: one.names.get(match[0], match[0]), text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# The roll-out in order: what it does, what proves it, when to stop, and what may go back.
_STEPS = (
    ("Keep a baseline", "Audit a day of the log as it is, and keep the report.",
     "`fencinglab audit LOG --out baseline` names what it cannot see, and nothing core stays unknown",
     "a core rule is unknown: log the field that it names first", "nothing is changed yet"),
    ("Extend the item", "Add token, holder, expiry, version and written token; every worker writes them.",
     "the audit of the new log shows a token on every grant and a written token on every write",
     "a writer leaves them out: find it before a condition refuses it", "the new attributes may stay"),
    ("Acquire by condition", "Grant only where no lease runs, and raise the token in the same request.",
     "one token, one holder: token_shared, holder_without_token and leases_overlap hold",
     "a token is issued twice or falls", "yes: nothing depends on tokens yet; never lower the counter"),
    ("Fence every write", "Put the comparison into each write of the resource, in the write itself.",
     "unfenced_write and stale_write_accepted hold; rejected_stale appears where holders paused",
     "more than contention is refused: good writes fail", "worker by worker; the counter and the attributes stay"),
    ("Make the end final", "Refuse to leave or to repeat a final status, and to grant a finished resource.",
     "terminal_twice, terminal_left and work_after_terminal hold",
     "a correction is refused that somebody needs: give it a grant of its own", "yes, this condition alone"),
    ("Stress it", "Pause, kill, delay and repeat on purpose, with the real receiver.",
     "the audit of that run holds, with every core rule exercised (`--require-exercised`)",
     "any unsafe rule is violated", "to the step before"),
    ("Only then add workers", "Raise concurrency or shorten the lease; fencing comes before both.",
     "rejected_late, reassignments and dead time stay near this page's numbers",
     "finished work is thrown away more often than this page says", "yes: concurrency goes back first, checks stay"),
)  # fmt: skip
ROLLOUT = [dict(zip(("step", "does", "proof", "stop", "back"), row, strict=True)) for row in _STEPS]
