"""The numbers and the tables of a design review as they are written: values with intervals, rows by their heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencinglab.audit import proposal
from fencinglab.explore.invariants import MARKS
from fencinglab.simulate.measure import INVARIANTS, RARE

BEATEN = "another lease length is better in one of finished twice, dead and wasted, and worse in none, beyond chance"
FEW = f"Where fewer than {RARE} jobs make a mean, their number stands in place of its interval."

Table = list[dict[str, str]]  # a row each, by the heads of its columns


def aligned(rows: Table) -> list[str]:
    """The lines of a table on the screen, its heads first: the first column begins, all others end, in one place."""
    cells = [[*rows[0]], *([*row.values()] for row in rows)]
    first, *wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join([f"{one:<{first}}", *map(str.rjust, more, wide)]).rstrip() for one, *more in cells]


def percent(share: float, digits: int = 3) -> str:
    """A share in percent, with so many digits that count; what is very small as a power of ten."""
    value = share * 100
    if value == 0 or value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1e}" if value < 1e-4 else f"{value:.{digits if value < 99 else 3}g}"


def interval(found: Mapping[str, Any], rare: Mapping[str, Any] | None = None) -> str:
    """`2.43 % (2.2–2.7)`; of what was never seen the most that it can be; ~ before what long pauses showed."""
    if rare and rare["fits"]:
        return f"~{percent(rare['value'])} % ({percent(rare['low'], 2)}–{percent(rare['high'], 2)})"
    if not found["seen"]:
        return f"none (up to {percent(found['high'], 2)} %)"
    return f"{percent(found['value'])} % ({percent(found['low'], 2)}–{percent(found['high'], 2)})"


def mean(found: Mapping[str, Any], sign: str = "") -> str:
    """`0.43 (0.41–0.46)`, or `+0.22 (+0.18 to +0.26)` of a difference; `0.43 (3 jobs)` where few jobs make it."""
    between = " to " if sign else "–"
    told = f"{found['low']:{sign}z.2f}{between}{found['high']:{sign}z.2f}"
    if found["seen"] < RARE:
        told = f"{found['seen']} job{'s' * (found['seen'] != 1)}"
    return f"{found['value']:{sign}z.2f} ({told})"


def mark(status: str, length: int | None) -> str:
    """`●`, or `✕ 9` with the steps of the shortest run that breaks it."""
    return f"{MARKS[status]} {length}" if status == "violated" else MARKS[status]


def invariants(row: Mapping[str, Any]) -> dict[str, str]:
    """The mark of each invariant in a row of a review."""
    return {name: mark(**row["safety"][name]) for name in INVARIANTS}


def seconds(value: float | None) -> str:
    """`10.9`, or `never`."""
    return "never" if value is None else f"{value:.3g}"


def assumed(review: Mapping[str, Any]) -> str:
    """Which of the times that decide most are defaults, in a sentence; nothing where none is."""
    default = {one["name"] for one in review["workload"] if one["from"] == "default"}
    names = ", ".join(name for name in ("lease", "pause", "work") if name in default)
    return f"Defaults, of no team in particular: {names}. Yours may give far other numbers." if names else ""


def harms(review: Mapping[str, Any]) -> Table:
    """Of each fix and of the team's requests: the invariants, and the shares of two harms."""
    shown = {"stale write accepted": "ownership", "finished twice": "terminal"}
    rows = [
        {"fix": row["fix"]}
        | invariants(row)
        | {head: interval(row["shares"][name], row["rare"].get(name)) for head, name in shown.items()}
        for row in review["fixes"]
    ]
    if own := review["team"]:
        rows.append({"fix": proposal.NAME} | invariants(own) | dict.fromkeys(shown, "not simulated"))
    return rows


def costs(review: Mapping[str, Any]) -> Table:
    """Of each fix when half and 95 % are done, how many jobs are reassigned, and the time that is lost."""
    first = review["fixes"][0]["fix"]
    return [
        {
            "fix": row["fix"],
            "done by (s)": f"{seconds(row['median'])} / {seconds(row['slow'])}",
            "reassigned (%)": " / ".join(percent(row["shares"][name]["value"]) for name in ("reassigned", "needless")),
            "lost (s a job)": mean(row["means"]["lost"]),
            f"against {first}": "–" if row["fix"] == first else mean(row["against"]["lost"], "+"),
        }
        for row in review["fixes"]
    ]


def refusals(review: Mapping[str, Any]) -> Table:
    """Of each guard and of the team's requests what they would have decided otherwise on the log of the review."""
    return [
        {
            "guard": one["guard"],
            "refuses stale": f"{one['refuses_stale']:,} of {one['stale']:,}",
            "late": f"{one['refuses_late']:,} of {one['late']:,}",
            "other accepted": f"{one['refuses_good']:,}",
            "accepts refused": f"{one['admits_refused']:,}",
            "cannot be told": f"{one['open']:,}",
        }
        for one in review["log"]["whatif"]
        if one["guard"] in review["guards"]
    ]


def leases(review: Mapping[str, Any]) -> Table:
    """Other lease lengths under the recommended fix, or else the first."""
    fix = review["sweep"][-1]["fix"]
    return [
        {
            "lease": f"{point['lease']:g} s",
            "stale accepted": interval(point["stale"]),
            "finished twice": interval(point["duplicates"]),
            "dead (s a job)": mean(point["dead"]),
            "wasted (s a job)": mean(point["wasted"]),
            "": "" if point["efficient"] else "beaten",
        }
        for point in review["sweep"]
        if point["fix"] == fix
    ]
