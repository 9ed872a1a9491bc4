"""The history of a run with what the replay knows of each row beside it: what charts draw."""

from __future__ import annotations

from collections.abc import Iterable

from fencinglab.model.harm import unsafe
from fencinglab.model.replay import Run
from fencinglab.model.rows import Row, elapsed


def judged(run: Run) -> list[Row]:
    """The rows of the history in order, each with six columns more.

    `step` is its place in the order from 1, `event` the number of the event that made it (what is tried afterwards
    counts on), `clock` its time as a replay prints it, `broken` whether it was accepted in a line in which something
    unsafe was done, `harm` what that was (the worst; null = nothing), `undecided` is never true.
    """
    says = {line: harm.says for harm in reversed(unsafe(run)) for line in harm.lines}
    rows: list[Row] = []
    for number, step in enumerate(run.told, 1):
        for row in (decision.row for decision in step.decisions):
            harm = says.get(step.event.line) if row["decision"] == "accepted" else None
            place = {"step": len(rows) + 1, "event": number, "clock": elapsed(row["at"])}
            rows.append(row | place | {"broken": harm is not None, "harm": harm, "undecided": False})
    return rows


def alike(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs in groups that no chart tells apart: the same was asked, and the same was decided, in the same order."""
    groups: dict[object, list[Run]] = {}
    for run in runs:
        decided = (tuple(row[c] for c in ("kind", "writer", "token", "decision", "after_token")) for row in run.rows)
        groups.setdefault(tuple(decided), []).append(run)
    return [*groups.values()]
