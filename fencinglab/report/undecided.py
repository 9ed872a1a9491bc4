"""Why an audit is open, in words, and what to record or to say so that the next one is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencinglab.audit import advice
from fencinglab.audit.audit import Audit
from fencinglab.audit.gaps import Gaps
from fencinglab.logs import read
from fencinglab.logs.mapping import FIELDS, plain

_TOKENS = ("token", "fenced", "before_token", "after_token")


def why(audit: Audit, log: read.Log, gaps: Gaps) -> str:
    """The first reason for which core rules stay open, as a clause that names nobody."""
    what = "the stream" if set(log.mappings) == {"dynamodb-stream"} else "the log"
    missing = {column for r in audit.results if r.rule.core for need in r.missing for column in need.split("|")}
    if _no_image(log):
        return "the stream does not show what a write left: its view must be NEW_AND_OLD_IMAGES"
    if not gaps.decided:
        event = "" if any(spec.get("kind") for spec in log.mappings.values()) else "--map kind=FIELD for the event, or "
        return f"{what} does not say what the receiver decided ({event}--map decision=FIELD)"
    if log.identities and missing & {*_TOKENS}:
        return f"its tokens are identities (`{log.identities[0]}`), which order nothing"
    if "fenced" in missing or "token" in missing:
        return f"{what} does not say which token a write carried"
    if "order_key" in missing or audit.of("order_unknown").broken:
        return _unordered(audit, log, gaps, what)
    if "after_terminal" in missing:
        if _terminal_declared(log):
            return f"{what} does not say which status a write left"
        return "which statuses are final is not declared (--terminal)"
    if gaps.counting_renewals:
        return "the token rises on renewals too, so it is a version and orders no owners"
    if gaps.granted_elsewhere:
        return "the leases are granted in other items than those that they protect, and two items have no common order"
    for count, one, many in (
        (gaps.unanswered, "write with an older token has", "writes with an older token have"),
        (gaps.doubted, "grant of a newer token has", "grants of newer tokens have"),
    ):
        if count:
            open_ = f"{count:,} {one if count == 1 else many}"
            return f"{open_} no known decision (log `decision`, or --map decision=FIELD)"
    return audit.reasons[0][1] if audit.reasons else "nothing was decided"


def _unordered(audit: Audit, log: read.Log, gaps: Gaps, what: str) -> str:
    if _lines_beside(log):
        return "log lines that match no single stream record have no place in the stream's order"
    rows = audit.of("order_unknown").cases
    if 0 < gaps.unplaced < rows:
        count = f"1 of {rows:,} rows has" if gaps.unplaced == 1 else f"{gaps.unplaced:,} of {rows:,} rows have"
        return f"{count} no place in the receiver's order"
    if gaps.apart and not gaps.unplaced:
        stands = "1 resource stands" if gaps.apart == 1 else f"{gaps.apart:,} resources stand"
        return f"{stands} in two {'streams' if what == 'the stream' else 'logs'}, which have no common order"
    return f"{what} does not say in which order the receiver decided"


def notes(audit: Audit, gaps: Gaps, log: read.Log, statuses: Sequence[str]) -> Iterator[str]:
    """What of it a reader of any report should know; `statuses` are those that rows have."""
    declared = dict.fromkeys(status for spec in log.mappings.values() for status in spec.terminal or ())
    if unseen := [f"`{status}`" for status in declared if status not in statuses]:
        seen = f"seen are {', '.join(statuses[:8])}{', …' if len(statuses) > 8 else ''}" if statuses else "none is seen"
        yield f"of the statuses that --terminal names no row is known to have {', '.join(unseen)}; {seen}"
    finished_again = any(audit.of(name).broken for name in ("terminal_left", "terminal_twice"))
    if finished_again and "dynamodb-stream" not in log.mappings:
        yield (
            "log lines show no deletion by TTL or by hand: a resource that was deleted when it was finished, and asked "
            "for again, looks like one that left its final status"
        )
    if count := gaps.counting_renewals:
        yield (
            f"in {count:,} {'resource' if count == 1 else 'resources'} the token rose under one holder before its "
            "lease ran out: it counts renewals, so it is a version (--map version=…) and orders no owners"
        )
    if count := gaps.unjudged:
        others = ", ".join(f"`{name}`" for name in log.others[:5]) + (", …" if len(log.others) > 5 else "")
        changes = "change" if count == 1 else "changes"
        yield (
            f"{count:,} {changes} with no known token touched no mapped attribute; if only the holder may change one, "
            f"--protect it: {others}"
        )
    if count := gaps.granted_elsewhere:
        takes = (
            "resource takes tokens that no grant in it" if count == 1 else "resources take tokens that no grant in them"
        )
        yield (
            f"{count:,} {takes} issued: for an order that both have, let the grant raise the token of the protected "
            "item too, in the same transaction"
        )


def to_record(audit: Audit, log: read.Log, gaps: Gaps) -> list[dict[str, str]]:
    """[{column, rules, stream, line}] of what to record so that undecided core rules can be decided.

    `stream` is a sentence; `line` the field to log, or a sentence where another thing is to be said.
    """
    wanted: dict[str, list[str]] = {}
    # in lines that are in order, those before one say what the receiver held
    unordered = "dynamodb-stream" not in log.mappings and any(
        "order_key" in r.missing for r in audit.results if r.rule.core
    )
    for result in audit.results:
        if result.rule.core and result.status in ("unknown", "not_visible"):
            names = [need.split("|")[0] for need in result.missing]
            if gaps.unanswered or gaps.doubted or not gaps.decided:
                names = ["decision", *(names if gaps.decided else ())]
            elif gaps.granted_elsewhere and not names:
                names = ["current_token"]
            if _no_image(log):
                names = ["after_image"]
            for name in names:
                if unordered and name.startswith("before_"):
                    name = "order_key"
                elif log.identities and name in _TOKENS:
                    name = "identity"
                wanted.setdefault(_of_order(name, log, gaps), []).append(result.rule.name)
    if audit.of("order_unknown").broken:
        wanted.setdefault(_of_order("order_key", log, gaps), []).append("order_unknown")
    found: dict[str, tuple[str, advice.Field, list[str]]] = {}
    for column, rules in wanted.items():
        said = _advice(column, log)
        shown = said.stream if "dynamodb-stream" in log.mappings else said.line
        found.setdefault(shown, (column, said, []))[2].extend(rules)
    return [
        {"column": column, "rules": ", ".join(dict.fromkeys(rules)), "stream": said.stream, "line": said.line}
        for column, said, rules in found.values()
    ]


def _of_order(name: str, log: read.Log, gaps: Gaps) -> str:
    """What decides where a column is lacking, which for the order depends on how it is lacking."""
    if name == "order_key" and _lines_beside(log):
        return "record"
    return "one_order" if name == "order_key" and gaps.apart and not gaps.unplaced else name


def remedy(column: str, log: read.Log) -> str:
    """What would show a column that the log does not, in a sentence for this kind of log."""
    said = _advice(column, log)
    if "dynamodb-stream" in log.mappings:
        return said.stream
    return said.line if " " in said.line else f"log `{said.line}` with every attempt"


def mapped_as(field: str) -> str | None:
    """The column to which a log's field of this name belongs, as `--map` calls it."""
    return next(
        (c for c, f in FIELDS.items() if f.line and plain(field) in {plain(n) for ns in f.known for n in ns}), None
    )


