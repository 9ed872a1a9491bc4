"""What fields beside the event say against a success, or as the decision by the user's word: SQL for all readers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from fencinglab.logs import words
from fencinglab.logs.mapping import plain

# Fields that deny a success whatever the event calls itself; what they say else proves none.
_FLAGS = {  # the value that denies, and whether that is a refusal
    **dict.fromkeys(("applied", "wasapplied", "accepted"), ("false", True)),
    **dict.fromkeys(("success", "succeeded", "successful", "ok"), ("false", False)),
    **dict.fromkeys(("rejected", "refused", "denied"), ("true", True)),
}
_COUNTS = (
    "rowcount", "rowsaffected", "affectedrows", "rowsupdated", "updatedrows", "changes",
    "modifiedcount", "updatedcount", "upsertedcount", "insertedcount", "deletedcount",
)  # fmt: skip
_MATCHED = "matchedcount"
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
_NO_FAULT = "('', '0', 'false', 'no', 'none', 'null', 'nil', 'undefined', '-', 'ok', 'success', '[]', '{}')"


def fields(mapped: Collection[str], names: Iterable[str]) -> dict[str, str]:
    """{field: what it is known as} of the names that may deny a success and are not mapped to something else."""
    known = {*_FLAGS, *_COUNTS, _MATCHED, *_FAULTS, *_RESPONSES, *_LEVELS, *_SENTENCES}
    found: dict[str, str] = {}
    for name in names:
        *_, outer, last = ("", *name.split("."))
        for said in (plain(outer + last), plain(last)):
            # `status: 409` is none of a resource, nor `result: nack` a value
            if said in known and (name not in mapped or said in ("status", "result")):
                found.setdefault(name, said)
    return found


def candidates(fields: Mapping[str, str]) -> list[str]:
    """Of these fields those that may hold what the receiver decided, if somebody says so."""
    return [name for name, known in fields.items() if known != "status" and known in {*_FLAGS, *_COUNTS, *_RESPONSES}]


def as_decision(name: str, one: str) -> str:
    """SQL: the text of a field that is mapped as the decision; a fault, a count or a flag of refusals says one."""
    known, word, count = plain(name.rpartition(".")[2]), f"lower(trim({one}))", f"try_cast({one} as bigint)"
    if known in _FAULTS:
        return f"""case when {word} in ('false', 'ok', 'success') then 'ok'
            when {word} not in {_NO_FAULT} then 'error ' || {one} end"""
    if known in (*_COUNTS, _MATCHED):
        return f"case when {count} = 0 then 'not applied' when {count} > 0 then 'ok' end"
    if _FLAGS.get(known, ("",))[0] == "true":
        return f"case {word} when 'true' then 'rejected' when 'false' then 'ok' end"
    return f"nullif({one}, '')"


def told(fields: Mapping[str, str], get: Callable[[str], str], undecided: str) -> str | None:
    """SQL: what these fields say against a success, or null; sentences where the SQL `undecided` is true.

    It is `rejected` where one says that nothing was written, else `error`, with the texts of the faults after it.
    """
    if not fields:
        return None
    refused, faults, doubts = list[str](), ["null"], list[str]()
    for name, known in fields.items():
        one = get(name)
        word, status = f"lower(trim({one}))", f"try_cast({one} as integer)"
        if known in _FLAGS:
            flag, refuses = _FLAGS[known]
            (refused if refuses else doubts).append(f"{word} = '{flag}'")
        elif known in _FAULTS:
            faults.append(f"case when {word} not in {_NO_FAULT} then {one} end")
        elif known in _RESPONSES:
            refused.append(f"{status} in (409, 412)")
            doubts.append(f"{status} between 400 and 599")
        elif known in _SENTENCES:
            doubts.append(f"{undecided} and {words.doubtful(one)}")
        elif known in _LEVELS:
            doubts.append(f"regexp_full_match({word}, '{_AT_ERROR}')")

    def most(*counts: str) -> str:
        found = [f"try_cast({get(name)} as bigint)" for name, known in fields.items() if known in counts]
        return f"greatest({', '.join(['null::bigint', *found])})"

    nothing, matched = f"coalesce({most(*_COUNTS)}, {most(_MATCHED)}) = 0", most(_MATCHED)
    refused.append(f"{nothing} and coalesce({matched}, 0) = 0")
    doubts.append(nothing)  # what matched and is as it was passed the guard
    return f"""coalesce(case when {" or ".join(refused)} then 'rejected' end,
        'error ' || nullif(concat_ws(' ', {", ".join(faults)}), ''),
        case when {" or ".join(doubts)} then 'error' end)"""
