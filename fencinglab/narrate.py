"""A replay as text and as files: what each event did under each fix, what stands in the end, which harm was done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import fencinglab
from fencinglab.inert import wrapped
from fencinglab.model import shelf
from fencinglab.model.facts import end, facts
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import CLASSES, Harm, harms, stale_attempts, unsafe, why_idle
from fencinglab.model.incident import RESULTS, VERDICTS, Incident, rows
from fencinglab.model.matrix import proposals
from fencinglab.model.replay import Run, Step
from fencinglab.model.rows import Row, clock
from fencinglab.output import document, table

SCHEMA = "fencinglab.replay/1"
DEFAULT = ("unfenced", "fenced")  # where the timeline names no fixes


def story(runs: Sequence[Run], companions: Sequence[Run] = ()) -> str:
    """What `fencinglab replay` prints: the header, the events, the facts, and what each fix came to."""
    parts = [_header(runs), _events(runs), [*facts(runs, companions)], _verdicts(runs)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _header(runs: Sequence[Run]) -> list[str]:
    timeline = runs[0].timeline
    lines = wrapped(f"{timeline.name}: ", timeline.title)
    if timeline.shows:
        lines += wrapped("Look for this: ", f"{timeline.shows}.")
    lengths = [f"{timeline.lease_length * run.fix.times} s under {run.fix.name}" for run in runs if run.fix.times > 1]
    length = ", ".join([f"{timeline.lease_length} s", *lengths])
    lines += wrapped("", f"The first token is {timeline.first_token}; a lease lasts {length}.")
    if timeline.in_place:
        there = "nothing" if timeline.in_place == "unfenced" else timeline.in_place
        lines += wrapped("In place was ", f"{there}; each fix is tried beside it.")
    if timeline.assumed:
        lines += wrapped("Assumed: ", f"{timeline.assumed}.")
    for number, address in enumerate(timeline.sources):
        lines += wrapped(f"{'' if number else 'Told at:':<9}", address)
    return lines


def _events(runs: Sequence[Run]) -> list[str]:
    wide = min(max(len(str(step.event)) for step in runs[0].told), 34)
    broken = [{line for harm in unsafe(run) for line in harm.lines} for run in runs]
    lines: list[str] = []
    for number, steps in enumerate(zip(*(run.told for run in runs), strict=True)):
        if number == len(runs[0].steps):
            lines.append(f"{'':9}afterwards:")
        groups: dict[tuple[str, str], list[tuple[Run, Step]]] = {}
        for run, step, harmed in zip(runs, steps, broken, strict=True):
            mark = "✕" if step.event.line in harmed else " "
            groups.setdefault((mark, _gist(step)), []).append((run, step))
        lines += _event(steps[0], wide, groups)
    return lines


def _gist(step: Step) -> str:
    """What two fixes must have in common to be told in one sentence."""
    attempts = [f"{decision.attempt}: {decision.row['decision']}" for decision in step.decisions if decision.attempt]
    return attempts[0] if attempts else step.says


def _event(first: Step, wide: int, groups: dict[tuple[str, str], list[tuple[Run, Step]]]) -> list[str]:
    """One event: in one line where all fixes agree, else a line below it for each group of fixes that agree."""
    told = [(mark, members, _common(members, gist)) for (mark, gist), members in groups.items()]
    if len(told) == 1:
        [(mark, _, says)] = told
        says += " under each fix" if says.endswith((": accepted", ": rejected")) else ""
        if len(str(first.event)) <= wide:
            return wrapped(f"{clock(first.at):>7}  {first.event!s:<{wide}} {mark} ", says)
        return [f"{clock(first.at):>7}  {first.event}", *wrapped(f"{'':9}{mark} ", says)]
    names = _names([[run.fix.name for run, _ in members] for _, members, _ in told])
    label = max(map(len, names))
    lines = [f"{clock(first.at):>7}  {first.event}"]
    for (mark, members, says), name in zip(told, names, strict=True):
        at = members[0][1].at
        head = f"{clock(at) if at != first.at else '':>7}  {mark} "
        lines += wrapped(f"{head}{name:<{label}}  ", says) if label <= 24 else wrapped(head, f"{says} [{name}]")
    return lines


def _common(members: Sequence[tuple[Run, Step]], gist: str) -> str:
    """The sentence of all members, or what is common to theirs."""
    return members[0][1].says if len({step.says for _, step in members}) == 1 else gist


def _names(groups: Sequence[Sequence[str]]) -> list[str]:
    """The fixes of each group; the largest of many is `all others`."""
    largest = max(groups, key=len)
    return ["all others" if group is largest and len(group) > 4 else ", ".join(group) for group in groups]


def _verdicts(runs: Sequence[Run]) -> list[str]:
    """A line a fix: the harm that was done, or why none was."""
    idle = not any(map(stale_attempts, runs))
    lines = wrapped("", f"No stale write is attempted here: {why_idle(runs[0])}.") if idle else []
    wide = max(len(run.fix.name) for run in runs)
    for run in runs:
        found = _shown(harms(run))
        worst = [f"{harm.says} ({_places(harm)})" for harm in found if harm.group == "unsafe"]
        other = [f"{harm.group}: {harm.says} ({_places(harm)})" for harm in found if harm.group != "unsafe"]
        quiet = "" if idle or stale_attempts(run) else f": {why_idle(run)}"
        told = "; ".join([*(worst or [f"nothing unsafe{quiet}"]), *other])
        lines += wrapped(f"{run.fix.name:<{wide}}  {'✕' if worst else '●'} ", told)
    return lines


def _shown(found: Sequence[Harm]) -> list[Harm]:
    """The harms without the weaker one where the stronger says the same of the same lines."""
    order = {line for harm in found if harm.name == "order" for line in harm.lines}
    return [harm for harm in found if harm.name != "ownership" or not {*harm.lines} <= order]


def _places(harm: Harm) -> str:
    return f"line{'s' * (len(harm.lines) > 1)} {', '.join(map(str, harm.lines))}"


def turns(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The events in turns, a row each: what one worker did until it paused or another went on.

    Columns: step (from 1), event (the events of the turn), and of each fix, by its name, what came of the last of them.
    """
    rows: list[dict[str, Any]] = []
    actor, first = "", len(runs[0].steps)
    for number, steps in enumerate(zip(*(run.told for run in runs), strict=True)):
        event = steps[0].event
        other = event.worker and actor and event.worker != actor
        if not rows or other or event.act in ("pause", "resume") or number == first:
            rows.append({"step": len(rows) + 1, "event": ""})
        actor = event.worker or actor
        told = "; ".join(filter(None, [rows[-1]["event"], str(event)]))
        rows[-1] |= {"event": told} | {run.fix.name: step.says for run, step in zip(runs, steps, strict=True)}
    return rows