def _advice(column: str, log: read.Log) -> advice.Field:
    said = advice.TO_RECORD[column]
    versions = {spec.get("version") for spec in log.mappings.values() if not spec.get("order_key")} - {None}
    ordered = {spec.get("order_key") for spec in log.mappings.values()} - {None}
    if column == "order_key" and ordered:
        field = min(filter(None, ordered))
        return said._replace(line=f"log `{field}` with every attempt, after a lost reply by reading the item back")
    if column == "order_key" and versions:
        version = min(filter(None, versions))
        return said._replace(line=(
            f"if every accepted mutation raises `{version}`, it is the order: --map order_key={version}; "
            f"else log `{said.line}` with every attempt, or map it: --map order_key=FIELD"
        ))  # fmt: skip
    if column.endswith("_terminal") and not _terminal_declared(log):
        if not any(spec.get("status") for spec in log.mappings.values()):
            said = advice.TO_RECORD["status"]
        return said._replace(line=said.stream)
    return said


def _lines_beside(log: read.Log) -> bool:
    """Whether log lines are read beside a stream."""
    return "dynamodb-stream" in log.mappings and len(log.mappings) > 1


def _no_image(log: read.Log) -> bool:
    return set(log.mappings) == {"dynamodb-stream"} and "after_image" in log.never


def _terminal_declared(log: read.Log) -> bool:
    return all(spec.terminal is not None for spec in log.mappings.values())
