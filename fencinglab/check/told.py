"""What a search found, as text and as files: the verdicts, the shortest runs step by step, Mermaid and JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import fencinglab
from fencinglab.errors import InputError, UsageError
from fencinglab.explore import walk
from fencinglab.explore.hazards import HAZARDS
from fencinglab.explore.invariants import ALERTING, INVARIANTS, MARKS, SOMETIMES
from fencinglab.explore.run import Counterexample, counterexample, passing
from fencinglab.explore.search import Answer, Verdict
from fencinglab.explore.steps import Model
from fencinglab.explore.walk import Needed
from fencinglab.inert import wrapped
from fencinglab.model.replay import Run, replay

SCHEMA = "fencinglab.check/1"
MOST_ARROWS, MOST_WORKERS = 40, 4  # of a drawing that can still be read
PASSING = "passing"  # what --show takes beside the invariants
_SILENT = {
    **dict.fromkeys(ALERTING, "no alert is raised (--alert)"),
    "polling-stops": "in this model nobody is granted a finished job",
}


def exit_code(answer: Answer, fail_on: Collection[str] = ()) -> int:
    """1 where an unsafe invariant, or one of the classes in `fail_on`, is violated; 3 where one is open; else 0."""
    decisive = [v for v in answer.verdicts if INVARIANTS[v.invariant].group in {"unsafe", *fail_on}]
    if any(verdict.status == "violated" for verdict in decisive):
        return 1
    return 3 if any(verdict.status in ("empty", "undecided") for verdict in decisive) else 0


def screen(answer: Answer, show: Sequence[str] = ()) -> str:
    """What `fencinglab check` prints: the answer in a sentence, each invariant, and the runs asked for.

    Without `show` that is the shortest run that breaks an unsafe invariant. `show` are invariants, or `passing`.
    """
    lines = [*wrapped("", headline(answer)), "", *_bounds(answer), "", *_verdicts(answer)]
    for name in show or _worst(answer):
        lines += ["", *(_passing(answer) if name == PASSING else _shown(answer, name))]
    return "\n".join(lines) + "\n"


def headline(answer: Answer) -> str:
    """The answer in one sentence that begins with its verdict."""
    title, code = answer.model.title, exit_code(answer)
    broken = [v for v in answer.verdicts if v.status == "violated" and INVARIANTS[v.invariant].group == "unsafe"]
    if code == 1:
        shortest = min(broken, key=lambda verdict: verdict.length or 0)
        return f"Violated: {title} {INVARIANTS[shortest.invariant].broken}, after {_steps(shortest)}."
    if answer.stopped:
        return f"Not decided: {answer.stopped}. Nothing unsafe was found so far {title}."
    if code == 3:
        return f"No proof: {title} nothing unsafe was found, but some of it could not even be tried."
    return f"Holds: {title} nothing unsafe can happen in any of the {answer.states:,} states."


def _steps(verdict: Verdict) -> str:
    count = verdict.length or 0
    return f"{count} step{'s' * (count != 1)}"


def _bounds(answer: Answer) -> Iterator[str]:
    model = answer.model
    yield from wrapped("searched    ", f"{model.searched}; {answer.states:,} states")
    if not isinstance(model, Model) and model.file.rest:
        own = [name for name in model.file.operations if name not in model.file.taken]
        yield from wrapped(
            "from        ", f"{model.file.name}: {', '.join(own)}; {model.file.rest}: {', '.join(model.file.taken)}"
        )
    yield from wrapped("always      ", model.always)
    yield from wrapped("hazards on  ", ", ".join(map(str, model.hazards)) or "none")
    off = [name for name in HAZARDS if name not in {hazard.name for hazard in model.hazards}]
    yield from wrapped("        off ", ", ".join(off) or "none")
    if answer.stopped:
        yield from wrapped("bound       ", answer.stopped)


def _verdicts(answer: Answer) -> Iterator[str]:
    wide = max(len(name) for name in INVARIANTS)
    for verdict in answer.verdicts:
        invariant = INVARIANTS[verdict.invariant]
        head = f"{MARKS[verdict.status]} {verdict.invariant:<{wide}}  {invariant.group:<6}  "
        yield from wrapped(head, f"{invariant.says}: {_says(answer, verdict)}")


def _says(answer: Answer, verdict: Verdict) -> str:
    match verdict.status:
        case "violated":
            return f"violated, shortest run {_steps(verdict)}" if verdict.run else "violated from the start"
        case "empty":
            missing = " and ".join(f"never {SOMETIMES[name]}" for name in verdict.missing)
            return f"empty, for it was not put to the test ({missing})"
        case "undecided":
            return "not decided"
        case "not_applicable":
            silent = (
                _SILENT if isinstance(answer.model, Model) else dict.fromkeys(_SILENT, "no operation raises an alert")
            )
            return f"not asked: {silent[verdict.invariant]}"
    return f"holds in all {answer.states:,} states"


def _worst(answer: Answer) -> list[str]:
    broken = [v for v in answer.verdicts if v.status == "violated" and INVARIANTS[v.invariant].group == "unsafe"]
    return [min(broken, key=lambda verdict: verdict.length or 0).invariant] if broken else []


def _shown(answer: Answer, name: str) -> Iterator[str]:
    """The run that breaks the invariant, step by step; why there is none."""
    if name not in INVARIANTS:
        raise UsageError(f"--show {name}: is none of {', '.join((*INVARIANTS, PASSING))}")
    verdict = answer.of(name)
    if verdict.run is None:
        yield from wrapped("", f"No run breaks {name}: {_says(answer, verdict)}.")
        return
    if isinstance(answer.model, Model):
        yield from _example(answer, name, verdict)
    else:
        yield from _sent(answer.model, verdict)


def _example(answer: Answer, name: str, verdict: Verdict) -> Iterator[str]:
    found = counterexample(answer, name)
    yield from wrapped("", f"{found.timeline.title}, {_steps(verdict)}")
    if verdict.rescue:
        yield from wrapped("", "The last of it is an attempt that nobody disturbs, and it does not finish the job.")
    yield from _told(found.run, found.lost_at)
    if not found.lost_at:
        yield from wrapped("", "No fix helps here, whenever it takes over.")


def _sent(team: Any, verdict: Verdict) -> Iterator[str]:
    """A run of a team's own requests: what was sent, what was decided, and what that changed."""
    broken = INVARIANTS[verdict.invariant].broken
    yield from wrapped("", f"{team.title.capitalize()} {broken}: the shortest run, {_steps(verdict)}")
    happened = walk.walked(team, verdict.run or ())
    for number, one in enumerate(happened, 1):
        yield from wrapped(f"  {number:>2}  ", one.says)
    if happened and happened[-1].operation:
        last = happened[-1]
        yield from wrapped("The request that did it: ", last.operation)
        for place, (before, after) in enumerate(zip(last.before, last.after, strict=True)):
            if before != after or not place:
                yield from wrapped("  item before  ", walk.item(before), cut=True)
                yield from wrapped("  item after   ", walk.item(after), cut=True)
    for number, says in enumerate(walk.rescued(team, verdict), 1):
        yield from wrapped(f"  then, alone, {number:>2}  ", says)


