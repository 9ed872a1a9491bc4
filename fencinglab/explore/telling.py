"""Any run that a search found, in one shape: a line a step, its event in the language of timelines and a sentence.

A run of the model is a timeline. A run of a team's own requests is one as far as the language goes: it has no acquire
on its way, no second copy of one, and no item that comes to be again. What it cannot say is said in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fencinglab.dynamodb.requests import READ
from fencinglab.errors import InputError
from fencinglab.explore import walk
from fencinglab.explore.invariants import INVARIANTS, SOMETIMES
from fencinglab.explore.run import breaks, events_of, lost_at, timeline_of, written
from fencinglab.explore.search import Answer, Run
from fencinglab.explore.team import Team
from fencinglab.explore.walk import Happened
from fencinglab.explore.world import Step
from fencinglab.model import replay
from fencinglab.model.event import MUTATIONS
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import unsafe
from fencinglab.model.timeline import Timeline

AUTHORITY, RECEIVER = "authority", "receiver"
_ASKING = {"grant": "acquire", "renew": "renew", "release": "release", "read": "read"}  # kind -> act, told on arrival


class Line(NamedTuple):
    """One event of a run, or one step that the language has no event for."""

    event: str  # empty = none
    line: int  # of the timeline; 0 = in none
    says: str  # empty = the event says it all
    worker: str  # empty = nobody's
    decides: str  # authority or receiver; empty = neither is asked
    refused: bool
    happened: Happened | None = None  # with what was sent and what became of the items, where requests were real


class Told(NamedTuple):
    """A run as it is told."""

    name: str
    title: str
    workers: tuple[str, ...]
    lines: tuple[Line, ...]
    timeline: Timeline | None  # None = it cannot be said, and `unsaid` says why
    unsaid: tuple[str, ...] = ()
    lost_at: int = 0  # line of the event after which no fix would have helped; 0 = not known, or no fix helps at all
    replayed: replay.Run | None = None  # of the model


def broken(answer: Answer, invariant: str) -> Told:
    """The counterexample: the shortest run that breaks the invariant; a ValueError where none does."""
    model, verdict = answer.model, answer.of(invariant)
    if verdict.run is None:
        raise ValueError(f"{invariant} is not violated: {verdict.status}")
    title = f"{model.title[:1].upper()}{model.title[1:]} {walk.harm(answer, invariant)}: the shortest run"
    if isinstance(model, Team):
        told = of_requests(model, verdict.run, invariant, title)
        return told._replace(lost_at=_lost_at(told, invariant, model.kinds))
    timeline = timeline_of(model, (*verdict.run, *verdict.rescue), f"{model.fix.name}-{invariant}", title)
    late = lost_at(timeline, model.fix, invariant, model.program)
    return replayed(replay.replay(timeline, model.fix))._replace(lost_at=late)


def _lost_at(told: Told, invariant: str, program: Sequence[str]) -> int:
    """Known where the timeline says all and no request was refused: so far nothing was compared, as under unfenced."""
    if told.timeline is None or told.unsaid or any(line.refused for line in told.lines):
        return 0
    unfenced = FIXES["unfenced"]
    if not breaks(replay.replay(told.timeline, unfenced), invariant, program):
        return 0
    return lost_at(told.timeline, unfenced, invariant, program)


def harmless(answer: Answer) -> list[Told]:
    """Runs in which nothing unsafe is done, each the shortest to something that must be reachable.

    What stands in the end is judged only where everything came to rest.
    """
    model, found = answer.model, []
    for name, run in answer.reached.items():
        title = f"In this run {SOMETIMES[name]}"
        if isinstance(model, Team):
            told = of_requests(model, run, name, title)
            done = {one for step in walk.walked(model, run) for one in step.breaks if INVARIANTS[one].group == "unsafe"}
            done |= {"final"} if run == answer.of("final").run else set()
        else:
            played = replay.replay(timeline_of(model, run, f"{model.fix.name}-{name}", title), model.fix)
            told, done = replayed(played), {harm.name for harm in unsafe(played)}
        if done <= ({"final"} if name != "rest" else set()):
            found.append(told)
    return found


def of_requests(team: Team, run: Run, name: str, title: str) -> Told:
    """A run of a team's requests, with what each step did to the items."""
    happened = walk.walked(team, run)
    spoken = [_spoken(team, run, place) for place in range(len(run))]
    unsaid = (says for _, says in spoken)
    name = f"{team.file.name.removesuffix('.json')}-{name}"
    token = max(1, (team.stands.number(team.start.items, "token") or 0) + 1)
    events = events_of(FIXES["unfenced"], team.kinds, [step for step, _ in spoken])
    made, why_not = None, ""
    if any(events):
        try:
            made = written([event for told in events for event in told], name, title, team.names, token)
        except InputError as error:
            why_not = f"the order of events, since {error}"
    placed = iter(made.events if made else ())
    lines = []
    for step, what, told in zip(run, happened, events, strict=True):
        found = [(str(event), next(placed, event).line) for event in told] or [("", 0)]
        lines += [Line(*event, "", step.worker, "", False) for event in found[:-1]]
        lines.append(Line(*found[-1], what.says, step.worker, _decides(team, step), step.accepted is False, what))
    left_out = tuple(dict.fromkeys(filter(None, (*unsaid, why_not))))
    return Told(name, title, made.workers if made else team.names, tuple(lines), made, left_out)


