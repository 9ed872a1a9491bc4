"""The facts of a comparison as lines: what stands in the end under each fix, and two limits of comparing tokens.

Each is computed from the runs. Where nothing in the events asks for a fact, its line is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencinglab.model.event import MUTATIONS
from fencinglab.model.render import content, orphans
from fencinglab.model.replay import Run

_ENDS = {
    "value": "value", "content": "content", "status": "status", "reason": "reason", "next_poll": "next poll",
    "retry": "retry decision", "alerts": "alerts",
}  # fmt: skip


def facts(runs: Sequence[Run], companions: Sequence[Run] = ()) -> tuple[str, ...]:
    """The lines, final values first; `companions` are runs of the same events in another order under the same fixes."""
    guarded = [run.fix.name for run in runs if run.fix.rules.guard.compares == "token"]
    lines = list(_ends(runs))
    for name in guarded:
        of = f"{name} " if len(guarded) > 1 else ""
        every = [run for run in (*runs, *companions) if run.fix.name == name]
        if repeated := next(filter(None, map(repetition, every)), ""):
            lines.append(f"{of}repeated current token: {repeated}")
        if early := next(filter(None, map(old_token_first, every)), ""):
            lines.append(f"{of}old token before newer token reaches resource: {early}")
    return tuple(lines)


def _ends(runs: Sequence[Run]) -> Iterator[str]:
    resources = {resource: None for run in runs for resource in run.timeline.resources}
    for resource in resources:
        of = f" of {resource}" if len(resources) > 1 else ""
        for field, word in _ENDS.items():
            ends = [end(run, resource, field) for run in runs]
            if any(ends):
                yield from (
                    f"{run.fix.name} final {word}{of}: {text or 'none'}" for run, text in zip(runs, ends, strict=True)
                )
    if any(run.stored for run in runs):
        yield from (f"{run.fix.name} orphan artifacts: {', '.join(orphans(run)) or 'none'}" for run in runs)
    if any(run.effects for run in runs):
        yield from (f"{run.fix.name} effects outside: {', '.join(run.effects) or 'none'}" for run in runs)


def end(run: Run, resource: str, field: str) -> str:
    """What the receiver holds in this field in the end, or the content it points to; empty where that is nothing."""
    if field == "content":
        return content(run, resource)
    held = run.final.get(resource)
    found = getattr(held, field) if held else ""
    return ", ".join(found) if isinstance(found, tuple) else str(found)


def repetition(run: Run) -> str:
    """The decision on the first repetition of an accepted operation under the newest grant; empty without one."""
    repeated = (d for d in run.decisions if d.again and d.grant == d.newest)
    return next((str(d.row["decision"]) for d in repeated), "")


def old_token_first(run: Run) -> str:
    """The decision on the first stale write before any accepted write of a newer grant; empty where none does."""
    for resource in run.timeline.resources:
        newest = 0
        for decision in (d for d in run.decisions if d.row["resource"] == resource and d.row["kind"] in MUTATIONS):
            row = decision.row
            if row["token"] is not None and row["token"] < row["current_token"] and newest <= decision.grant:
                return str(row["decision"])
            if row["decision"] == "accepted":
                newest = max(newest, decision.grant)
    return ""
