"""The report of an audit: one dictionary, and its renderings as screen, files and page.

`build` gathers everything that any rendering shows. Nothing here judges and nothing carries payloads.
"""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import fencinglab
from fencinglab.audit import advice, evidence, timelines
from fencinglab.audit.audit import Audit, Result
from fencinglab.audit.gaps import Gaps, find_gaps
from fencinglab.audit.rules import CLASSES
from fencinglab.logs import mapping, places, read
from fencinglab.report import undecided

if TYPE_CHECKING:
    import duckdb

SCHEMA = "fencinglab.audit/1"
SHOWN = 20  # rows a rule in report.json; findings.csv has all of them
WORST = 5  # resources whose history is drawn
STEPS = 400  # rows of each
LONGEST = 2_000  # characters of a text from the log


def build(
    con: duckdb.DuckDBPyConnection,
    log: read.Log,
    audit: Audit,
    *,
    processes: dict[str, bool],
    command: Sequence[str],
    options: dict[str, str],
) -> dict[str, Any]:
    """The report as plain data (JSON types, times as ISO text): the whole of what report.json documents."""
    found = evidence.findings(con, audit, SHOWN)
    affected = evidence.resources(con, audit)
    gaps = find_gaps(con, audit)
    open_core = [r for r in audit.results if r.rule.core and r.status == "unknown" and r.undecided]
    open_rows = {r.rule.name: evidence.undecided(con, r.rule.name, SHOWN) for r in open_core}
    place(con, log, [row for rows in (*found.values(), *open_rows.values()) for row in rows])
    suspects = [r for r in affected if r["undecided"] and r["holders"] > 1] or [r for r in affected if r["undecided"]]
    lines = evidence.decision_rule(audit)
    report = {
        "schema": SCHEMA,
        "verdict": audit.verdict,
        "exit_code": audit.exit_code,
        "headline": headline(audit, suspects, log, gaps, options.get("skip", "")),
        "first": first(audit, found),
        "reasons": [{"name": name, "sentence": text} for name, text in audit.reasons],
        "entries": log.entries._asdict(),
        "counts": evidence.counts(con) | {"matched": log.matched},
        "decision_rule": [line | {"command": _command(log, line, found, options)} for line in lines],
        "rules": [
            {
                "name": r.rule.name,
                "title": r.rule.title,
                "class": r.group,
                "core": r.rule.core,
                "status": r.status,
                "count": r.broken,
                "cases": r.cases,
                "undecided": r.undecided,
                "missing": list(r.missing),
                "advice": r.rule.advice,
                "rows": found.get(r.rule.name, open_rows.get(r.rule.name, [])),
            }
            for r in audit.results
        ],
        "to_record": undecided.to_record(audit, log, gaps),
        "record": [{"field": name, "meaning": meaning} for name, meaning in advice.RECORD],
        "snippets": dict(advice.SNIPPETS),
        "brief": brief(audit, found, log),
        "processes": [{"name": name, "seen": seen} for name, seen in processes.items()],
        "suspects": suspects[:SHOWN],
        "affected": affected[:SHOWN],
        "affected_count": len(affected),
        "writers": evidence.writers(con, audit, SHOWN),
        "can_see": evidence.sees(con, log.never, lambda column: undecided.remedy(column, log)),
        "statuses": evidence.statuses(con),
        "timeline": history_rows(con, [r["resource"] for r in affected[:WORST]] or evidence.busiest(con, WORST)),
        "rejections": rejections(con),
        "replays": _replays(con, log, affected),
        "set_aside": [
            {"reason": reason, "count": count, "first": next(a.source for a in log.set_aside if a.reason == reason)}
            for reason, count in Counter(a.reason for a in log.set_aside).most_common(SHOWN)
        ],
        "notes": [*log.notes, *log.quotes, *undecided.notes(audit, gaps, log, evidence.seen_statuses(con))],
        "inputs": [
            {"name": f.name, "format": f.detected.format, "sha256": f.sha256, "size": f.size, "lines": f.lines}
            for f in log.files
        ],
        "mapping": {
            name: {"fields": dict(spec.fields), "recognised": sorted(spec.recognised)} | mapping.settings(spec)
            for name, spec in log.mappings.items()
        },
        "options": dict(options),
        "command": shlex.join(command),
        "versions": {"fencinglab": fencinglab.__version__, "python": platform.python_version()},
    }
    return {name: plain(value) for name, value in report.items()}


