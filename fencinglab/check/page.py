"""The page of a check, to be attached to a design review: check.html. It opens anywhere, without script or network."""

from __future__ import annotations

from typing import Any

import fencinglab
from fencinglab import charts
from fencinglab.check import told
from fencinglab.check.check import Check
from fencinglab.explore import recorded, telling, walk
from fencinglab.explore.invariants import INVARIANTS, MARKS
from fencinglab.explore.search import Answer
from fencinglab.explore.steps import Model
from fencinglab.explore.telling import Told
from fencinglab.explore.walk import Happened
from fencinglab.model.judged import judged
from fencinglab.report.page import VERDICT, drawn, rendered

_KINDS = {0: "holds", 1: "violated", 3: "inconclusive"}  # exit code -> what the answer is called


def html(found: Check, test: str = "") -> str:
    """The answer as one HTML page; `test` is what keeps it in a team's tests."""
    answer = found.answer
    runs = [_run(answer, verdict.invariant) for verdict in told.worst_first(answer)]
    return rendered(
        "check/check.html.j2", headline=told.headline(answer), verdict=_KINDS[told.exit_code(answer)],
        model=answer.model, states=answer.states, stopped=answer.stopped,
        hazards=told.on(answer), off=told.off(answer), idle=found.idle,
        verdicts=[(v, INVARIANTS[v.invariant], told.says(answer, v)) for v in answer.verdicts], runs=runs,
        needed=[(need, told.without(need)) for need in found.needed], alone=told.ALONE, repair=found.repair,
        mended=[*told.requests(found.repair)] if found.repair else [], test=test,
        fewer=told.fewer(found.repair) if found.repair else "",
        of_file=not isinstance(answer.model, Model), MARKS=MARKS, VERDICT=VERDICT, charts=charts,
        versions={"fencinglab": fencinglab.__version__}, schema=told.SCHEMA,
    )  # fmt: skip


def _run(answer: Answer, invariant: str) -> dict[str, Any]:
    """A counterexample with its lanes, and the items before and after its last request."""
    run = telling.broken(answer, invariant)
    last = run.lines[-1].happened if run.lines else None
    return {
        "invariant": invariant, "told": run, "unsaid": telling.unsaid(run),
        "lanes": drawn(_lanes(answer, run, invariant)),
        "items": _items(last) if last else [], "operation": last.operation if last else "",
        "rescue": [] if run.replayed else walk.rescued(answer.model, answer.of(invariant)),
    }  # fmt: skip


def _lanes(answer: Answer, run: Told, invariant: str) -> Any:
    if run.replayed:
        return charts.lanes(judged(run.replayed), run.replayed.told)
    return charts.lanes(recorded.rows(answer.model, answer.of(invariant).run or ()))


def _items(last: Happened) -> list[tuple[str, str]]:
    """Each item that the last request changed, before and after it."""
    return [(walk.item(before), walk.item(after)) for before, after in walk.changed(last)]
