"""What other fields of a log line say against a success that its event claims: as SQL for every reader of lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from fencinglab.logs import words
from fencinglab.logs.mapping import plain

# Fields that deny a success whatever the event calls itself; what they say else proves none.
_FLAGS = {
    **dict.fromkeys(("applied", "wasapplied", "accepted"), ("false", "not applied")),
    **dict.fromkeys(("success", "succeeded", "successful", "ok"), ("false", "failed")),
    **dict.fromkeys(("rejected", "refused", "denied"), ("true", "rejected")),
}
_COUNTS = (
    "rowcount", "rowsaffected", "affectedrows", "rowsupdated", "updatedrows", "changes",
    "modifiedcount", "updatedcount", "upsertedcount", "insertedcount", "deletedcount",
)  # fmt: skip
_FAULTS = {
    f"{error}{part}" for error in ("error", "err", "exception") for part in ("", "name", "code", "type", "message")
}
# Sentences beside the event: where the line has no decision they may leave it open, and they refuse nothing,
# since what was rejected may be an application that was written down.
_SENTENCES = (
    "message", "msg", "detail", "details", "description", "note", "info", "text", "summary", "comment", "cause",
    "result",
)  # fmt: skip
# The status of an HTTP response, and the level of a line: an error that is no refusal leaves open what was written.
_RESPONSES = ("statuscode", "httpstatus", "httpstatuscode", "responsecode", "status")
_LEVELS = ("level", "levelname", "loglevel", "lvl", "severity", "severitytext", "@l")
_AT_ERROR = "(err(or)?|fatal|crit(ical)?|severe|d?panic|alert|emerg(ency)?|50|60|400|500|550|600)"  # pino, monolog
# What such a field holds where there was no fault.
NO_FAULT = "('', '0', 'false', 'no', 'none', 'null', 'nil', 'undefined', '-', 'ok', 'success', '[]', '{}')"


def fields(mapped: Collection[str], names: Iterable[str]) -> dict[str, str]:
    """{field: what it is known as} of the names that may deny a success and are not mapped to something else."""
    known = {*_FLAGS, *_COUNTS, "matchedcount", *_FAULTS, *_RESPONSES, *_LEVELS, *_SENTENCES}
    found: dict[str, str] = {}
    for name in names:
        *_, outer, last = ("", *name.split("."))
        for said in (plain(outer + last), plain(last)):
            # `status: 409` is none of a resource, nor `result: nack` a value
            if said in known and (name not in mapped or said in ("status", "result")):
                found.setdefault(name, said)
    return found


def told(fields: Mapping[str, str], get: Callable[[str], str], undecided: str) -> str | None:
    """SQL: what these fields say against a success, or null; sentences where the SQL `undecided` is true."""
    says = []
    for name, known in fields.items():
        if known in _FLAGS:
            flag, meaning = _FLAGS[known]
            says.append(f"case when lower({get(name)}) = '{flag}' then '{meaning}' end")
        elif known in _FAULTS:
            one = get(name)
            says.append(f"case when lower(trim({one})) not in {NO_FAULT} then 'error ' || {one} end")
        elif known in _RESPONSES:
            status = f"try_cast({get(name)} as integer)"
            says.append(
                f"case when {status} in (409, 412) then 'rejected' when {status} between 400 and 599 then 'error' end"
            )
        elif known in _SENTENCES:
            says.append(f"case when {undecided} and {words.doubtful(get(name))} then 'error' end")
        elif known in _LEVELS:
            says.append(f"case when regexp_full_match(lower(trim({get(name)})), '{_AT_ERROR}') then 'error' end")
    wrote, matched = (
        [f"try_cast({get(name)} as bigint)" for name, known in fields.items() if known in counts]
        for counts in (_COUNTS, ("matchedcount",))
    )
    if wrote or matched:
        meaning = "'not applied'"
        if matched:  # what matched and is as it was passed the guard
            meaning = f"case when greatest({', '.join(matched)}) > 0 then 'unknown' else {meaning} end"
        says.append(f"case when greatest({', '.join(wrote or matched)}) = 0 then {meaning} end")
    return f"nullif(concat_ws(' ', {', '.join(says)}), '')" if says else None
