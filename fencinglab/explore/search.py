"""The search: breadth-first over every order of steps, with the shortest run to each broken invariant.

A state is one whole number: the shared part, what has happened, and a part a worker, each by its number in the order
of discovery. What a worker may do depends on its own part and the shared one alone, so it is asked once for each pair
and kept as a difference to add; the search itself is additions and look-ups. Same input, same states, same runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from fencinglab.errors import UsageError
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.invariants import ALERTING, INVARIANTS, SOMETIMES, Past, observe
from fencinglab.explore.receive import pure
from fencinglab.explore.steps import ALERTS, Model
from fencinglab.explore.world import NAMES, Move, Step, World
from fencinglab.model.fix import Fix

BITS = 20  # of a part of a state: a million different ones
MOST_STATES = 5_000_000

Run = tuple[Step, ...]


class Verdict(NamedTuple):
    """One invariant: holds, violated, empty (it held, but was never put to the test), undecided, not_applicable."""

    invariant: str
    status: str
    run: Run | None = None  # the shortest that breaks it
    rescue: Run = ()  # of can-finish: an undisturbed attempt after it, which fails too
    missing: tuple[str, ...] = ()  # of an empty one: what could not happen

    @property
    def length(self) -> int | None:
        """Steps of the shortest counterexample."""
        return None if self.run is None else len(self.run)


class Answer(NamedTuple):
    """What a search found."""

    model: Any  # a World
    states: int
    stopped: str  # why it stopped before the end; empty = it saw every state
    verdicts: tuple[Verdict, ...]
    reached: dict[str, Run]  # sometimes -> the shortest run that makes it happen
    idle: tuple[str, ...]  # the hazards that were on and never happened

    def of(self, invariant: str) -> Verdict:
        """The verdict on this invariant."""
        return next(verdict for verdict in self.verdicts if verdict.invariant == invariant)


class _Full(Exception):
    """The search stopped before it had seen everything; the message says why."""


class _Numbers:
    """Numbers for values, in the order in which they are first seen."""

    def __init__(self, first: Any) -> None:
        self.of, self.values = {first: 0}, [first]

    def number(self, value: Any) -> int:
        found = self.of.setdefault(value, len(self.values))
        if found == len(self.values):
            if found > _PART:
                raise _Full(f"stopped because a part of the state took more than {_PART:,} values")
            self.values.append(value)
        return found


def model_of(fix: Fix, workers: int = 2, writes: int = 2, hazards: Sequence[Hazard] = (), alert: str = "none") -> Model:
    """The model of a fix: each worker sends `writes` mutations, the last of them finishes the job.

    `alert` is one of ALERTS. A number that is not 1 to 9, or for workers 1 to 8, is a UsageError.
    """
    for name, given, most in (("workers", workers, len(NAMES) - 1), ("writes", writes, 9)):
        if not 1 <= given <= most:
            raise UsageError(f"--{name} {given}: a search needs 1 to {most}; with more than 3 it takes hours")
    if alert not in ALERTS:
        raise UsageError(f"--alert {alert}: is none of {', '.join(ALERTS)}")
    program = ("write",) * (writes - 1) + ALERTS[alert]
    return Model(fix, workers, program, tuple(hazards), pure(fix))


def explore(
    model: World, *, symmetric: bool = False, most: int = MOST_STATES, until: Iterable[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> Answer:  # fmt: skip
    """Every state that the model can reach, or the first `most` of them, and what that says of each invariant.

    `symmetric` leaves out what differs only by the workers' names. The search ends early once one of `until`, which are
    invariants, is violated. `progress` is told the number of states so far.
    """
    if most < 1:
        raise UsageError(f"--max-states {most}: a search needs at least 1")
    search = _Search(model, symmetric)
    stopped = search.run(most, _bits(until), progress)
    runs = {name: search.trace(bit) for name, bit in _BITS.items() if search.found & bit}
    verdicts = tuple(_verdict(search, name, runs, stopped) for name in INVARIANTS)
    reached = {name: runs[name] for name in SOMETIMES if name in runs}
    return Answer(model, len(search.seen), stopped, verdicts, reached, search.idle())


def _verdict(search: _Search, name: str, runs: dict[str, Run], stopped: str) -> Verdict:
    if name in runs:
        return Verdict(name, "violated", runs[name], search.rescue() if name == "can-finish" else ())
    if name not in search.model.asked:
        return Verdict(name, "not_applicable")
    if stopped:
        return Verdict(name, "undecided")
    missing = tuple(needed for needed in INVARIANTS[name].sometimes if needed not in runs)
    return Verdict(name, "empty" if missing else "holds", missing=missing)


_BITS = {name: 1 << place for place, name in enumerate((*INVARIANTS, *SOMETIMES))}
_PART = (1 << BITS) - 1
_PAST = _PART << BITS


def _bits(names: Iterable[str]) -> int:
    return sum(_BITS[name] for name in names)


_Entry = tuple[list[int], list[tuple[int, int]], bool]  # differences, differences with an effect, whether it rests


class _Search:
    """The states seen so far, and what was asked of the model to get there."""

    def __init__(self, model: World, symmetric: bool) -> None:
        self.model, self.symmetric = model, symmetric
        self.alerting = ALERTING[0] in model.asked
        self.shared, self.pasts, self.workers = _Numbers(model.start), _Numbers(Past()), _Numbers(model.idle)
        self.effects = _Numbers(None)
        self.seen = {0: 0}  # state -> the one before it; the first state is 0
        self.found = 0  # bits of what was broken or reached
        self.first: dict[int, tuple[int, int | None]] = {}  # bit -> the state, and the one after the step that did it
        self.tables: list[tuple[int, dict[int, _Entry]]] = [(_PART, {})]  # mask of what decides, answers
        self.tables += [(_PART | _PART << self._shift(i), {}) for i in range(len(model.names))]
        self.changes: dict[int, tuple[int, int]] = {}  # past and effect -> difference, bits
        self.rests: dict[int, int] = {}  # shared and past, where all workers rest -> bits
        self.stuck: set[int] = set()  # shared parts from which no undisturbed attempt finishes

    def run(self, most: int, until: int, progress: Callable[[int], None]) -> str:
        """Search until nothing is new; why it stopped before, or empty."""
        frontier = [0]
        try:
            while frontier:
                progress(len(self.seen))
                frontier = self._level(frontier, most)
                if self.found & until:
                    return "stopped at the first run that breaks an invariant"
        except _Full as full:
            return str(full)
        return ""

    def _level(self, frontier: list[int], most: int) -> list[int]:
        """The new states one step after those of the frontier."""
        seen, tables, changes, symmetric, stuck = self.seen, self.tables, self.changes, self.symmetric, self.stuck
        following: list[int] = []
        for state in frontier:
            resting, untouched = True, False
            for place, (mask, table) in enumerate(tables):
                entry = table.get(state & mask)
                if entry is None:
                    entry = table[state & mask] = self._ask(state, place)
                plain, telling, rests = entry
                resting = resting and rests
                if symmetric and place and not state & mask & ~_PART:
                    if untouched:
                        continue
                    untouched = True
                for delta in plain:
                    after = state + delta
                    if after not in seen:
                        seen[after] = state
                        following.append(after)
                for delta, effect in telling:
                    change = changes.get(state & _PAST | effect)
                    if change is None:
                        change = changes[state & _PAST | effect] = self._observe(state, effect)
                    after = state + delta + change[0]
                    if change[1] & ~self.found:
                        self._note(change[1], state, after)
                    if after not in seen:
                        seen[after] = state
                        following.append(after)
            if resting:
                self._rest(state)
            if stuck and state & _PART in stuck:
                self._note(_BITS["can-finish"], state, None)
            if len(seen) > most:
                raise _Full(f"stopped at the bound of {most:,} states; `--max-states` raises it")
        return following

    def _shift(self, worker: int) -> int:
        return BITS * (2 + worker)

    def _moves(self, state: int, place: int) -> Iterator[tuple[Move, int]]:
        """What everybody (place 0) or a worker (from 1 on) may do in the state, with the difference that it makes."""
        number = state & _PART
        shared = self.shared.values[number]
        if not place:
            for move in self.model.common(shared):
                yield move, self.shared.number(move.shared) - number
            return
        shift = self._shift(place - 1)
        own = state >> shift & _PART
        for move in self.model.of_worker(shared, self.workers.values[own], self.model.names[place - 1]):
            change = self.workers.number(move.worker) - own
            yield move, self.shared.number(move.shared) - number + (change << shift)

    def _ask(self, state: int, place: int) -> _Entry:
        plain, telling = [], []
        for move, delta in self._moves(state, place):
            if move.effect is None:
                plain.append(delta)
            else:
                telling.append((delta, self.effects.number(move.effect)))
        shared = self.shared.values[state & _PART]
        if not place:
            if not self.model.rescue(shared)[0]:
                self.stuck.add(state & _PART)
            return plain, telling, True
        worker = self.workers.values[state >> self._shift(place - 1) & _PART]
        return plain, telling, self.model.rests(shared, worker)

    def _observe(self, state: int, effect: int) -> tuple[int, int]:
        number = (state & _PAST) >> BITS
        after, broken, happened = observe(self.pasts.values[number], self.effects.values[effect])
        if not self.alerting:
            after = after._replace(alerts=0)
        return (self.pasts.number(after) - number) << BITS, _bits(broken) | _bits(happened)

    def _rest(self, state: int) -> None:
        key = state & (_PAST | _PART)
        if key not in self.rests:
            broken, happened = self.model.at_rest(self.shared.values[state & _PART], self.pasts.values[key >> BITS])
            self.rests[key] = _bits(broken) | _bits(happened)
        self._note(self.rests[key], state, None)

    def _note(self, bits: int, state: int, after: int | None) -> None:
        """Remember where each of the bits was seen first."""
        for bit in _BITS.values():
            if bits & bit & ~self.found:
                self.first[bit] = state, after
        self.found |= bits

    def rescue(self) -> Run:
        """The undisturbed attempt that does not finish the job, from the first state in which none does."""
        state, _ = self.first[_BITS["can-finish"]]
        return self.model.rescue(self.shared.values[state & _PART])[1]

    def idle(self) -> tuple[str, ...]:
        """The hazards that may happen as often in every state as in the beginning."""
        return tuple(
            hazard.name for place, hazard in enumerate(self.model.hazards)
            if all(shared.left[place] == hazard.times for shared in self.shared.values)
        )  # fmt: skip

    # --- back from a state to the beginning

    def trace(self, bit: int) -> Run:
        """The steps of the shortest run that shows it."""
        state, after = self.first[bit]
        steps = [] if after is None else [self._step(state, after, bit)]
        while state:
            before = self.seen[state]
            steps.append(self._step(before, state, 0))
            state = before
        return tuple(reversed(steps))

    def _step(self, state: int, after: int, bit: int) -> Step:
        for place in range(len(self.model.names) + 1):
            for move, delta in self._moves(state, place):
                change, bits = 0, 0
                if move.effect is not None:
                    change, bits = self._observe(state, self.effects.number(move.effect))
                if state + delta + change == after and bits & bit == bit:
                    return move.step
        raise AssertionError("no step leads from the one to the other")