def conclusion(of: Incident) -> str:
    """What `fencinglab replay` prints below the story of an incident: which fixes prevent it, and what is open."""
    lines = [f"An audit of what happened {VERDICTS[of.verdict]}. Of all fixes:"]
    tried = rows([of])
    for result, says in RESULTS.items():
        names = [row.fix for row in tried if row.result == result]
        told = "every fix" if len(names) == len(tried) else ", ".join(names)
        told += f" ({says})" if result in ("puts off", "idle") else ""
        lines += wrapped(f"  {result:<16}  ", told) if names else []
    because = [(row.fix, row.because) for row in tried if row.because]
    if "verdict" in of.because:
        because.insert(0, (f"{of.judged}, not {of.verdict}", of.because["verdict"]))
    if because:
        lines.append("Readers of the reports expected otherwise:")
    for what, why in because:
        lines += wrapped(f"  {what}: ", why)
    lines += wrapped("No such log shows: ", of.not_seen)
    lines += wrapped("Also proposed: ", of.beyond)
    return "\n" + "\n".join(lines) + "\n"


def listing() -> str:
    """What `fencinglab replay` prints without a name: timelines, incidents, fixes, and the four proposed most often."""
    lines = ["Timelines (fencinglab replay NAME, or a file of your own); begin with report-generation:"]
    lines += _titles(shelf.names())
    lines += ["", "Incidents, told after public reports (fencinglab replay C07, or leader-not-told):"]
    lines += _titles(shelf.incidents())
    lines += ["", "Fixes (--fix NAME, as often as you like):"]
    wide = max(map(len, FIXES))
    for fix in FIXES.values():
        lines += wrapped(f"  {fix.name:<{wide}}  ", fix.improves)
        lines += wrapped(f"  {'':<{wide}}  but ", f"{fix.leaves[0].lower()}{fix.leaves[1:]}")
    lines += [
        "",
        "Four fixes that are often proposed, each on a timeline that it improves and on one that it does not:",
    ]
    for row in proposals():
        lines += wrapped(f"  {row.fix:<{wide}}  ● {row.improved_by}: ", row.improves)
        lines += wrapped(f"  {'':<{wide}}  ✕ {row.exposed_by}: ", f"even so, {row.still}.")
    return "\n".join(lines) + "\n"