def plain(value: Any) -> Any:
    """The value in JSON types; times are ISO text in UTC, whole numbers beyond 2^53 are text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, datetime):
        return evidence.time_text(value)
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    if isinstance(value, bool | float) or value is None:
        return value
    number = int(value)
    return number if abs(number) <= 1 << 53 else str(number)


def place(con: duckdb.DuckDBPyConnection, log: read.Log, rows: list[dict[str, Any]]) -> None:
    """Give each row the place in its file that its `row_id`, which goes, stands for as its `source`."""
    placed = places.of_rows(con, log.paths, {row["row_id"] for row in rows})
    for row in rows:
        row["source"] = placed.get(row.pop("row_id"), row["source"])


def _replays(con: duckdb.DuckDBPyConnection, log: read.Log, affected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """[{file, resource, title, lines}] of the worst accepted stale writes as timelines, for `fencinglab replay`."""
    told = timelines.worst(con, affected)
    placed = places.of_rows(con, log.paths, {row_id for one in told for row_id in one.row_ids if row_id is not None})
    return [
        {"file": f"findings/{n}.timeline", "resource": one.resource, "title": one.timeline.title,
         "lines": one.lines(placed)}
        for n, one in enumerate(told, 1)
    ]  # fmt: skip


def headline(audit: Audit, suspects: list[dict[str, Any]], log: read.Log, gaps: Gaps, skipped: str) -> str:
    """The first line of every rendering: the verdict in words that a tired person understands, naming nobody."""
    if audit.verdict == "violated":
        worst, *others = _failing(audit)
        more = f", and {len(others)} more {'rule' if len(others) == 1 else 'rules'} broken" if others else ""
        return f"Violated: {worst.rule.title}, {_times(worst.broken)}{more}."
    if audit.verdict == "holds":
        skipped_core = [r.rule.name for r in audit.results if r.rule.core and r.rule.name in skipped.split(",")]
        return _holds(audit, skipped_core) + _unjudged(gaps)
    why = undecided.why(audit, log, gaps)
    if suspects and suspects[0]["holders"] > 1:
        count = len(suspects)
        noun, was, these = ("resource", "was", "it") if count == 1 else ("resources", "were", "these")
        first_look = f"{count:,} {noun} changed hands and {was} written afterwards: look at {these} first."
        return f"No proof either way: {why}. {first_look}"
    return f"No proof either way: {why}."


def _holds(audit: Audit, skipped: list[str]) -> str:
    idle = [r.rule.name for r in audit.results if r.rule.core and r.status == "idle"]
    untested = f" Not put to the test here: {', '.join(idle)}." if idle else ""
    weaker = next((r for r in audit.results if r.status == "violated" and r.group != r.rule.group), None)
    if weaker:
        what = f"{weaker.rule.title}, {_times(weaker.broken)}, before the newer holder's first write"
        return f"Holds only by --require order, which lets this through: {what}.{untested}"
    if skipped:
        return f"Holds without what was skipped: {', '.join(skipped)}.{untested}"
    return (
        f"Holds: none of {audit.exercised:,} writes after a grant came from a worker that had lost its lease.{untested}"
    )


def _unjudged(gaps: Gaps) -> str:
    if not gaps.unjudged:
        return ""
    changes = "change" if gaps.unjudged == 1 else "changes"
    return f" Not judged: {gaps.unjudged:,} {changes} of attributes that are not mapped (--protect)."


def first(audit: Audit, found: dict[str, list[dict[str, Any]]]) -> str | None:
    """The first row behind a violated verdict, in a sentence with its resource and source."""
    if audit.verdict != "violated":
        return None
    row = found[_failing(audit)[0].rule.name][0]
    return f"{row['says']} ({row['resource']}, {row['source']})"


def _failing(audit: Audit) -> list[Result]:
    """The rules that make the verdict, the one to name first in front: stale writes, core rules, frequent ones."""
    violated = [r for r in audit.results if r.status == "violated" and r.group != "evidence"]
    worst = next(g for g in CLASSES if any(r.group == g for r in violated))
    return sorted(
        (r for r in violated if r.group == worst),
        key=lambda r: (r.rule.name not in evidence.STALE, not r.rule.core, -r.broken),
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _command(
    log: read.Log, line: dict[str, Any], found: dict[str, list[dict[str, Any]]], options: dict[str, str]
) -> str:
    """The command that shows the evidence of a line of the decision rule, or that would decide it."""
    files = [*(f.name for f in log.files[:3]), *(["…"] if len(log.files) > 3 else [])]
    said = words({name: value for name, value in options.items() if name not in ("resource", "redact")})
    rows = [row for name in line["broken"] for row in found.get(name, [])]
    shown = ["--resource", rows[0]["resource"]] if rows else []
    return shlex.join(["fencinglab", "audit", *files, *said, *shown])


ALONE = ("redact", "require_exercised")  # options without a value


def words(options: Mapping[str, str]) -> list[str]:
    """The options as they are typed."""
    typed = []
    for name, value in options.items():
        for one in value.split(";") if name == "map" else [value]:
            typed += [f"--{name.replace('_', '-')}", *([] if name in ALONE else [one])]
    return typed


def brief(audit: Audit, found: dict[str, list[dict[str, Any]]], log: read.Log) -> list[dict[str, Any]]:
    """[{name, value, hint}] of an incident brief; value None is a blank that somebody must fill in."""
    violated = [r for r in audit.results if r.status == "violated" and r.group == "unsafe"]
    observed = "; ".join(f"{r.rule.title} ({_times(r.broken)})" for r in violated) or None
    rows = [row for r in violated for row in found[r.rule.name]]
    evidence_at = ", ".join(dict.fromkeys(row["source"] for row in rows[:3])) or ", ".join(
        f.name for f in log.files[:3]
    )
    return [
        {"name": "affected versions", "value": None, "hint": "of the workers, the deployment and the table's schema"},
        {"name": "exact workflow", "value": None, "hint": "which job, started by what, for whom"},
        {"name": "observed result", "value": observed, "hint": "what was seen, not what is believed"},
        {"name": "business impact", "value": None, "hint": "what a customer saw or was charged"},
        {"name": "evidence", "value": evidence_at, "hint": "where it lies; keep the logs as they are"},
        {
            "name": "temporary control",
            "value": None,
            "hint": violated[0].rule.advice if violated else "what limits the harm until the fix",
        },
        {"name": "named owner", "value": None, "hint": "one person"},
        {"name": "next review", "value": None, "hint": "a time"},
    ]


def history_rows(con: duckdb.DuckDBPyConnection, resources: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of these resources in order, at most STEPS each around the first broken one: what a chart draws."""
    broken = " or ".join(f"{name} = 1" for name in evidence.UNSAFE)
    undecided = " or ".join(f"{name} = -1" for name in evidence.CORE)
    relation = con.execute(
        f"""
        with numbered as (
            select history.resource, order_key, history."at", kind, writer, token, decision, after_token, before_token,
                after_holder, after_terminal,
                coalesce({broken}, false) as broken, coalesce({undecided}, false) as undecided,
                row_number() over (
                    partition by history.resource order by order_scope, order_key, verdicts.row_id) as step
            from history join verdicts on verdicts.row_id = history.rowid
            where history.resource in (select unnest(?::varchar[]))),
        centred as (
            select *, coalesce(min(step) filter (broken) over (partition by resource),
                min(step) filter (undecided) over (partition by resource), 1) as centre
            from numbered)
        select * exclude (centre) from centred
        where step > centre - {STEPS // 2} and step <= greatest(centre + {STEPS // 2}, {STEPS})
        order by list_position(?::varchar[], resource), step""",
        [list(resources), list(resources)],
    )
    names = [d[0] for d in relation.description or ()]
    return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def rejections(con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """[{at, stale, late, done, own, other}] of rejections over time, in at most sixty equal steps."""
    rules = {"stale": "rejected_stale", "late": "rejected_late", "done": "rejected_done", "own": "own_success_rejected"}
    sums = ", ".join(f"count(*) filter ({rule} = 1) as {name}" for name, rule in rules.items())
    none = " and ".join(f"{rule} is distinct from 1" for rule in rules.values())
    relation = con.sql(f"""
        with refused as (
            select history."at" as moment, verdicts.*
            from history join verdicts on verdicts.row_id = history.rowid
            where rejected_stale is not null and history."at" is not null),
        span as (
            select epoch(min(moment)) as first, greatest(epoch(max(moment)) - epoch(min(moment)), 1) / 60 as step
            from refused)
        select to_timestamp(first + step * least(floor((epoch(moment) - first) / step), 59))::timestamp as "at",
            {sums}, count(*) filter ({none}) as other
        from refused, span group by all order by 1""")
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
