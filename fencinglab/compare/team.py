"""A team's own requests as a row of a design review: whether they hold in every order of events, and on its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fencinglab.audit import proposal
from fencinglab.check.check import check
from fencinglab.dynamodb.requests import Requests
from fencinglab.explore.repair import UNSAFE
from fencinglab.explore.search import MOST_STATES
from fencinglab.inert import inert


def searched(file: Requests, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """{name, safety: {invariant: {status, length}}, states, stopped, searched} of `check` without further hazards."""
    answer = check(file, most=MOST_STATES, progress=progress).answer
    return {
        "name": inert(file.name, 60),
        "safety": {v.invariant: {"status": v.status, "length": v.length} for v in answer.verdicts},
        "states": answer.states,
        "stopped": answer.stopped,
        "searched": answer.model.searched,
    }


def says(team: Mapping[str, Any], log: Mapping[str, Any] | None) -> str:
    """The team's row in a sentence: what it breaks, and what it would have refused on the log."""
    broken = {name: cell["length"] for name, cell in team["safety"].items() if cell["status"] == "violated"}
    unsafe = [name for name in broken if name in UNSAFE]
    if unsafe:
        found = f"breaks {', '.join(unsafe)}, at the soonest after {min(broken[name] for name in unsafe)} steps"
    elif team["stopped"]:
        found = f"was not searched to the end ({team['stopped']})"
    else:
        found = f"lets nothing unsafe happen in any of its {team['states']:,} states"
    if others := [name for name in broken if name not in unsafe]:
        found += f"; not held, though not unsafe: {', '.join(others)}"
    if log is None:
        return f"{team['name']} {found}."
    one = next(one for one in log["whatif"] if one["guard"] == proposal.NAME)
    late = f", {one['refuses_late']:,} of {one['late']:,} late ones" if one["late"] else ""
    stale = f"{one['refuses_stale']:,} of {one['stale']:,} accepted stale writes"
    return (
        f"{team['name']} {found}. On the log it would have refused {stale}{late} and {one['refuses_good']:,} other "
        f"accepted writes; {one['open']:,} cannot be told."
    )
