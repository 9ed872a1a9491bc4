"""A design review: fixes side by side, what each holds, would have changed on a log, and costs under a workload.

`review` gives plain data; `told` prints and files it, `page` makes the page.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import fencinglab
from fencinglab.audit import fit, proposal, whatif
from fencinglab.compare import adoption, advise, team
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.requests import Requests
from fencinglab.explore import matrix
from fencinglab.model.fix import Fix, named
from fencinglab.report.examine import Examination, examine, request_of
from fencinglab.report.report import place, plain
from fencinglab.simulate import laws, measure
from fencinglab.simulate.measure import RARE, Cost, Mean, Share
from fencinglab.simulate.terms import LAWS, TERMS
from fencinglab.simulate.workload import COUNTS, Workload, workload

SCHEMA = "fencinglab.compare/1"
FIXES = (
    "unfenced", "longer-lease", "renew-or-abort", "client-check", "fenced", "latest-id", "latest-id-terminal",
    "current-lease",
)  # fmt: skip
JOBS = 100_000
SHOWN = 20  # rows a guard
TIMES_LEASE = (0.25, 0.5, 1, 2, 4, 8)  # lease lengths that are tried, as multiples of the one in question
SWEPT = 10  # a tenth of the jobs for each of them


@dataclass(frozen=True)
class Asked:
    """What is to be compared, in the words of the command line."""

    fixes: tuple[str, ...] = FIXES
    said: Mapping[str, str] = field(default_factory=dict)  # parameters of the workload
    logs: tuple[str, ...] = ()
    log_options: Mapping[str, str] = field(default_factory=dict)  # of `fencinglab audit`
    requests: str | None = None  # a request file by name or path: the team's own proposal
    jobs: int = JOBS
    seed: int = 1
    precision: float | None = None
    command: tuple[str, ...] = ()


def review(asked: Asked, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The review as plain data (JSON types): the whole of what compare.json holds.

    Parameters that cannot be are a UsageError before anything is read; logs as for `fencinglab audit`.
    """
    fixes = [named(name) for name in dict.fromkeys(asked.fixes)]
    jobs = measure.enough(asked.jobs, asked.precision)
    made, origin, log = workload(asked.said), dict.fromkeys(asked.said, "said"), None
    file = None if asked.requests is None else shelf.find(asked.requests)
    own = team.searched(file, progress) if file else None
    if asked.logs:
        progress("reading the log")
        with examine(request_of(asked.logs, dict(asked.log_options)), progress=progress) as done:
            log, shows = _log(done, fixes, file, progress), fit.fit(done.con)
        made, origin = _fitted(shows, asked.said)
        log["times"] = [
            {
                "name": name, "says": fit.SAYS[name], "seen": one.seen, "median": one.median / 1e6,
                "used": origin.get(name, "").startswith("log"),
            }
            for name, one in shows.times.items()
        ]  # fmt: skip
        log |= {"grants": shows.grants, "known": shows.known, "vanished": shows.vanished, "workers": shows.workers}
    safety = _safety([fix.name for fix in fixes], progress)
    costs = measure.measured(made, fixes, jobs, asked.seed, lambda done: progress(f"{done:,} jobs"))
    rows = [_row(cost, safety[cost.fix.name], log) for cost in costs]
    advice = advise.recommendation(rows)
    swept = [named(name) for name in dict.fromkeys([fixes[0].name, *filter(None, [advice["fix"]])])]
    found = {
        "schema": SCHEMA,
        "headline": headline(rows, advice),
        "fixes": rows,
        "team": own and own | {"says": team.says(own, log)},
        "guards": [*dict.fromkeys(fix.guard for fix in fixes), *([proposal.NAME] if file and log else [])],
        "shares": {name: says for name, (says, _) in measure.SHARES.items()},
        "means": {name: says for name, (says, _) in measure.MEANS.items()},
        "recommendation": advice,
        "sweep": _sweep(made, swept, max(1, jobs // SWEPT), asked.seed, progress),
        "margin": advise.margin(made),
        "workload": [
            {"name": name, "value": text, "from": origin.get(name, "default"), "says": TERMS[name][0]}
            for name, text in made.described().items()
        ],
        "log": log,
        "adoption": adoption.card(file),
        "rollout": adoption.ROLLOUT,
        "jobs": jobs,
        "seed": asked.seed,
        "command": shlex.join(asked.command),
        "versions": {"fencinglab": fencinglab.__version__, "python": platform.python_version()},
    }
    return {name: plain(value) for name, value in found.items()}


def headline(rows: Sequence[Mapping[str, Any]], advice: Mapping[str, Any]) -> str:
    """The first line: what the rule takes, and what the first fix does without it."""
    first = rows[0]
    broken = advise.breaks(first)
    share = first["shares"]["ownership"]
    harm = (
        f"{share['seen']:,} of {share['jobs']:,} jobs accept a stale write" if broken else "nothing was seen to break"
    )
    if advice["fix"] is None:
        return f"No fix of these holds every invariant. Under {first['fix']} {harm}."
    if advice["fix"] == first["fix"]:
        return f"By the stated rule: {advice['fix']}."
    return f"By the stated rule: {advice['fix']}. Under {first['fix']} {harm}."


def _safety(fixes: Iterable[str], progress: Callable[[str], None]) -> dict[str, dict[str, dict[str, Any]]]:
    """{fix: {invariant: {status, length}}} over every order of events of two workers with two writes."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for cell in matrix.cells(fixes, progress=lambda name: progress(f"every order of events under {name}")):
        found.setdefault(cell.fix, {})[cell.invariant] = {"status": cell.status, "length": cell.length}
    return found


def _row(cost: Cost, safety: dict[str, dict[str, Any]], log: dict[str, Any] | None) -> dict[str, Any]:
    whatifs = {one["guard"]: one for one in log["whatif"]} if log else {}
    return {
        "fix": cost.fix.name,
        "improves": cost.fix.improves,
        "leaves": cost.fix.leaves,
        "guard": cost.fix.guard,
        "safety": safety,
        "shares": {name: share._asdict() for name, share in cost.shares.items()},
        "rare": {name: rare._asdict() for name, rare in cost.rare.items()},
        "means": {name: mean._asdict() for name, mean in cost.means.items()},
        "against": {name: mean._asdict() for name, mean in cost.against.items()},
        "median": cost.median,
        "slow": cost.slow,
        "whatif": whatifs.get(cost.fix.guard),
    }


def _log(
    done: Examination, fixes: Sequence[Fix], file: Requests | None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """What the log says by itself, and what each guard and the team's requests would have changed on it."""
    whatif.judge_guards(done.con)
    untold = proposal.judge_proposal(done.con, file, progress) if file else {}
    guards = dict.fromkeys([*(fix.guard for fix in fixes), *([proposal.NAME] if file else [])])
    rows = {guard: whatif.rows(done.con, guard, SHOWN) for guard in guards}
    place(done.con, done.log, [row for found in rows.values() for row in found])
    return {
        "headline": done.report["headline"],
        "verdict": done.report["verdict"],
        "inputs": done.report["inputs"],
        "whatif": [found._asdict() for found in whatif.counted(done.con)],
        "rows": rows,
        "untold": untold,
    }


def _fitted(found: fit.Fit, said: Mapping[str, str]) -> tuple[Workload, dict[str, str]]:
    """The workload as said, else as the log shows it where it shows enough; and where each parameter is from.

    What neither says is the default, and not named.
    """
    enough = {name: one for name, one in found.times.items() if one.enough and name in TERMS}
    seen: dict[str, Any] = {
        name: laws.observed(one.values) if name in LAWS else one.median for name, one in enough.items()
    }
    origin = {name: f"log, {one.seen:,} observed" for name, one in enough.items()}
    least, most = COUNTS["workers"]
    if found.grants >= fit.ENOUGH and found.workers >= least:
        seen["workers"] = min(found.workers, most)
        origin["workers"] = f"log, {found.workers:,} under one lease"
    if found.known >= fit.ENOUGH and found.vanished:  # none in so many is not never
        seen["crash"] = found.vanished / found.known
        origin["crash"] = f"log, {found.vanished:,} of {found.known:,} grants vanished, by a crash or not"
    made = workload(said, seen)
    taken = {name: origin[name] for name, value in seen.items() if getattr(made, name) == value}
    return made, taken | dict.fromkeys(said, "said")


def _sweep(
    made: Workload, fixes: Sequence[Fix], jobs: int, seed: int, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """[{fix, lease, jobs, duplicates, stale, dead, wasted, efficient}]: other lease lengths, three renewals each.

    A length that the clocks, so far apart, would lose in spite of renewals is left out.
    """
    points: list[tuple[float, Cost]] = []
    for times in TIMES_LEASE:
        lease = max(3, round(made.lease * times))
        if made.skew <= lease - lease // 3:
            progress(f"a lease of {lease / 1e6:g} s")
            other = replace(made, lease=lease, renewal=lease // 3)
            points += [(lease / 1e6, cost) for cost in measure.measured(other, fixes, jobs, seed)]
    return [
        {
            "fix": cost.fix.name, "lease": lease, "jobs": jobs,
            "duplicates": cost.shares["terminal"]._asdict(), "stale": cost.shares["ownership"]._asdict(),
            "dead": cost.means["dead"]._asdict(), "wasted": cost.means["wasted"]._asdict(),
            "efficient": not any(_beats(other, cost) for _, other in points if other.fix == cost.fix),
        }
        for lease, cost in points
    ]  # fmt: skip


def _beats(other: Cost, cost: Cost) -> bool:
    """Whether another lease length is better in one of what is compared and worse in none, beyond chance."""
    pairs: list[tuple[Share | Mean, Share | Mean]] = [(other.shares["terminal"], cost.shares["terminal"])]
    pairs += [(other.means[name], cost.means[name]) for name in ("dead", "wasted")]
    return any(_less(a, b) for a, b in pairs) and not any(_less(b, a) for a, b in pairs)


def _less(a: Share | Mean, b: Share | Mean) -> bool:
    """Whether a is less than b beyond chance, which of a mean that few jobs make cannot be told."""
    few = any(isinstance(one, Mean) and one.seen < RARE for one in (a, b))
    return not few and a.high < b.low
