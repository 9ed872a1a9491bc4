"""Guards: the rules by which a receiver admits or refuses a mutation, by name, each with its comparison in the name.

A guard is a small pure function of what the receiver knows and what the mutation presents. It says nothing about
repetition: a duplicate of an admitted mutation presents the same token and is admitted again by most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Seen(NamedTuple):
    """What a receiver knows when a mutation arrives; a real one knows only what its guard needs."""

    highest: int  # the highest token of the mutations it accepted; 0 = of none
    promised: int  # the same mark, raised by every grant too
    latest: int  # the token that the authority issued last
    holder: str  # whose unexpired lease it is; empty = nobody's
    version: int  # the identity of its state, new with every accepted mutation


class Presented(NamedTuple):
    """What a mutation brings along to be compared."""

    token: int  # of its writer's grant
    writer: str
    version: int  # the identity of the state that its writer knows


class Guard(NamedTuple):
    """A named admission rule: the sentence that says what it does, and the comparison that does it."""

    name: str
    says: str
    admits: Callable[[Seen, Presented], bool]
    compares: str  # nothing, token, holder or version
    two_steps: bool = False  # broken on purpose: the check and the write are two steps


GUARDS = {
    guard.name: guard
    for guard in (
        Guard("unguarded", "Admits every write.", lambda seen, write: True, "nothing"),
        Guard(
            "at-or-above",
            "Admits a token at or above the highest of the accepted writes: it keeps their order, and learns of a "
            "takeover only from the new holder's first write.",
            lambda seen, write: write.token >= seen.highest, "token",
        ),
        Guard(
            "above",
            "Admits a token above the highest of the accepted writes: one write a grant, so a holder's second write "
            "is refused too.",
            lambda seen, write: write.token > seen.highest, "token",
        ),
        Guard(
            "promised",
            "Admits a token at or above a mark that every grant raises in its own step: a takeover counts at once.",
            lambda seen, write: write.token >= seen.promised, "token",
        ),
        Guard(
            "latest",
            "Admits only the token that was issued last, read from the authority in the step of the write.",
            lambda seen, write: write.token == seen.latest, "token",
        ),
        Guard(
            "current-holder",
            "Admits only the worker whose lease runs now: a name, not a token, so it cannot tell a holder's older "
            "lease from its newer one, and it refuses work that is merely late.",
            lambda seen, write: write.writer == seen.holder, "holder",
        ),
        Guard(
            "current-lease",
            "Admits only the token that was issued last, from the worker whose lease runs now; it too refuses work "
            "that is merely late.",
            # not `and`: the simulation compares whole arrays
            lambda seen, write: (write.token == seen.latest) & (write.writer == seen.holder), "holder",
        ),
        Guard(
            "identity",
            "Admits a write that knows the present state (an ETag, a random id): it protects identity, not the order "
            "of holders.",
            lambda seen, write: write.version == seen.version, "version",
        ),
        Guard(
            "two-step-token",
            "Broken: compares the token (at or above) in one step and writes in another.",
            lambda seen, write: write.token >= seen.highest, "token", two_steps=True,
        ),
        Guard(
            "two-step-holder",
            "Broken: looks up the holder in one step and writes in another.",
            lambda seen, write: write.writer == seen.holder, "holder", two_steps=True,
        ),
    )
}  # fmt: skip
