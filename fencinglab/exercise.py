"""The check of an answer to an exercise: what of it was right, and what to look at for the rest.

Nothing is compared with a stored solution: the answer is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from fencinglab.errors import InputError, nearest
from fencinglab.inert import inert, wrapped
from fencinglab.model.event import MUTATIONS
from fencinglab.model.fix import Fix
from fencinglab.model.harm import unsafe
from fencinglab.model.replay import Run, Step, replay
from fencinglab.model.rows import clock
from fencinglab.model.timeline import Timeline, parse

ANSWERS = ("accepted", "rejected", "not sent")  # what can become of a mutation
_SENT = (*MUTATIONS, "arrive", "repeat")  # the events in which one reaches the receiver, if it was sent


def check_prediction(run: Run, guesses: Mapping[str, str]) -> str:
    """For each event that was guessed: that it was right and why, or what to look at in the run.

    `guesses` is {line of the timeline: accepted, rejected or not sent}; an empty guess is one that is still to be made.
    """
    steps = {str(step.event): step for step in reversed(run.told) if step.event.act in _SENT}
    told, right = [], 0
    made = sum(bool(said.strip()) for said in guesses.values())
    for line, said in guesses.items():
        guess = said.strip().lower()
        if line not in steps:
            told.append(f"? `{inert(line, 80)}` sends nothing here; guess one of {_listed(steps)}")
        elif not guess:
            told.append(f"○ {line}: still to be guessed ({', '.join(ANSWERS)}). {_look(run, steps[line])}")
        elif guess not in ANSWERS:
            told.append(f"? {line}: `{inert(said, 40)}` is no answer; it is one of {', '.join(ANSWERS)}")
        else:
            happened = _answer(steps[line])
            right += guess == happened
            mark, words = ("●", "as you said") if guess == happened else ("→", f"you said {guess}")
            told.append(f"{mark} {line}: {words}. {steps[line].says if guess == happened else _look(run, steps[line])}")
    if not guesses:
        return f"Nothing is guessed yet; guess one of {_listed(steps)}."
    first = f"{right} of {made} right" if made else "Nothing is guessed yet"
    return "\n".join(map(_wrapped, [f"{first}{', others are open' * (0 < made < len(guesses))}.", *told]))


def _answer(step: Step) -> str:
    """What became of the mutation of this step."""
    return str(step.decisions[-1].row["decision"]) if step.decisions else ANSWERS[-1]


def _look(run: Run, step: Step) -> str:
    """What decides the answer, without the answer."""
    if not step.decisions:
        return f"Look at what {step.event.worker} knows of its lease at {clock(step.at)}: {run.fix.improves}"
    decision, guard = step.decisions[-1], run.fix.rules.guard
    earlier = (d.row for d in takewhile(lambda d: d is not decision, run.decisions))
    accepted = [r for r in earlier if r["kind"] in MUTATIONS and r["decision"] == "accepted"]
    of_this = [r["token"] or 0 for r in accepted if r["resource"] == decision.row["resource"]]
    highest, token, newest = max(of_this, default=0), decision.row["token"], decision.row["current_token"]
    presented = "no token" if token is None else token
    return (
        f"Look at {clock(step.at)}: {step.event.worker} presents {presented}; until then the highest accepted is "
        f"{highest or 'none'} and the newest granted {newest}. {guard.name}: {guard.says}"
    )


def check_break(fix: Fix, timeline: Timeline, change: Mapping[str, str]) -> str:
    """Whether the timeline with one line changed does harm under the fix, and what to look at where it does none.

    `change` is {line of the timeline: what stands there instead}.
    """
    return "\n".join(map(_wrapped, _of_break(fix, timeline, change)))


def _of_break(fix: Fix, timeline: Timeline, change: Mapping[str, str]) -> list[str]:
    lines = str(timeline).splitlines()
    held = parse("\n".join(lines), f"{timeline.name}.timeline")
    made = {old: new for old, new in change.items() if old != new}
    for old in change:
        if old not in lines:
            [near] = nearest(old, lines, 1)
            return [f"There is no line `{inert(old, 80)}` in {timeline.name}; nearest: `{near}`."]
    if unsafe(replay(held, fix)):
        return [f"{fix.name} does not help in {timeline.name} as it stands: take a timeline in which it does."]
    if not made:
        return [f"Nothing is changed yet, and {fix.name} helps.", _turns(replay(held, fix))]
    if len(made) > 1:
        return [f"{len(made)} lines are changed: go back to one, or you will not know which of them mattered."]
    [(old, new)] = made.items()
    place = lines.index(old)  # the first of several
    try:
        run = replay(parse("\n".join([*lines[:place], new, *lines[place + 1 :]]), f"{timeline.name}.timeline"), fix)
    except InputError as error:
        return ["One line is changed, as it should be; but it cannot be replayed.", f"{error}."]
    if not (found := unsafe(run)):
        return [f"One line is changed, as it should be, and {fix.name} still helps.", _turns(run)]
    where = next(step for step in run.told if step.event.line in found[0].lines)
    return [
        f"Broken by one line: with `{new}` for `{old}`, {found[0].says}.",
        f"{clock(where.at)} {where.event}: {where.says}.",
        f"Is this what {fix.name} is known to leave? {fix.leaves}",
    ]


def _turns(run: Run) -> str:
    """The steps that decide whether harm is done: who was granted the lease, and what became of each mutation."""
    turning = [step for step in run.told if step.event.act in ("acquire", *_SENT)][1:]
    return "Look at: " + "; ".join(f"{clock(step.at)} {step.says}" for step in turning) + "."


def _listed(steps: Mapping[str, Step]) -> str:
    return ", ".join(f"`{line}`" for line in reversed([*steps])) or "none: it has no mutation"


def _wrapped(line: str) -> str:
    """The line in lines that fit a screen."""
    return "\n".join(wrapped("", line, 2))
