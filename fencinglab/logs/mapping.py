"""Which field of a log fills which column of the history: known names, the user's words, one TOML file.

A *field* is an attribute of a DynamoDB item (`leaseOwner`) or a key of a log line (`ctx.worker` for a
nested one). `FIELDS` lists what can be mapped and the names that are recognised without being told.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from fencinglab.errors import InputError, UsageError, nearest

SECOND = 1_000_000  # microseconds


class Field(NamedTuple):
    """What one mapped field means, and the names it is known by, most telling first.

    Names of one tuple are equally telling: two of them in one log are two candidates. A name in a
    later tuple is used only where no earlier one is present.
    """

    meaning: str
    known: tuple[tuple[str, ...], ...] = ()
    stream: bool = True  # an attribute of an item
    line: bool = True  # a field of a log line


# Where the names come from: (a) the request-status article and common camel or snake case of it,
# (b) Amazon's dynamodb-lock-client, (c) Kinesis Client Library, (d) Kubernetes Lease, (e) ShedLock,
# (f) Raft and Kafka, (g) structlog, python-json-logger, pino, winston, Serilog, GELF,
# OpenTelemetry, CloudWatch.
FIELDS: dict[str, Field] = {
    "resource": Field(
        "what is protected (a stream has it in its keys)",
        (
            ("resource", "resourceId"),
            ("job", "jobId", "reportId", "documentId", "item", "itemId"),
            ("requestId",),  # after the others: a Lambda logs one of its own
            ("key",),
            ("id",),
        ),
        stream=False,
    ),
    "lease": Field("the key whose grants issue the token", (("lease", "leaseKey", "leaseName", "lockName"),)),
    "order_key": Field(
        "the source's own sequence", (("sequenceNumber", "sequence", "seq"),), stream=False
    ),
    "at": Field(
        "the receiver's time",
        # (g)
        (("@timestamp",), ("timestamp",), ("time",), ("ts", "at", "@t"), ("asctime", "datetime", "eventTime", "date")),
        stream=False,
    ),
    "sent_at": Field("the sender's time", (("sentAt", "sent", "requestedAt"),), stream=False),
    "kind": Field(
        "what the line reports (acquire, write, finish, …)",
        (
            ("kind", "action", "op"), ("event", "eventType"),
            ("msg", "message"), ("@m", "renderedMessage"), ("@mt", "messageTemplate"),  # (g)
            ("short_message",), ("body",),
        ),
        stream=False,
    ),
    "writer": Field(
        "who mutated; in an item the attribute in which every write stores its name",
        (("writtenBy", "writer"), ("worker",), ("workerId", "workerName"), ("actor", "client", "clientId")),
    ),
    "token": Field(
        "the fencing token: of the item in a stream, presented by the mutation in a log line",
        (  # (a) (f)
            ("fencingToken", "fence", "fencing"),
            ("leaseEpoch", "epoch", "generation", "leaseToken", "lockToken"),
            ("term", "token"),
        ),
    ),
    "written_token": Field(
        "the attribute in which every write stores the token that it presented",
        (("writtenToken", "lastWriteToken", "lastWrittenToken"),),
        line=False,
    ),
    "holder": Field(
        "the lease's holder",
        (  # (a) (d) (b)
            ("leaseOwner", "leaseHolder", "lockOwner", "lockedBy", "claimedBy"),
            ("holderIdentity", "ownerName"),
            ("owner", "holder"),
        ),
    ),
    "expires_at": Field(
        "when the lease runs out",
        (  # (a) (e)
            ("leaseExpiresAt", "leaseExpiry", "leaseUntil", "lockedUntil", "lockUntil", "lockExpiresAt"),
            ("expiresAt", "expiry"),
        ),
    ),
    "status": Field(
        "the resource's status",
        (("apiStatus", "jobStatus", "requestStatus"), ("status", "state", "phase")),
    ),
    "terminal_version": Field("a counter that only terminal transitions raise", (("terminalVersion",),)),
    "version": Field(
        "a counter that every mutation raises",
        (("version", "itemVersion", "revision"), ("leaseCounter",), ("recordVersionNumber",)),  # (c) (b)
    ),
    "value": Field(
        "the result (several fields: A,B)",
        (("responseHash", "resultHash", "artifactKey", "artifact", "checksum"), ("result",)),
    ),
    "next_poll": Field(
        "when the resource is looked at next", (("nextPollAt", "nextPoll", "nextAttemptAt", "nextRunAt"),), line=False
    ),
    "operation": Field("the id of one operation", (("operationId", "opId", "idempotencyKey"),)),
    "alert": Field("the id of the alert raised", (("alertId",),)),
    "decision": Field(
        "the receiver's word", (("decision",), ("result",), ("errorCode",), ("error",)), stream=False
    ),
    "reason": Field("why it was refused", (("reason", "rejectReason"),), stream=False),
    "outcome": Field("what the sender learned", (("outcome",),), stream=False),
    "fenced": Field("whether a token was presented at all", (("fenced",),), stream=False),
    "before_token": Field(
        "the token the receiver held (from the stored item of a refusal)",
        (("storedToken", "heldToken", "beforeToken"),),
        stream=False,
    ),
    "before_holder": Field("the holder then", (("storedOwner", "storedHolder", "beforeHolder"),), stream=False),
    "before_expires_at": Field("that holder's expiry then", (("storedExpiresAt", "beforeExpiresAt"),), stream=False),
    "before_status": Field("the status then", (("storedStatus", "beforeStatus"),), stream=False),
    "current_token": Field("the newest token granted at that moment", (("currentToken", "latestToken"),), stream=False),
}  # fmt: skip


@dataclass(frozen=True)
class MappingSpec:
    """What the user said and what was recognised; `fields` is {FIELDS key: field name}.

    `terminal` is None when not declared and () for `none` (no status is final); times are microseconds.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    recognised: frozenset[str] = frozenset()  # the keys of `fields` that were not said but found
    terminal: tuple[str, ...] | None = None
    rising: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    order: str | None = None
    retention: int | None = None
    skew: int = 0

    def get(self, key: str) -> str | None:
        """The field mapped to `key`, or None."""
        return self.fields.get(key)

    def names(self, key: str) -> list[str]:
        """The fields mapped to `key`, which may be several."""
        field = self.get(key)
        return field.split(",") if field else []