def _passing(answer: Answer) -> Iterator[str]:
    for number, (name, timeline) in enumerate(passing(answer)):
        if number:
            yield ""
        yield from wrapped("", f"A run that does nothing unsafe, and {SOMETIMES[name]}")
        yield from _told(replay(timeline, answer.model.fix))


def _told(run: Run, lost_at: int = 0) -> Iterator[str]:
    """A numbered line an event; the one after which no fix helps any more is marked."""
    wide = max(len(str(step.event)) for step in run.steps)
    for number, step in enumerate(run.steps, 1):
        mark = "▸" if step.event.line == lost_at else " "
        yield from wrapped(f"{mark} {number:>2}  {step.event!s:<{wide}}  ", step.says)
    if lost_at:
        yield "▸ from here on every fix comes too late"


# --------------------------------------------------------------------------- files


def why(needs: Sequence[Needed]) -> str:
    """For every condition what breaks without it, or that it is redundant within the bounds."""
    lines = ["", "Why each condition is there, within the same bounds:"]
    for operation in dict.fromkeys(need.operation for need in needs):
        lines.append(f"  {operation}")
        for need in (one for one in needs if one.operation == operation):
            lines += wrapped(f"    {'✕' if need.breaks else '–'} ", f"{need.condition}: {_without(need)}")
    return "\n".join(lines) + "\n"


