"""What a search found, as text: the answer in a sentence, the verdicts, and runs step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fencinglab.check.check import Beside, Check
from fencinglab.errors import UsageError
from fencinglab.explore import telling, walk
from fencinglab.explore.candidates import NAMES
from fencinglab.explore.hazards import HAZARDS
from fencinglab.explore.invariants import ALERTING, ENDING, INVARIANTS, MARKS, SOMETIMES
from fencinglab.explore.needed import Needed
from fencinglab.explore.repair import UNSAFE, Repair
from fencinglab.explore.search import Answer, Verdict
from fencinglab.explore.steps import Model
from fencinglab.explore.telling import Told
from fencinglab.inert import inert, wrapped
from fencinglab.model.harm import CLASSES

APART = "The shortest run that tells them apart"
SCHEMA = "fencinglab.check/1"  # of the page and of check.json
PASSING = "passing"  # what --show takes beside the invariants
_VALUE = re.compile(r'\{\s+("[A-Z]{1,4}": (?:"[^"\n]*"|\[[^\]{}]*\]))\s+\}')  # an attribute value, in several lines
_SILENT = {  # of the model
    **dict.fromkeys(ALERTING, "no alert is raised (--alert)"),
    "polling-stops": "in this model nobody is granted a finished job",
}
_SILENT_REQUESTS = {
    **dict.fromkeys(ALERTING, "no operation raises an alert"),
    **dict.fromkeys(ENDING, "no operation is of the kind finish, and `terminal` names no status"),
}


def exit_code(answer: Answer, fail_on: Collection[str] = ()) -> int:
    """1 where an unsafe invariant, or one of the classes in `fail_on`, is violated; 3 where one is open; else 0."""
    decisive = [v for v in answer.verdicts if INVARIANTS[v.invariant].group in {"unsafe", *fail_on}]
    if any(verdict.status == "violated" for verdict in decisive):
        return 1
    return 3 if any(verdict.status in ("empty", "undecided") for verdict in decisive) else 0


def named(show: Sequence[str]) -> Sequence[str]:
    """What --show names, as it is; a UsageError for the first that is neither an invariant nor `passing`."""
    for name in show:
        if name not in (*INVARIANTS, PASSING):
            raise UsageError(f"--show {name}: is none of {', '.join((*INVARIANTS, PASSING))}")
    return show


def screen(answer: Answer, show: Sequence[str] = ()) -> str:
    """What `fencinglab check` prints: the answer in a sentence, each invariant, and the runs asked for.

    Without `show`, of which `named` says what it may be, that is the shortest run that breaks an unsafe invariant.
    """
    lines = [*wrapped("", headline(answer)), "", *_bounds(answer), "", *_verdicts(answer)]
    worst = [verdict.invariant for verdict in worst_first(answer)[:1] if verdict.invariant in UNSAFE]
    for name in named(show) or worst:
        lines += ["", *(_passing(answer) if name == PASSING else _shown(answer, name))]
    return "\n".join(lines) + "\n"


def headline(answer: Answer) -> str:
    """The answer in one sentence that begins with its verdict."""
    title, code = answer.model.title, exit_code(answer)
    if code == 1:
        [shortest, *_] = worst_first(answer)
        return f"Violated: {title} {walk.harm(answer, shortest.invariant)}, after {_steps(shortest)}."
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
    yield from wrapped("hazards on  ", on(answer))
    yield from wrapped("        off ", off(answer))
    if answer.stopped:
        yield from wrapped("bound       ", answer.stopped)


def on(answer: Answer) -> str:
    """The hazards that were switched on, with a word for each that never happened."""
    never = "no chance for it so far" if answer.stopped else "which can never happen here"
    told = (f"{one}{f' ({never})' * (one.name in answer.idle)}" for one in answer.model.hazards)
    return ", ".join(told) or "none"


def off(answer: Answer) -> str:
    """The hazards that were not switched on."""
    given = {hazard.name for hazard in answer.model.hazards}
    return ", ".join(name for name in HAZARDS if name not in given) or "none"


def _verdicts(answer: Answer) -> Iterator[str]:
    wide = max(len(name) for name in INVARIANTS)
    for verdict in answer.verdicts:
        invariant = INVARIANTS[verdict.invariant]
        head = f"{MARKS[verdict.status]} {verdict.invariant:<{wide}}  {invariant.group:<6}  "
        yield from wrapped(head, f"{invariant.says}: {says(answer, verdict)}")


def says(answer: Answer, verdict: Verdict) -> str:
    """What was found of an invariant, in words."""
    match verdict.status:
        case "violated":
            harm = walk.harm(answer, verdict.invariant)
            how = f": {harm}" if harm != INVARIANTS[verdict.invariant].broken else ""
            return f"violated, shortest run {_steps(verdict)}{how}" if verdict.run else "violated from the start"
        case "empty":
            missing = " and ".join(f"never {SOMETIMES[name]}" for name in verdict.missing)
            return f"empty, for it was not put to the test ({missing})"
        case "undecided":
            return "not decided"
        case "not_applicable":
            silent = _SILENT if isinstance(answer.model, Model) else _SILENT_REQUESTS
            return f"not asked: {silent[verdict.invariant]}"
    return f"holds in all {answer.states:,} states"


def worst_first(answer: Answer) -> list[Verdict]:
    """The invariants that are violated, the unsafe ones first, each class by the length of its run."""
    broken = [verdict for verdict in answer.verdicts if verdict.status == "violated"]
    return sorted(broken, key=lambda v: (CLASSES.index(INVARIANTS[v.invariant].group), v.length or 0))


def _shown(answer: Answer, name: str) -> Iterator[str]:
    """The run that breaks the invariant, step by step; why there is none."""
    verdict = answer.of(name)
    if verdict.run is None:
        yield from wrapped("", f"No run breaks {name}: {says(answer, verdict)}.")
        return
    found = telling.broken(answer, name)
    events = sum(bool(line.says) for line in found.lines)
    told_in = f", told in {events} events" if events != verdict.length else ""
    yield from wrapped("", f"{found.title}, {_steps(verdict)}{told_in}")
    if verdict.rescue and found.replayed:
        yield from wrapped("", "The last of it is an attempt that nobody disturbs, and it does not finish the job.")
    yield from _told(found)
    if found.replayed and not found.lost_at:
        yield from wrapped("", "No fix helps here, whenever it takes over.")
    if not found.replayed:
        yield from _did(found)
        for number, step in enumerate(walk.rescued(answer.model, verdict), 1):
            yield from wrapped(f"  then, alone, {number:>2}  ", step)


def _did(found: Told) -> Iterator[str]:
    """The last request that a receiver decided, and what it changed."""
    last = found.lines[-1].happened if found.lines else None
    if last and last.operation:
        yield from wrapped("The request that did it: ", last.operation)
        for before, after in walk.changed(last):
            yield from wrapped("  item before  ", walk.item(before), cut=True)
            yield from wrapped("  item after   ", walk.item(after), cut=True)


def _passing(answer: Answer) -> Iterator[str]:
    for number, found in enumerate(telling.harmless(answer)):
        if number:
            yield ""
        yield from wrapped("", f"{found.title}, and nothing unsafe is done")
        yield from _told(found)


def _told(found: Told) -> Iterator[str]:
    """A line an event; the one after which no fix helps any more is marked. Steps are numbered."""
    wide, number = max((len(line.event) for line in found.lines), default=0), 0
    for line in found.lines:
        number += bool(line.says)
        mark = "▸" if found.lost_at and line.line == found.lost_at else " "
        head = f"{mark} {number if line.says else '':>2}  {line.event:<{wide}}  "
        yield from wrapped(head, line.says) if line.says else [head.rstrip()]
    if found.lost_at:
        yield "▸ from here on every fix comes too late"
    yield from wrapped("", telling.unsaid(found))


ALONE = "Each is taken away alone: of two that stand in for each other both are called redundant."


def why(needs: Sequence[Needed]) -> str:
    """For every condition what breaks without it, or that it is redundant within the bounds."""
    lines = ["", *wrapped("", f"Why each condition is there, within the same bounds. {ALONE}")]
    for operation in dict.fromkeys(need.operation for need in needs):
        lines.append(f"  {operation}")
        for need in (one for one in needs if one.operation == operation):
            lines += wrapped(f"    {'✕' if need.breaks else '–'} ", f"{need.condition}: {without(need)}")
    return "\n".join(lines) + "\n"


def without(need: Needed) -> str:
    """What a condition is there for, in words."""
    if need.breaks:
        broken = [f"{walk.harm(need.answer, name)} ({_steps(need.answer.of(name))})" for name in need.breaks]
        return f"without it {'; '.join(broken)}"
    return f"not decided: {need.answer.stopped}" if need.answer.stopped else "redundant within these bounds"


def asked(found: Check) -> str:
    """How often the receiver was asked, and which optional operations were never carried out."""
    calls = found.calls + (found.repair.calls if found.repair else 0)
    lines = [line for says in found.idle for line in wrapped("", f"Never carried out: {says}.")]
    return "\n".join([*lines, counted(calls)])


def counted(calls: int) -> str:
    """The line that says how often a receiver was asked."""
    return f"The receiver was asked {calls:,} different requests.\n"


def mended(repair: Repair) -> str:
    """The smallest repair: each condition that it adds, and the requests to paste, as lines that nothing wraps."""
    count = len(repair.added)
    if repair.answer is None:
        head = f"No repair was found, of conditions on {', '.join(NAMES)}, within these bounds"
        return "\n".join(["", *wrapped("", f"{head}: {repair.why_not}.")]) + "\n"
    which = "A" if repair.fewer else "The smallest"
    head = f"{which} repair within the same bounds adds {count} condition{'s' * (count > 1)}, found by exploring"
    lines = ["", *wrapped("", f"{head}; {fewer(repair)}.")]
    wide = max(len(one.operation) for one in repair.added)
    for one in repair.added:
        lines += wrapped(f"  {one.operation:<{wide}}  ", f"{one.says}: {one.why}")
    if (verdict := repair.answer.of("can-finish")).status == "violated":
        lines += wrapped(
            "", f"As before, {INVARIANTS['can-finish'].broken}, after {_steps(verdict)}: no further condition helps."
        )
    if not repair.answer.model.hazards:
        lines += wrapped("", "It holds within these bounds; what else may go wrong, `--hazard NAME`, may ask for more.")
    for name, action, text in requests(repair):
        lines += ["", *wrapped("", f"{name}, for `aws dynamodb {action} --cli-input-json`:"), text]
    return "\n".join(lines) + "\n"


def fewer(repair: Repair) -> str:
    """Whether fewer conditions than those of a repair hold, in words."""
    return f"fewer may hold, for one of the searches {repair.fewer}" if repair.fewer else "fewer do not hold"


def requests(repair: Repair) -> Iterator[tuple[str, str, str]]:
    """The operation, the command and the JSON of every request that a repair changes; the JSON is ASCII, and whole."""
    for name, one in repair.operations.items():
        text = json.dumps(_plain(one.input), indent=1).replace("\x7f", r"\u007f")
        yield name, one.action, _VALUE.sub(lambda value: "{" + re.sub(r"\n\s*", "", value[1]) + "}", text)


def _plain(value: Any) -> Any:
    """An input as a file has it: a placeholder whose type is that of its value stands alone."""
    if isinstance(value, dict):
        return value["?"] if {*value} == {"?"} else {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def beside(found: Beside) -> str:
    """What `fencinglab check` prints of two files: both verdicts by invariant, and the run that tells them apart."""
    lines = [line for answer in found.answers for line in (*wrapped("", headline(answer)), "", *_bounds(answer), "")]
    names = [inert(answer.model.file.name, 34) for answer in found.answers]
    wide, row = max(map(len, INVARIANTS)), max(24, len(names[0]) + 2)
    lines += [f"{'':<{wide + 12}}{names[0]:<{row}}{names[1]}"]
    for verdicts in zip(*(answer.verdicts for answer in found.answers), strict=True):
        name = verdicts[0].invariant
        cells = [_short(verdict) for verdict in verdicts]
        mark = "≠" if cells[0] != cells[1] else " "
        lines.append(f"{mark} {name:<{wide}}  {INVARIANTS[name].group:<6}  {cells[0]:<{row}}{cells[1]}")
    return "\n".join([*lines, "", *_apart(found)]) + "\n"


def _short(verdict: Verdict) -> str:
    says = verdict.status.replace("_", " ")
    return f"{MARKS[verdict.status]} {_steps(verdict) if verdict.status == 'violated' else says}"


def _apart(found: Beside) -> Iterator[str]:
    """The shortest run that tells two files apart: what both do, and the decision that differs."""
    first, second = (answer.model for answer in found.answers)
    if not found.apart.first:
        alike = f"in all {found.apart.pairs:,} pairs of states both decide alike"
        what = f"the search {found.apart.stopped}" if found.apart.stopped else alike
        yield from wrapped("", f"No run was found that tells them apart: {what}.")
        return
    run = telling.of_requests(first, found.apart.first, "apart", APART)
    yield from wrapped("", f"{run.title}: {len(found.apart.first)} steps, all but the last decided alike")
    yield from _told(run)
    for team, steps in ((first, found.apart.first), (second, found.apart.second)):
        yield from wrapped(f"  {team.file.name}: ", walk.walked(team, steps)[-1].says)
