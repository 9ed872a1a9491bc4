"""Fixes against invariants: for every pair whether it holds in every order of events, or the shortest run to harm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fencinglab.explore.hazards import Hazard
from fencinglab.explore.search import explore, model_of
from fencinglab.model.fix import FIXES, named


class Cell(NamedTuple):
    """One fix and one invariant."""

    fix: str
    invariant: str
    status: str  # holds, violated, empty, undecided or not_applicable
    length: int | None  # steps of the shortest counterexample
    states: int  # that were seen under this fix

    @property
    def says(self) -> str:
        """`holds`, or `6 steps` to the harm."""
        return f"{self.length} step{'s' * (self.length != 1)}" if self.status == "violated" else self.status


def cells(
    fixes: Iterable[str] = tuple(FIXES),
    workers: int = 2,
    writes: int = 2,
    hazards: Sequence[Hazard] = (),
    alert: str = "none",
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Cell]:
    """A cell for every invariant under each fix, computed one fix after another; `progress` is told which."""
    for name in fixes:
        progress(name)
        answer = explore(model_of(named(name), workers, writes, hazards, alert))
        for verdict in answer.verdicts:
            yield Cell(name, verdict.invariant, verdict.status, verdict.length, answer.states)
