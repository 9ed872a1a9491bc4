"""A run of a team's own requests as rows of the history: what each request was, what it was decided, what it changed.

Times are steps, a second each: a lease ends where the run says that time has passed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fencinglab.dynamodb.requests import READ, Items
from fencinglab.explore import walk
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.search import Run
from fencinglab.explore.team import Team
from fencinglab.history import NOBODY
from fencinglab.model.rows import Row, elapsed, moment


def rows(team: Team, run: Run) -> list[Row]:
    """A row for each request that was decided but reads, and for a deletion of the protected item.

    Broken is what does unsafe harm.
    """
    made: list[Row] = []
    for place, (step, what) in enumerate(zip(run, walk.walked(team, run), strict=True), 1):
        deleted = step.act == "delete" and not step.number
        kind = "ttl_delete" if deleted else team.kinds[step.number] if what.operation else READ
        if kind == READ:
            continue
        harm = next((name for name in what.breaks if INVARIANTS[name].group == "unsafe"), "")
        ends = next((n for n, later in enumerate(run[place:], place + 1) if later.act == "expire"), len(run) + 1)
        resource = str(team.file.given.get("resource", "item"))
        made.append({
            "resource": resource, "lease": resource, "kind": kind, "writer": step.worker or None, "token": what.token,
            "at": moment(place), "clock": elapsed(moment(place)), "sent_at": _sent(run, place),
            "decision": "rejected" if step.accepted is False else "accepted", "reason": step.reason,
            "outcome": "unknown" if step.act != "arrive" else "ok" if step.accepted else "failed",
            "broken": bool(harm), "harm": INVARIANTS[harm].broken if harm else None, "undecided": False,
            **_side(team, "before", what.before, ends), **_side(team, "after", what.after, ends),
        })  # fmt: skip
    return made


def _sent(run: Run, place: int) -> datetime | None:
    """When what arrives in this place was sent."""
    step = run[place - 1]
    for number in range(place - 1, 0, -1):
        one = run[number - 1]
        if one.act.startswith("send") and (one.worker, one.number, one.grant) == (step.worker, step.number, step.grant):
            return moment(number)
    return None


def _side(team: Team, side: str, items: Items, ends: int) -> dict[str, Any]:
    token, holder = team.stands.column(items, "token"), team.stands.column(items, "holder")
    return {
        f"{side}_token": int(token) if str(token or "").isdecimal() else None, f"{side}_holder": holder or NOBODY,
        f"{side}_expires_at": moment(ends) if holder else None,
    }  # fmt: skip
