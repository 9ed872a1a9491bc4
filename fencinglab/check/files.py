"""What a search found, as files: JSON, and each counterexample as a timeline and a Mermaid diagram."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import fencinglab
from fencinglab.check import page, told
from fencinglab.check.check import Beside, Check
from fencinglab.errors import InputError
from fencinglab.explore import telling, walk
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.repair import Repair
from fencinglab.explore.search import Answer
from fencinglab.explore.telling import Told
from fencinglab.output import document

MOST_ARROWS, MOST_WORKERS = 40, 4  # of a drawing that can still be read


def contents(found: Check, kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """The files of a check by name: check.html, check.json, and each counterexample as a timeline and as Mermaid.

    A drawing that would be too large is left out. A repair stands in check.json, and each of its requests in a file to
    paste. `kept` are the files that keep the answer in a team's tests.
    """
    answer, repair, kept = found.answer, found.repair, kept or {}
    broken = _broken(answer)
    whole = data(answer, broken) | {"never_carried_out": list(found.idle)}
    whole |= {"repair": _repair(repair)} if repair else {}
    files = {"check.html": page.html(found, kept.get("test_requests.py", "")), **kept}
    files["check.json"] = document(whole)
    files |= {f"repair/{name}.json": text + "\n" for name, _, text in told.requests(repair)} if repair else {}
    for one in broken.values():
        if one.timeline:
            files[f"{one.name}.timeline"] = str(one.timeline)
        try:
            files[f"{one.name}.mmd"] = mermaid(one)
        except InputError:
            continue  # check.json says why
    for one in telling.harmless(answer):
        if one.timeline:
            files[f"passing/{one.name}.timeline"] = str(one.timeline)
    return files


def example() -> str:
    """A request file with comments to start from."""
    return resources.files("fencinglab").joinpath("check/example.json").read_text(encoding="utf-8")


def of_two(found: Beside) -> dict[str, str]:
    """The files of two request files side by side: both answers in check.json, and the run that tells them apart."""
    answers = [data(answer, _broken(answer)) for answer in found.answers]
    whole: dict[str, Any] = {"schema": told.SCHEMA, "files": answers, "apart": None}
    files = {}
    if found.apart.first:
        run = telling.of_requests(found.answers[0].model, found.apart.first, "apart", told.APART)
        last = walk.walked(found.answers[1].model, found.apart.second)[-1]
        whole["apart"] = _run(run) | {"other": last.says}
        files = {"apart.timeline": str(run.timeline)} if run.timeline else {}
    return {"check.json": document(whole), **files}


def data(answer: Answer, found: Mapping[str, Told]) -> dict[str, Any]:
    """The whole answer as plain values."""
    model = answer.model
    return {
        "schema": told.SCHEMA,
        "version": fencinglab.__version__,
        "searched": f"{model.title}: {model.searched}",
        "workers": len(model.names),
        "hazards": {hazard.name: hazard.times for hazard in model.hazards},
        "idle_hazards": list(answer.idle),
        "headline": told.headline(answer),
        "exit_code": told.exit_code(answer),
        "states": answer.states,
        "stopped": answer.stopped or None,
        "reached": {name: len(run) for name, run in answer.reached.items()},
        "invariants": [
            {
                "name": v.invariant, "class": INVARIANTS[v.invariant].group, "says": INVARIANTS[v.invariant].says,
                "status": v.status, "length": v.length, "missing": list(v.missing),
                "counterexample": _run(found[v.invariant]) if v.invariant in found else None,
            }
            for v in answer.verdicts
        ],
    }  # fmt: skip


def _broken(answer: Answer) -> dict[str, Told]:
    return {v.invariant: telling.broken(answer, v.invariant) for v in answer.verdicts if v.status == "violated"}


def _repair(repair: Repair) -> dict[str, Any]:
    return {
        "added": [{"operation": one.operation, "condition": one.says, "name": one.name} for one in repair.added],
        "requests": [
            {"operation": name, "action": action, "input": json.loads(text)}
            for name, action, text in told.requests(repair)
        ],
        "searches": repair.searches,
        "why_not": repair.why_not or None,
        "fewer": repair.fewer or None,
    }


def _run(found: Told) -> dict[str, Any]:
    try:
        drawing, why_not = mermaid(found), None
    except InputError as error:
        drawing, why_not = None, str(error)
    return {
        "timeline": str(found.timeline) if found.timeline else None,
        "unsaid": list(found.unsaid),
        "steps": [
            {"event": line.event or None, "line": line.line or None, "says": line.says}
            | (
                {name: getattr(line.happened, name) for name in ("operation", "before", "after")}
                if line.happened
                else {}
            )
            for line in found.lines
        ],
        "lost_at": found.lost_at or None,
        "mermaid": drawing,
        "not_drawn": why_not,
    }


def mermaid(found: Told) -> str:
    """The run as a Mermaid sequence diagram; InputError where it would be too large to be read."""
    for what, count, most in (("workers", len(found.workers), MOST_WORKERS), ("events", len(found.lines), MOST_ARROWS)):
        if count > most:
            raise InputError(f"{found.name}: is not drawn with {count} {what}; a diagram is readable up to {most}")
    parties = (telling.AUTHORITY, *found.workers, telling.RECEIVER)
    lines = ["sequenceDiagram", *(f"    participant {who}" for who in parties)]
    for line in found.lines:
        says = (line.says or line.event).replace(";", ",").replace("#", "no. ")  # both mean something to Mermaid
        if line.decides:
            lines.append(f"    {line.worker}{'-x' if line.refused else '->>'}{line.decides}: {says}")
        else:
            lines.append(f"    Note over {line.worker or telling.AUTHORITY}: {says}")
    return "\n".join(lines) + "\n"