def _titles(names: Sequence[str]) -> list[str]:
    """A line for each timeline of the shelf."""
    wide = max(map(len, names))
    return [line for name in names for line in wrapped(f"  {name:<{wide}}  ", shelf.find(name).title)]


def contents(runs: Sequence[Run], companions: Sequence[Run] = ()) -> dict[str, str | Iterable[str]]:
    """The files of a replay by name: the event trace and the comparison as CSV, both and the facts as JSON, and the
    history under each fix as JSON lines, which `fencinglab audit` reads.
    """
    trace, comparison = [*_trace(runs)], [*_comparison(runs)]
    whole = {
        "schema": SCHEMA,
        "version": fencinglab.__version__,
        "timeline": str(runs[0].timeline),
        "facts": [*facts(runs, companions)],
        "comparison": comparison,
        "trace": trace,
    }
    histories = {f"history/{run.fix.name}.jsonl": map(_line, run.rows) for run in runs}
    return {
        "trace.csv": table([*trace[0]], trace),
        "comparison.csv": table([*comparison[0]], comparison),
        "replay.json": document(whole),
        **histories,
    }


def _trace(runs: Sequence[Run]) -> Iterable[dict[str, Any]]:
    for run in runs:
        for step in run.told:
            decided = [decision.row["decision"] for decision in step.decisions]
            tokens = [decision.row["token"] for decision in step.decisions]
            yield {
                "timeline": run.timeline.name, "fix": run.fix.name, "line": step.event.line, "second": step.at,
                "time": clock(step.at), "event": str(step.event), "says": step.says,
                "decision": decided[-1] if decided else None,
                "token": str(tokens[-1]) if decided and tokens[-1] is not None else None,
                "harm": ", ".join(harm.name for harm in harms(run) if step.event.line in harm.lines),
            }  # fmt: skip


def _comparison(runs: Sequence[Run]) -> Iterable[dict[str, Any]]:
    for run in runs:
        found = harms(run)
        groups = {group: ", ".join(harm.name for harm in found if harm.group == group) for group in CLASSES}
        for resource in run.timeline.resources:
            ends = {f: end(run, resource, f) for f in ("value", "status", "next_poll", "retry")}
            yield {
                "timeline": run.timeline.name, "fix": run.fix.name, "resource": resource,
                **{f"final_{name}": text for name, text in ends.items()}, "alerts": end(run, resource, "alerts"),
                "effects": ", ".join(run.effects), "stale_attempts": len(stale_attempts(run)), **groups,
                "improves": run.fix.improves, "leaves": run.fix.leaves,
            }  # fmt: skip


def _line(row: Row) -> str:
    """The row of a history as a line of JSON; times are ISO text in UTC, whole numbers beyond 2^53 are text."""
    plain = {k: f"{v.isoformat()}Z" if isinstance(v, datetime) else v for k, v in row.items()}
    exact = {k: str(v) if isinstance(v, int) and v > 1 << 53 else v for k, v in plain.items()}
    return json.dumps(exact, ensure_ascii=False) + "\n"
