"""Fixes: named combinations of lease policy, client check, guard, duplicate rule and terminal rule.

Each says in one sentence what it improves and in another what it leaves.
"""

from __future__ import annotations

from typing import NamedTuple

from fencinglab.errors import InputError, nearest
from fencinglab.model.guard import GUARDS
from fencinglab.model.receiver import Rules


class Fix(NamedTuple):
    """One combination; a field that is not given is what a team without that measure has."""

    name: str
    improves: str
    leaves: str
    guard: str = "unguarded"  # a name of GUARDS
    duplicates: str = "none"  # a name of DUPLICATES
    terminal_once: bool = False  # the terminal rule
    strict: bool = False  # the receiver refuses what presents no token
    floor: bool = False  # the token counter survives deletion and restoration
    client_check: bool = False  # a worker looks at its lease before it writes
    effect_key: bool = False  # outside effects carry a key of the job, which the service outside honours
    times: int = 1  # how many times longer a lease lasts
    delay: int = 0  # seconds that the authority waits after a lease ran out before it grants again
    renews: bool = False  # a running worker renews its lease while time passes
    aborts: bool = False  # a worker whose renewal failed gives up

    @property
    def rules(self) -> Rules:
        """By which rules the receiver decides."""
        return Rules(GUARDS[self.guard], self.terminal_once, self.strict)


FIXES = {
    fix.name: fix
    for fix in (
        Fix(
            "unfenced",
            "Nothing: the receiver takes every write.",
            "Whoever writes last wins, also a worker that lost its lease long ago.",
        ),
        Fix(
            "longer-lease",
            "A pause shorter than the longer lease no longer costs the lease.",
            "A longer pause outlasts any lease, and after a crash everybody waits longer.",
            times=5,
        ),
        Fix(
            "renewed-often",
            "Work that takes longer than one lease keeps it.",
            "A paused worker neither renews nor notices that it lost its lease.",
            renews=True,
        ),
        Fix(
            "renew-or-abort",
            "A worker that finds its renewal refused stops before it writes.",
            "A worker that wakes up between two renewals writes first.",
            renews=True, aborts=True,
        ),
        Fix(
            "grant-delay",
            "A lease that ran out is not granted again at once (Consul's name for it is lock-delay).",
            "A pause that outlasts lease and delay together is as harmful as before, and every takeover waits.",
            delay=60,
        ),
        Fix(
            "client-check",
            "A worker that looks at its lease right before it writes sees a loss that is already visible.",
            "A pause or a slow request between the check and the write undoes it.",
            client_check=True,
        ),
        Fix(
            "two-step-token",
            "The receiver refuses most tokens that are too low.",
            "Another write may come between its check and its write.",
            guard="two-step-token",
        ),
        Fix(
            "two-step-holder",
            "The receiver refuses most writers that hold no lease.",
            "A takeover may come between its check and its write.",
            guard="two-step-holder",
        ),
        Fix(
            "terminal-once", "A finished resource is neither written nor granted again (`where status = …`).",
            "A stale worker passes while its successor works, whose result is refused then.", terminal_once=True,
        ),
        Fix(
            "identity",
            "A write based on a state that has changed since is refused.",
            "A stale worker that reads the state again may write, and one that is early shuts the new holder out.",
            guard="identity",
        ),
        Fix(
            "fenced",
            "No write replaces one with a newer token that was accepted before it.",
            "A stale write before the new holder's first is accepted, and so is everything that comes twice.",
            guard="at-or-above",
        ),
        Fix(
            "fenced-above",
            "As `fenced`, and a write that is delivered twice is refused the second time.",
            "A stale write before the new holder's first is accepted; a holder's second write is refused.",
            guard="above",
        ),
        Fix(
            "fenced-id-per-attempt",
            "As `fenced`, and what one attempt repeats is refused.",
            "A stale write before the new holder's first is accepted: its id is another one.",
            guard="at-or-above", duplicates="attempt",
        ),
        Fix(
            "fenced-id-per-job",
            "As `fenced`, and what the job has done is refused, whoever repeats it.",
            "A stale write before the new holder's first is accepted, and then the new holder's result is refused.",
            guard="at-or-above", duplicates="job",
        ),
        Fix(
            "promised",
            "From the grant on no older token is accepted.",
            "What the same holder repeats is accepted again.",
            guard="promised",
        ),
        Fix(
            "latest",
            "From the grant on only the newest token is accepted.",
            "What the same holder repeats is accepted again.",
            guard="latest",
        ),
        Fix(
            "holder",
            "Only the worker whose lease runs now may write.",
            "Repetitions and a holder's older lease pass; finished work that nobody superseded is thrown away.",
            guard="current-holder",
        ),
        Fix(
            "holder-id",
            "As `holder`, and what one attempt repeats is refused.",
            "A holder's older lease passes; finished work that nobody superseded is thrown away.",
            guard="current-holder", duplicates="attempt",
        ),
        Fix(
            "latest-id",
            "From the grant on only the newest token is accepted, and each of its operations once.",
            "Effects outside, tokens that start again, and writers that present no token.",
            guard="latest", duplicates="attempt",
        ),
        Fix(
            "latest-id-terminal",
            "As `latest-id`, and a finished resource is neither written nor granted again.",
            "Effects outside, tokens that start again, and writers that present no token.",
            guard="latest", duplicates="attempt", terminal_once=True,
        ),
        Fix(
            "current-lease",
            "Only the lease that runs now may write, by its token; each operation once, and nothing after the finish.",
            "Effects outside and tokens that start again; finished work that nobody superseded is thrown away.",
            guard="current-lease", duplicates="attempt", terminal_once=True, strict=True,
        ),
        Fix(
            "latest-id-strict",
            "As `latest-id`, and a write that presents no token is refused.",
            "Effects outside and tokens that start again; an old version of the worker stands still.",
            guard="latest", duplicates="attempt", strict=True,
        ),
        Fix(
            "token-floor",
            "As `latest-id`, with a token counter that outlives deletion and restoration.",
            "Effects outside and writers that present no token.",
            guard="latest", duplicates="attempt", floor=True,
        ),
        Fix(
            "idempotency-key",
            "As `latest-id`, and the service outside gives an effect once for each key of the job.",
            "Tokens that start again and writers that present no token.",
            guard="latest", duplicates="attempt", effect_key=True,
        ),
    )
}  # fmt: skip


def named(name: str) -> Fix:
    """The fix of that name, or an InputError with the nearest names."""
    if name in FIXES:
        return FIXES[name]
    one = " (one at a time: repeat --fix)" if "," in name else ""
    raise InputError(f"`{name}` is no fix{one}; nearest: {', '.join(nearest(name, FIXES))}")
