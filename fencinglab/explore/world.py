"""What can be searched: a world with its moves. There are two, of a fix of the model and of a team's own requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from fencinglab.explore.hazards import Hazard
from fencinglab.explore.invariants import Effect, Past

NAMES = "ABCDEFGHI"  # of workers


class Step(NamedTuple):
    """One step of a run."""

    act: str
    worker: str = ""
    number: int = 0  # of the program's operation; of a restore the token, of a deletion the place of the item
    again: bool = False  # a copy is left on its way
    accepted: bool | None = None  # what was decided, where something was
    grant: int = 0  # of the message
    reason: str = ""  # why it was refused


class Move(NamedTuple):
    """A step, and the parts of the state after it."""

    step: Step
    shared: Any  # each world has its own
    worker: Any
    effect: Effect | None = None


class World(Protocol):
    """What can be searched: a shared part, workers that are alike in the beginning, and what each may do."""

    @property
    def start(self) -> Any:
        """What all share in the beginning."""

    @property
    def title(self) -> str:
        """Under what the search is made, in words."""

    @property
    def searched(self) -> str:
        """How large the world is, in words."""

    @property
    def always(self) -> str:
        """What may happen without any hazard."""

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What may happen beside."""

    @property
    def idle(self) -> Any:
        """What a worker is in the beginning."""

    @property
    def names(self) -> tuple[str, ...]:
        """The workers by name."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The invariants that this world has anything to say of."""

    def common(self, shared: Any) -> Iterable[Move]:
        """The steps that are no worker's."""

    def of_worker(self, shared: Any, worker: Any, name: str) -> Iterable[Move]:
        """The steps of a worker."""

    def rests(self, shared: Any, worker: Any) -> bool:
        """Whether nothing more is to come of the worker."""

    def at_rest(self, shared: Any, past: Past) -> tuple[frozenset[str], frozenset[str]]:
        """Of a state in which all workers rest: the invariants that are broken, and which `sometimes` it is."""

    def rescue(self, shared: Any) -> tuple[bool, tuple[Step, ...]]:
        """Whether undisturbed attempts finish the job from here or it is finished; and the first of them."""
