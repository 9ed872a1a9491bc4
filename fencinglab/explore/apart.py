"""What tells two request files apart: the shortest run that workers of both can make until one of them is refused.

Both teams do the same step at the same time, and each has its own items. An operation is known by its name where both
files have it, else by its kind; a step that only one of them can make belongs to no common run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fencinglab.explore.search import Run
from fencinglab.explore.sender import Sender, Shared
from fencinglab.explore.team import Team
from fencinglab.explore.world import Move, Step

Pair = tuple[Move, Move]


class Apart(NamedTuple):
    """The run, as each of the two makes it; empty where none was found."""

    first: Run
    second: Run
    pairs: int  # of states that were seen
    stopped: str = ""  # why it stopped before it had seen all of them


def apart(first: Team, second: Team, most: int, progress: Callable[[str], None] = lambda _: None) -> Apart:
    """The shortest run after which the same request is accepted of one team and refused of the other."""
    return _Apart(first, second).search(most, progress)


_State = tuple[tuple[Shared, Shared], tuple[tuple[Sender, Sender], ...]]


class _Apart:
    """The pairs of states seen so far."""

    def __init__(self, first: Team, second: Team) -> None:
        self.teams = first, second
        common = {use.operation for use in first.program} & {use.operation for use in second.program}
        self.words = [_words(team, common) for team in self.teams]
        self.known: dict[tuple[tuple[Shared, Shared], tuple[Sender, Sender], str], list[Pair]] = {}

    def search(self, most: int, progress: Callable[[str], None]) -> Apart:
        """Breadth-first until a decision differs."""
        first, second = self.teams
        start: _State = (first.start, second.start), ((first.idle, second.idle),) * len(first.names)
        seen: dict[_State, tuple[_State, Pair] | None] = {start: None}
        frontier = [start]
        while frontier:
            progress(f"{len(seen):,} pairs of states")
            following = []
            for state in frontier:
                for after, pair in self._after(state):
                    if pair[0].step.accepted is not pair[1].step.accepted:
                        return self._told(seen, state, pair)
                    if after not in seen:
                        seen[after] = state, pair
                        following.append(after)
                if len(seen) > most:
                    return Apart((), (), len(seen), f"stopped at the bound of {most:,} pairs of states")
            frontier = following
        return Apart((), (), len(seen))

    def _after(self, state: _State) -> Iterator[tuple[_State, Pair]]:
        shared, workers = state
        nobody = self.teams[0].idle, self.teams[1].idle
        for place, name in enumerate(("", *self.teams[0].names)):
            for pair in self._pairs(shared, workers[place - 1] if place else nobody, name):
                own = pair[0].worker, pair[1].worker
                others = (*workers[: place - 1], own, *workers[place:]) if place else workers
                yield ((pair[0].shared, pair[1].shared), others), pair

    def _pairs(self, shared: tuple[Shared, Shared], workers: tuple[Sender, Sender], name: str) -> list[Pair]:
        """The moves of both that are the same step."""
        key = shared, workers, name
        if key not in self.known:
            moves = [
                [*(team.of_worker(shared[n], workers[n], name) if name else team.common(shared[n]))]
                for n, team in enumerate(self.teams)
            ]
            second = {self._word(1, move.step): move for move in moves[1]}
            self.known[key] = [
                (move, second[word]) for move in moves[0] if (word := self._word(0, move.step)) in second
            ]
        return self.known[key]

    def _word(self, team: int, step: Step) -> tuple[object, ...]:
        """What makes two steps the same: who does what with which operation."""
        operation = self.words[team][step.number] if step.worker and step.act not in ("crash", "downgrade") else ""
        deleted = step.number if step.act == "delete" else 0
        return step.act, step.worker, operation, step.again, deleted

    def _told(self, seen: dict[_State, tuple[_State, Pair] | None], state: _State, last: Pair) -> Apart:
        steps = [last]
        while found := seen[state]:
            state, pair = found
            steps.append(pair)
        steps.reverse()
        return Apart(tuple(a.step for a, _ in steps), tuple(b.step for _, b in steps), len(seen))


def _words(team: Team, common: set[str]) -> list[str]:
    """By what each operation of the program is known to both: its name, else its kind and its place among those."""
    words = list[str]()
    for use, kind in zip(team.program, team.kinds, strict=True):
        alike = sum(word.split()[0] == kind for word in words)
        words.append(use.operation if use.operation in common else f"{kind} {alike}")
    return words
