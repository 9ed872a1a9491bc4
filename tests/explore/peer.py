"""The thirteen fixes as a model of their own: flat tuples, written from the text of the model and not from the package.

One state is a flat tuple of whole numbers (see `FIELDS`); nothing here is imported from fencinglab. `protocol` hands it
to minicheck, `states` searches it by the plainest breadth-first search there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

IDLE, LEASED, DONE = 0, 1, 99  # of a worker; 10k and 10k + 1 = ready and checked for its write k
UNSENT, FIRST, SECOND, GONE = range(4)  # of a message


class Fix(NamedTuple):
    """What the receiver compares (nothing, highest, above, latest, owner), and what else there is."""

    compares: str = "nothing"
    two_steps: bool = False
    client_check: bool = False
    renew: bool = False
    ids: str = ""  # attempt or job


FIXES = {
    "unfenced": Fix(),
    "renew-or-abort": Fix(renew=True),
    "client-check": Fix(client_check=True),
    "two-step-token": Fix("highest", two_steps=True),
    "two-step-holder": Fix("owner", two_steps=True),
    "fenced": Fix("highest"),
    "fenced-above": Fix("above"),
    "fenced-id-per-attempt": Fix("highest", ids="attempt"),
    "fenced-id-per-job": Fix("highest", ids="job"),
    "latest": Fix("latest"),
    "holder": Fix("owner"),
    "holder-id": Fix("owner", ids="attempt"),
    "latest-id": Fix("latest", ids="attempt"),
}

ISSUED, OWNER, LAST, HIGHEST, TERMINAL, FELL, STALE = range(7)  # places in a state; a worker's begin at 7


class Model:
    """N workers with W writes each under a fix."""

    def __init__(self, fix: Fix, workers: int, writes: int) -> None:
        self.fix, self.n, self.w = fix, workers, writes
        self.wide = 2 + 3 * writes  # place, token; a message, an id and pending deliveries for each write

    def initial(self) -> tuple[int, ...]:
        return (0,) * (7 + self.n * self.wide)

    def at(self, i: int) -> int:
        """Where worker i (from 1 on) begins."""
        return 7 + (i - 1) * self.wide

    def steps(self, s: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
        return [*self._steps(s)]

    def _steps(self, s: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        fix, writes = self.fix, self.w
        if s[OWNER]:
            yield "expire", changed(s, {OWNER: 0})
        for i in range(1, self.n + 1):
            a = self.at(i)
            place, token = s[a], s[a + 1]
            owns = s[OWNER] == i
            if place == IDLE:
                if not s[OWNER] and not s[TERMINAL]:
                    yield f"acquire {i}", changed(s, {ISSUED: s[ISSUED] + 1, OWNER: i, a: LEASED, a + 1: s[ISSUED] + 1})
            elif place == LEASED:
                yield f"read {i}", changed(s, {a: 10})
            elif place != DONE:
                k, checked = divmod(place, 10)
                if fix.client_check and not checked:
                    yield f"check {i}", changed(s, {a: place + 1 if owns else DONE})
                else:
                    yield f"send {i}", changed(s, {a: 10 * (k + 1) if k < writes else DONE, a + 1 + k: FIRST})
            if fix.renew and place not in (IDLE, DONE) and not owns:
                yield f"renewal fails {i}", changed(s, {a: DONE})
            for k in range(1, writes + 1):
                message, identity, pending = a + 1 + k, a + 1 + writes + k, a + 1 + 2 * writes + k
                known = self.at(1) + 1 + writes + k if fix.ids == "job" else identity
                if s[message] in (FIRST, SECOND):
                    for left in (GONE, SECOND) if s[message] == FIRST else (GONE,):
                        change = {message: left}
                        if self._admits(s, i, token) and not (fix.ids and s[known]):
                            if fix.two_steps:
                                change[pending] = s[pending] + 1
                            else:
                                change |= self._applied(s, token, k, known)
                        yield f"deliver {i} {k}", changed(s, change)
                if s[pending]:
                    yield f"apply {i} {k}", changed(s, {pending: s[pending] - 1} | self._applied(s, token, k, known))

    def _admits(self, s: tuple[int, ...], i: int, token: int) -> bool:
        return {
            "nothing": True,
            "highest": token >= s[HIGHEST],
            "above": token > s[HIGHEST],
            "latest": token == s[ISSUED],
            "owner": s[OWNER] == i,
        }[self.fix.compares]

    def _applied(self, s: tuple[int, ...], token: int, k: int, known: int) -> dict[int, int]:
        return {
            LAST: token,
            HIGHEST: max(s[HIGHEST], token),
            TERMINAL: min(s[TERMINAL] + (k == self.w), 2),
            FELL: s[FELL] or int(token < s[HIGHEST]),
            STALE: s[STALE] or int(token < s[ISSUED]),
        } | ({known: 1} if self.fix.ids else {})

    def final(self, s: tuple[int, ...]) -> bool:
        newest = 0
        for i in range(1, self.n + 1):
            a = self.at(i)
            messages = s[a + 2 : a + 2 + self.w]
            if any(m in (FIRST, SECOND) for m in messages) or any(s[a + 2 + 2 * self.w : a + 2 + 3 * self.w]):
                return True
            if s[a] != DONE and not (s[a] == IDLE and s[TERMINAL]):
                return True
            if GONE in messages:
                newest = max(newest, s[a + 1])
        return s[LAST] == newest

    def invariants(self) -> dict[str, Callable[[tuple[int, ...]], bool]]:
        return {
            "order": lambda s: not s[FELL],
            "ownership": lambda s: not s[STALE],
            "terminal": lambda s: s[TERMINAL] < 2,
            "final": self.final,
        }


def changed(s: tuple[int, ...], change: dict[int, int]) -> tuple[int, ...]:
    made = list(s)
    for place, value in change.items():
        made[place] = value
    return tuple(made)


def protocol(name: str, workers: int, writes: int):
    """The model of the fix as minicheck takes it."""
    import minicheck

    model = Model(FIXES[name], workers, writes)
    whole = lambda hold: lambda named: hold(tuple(named.values()))  # noqa: E731
    return minicheck.Protocol(
        name=name, candidate=False, fields=tuple(f"f{n}" for n in range(len(model.initial()))),
        initial=model.initial(), transitions=model.steps,
        invariants={name: whole(hold) for name, hold in model.invariants().items()},
    )  # fmt: skip


def searched(name: str, workers: int, writes: int) -> tuple[int, dict[str, int | None]]:
    """States, and the length of the shortest counterexample to each invariant, by the plainest search."""
    model = Model(FIXES[name], workers, writes)
    holds = model.invariants()
    lengths: dict[str, int | None] = dict.fromkeys(holds)
    seen, frontier, depth = {model.initial()}, [model.initial()], 0
    while frontier:
        for state in frontier:
            for invariant, hold in holds.items():
                if lengths[invariant] is None and not hold(state):
                    lengths[invariant] = depth
        following = []
        for state in frontier:
            for _, after in model.steps(state):
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        frontier, depth = following, depth + 1
    return len(seen), lengths