def _without(need: Needed) -> str:
    if need.breaks:
        broken = [f"{INVARIANTS[name].broken} ({_steps(need.answer.of(name))})" for name in need.breaks]
        return f"without it {'; '.join(broken)}"
    return f"not decided: {need.answer.stopped}" if need.answer.stopped else "redundant within these bounds"


def contents(answer: Answer) -> dict[str, str]:
    """The files of a search by name: check.json, and each counterexample as a timeline and, where it fits, Mermaid."""
    if not isinstance(answer.model, Model):
        return {"check.json": json.dumps(data(answer, ()), indent=1, ensure_ascii=False) + "\n"}
    found = [counterexample(answer, v.invariant) for v in answer.verdicts if v.status == "violated"]
    files = {"check.json": json.dumps(data(answer, found), indent=1, ensure_ascii=False) + "\n"}
    for one in found:
        files[f"{one.timeline.name}.timeline"] = str(one.timeline)
        try:
            files[f"{one.timeline.name}.mmd"] = mermaid(one.run)
        except InputError:
            continue  # check.json says why
    for name, timeline in passing(answer):
        files[f"passing/{name}.timeline"] = str(timeline)
    return files


def data(answer: Answer, found: Sequence[Counterexample]) -> dict[str, Any]:
    """The whole answer as plain values."""
    model, runs = answer.model, {one.invariant: one for one in found}
    return {
        "schema": SCHEMA,
        "version": fencinglab.__version__,
        "searched": f"{model.title}: {model.searched}",
        "workers": len(model.names),
        "hazards": {hazard.name: hazard.times for hazard in model.hazards},
        "headline": headline(answer),
        "exit_code": exit_code(answer),
        "states": answer.states,
        "stopped": answer.stopped or None,
        "reached": {name: len(run) for name, run in answer.reached.items()},
        "invariants": [
            {
                "name": v.invariant, "class": INVARIANTS[v.invariant].group, "says": INVARIANTS[v.invariant].says,
                "status": v.status, "length": v.length, "missing": list(v.missing),
                "counterexample": _run(runs[v.invariant]) if v.invariant in runs else _requests(model, v),
            }
            for v in answer.verdicts
        ],
    }  # fmt: skip


def _run(found: Counterexample) -> dict[str, Any]:
    try:
        drawing, why_not = mermaid(found.run), None
    except InputError as error:
        drawing, why_not = None, str(error)
    return {
        "timeline": str(found.timeline),
        "steps": [{"event": str(s.event), "line": s.event.line, "says": s.says} for s in found.run.steps],
        "lost_at": found.lost_at or None,
        "mermaid": drawing,
        "not_drawn": why_not,
    }


def _requests(team: Any, verdict: Verdict) -> dict[str, Any] | None:
    """A run of a team's own requests, with the items before and after each step; None where nothing is violated."""
    if verdict.run is None:
        return None
    return {"steps": [one._asdict() for one in walk.walked(team, verdict.run)]}


def mermaid(run: Run) -> str:
    """The run as a Mermaid sequence diagram; InputError where it would be too large to be read."""
    workers = run.timeline.workers
    for what, count, most in (("workers", len(workers), MOST_WORKERS), ("events", len(run.steps), MOST_ARROWS)):
        if count > most:
            raise InputError(
                f"{run.timeline.name}: is not drawn with {count} {what}; a diagram is readable up to {most}"
            )
    lines = ["sequenceDiagram", *(f"    participant {who}" for who in ("authority", *workers, "receiver"))]
    for step in run.steps:
        lines.append(f"    {_arrow(step.event.act, step.event.worker, step)}")
    return "\n".join(lines) + "\n"


def _arrow(act: str, worker: str, step: Any) -> str:
    says = step.says.replace(";", ",").replace("#", "no. ")  # both mean something to Mermaid
    rejected = any(decision.row["decision"] == "rejected" for decision in step.decisions)
    if not worker:
        return f"Note over authority: {says}"
    if act in ("acquire", "renew", "release", "check"):
        return f"{worker}{'-x' if rejected else '->>'}authority: {says}"
    if step.decisions:
        return f"{worker}{'-x' if rejected else '->>'}receiver: {says}"
    return f"Note over {worker}: {says}"
