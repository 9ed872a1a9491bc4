"""A design review as text and as files: what `fencinglab compare` prints and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fencinglab.audit.fit import ENOUGH
from fencinglab.compare import page
from fencinglab.compare.cells import BEATEN, FEW, aligned, assumed, costs, harms, invariants, leases, refusals
from fencinglab.inert import inert, wrapped
from fencinglab.output import document, table


def screen(review: Mapping[str, Any]) -> str:
    """What `fencinglab compare` prints: the sentence, two tables of fixes, the log, what follows from the rule."""
    parts = [
        wrapped("", review["headline"]), _harm(review), _cost(review), _whatif(review), _advice(review),
        _sweep(review),
        wrapped("Safe margin: ", f"{review['margin']['value']:.2f} s. {review['margin']['says']}"), _basis(review),
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _harm(review: Mapping[str, Any]) -> list[str]:
    says = wrapped(
        "",
        "Every order of events of two workers: ● holds, ✕ the steps of the shortest run that breaks it. Beside it the "
        f"share of {review['jobs']:,} simulated jobs, with its interval at 95 %.",
    )
    own = review["team"] or {"says": "", "searched": ""}
    lines = [*wrapped("Your requests: ", own["says"], 15), *wrapped("     searched: ", own["searched"], 15)]
    return [*says, *aligned(harms(review)), *wrapped("", assumed(review)), *lines]


def _cost(review: Mapping[str, Any]) -> list[str]:
    says = wrapped(
        "",
        f"Cost, of the same {review['jobs']:,} jobs: the time by which half and 95 % are finished; how many were "
        "reassigned, and needlessly; dead and wasted time together, and how much more or less than under "
        f"{review['fixes'][0]['fix']}, job by job.",
    )
    return [*says, *aligned(costs(review))]


def _whatif(review: Mapping[str, Any]) -> list[str]:
    log = review["log"]
    if log is None:
        return []
    says = wrapped("", f"On the log, each guard over its own order. The audit says: {log['headline']}")
    untold = "; ".join(f"{count:,}: {why}" for why, count in log["untold"].items())
    rows = [*aligned(refusals(review)), *_otherwise(log, review["guards"])]
    return [*says, *rows, *wrapped("  not told of yours ", untold, 15)]


def _otherwise(log: Mapping[str, Any], guards: Iterable[str]) -> Iterator[str]:
    """The first rows that a guard would have decided otherwise, for each guard."""
    for guard in guards:
        for row in log["rows"][guard][:2]:
            token = f" with {row['token']}" if row["token"] is not None else ", whose token is not known"
            newest = f" (newest {row['newest']})" if row["newest"] is not None else ""
            says = f"would {row['would']} {row['writer'] or 'somebody'}'s {row['kind']}{token}{newest}"
            where = f"{inert(row['resource'], 40)}, {inert(row['source'], 60)}"
            yield from wrapped(f"  {guard} ", f"{inert(says, 80)} [{where}]", min(len(guard) + 3, 15))


def _advice(review: Mapping[str, Any]) -> list[str]:
    advice = review["recommendation"]
    lines = [line for n, rule in enumerate(advice["rule"], 1) for line in wrapped(f"  {n}. ", rule)]
    lines = ["The rule:", *lines]
    lines += [line for fix, why in advice["aside"].items() for line in wrapped("  set aside: ", f"{fix} {why}")]
    lines += wrapped("It takes: ", f"{advice['fix'] or 'nothing'}. {advice['because']}")
    lines += [line for text in advice["uncovered"] for line in wrapped("  not covered: ", text)]
    return lines


def _sweep(review: Mapping[str, Any]) -> list[str]:
    last = review["sweep"][-1]
    says = f"Other lease lengths under {last['fix']}, with three renewals each, over {last['jobs']:,} jobs; beaten: "
    says += f"{BEATEN}. {FEW}"
    return [*wrapped("", says), *aligned(leases(review))]


def _basis(review: Mapping[str, Any]) -> list[str]:
    given = [f"{one['name']} {one['value']} ({one['from']})" for one in review["workload"]]
    lines = wrapped("Workload: ", ", ".join(given) + f"; seed {review['seed']}.")
    if review["log"]:
        default = {one["name"] for one in review["workload"] if one["from"] == "default"}
        times = [one for one in review["log"]["times"] if one["seen"] < ENOUGH and one["name"] in default]
        few = [f"{one['name']} ({one['seen']:,})" for one in times]
        if few:
            lines += wrapped("Too few in the log, so not taken from it: ", ", ".join(few) + ".", 15)
    return lines


# --- files

_POINT = ("fix", "lease", "jobs", "measure", "seen", "value", "low", "high", "efficient")
_ROW = ("guard", "would", "decision", "stale", "late", "resource", "source", "at", "kind", "writer", "token", "newest")


def contents(review: Mapping[str, Any]) -> dict[str, str | Iterable[str]]:
    """The files of a review by name: compare.html, compare.json, fixes.csv, leases.csv and, of a log, whatif.csv."""
    fixes = [_flat(row, review["jobs"]) for row in review["fixes"]]
    columns = [*fixes[0]]
    if own := review["team"]:
        fixes.append({"fix": own["name"]} | invariants(own))
    files: dict[str, str | Iterable[str]] = {
        "compare.html": page.html(review),
        "compare.json": document(review),
        "fixes.csv": table(columns, fixes),
        "leases.csv": table(_POINT, _points(review)),
    }
    if review["log"]:
        changed = (row | {"guard": guard} for guard, rows in review["log"]["rows"].items() for row in rows)
        files["whatif.csv"] = table(_ROW, changed)
    return files


def _flat(row: Mapping[str, Any], jobs: int) -> dict[str, Any]:
    flat = {name: row[name] for name in ("fix", "guard", "improves", "leaves")} | invariants(row)
    flat |= {"jobs": jobs, "median": row["median"], "slow": row["slow"]}
    for name, found in row["shares"].items():
        flat |= {f"{name}_share": found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
    for name, found in row["means"].items():
        flat |= {f"{name}_mean": found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
        flat |= {f"{name}_seen": found["seen"], f"{name}_against": row["against"][name]["value"]}
        flat |= {f"{name}_against_{part}": row["against"][name][part] for part in ("low", "high", "seen")}
    return flat


def _points(review: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for point in review["sweep"]:
        for name in ("stale", "duplicates", "dead", "wasted"):
            yield {column: (point | point[name] | {"measure": name})[column] for column in _POINT}
