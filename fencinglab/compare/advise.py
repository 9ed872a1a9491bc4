"""What follows from a comparison of fixes: the safe margin, and a recommendation by a stated rule.

Nothing here is measured; every sentence follows from rows that were computed elsewhere, by a rule that is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fencinglab.compare.cells import mean, percent
from fencinglab.model.fix import FIXES, Fix
from fencinglab.simulate.laws import beyond
from fencinglab.simulate.measure import INVARIANTS
from fencinglab.simulate.workload import SECOND, Workload

DRIFT = 200e-6  # how fast a clock may drift from another: seconds a second; twice what a common quartz is allowed
LONGEST = 1e-6  # the longest time in flight is what one message in a million exceeds

RULE = (
    "Set aside every fix that breaks order, ownership, terminal or final in some order of events or simulated job.",
    "Set aside every fix under which more jobs stay unfinished than under another of the rest, beyond chance.",
    "Of the rest take the one that loses the least dead and wasted time a job; of those whose interval against the "
    "first fix overlaps with that one's, the one with the fewest measures.",
)


def margin(workload: Workload) -> dict[str, Any]:
    """The safe margin in seconds and its parts: lease - skew - drift - longest time in flight."""
    flight = int(beyond(workload.message, np.array([LONGEST]))[0]) / SECOND
    lease, skew = workload.lease / SECOND, workload.skew / SECOND
    drift = lease * DRIFT
    value = lease - skew - drift - flight
    stands = (
        f"{value:.2f} s after its grant or last renewal" if value > 0 else "at no time: nothing is left of the lease"
    )
    outlast = workload.pause.survival(max(value, 0.0) * SECOND)
    return {
        "lease": lease, "skew": skew, "drift": drift, "flight": flight, "value": value, "beyond": outlast,
        "says": f"A worker that sends without a fence may do so until {stands}. It is no proof: between its look "
        f"at the clock and the write it may stand still, and {_share(outlast)} of all pauses outlast the whole margin.",
    }  # fmt: skip


def measures(fix: Fix) -> int:
    """How many measures the fix consists of."""
    return sum(getattr(fix, name) != default for name, default in Fix._field_defaults.items())


def recommendation(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """{rule, fix, because, aside, uncovered}: what the rule takes of the rows of a comparison.

    `fix` is None where none is left; `aside` says of each fix that was set aside why.
    """
    aside, rest = {}, []
    for row in rows:
        if broken := breaks(row):
            aside[row["fix"]] = "breaks " + ", ".join(broken)
        else:
            rest.append(row)
    best = min((row["shares"]["unfinished"]["high"] for row in rest), default=0.0)
    for row in [row for row in rest if row["shares"]["unfinished"]["low"] > best]:
        aside[row["fix"]] = f"leaves {_share(row['shares']['unfinished']['value'])} of the jobs unfinished"
        rest.remove(row)
    found: dict[str, Any] = {"rule": list(RULE), "fix": None, "aside": aside, "uncovered": []}
    if not rest:
        return found | {"because": "No fix is left: add one that compares the newest token, such as latest-id."}
    cheapest = min(rest, key=lambda row: row["means"]["lost"]["value"])
    equal = [row for row in rest if _within(row, cheapest)]
    chosen = min(equal, key=lambda row: measures(FIXES[row["fix"]]))
    lost = chosen["means"]["lost"]
    because = f"It breaks nothing, and of {lost['jobs']:,} jobs one loses {mean(lost)} s, dead and wasted, on average."
    others = [row["fix"] for row in equal if row is not chosen]
    if others:
        because += f" {', '.join(others)}: no difference beyond chance, and no fewer measures."
    return found | {"fix": chosen["fix"], "because": because, "uncovered": uncovered(chosen)}


def breaks(row: Mapping[str, Any]) -> list[str]:
    """The invariants that the fix breaks, in some order of events or in a simulated job."""
    return [
        name
        for name in INVARIANTS
        if row["safety"][name]["status"] == "violated" or row["shares"][name]["seen"] or name in row["rare"]
    ]


def _within(row: Mapping[str, Any], cheapest: Mapping[str, Any]) -> bool:
    """Whether the fix loses as much time as the cheapest, but for chance; both are differences to the same fix."""
    a, b = row["against"]["lost"], cheapest["against"]["lost"]
    return bool(a["low"] <= b["high"])


def uncovered(row: Mapping[str, Any]) -> list[str]:
    """What the recommended fix does not cover."""
    effects, late, refused, undone = (
        row["shares"][name] for name in ("effects", "late", "rejected_late", "unfinished")
    )
    found = [row["leaves"]]
    if not FIXES[row["fix"]].effect_key:
        found.append(
            f"Effects outside are caused more than once in {_share(effects['value'])} of the jobs "
            f"({_share(effects['low'])} to {_share(effects['high'])}): give each a key that the service honours."
        )
    if late["seen"]:
        found.append(f"Late writes are accepted in {_share(late['value'])} of the jobs; late is not stale.")
    if refused["seen"]:
        found.append(f"Finished work is refused for being late in {_share(refused['value'])} of the jobs.")
    if undone["seen"]:
        found.append(f"{_share(undone['value'])} of the jobs stay unfinished.")
    found.append("What was not searched: more workers and writes, and the hazards of `fencinglab check --hazard`.")
    whatif = row["whatif"]
    if whatif and whatif["without_token"]:
        found.append(f"{whatif['without_token']:,} writes of the log presented no token: no guard stops such a writer.")
    if whatif and whatif["open"]:
        found.append(f"Of {whatif['open']:,} writes of the log it cannot be told what the guard would have done.")
    return found


def _share(share: float) -> str:
    return f"{percent(share, 2)} %" if share else "none"
