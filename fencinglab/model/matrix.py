"""Timelines against fixes: which harm is done where; what each proposed fix improves and leaves, as computed rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import Harm, unsafe
from fencinglab.model.replay import replay
from fencinglab.model.timeline import Timeline

Matrix = dict[tuple[str, str], tuple[Harm, ...]]  # (timeline, fix) -> the unsafe harms


def matrix(timelines: Iterable[Timeline] = (), fixes: Iterable[str] = tuple(FIXES)) -> Matrix:
    """The unsafe harms of every timeline under every fix; of all that come with the package where none is given."""
    chosen = tuple(timelines) or tuple(map(shelf.find, shelf.names()))
    return {(t.name, fix): unsafe(replay(t, FIXES[fix])) for t in chosen for fix in fixes}


class Proposal(NamedTuple):
    """What a fix does on one timeline that it improves and on one in which harm is done in spite of it."""

    fix: str
    improves: str
    improved_by: str  # a timeline
    without: str  # the harm that is done there without the fix, and not with it
    leaves: str
    exposed_by: str  # another timeline
    still: str  # the harm that is done there with the fix


# The four of the reconstruction article -> the timeline that shows best what it improves, and what it leaves.
_PROPOSED = {
    "longer-lease": ("short-pause", "long-pause"),
    "renewed-often": ("long-work", "report-generation"),
    "client-check": ("report-generation", "pause-after-check"),
    "fenced": ("report-generation", "old-token-first"),
}


def proposals() -> tuple[Proposal, ...]:
    """The four proposed fixes of the reconstruction article, each on a timeline it improves and on one it does not."""
    return tuple(_proposal(name, *shown) for name, shown in _PROPOSED.items())


def _proposal(name: str, improved: str, exposed: str) -> Proposal:
    fix, timeline = FIXES[name], shelf.find(improved)
    without, with_ = unsafe(replay(timeline, FIXES["unfenced"])), unsafe(replay(timeline, fix))
    still = unsafe(replay(shelf.find(exposed), fix))
    assert without and not with_ and still, f"{name}: {improved} and {exposed} do not show it"
    return Proposal(name, fix.improves, improved, without[0].says, fix.leaves, exposed, still[0].says)