_OF_FAULT = {"err", "error", "exception", "cause"}  # `err.message` is no event, nor is `err.id` a resource


def plain(name: str) -> str:
    """The name as it is compared: `lease_owner`, `leaseOwner` and `Lease-Owner` are one."""
    return re.sub(r"[^a-z0-9@]", "", name.lower())


def resolve(spec: MappingSpec, seen: Iterable[str], of: str, decisions: Collection[str] = ()) -> MappingSpec:
    """The mapping of one log whose fields are `seen`; `of` is "stream" or "line".

    `decisions` are those of them whose values are words for a decision: a `result` is one or a value.

    What the user said wins and must be present; known names fill the rest. Two equally telling
    candidates, or a field that is not there, is an InputError that names them.
    """
    names = list(dict.fromkeys(seen))
    for key, name in spec.fields.items():
        if not getattr(FIELDS[key], of):
            raise UsageError(f"--map {key}={name}: a {_OF[of]} has no such column; it can map {', '.join(_keys(of))}")
        for one in name.split(","):
            if one not in names and one != "none":
                raise InputError(f"--map {key}={name}: no record has a field `{one}`{_nearest(one, names)}")
    for name in (*spec.rising, *spec.protect):
        if name not in names:
            raise InputError(f"`{name}` of --rising or --protect is no field of this log{_nearest(name, names)}")
    fields = {key: name for key, name in spec.fields.items() if name != "none"}
    taken = {one for name in fields.values() for one in name.split(",")}
    by_plain: dict[str, list[str]] = {}
    for name in names:
        by_plain.setdefault(plain(name), []).append(name)
    for name in names:  # `ctx.token` is a token where there is no `token` of its own
        *outer, last = name.split(".")
        shadowed = any("." not in other for other in by_plain.get(plain(last), ()))
        if outer and not shadowed and not _OF_FAULT & {*map(plain, outer)}:
            by_plain.setdefault(plain(last), []).append(name)
    found = {}
    for key in _keys(of):
        if key in spec.fields:
            continue
        for equally_telling in FIELDS[key].known:
            candidates = [
                name for known in equally_telling for name in by_plain.get(plain(known), ())
                if name not in taken and not (key == "value" and name in decisions)
            ]  # fmt: skip
            if len(candidates) > 1:
                raise InputError(
                    f"two candidates for {key}: {' and '.join(f'`{c}`' for c in candidates)}; "
                    f"say which by --map {key}={candidates[0]}, or --map {key}=none"
                )
            if candidates:
                found[key] = candidates[0]
                taken.add(candidates[0])
                break
    return replace(spec, fields=fields | found, recognised=frozenset(found))


_OF = {"stream": "DynamoDB stream", "line": "log line"}


def _keys(of: str) -> list[str]:
    return [key for key, known in FIELDS.items() if getattr(known, of)]