def _decides(team: Team, step: Step) -> str:
    if step.accepted is None:
        return ""
    return AUTHORITY if team.kinds[step.number] in ("grant", "renew", "release") else RECEIVER


def _spoken(team: Team, run: Run, place: int) -> tuple[Step | None, str]:
    """The step in the words of the model, None where it has none; and a sentence for what is left out."""
    step = run[place]
    if step.act == "create":
        return None, "that the item comes to be again"
    if step.act == "delete" and step.number:
        return None, "that clean-up deletes another item than the protected one"
    if step.act == "restore":
        return step, "that the whole table is what it was, not the token alone"
    if not step.worker or step.act in ("crash", "downgrade"):
        return step, ""
    kind = team.kinds[step.number]
    if kind in MUTATIONS:
        return step._replace(act="arrive" if step.act == "copy arrives" else step.act), ""
    if kind not in _ASKING:
        return None, f"a request of the kind {kind}"
    operation = team.program[step.number].operation
    if step.act == "copy arrives":
        return None, f"the late copy of {step.worker}'s {operation}"
    if step.act in ("send", "send early"):
        arrives = next((n for n in range(place + 1, len(run)) if run[n].worker == step.worker), None)
        waits = arrives is not None and arrives > place + 1
        return None, f"how long {step.worker}'s {operation} was on its way" if waits else ""
    said = f"that the reply to {step.worker}'s {operation} was lost" if step.act == "arrive, reply lost" else ""
    if kind == READ and operation in team.file.token_from:
        said = f"that {operation} tells {step.worker} its token"
    asked = next(one.act for one in reversed(run[:place]) if one.worker == step.worker and one.act.startswith("send"))
    return step._replace(act=_ASKING[kind] + " early" * (asked == "send early")), said


def replayed(run: replay.Run) -> Told:
    """A timeline under a fix of the model."""
    lines = [
        Line(
            str(step.event), step.event.line, step.says, step.event.worker, _asked(step),
            any(decision.row["decision"] == "rejected" for decision in step.decisions),
        )
        for step in run.steps
    ]  # fmt: skip
    timeline = run.timeline
    return Told(timeline.name, timeline.title, timeline.workers, tuple(lines), timeline, replayed=run)


def _asked(step: replay.Step) -> str:
    if step.event.worker and step.event.act in ("acquire", "renew", "release", "check"):
        return AUTHORITY
    return RECEIVER if step.event.worker and step.decisions else ""


def unsaid(told: Told) -> str:
    """What the timeline of a run leaves out, in a sentence; empty where it says all."""
    if not told.unsaid:
        return ""
    what = f"{', '.join(told.unsaid[:-1])} and {told.unsaid[-1]}" if len(told.unsaid) > 1 else told.unsaid[0]
    return f"Not said in the language of timelines: {what}."
