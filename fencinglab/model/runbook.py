"""The runbook of the render job: how its checks come in, what stays when dispatch goes back, how an operator replays.

Each stage names the run that proves it, and the run that shows what happens without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import unsafe
from fencinglab.model.render import FIX, refusals
from fencinglab.model.replay import Run, replay

Check = tuple[str, str]  # a timeline and a fix


class Stage(NamedTuple):
    """One thing that is done, with two runs by name."""

    phase: str  # roll-out, roll-back or recovery
    does: str
    without: Check  # harm is done here
    proof: Check  # and none here


RUNBOOK = (
    Stage(
        "roll-out", "Store each preview under a key with its execution's token in it.",
        ("late-render-shared-key", FIX), ("late-render", FIX),
    ),
    Stage(
        "roll-out", "Compare the token, where one is presented, in the step that sets pointer and phase.",
        ("late-render", "unfenced"), ("late-render", "latest-id-terminal"),
    ),
    Stage(
        "roll-out", "Upgrade every worker, then refuse what presents no token.",
        ("late-render-mixed-fleet", "latest-id-terminal"), ("late-render-mixed-fleet", FIX),
    ),
    Stage(
        "roll-out", "Only now start more workers.",
        ("late-render-three-workers", "unfenced"), ("late-render-three-workers", FIX),
    ),
    Stage(
        "roll-back", "Dispatch to one worker again; keep the checks on completions.",
        ("late-render-rolled-back", "unfenced"), ("late-render-rolled-back", FIX),
    ),
    Stage(
        "recovery", "Let the queue deliver a completion as often as it will.",
        ("late-render-replayed", "latest"), ("late-render-replayed", FIX),
    ),
    Stage(
        "recovery", "Replay an old completion under a fresh grant, never with its old token.",
        ("late-render-operator", "unfenced"), ("late-render-operator", FIX),
    ),
)  # fmt: skip


class Proof(NamedTuple):
    """What the two runs of a stage came to."""

    phase: str
    does: str
    without: str  # the command that shows the harm
    harm: str  # what it shows
    check: str  # the command that proves the stage
    rejected: int  # completions that were refused in the proof
    finished: int  # terminal transitions in the proof
    proved: bool  # harm without, nothing unsafe with, and one terminal transition


def prove(stages: Iterable[Stage] = RUNBOOK) -> tuple[Proof, ...]:
    """Every stage with what its two runs came to, in the order of the stages."""
    return tuple(_proof(stage, run_of(stage.without), run_of(stage.proof)) for stage in stages)


def run_of(check: Check) -> Run:
    """The run of a timeline under a fix, both by name."""
    timeline, fix = check
    return replay(shelf.find(timeline), FIXES[fix])


def _proof(stage: Stage, without: Run, sound: Run) -> Proof:
    harmed = unsafe(without)
    finished = sum(held.terminal_version for held in sound.final.values())
    return Proof(
        stage.phase, stage.does,
        command(stage.without), "; ".join(harm.says for harm in harmed[:1]),
        command(stage.proof), sum(refusal.times for refusal in refusals(sound.rows)), finished,
        bool(harmed) and not unsafe(sound) and finished == len(sound.final),
    )  # fmt: skip


def command(check: Check) -> str:
    """What to type to see this run."""
    timeline, fix = check
    return f"fencinglab replay {timeline} --fix {fix}"