def _nearest(name: str, names: list[str]) -> str:
    return f" (nearest: `{nearest(name, names, 1)[0]}`; it has {', '.join(sorted(names)[:20])})" if names else ""


def parse_fields(options: Iterable[str]) -> dict[str, str]:
    """{column: field} of `--map COLUMN=FIELD` options; an unknown column is a UsageError with the list."""
    fields: dict[str, str] = {}
    for option in options:
        key, equals, name = option.partition("=")
        key = key.removeprefix("after_")
        if not equals or not name:
            raise UsageError(f"--map {option}: write COLUMN=FIELD, for example --map token=fencingToken")
        if key not in FIELDS:
            raise UsageError(
                f"--map {option}: `{key}` is not a column that can be mapped (nearest: {nearest(key, FIELDS, 1)[0]}); "
                f"allowed: {', '.join(FIELDS)}"
            )
        if fields.get(key, name) != name:
            raise UsageError(f"--map names two fields for {key}: `{fields[key]}` and `{name}`; keep one")
        fields[key] = name
    return fields


_UNITS = {"us": 1, "ms": 1_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86_400 * SECOND}


def parse_duration(text: str, option: str) -> int:
    """Microseconds of `500ms`, `30s`, `5m`, `12h`, `7d`; anything else is a UsageError that names the option."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)", text.strip())
    if not match:
        raise UsageError(f"{option} {text}: write a time such as 500ms, 30s, 5m, 12h or 7d")
    return round(Decimal(match[1]) * _UNITS[match[2]])


def duration_text(microseconds: int) -> str:
    """The shortest text that `parse_duration` reads back."""
    unit = next(u for u in reversed(_UNITS) if microseconds % _UNITS[u] == 0)
    return f"{microseconds // _UNITS[unit]}{unit if microseconds else 's'}"


# What a TOML file may hold, and of what type.
_KEYS = {
    "map": dict, "terminal": list, "rising": list, "protect": list, "order": str, "retention": str, "skew": str,
}  # fmt: skip


def load(path: str | Path) -> MappingSpec:
    """The mapping of a TOML file as `save` writes it; anything else in it is a UsageError that names it."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"--map {path}: no such file") from None
    except OSError as error:
        raise UsageError(f"--map {path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--map {path}: not a TOML file: {error}") from None
    for key, value in table.items():
        if key not in _KEYS:
            raise UsageError(f"--map {path}: unknown key `{key}`; allowed: {', '.join(_KEYS)}")
        texts = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, _KEYS[key]) or not texts:
            kind = {dict: "a table", list: "a list of texts", str: "a text"}[_KEYS[key]]
            raise UsageError(f"--map {path}: `{key}` must be {kind}, not {value!r}")
        if key == "order" and value != "lines":
            raise UsageError(f"--map {path}: `order` must be `lines`, not {value!r}; a field is order_key in [map]")
    named = table.get("map", {})
    fields = parse_fields(f"{k}={','.join(v) if isinstance(v, list) else v}" for k, v in named.items())
    return MappingSpec(
        fields=fields,
        terminal=tuple(table["terminal"]) if "terminal" in table else None,
        rising=tuple(table.get("rising", ())),
        protect=tuple(table.get("protect", ())),
        order=table.get("order"),
        retention=parse_duration(table["retention"], "retention") if "retention" in table else None,
        skew=parse_duration(table.get("skew", "0s"), "skew"),
    )


def save(spec: MappingSpec, path: str | Path) -> None:
    """Write the mapping as TOML; `load` gives the same mapping back (`recognised` apart)."""
    lines = [f"# fencinglab audit LOG --map {Path(path).name}"]
    lines += [f"{key} = {_toml(value)}" for key, value in settings(spec).items()]
    lines += ["", "[map]", *(f"{key} = {_toml(name)}" for key, name in spec.fields.items())]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--save-map {path} cannot be written ({error.strerror}); name a place that you own") from None


def settings(spec: MappingSpec) -> dict[str, str | list[str]]:
    """Everything of a mapping but its fields, as in the TOML file; what was not said is left out."""
    given: dict[str, str | list[str]] = {}
    if spec.terminal is not None:
        given["terminal"] = list(spec.terminal)
    if spec.rising:
        given["rising"] = list(spec.rising)
    if spec.protect:
        given["protect"] = list(spec.protect)
    if spec.order:
        given["order"] = spec.order
    if spec.retention is not None:
        given["retention"] = duration_text(spec.retention)
    if spec.skew:
        given["skew"] = duration_text(spec.skew)
    return given


def _toml(value: str | list[str]) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", escaped) + '"'
