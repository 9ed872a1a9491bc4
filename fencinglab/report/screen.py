"""The report as text: what the terminal shows, one resource's story, and the lines for a ticket.

Text from logs is made inert on its way in.
"""

from __future__ import annotations

from typing import Any

from fencinglab.inert import inert
from fencinglab.report.undecided import mapped_as

_COUNTED = (
    ("grants", "grant"), ("takeovers", "takeover"), ("writes", "accepted write"), ("unrelated", "unrelated change"),
    ("contention", "failed acquire"),
)  # fmt: skip
STATUS = {  # status of a rule: its mark, its word, what it means
    "violated": ("✕", "violated", "broken at least once"),
    "holds": ("●", "holds", "every case was decided, none was broken"),
    "idle": ("·", "idle", "could be decided, but nothing put it to the test"),
    "unknown": ("○", "unknown", "a case lacked evidence"),
    "not_visible": ("○", "not visible", "this format can never show it"),
    "not_applicable": ("·", "not applicable", "declared so for this audit"),
}


def screen(report: dict[str, Any]) -> str:
    """What `fencinglab audit` prints: the sentence, the suspects worst first, then what it rests on."""
    parts = [_verdict(report), _found(report), _suspects(report), _decision(report), _rules(report), _basis(report)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _verdict(report: dict[str, Any]) -> list[str]:
    return [inert(report["headline"], 400)] + ([f"First: {inert(report['first'], 400)}."] if report["first"] else [])


def _found(report: dict[str, Any]) -> list[str]:
    lines = []
    for rule in _violated(report, "unsafe", "window"):
        lines.append(
            f"{rule['name']} ({rule['class']}): {rule['title']} - {rule['count']:,} of {rule['cases']:,} cases"
        )
        for row in rule["rows"][:3]:
            where = f"{row['at']}, " if row["at"] else ""
            where += inert(row["source"], 80)
            lines.append(f"    {inert(row['resource'], 60)}  {inert(row['says'], 120)}  [{where}]")
        if rule["count"] > 3:
            lines.append(f"    … and {rule['count'] - 3:,} more")
        lines.append(f"    fix: {rule['advice']}")
    return lines


def _suspects(report: dict[str, Any]) -> list[str]:
    lines = ["Could not be decided, worst first:"] if report["suspects"] else []
    for row in report["suspects"][:5]:
        lines.append(
            f"    {inert(row['resource'], 60)}  {_many(row['holders'], 'holder')}, "
            f"{_many(row['undecided'], 'write')} left open, last seen {row['last_seen']}"
        )
    if not lines and report["verdict"] != "inconclusive":
        return []
    stream = "dynamodb-stream" in report["mapping"]
    lines += [f"To decide it: {item['stream'] if stream else _to_log(item)}" for item in report["to_record"]]
    return lines


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _to_log(item: dict[str, Any]) -> str:
    if " " in item["line"]:
        return str(item["line"])
    return f"log `{item['line']}` with every attempt, or map it: --map {mapped_as(item['line'])}=FIELD"


def _decision(report: dict[str, Any]) -> list[str]:
    marked = [(*STATUS[line["status"]], line["line"]) for line in report["decision_rule"]]
    return [f"{mark} {word:<16}{line}" for mark, word, _, line in marked]


def _rules(report: dict[str, Any]) -> list[str]:
    """The other rules in one line a status."""
    lines = []
    for title, group in (("Cost", "cost"), ("The log itself", "evidence")):
        rules = _violated(report, group)
        lines += [f"{title}: {rule['title']} - {rule['count']:,} of {rule['cases']:,}" for rule in rules]
    by_status: dict[str, list[str]] = {}
    for rule in report["rules"]:
        by_status.setdefault(rule["status"], []).append(rule["name"])
    for status, word in (
        ("idle", "No case here"),
        ("unknown", "Not decided"),
        ("not_visible", "Never visible in this format"),
    ):
        if names := by_status.get(status):
            lines.append(f"{word}: {', '.join(names)}")
    return lines


def _basis(report: dict[str, Any]) -> list[str]:
    e, c = report["entries"], report["counts"]
    lines = [
        f"Read {e['read']:,} entries = {e['records']:,} records + {e['blank']:,} blank + {e['set_aside']:,} set aside; "
        f"{e['records']:,} records = {e['audited']:,} audited + {e['duplicates']:,} duplicates "
        f"+ {e['filtered']:,} filtered.",
        ", ".join(_many(c[k], noun) for k, noun in _COUNTED if c[k] is not None) + " (contention).",
    ]
    for form in sorted({f["format"] for f in report["inputs"]}):
        lines.append(f"Format: {form}")
    for mapping in report["mapping"].values():
        fields = [f"{k}={v}" + ("" if k in mapping["recognised"] else " (said)") for k, v in mapping["fields"].items()]
        if not fields:  # a history says all of it itself
            continue
        lines.append(f"Mapped: {inert(', '.join(fields), 600)}")
        if "terminal" not in mapping and report["statuses"]:
            lines.append(_proposal(report))
    lines += [
        f"Set aside {s['count']:,}: {inert(s['reason'], 120)}, first {inert(s['first'], 80)}"
        for s in report["set_aside"]
    ]
    lines += [f"Note: {inert(note, 200)}" for note in report["notes"]]
    cannot = [row["question"] for row in report["can_see"] if row["answer"] != "yes"]
    if cannot:
        lines.append(f"This log does not show: {', '.join(cannot)}.")
    return lines


def _proposal(report: dict[str, Any]) -> str:
    """Which statuses look final, as an option to paste."""
    seen = [
        f"{inert(s['status'], 30)}: entered {_many(s['entered'], 'time')}, left {s['left']:,}"
        for s in report["statuses"][:8]
    ]
    final = [s["status"] for s in report["statuses"] if s["entered"] and s["left"] * 20 <= s["entered"]]
    option = f"--terminal {inert(','.join(final), 200)}" if final else "--terminal none"
    unordered = any(rule["name"] == "order_unknown" for rule in _violated(report, "evidence"))
    if unordered and not any(s["left"] for s in report["statuses"]):
        option = "--terminal with those that nothing leaves, which without an order nobody sees"
    elif report["options"].get("redact"):
        option = "--terminal with the names that a run without --redact shows"
    return f"Statuses ({'; '.join(seen)}): which are final is not declared; add {option}"


def _violated(report: dict[str, Any], *groups: str) -> list[dict[str, Any]]:
    return [r for g in groups for r in report["rules"] if r["status"] == "violated" and r["class"] == g]


def story(rows: list[dict[str, Any]], resource: str) -> str:
    """One resource's rows as a list: the write, the token it carried, its grant and expiry, the newer grant."""
    return "\n".join([f"The story of {inert(resource, 80)}:", *(f"  {inert(_told(row), 300)}" for row in rows)]) + "\n"


def _told(row: dict[str, Any]) -> str:
    parts = [f"{row['at'] or '(no time)'}  {row['kind']} by {row['writer'] or 'somebody'}"]
    if row["token"] is not None:
        parts[0] += f" with {row['token']}"
    if row["after_status"] not in (None, row["before_status"]):
        parts[0] += f" -> {row['after_status']}"
    if row["decision"] != "accepted":
        parts[0] += f", {row['decision']}" + (f" ({row['reason']})" if row["reason"] else "")
    if row["granted_at"] and row["kind"] != "grant":
        parts.append(f"granted {row['granted_at']}")
    if row["expires_at"]:
        parts.append(f"runs out {row['expires_at']}")
    if row["newer_token"] and row["broken"]:
        parts.append(f"but {row['newer_token']} to {row['newer_holder']} at {row['newer_at']}")
    return "; ".join(parts) + (f"  ✕ {row['broken']}" if row["broken"] else "")


def summary(report: dict[str, Any]) -> str:
    """At most fifteen lines of Markdown for a ticket; they name nobody."""
    e = report["entries"]
    lines = [f"**{report['headline']}**", ""]
    for line in report["decision_rule"]:
        broken = f" ({', '.join(line['broken'])})" if line["broken"] else ""
        lines.append(f"- {line['line']}: {STATUS[line['status']][1]}{broken}")
    for rule in _violated(report, "unsafe")[:3]:
        lines.append(f"- {rule['name']}: {rule['count']:,} of {rule['cases']:,} cases; fix: {rule['advice']}")
    lines.append("")
    lines.append(
        f"{e['audited']:,} of {e['read']:,} entries audited, {e['set_aside']:,} set aside; "
        f"verdict {report['verdict']}, exit {report['exit_code']}."
    )
    lines.append(f"fencinglab {report['versions']['fencinglab']}; details in report.html.")
    return "\n".join(lines[:15]) + "\n"
