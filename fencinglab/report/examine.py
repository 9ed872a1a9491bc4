"""One audit from the user's words to its report: read, judge, gather the evidence.

`audit_logs` is what a notebook calls; the command line calls `examine` to write files as well.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from fencinglab import history
from fencinglab.audit import audit, evidence
from fencinglab.audit.rules import BY_NAME, CLASSES
from fencinglab.errors import UsageError, nearest
from fencinglab.history import EXPIRY_UNITS, REASONS
from fencinglab.inert import inert
from fencinglab.logs import mapping, read, unwrap
from fencinglab.logs.filters import Filters
from fencinglab.report import report

if TYPE_CHECKING:
    import duckdb

STORY = 500  # rows of one resource's story
_PLACE = "[0-9?]+(?:#[0-9]+)?"  # of an entry in its file, as a pattern
MEMORY = "900MB"  # DuckDB's share; what does not fit is spilled to the work folder


@dataclass(frozen=True)
class Request:
    """What the user asked for; `examine` answers it."""

    logs: tuple[str, ...]
    mapping: mapping.MappingSpec = field(default_factory=mapping.MappingSpec)
    declared: audit.Declared = field(default_factory=audit.Declared)
    filters: Filters = field(default_factory=Filters)
    form: str | None = None
    redact: bool = False
    command: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # as the user said them


class Examination(NamedTuple):
    """A judged log: its tables `history` and `verdicts` on `con`, and the report."""

    con: duckdb.DuckDBPyConnection
    log: read.Log
    audit: audit.Audit
    report: dict[str, Any]
    told: tuple[str, ...]  # the resources whose story was asked for

    def stories(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """(resource, its rows in order) of the resources that were asked for, values as in the report."""
        for resource in self.told:
            yield resource, report.plain(evidence.story(self.con, resource, STORY))


@contextmanager
def examine(
    request: Request, *, stdin: BinaryIO | None = None, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Examination]:
    """The examination of the request's logs; its tables and files are gone when the block ends."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="fencinglab-", ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        with duckdb.connect() as con:
            con.execute(f"set memory_limit = '{MEMORY}'")
            con.execute("set temp_directory = ?", [str(work / "spill")])
            log = read.read(
                con, request.logs, request.mapping, work,
                form=request.form, filters=request.filters, stdin=stdin, progress=progress,
            )  # fmt: skip
            if request.redact:
                history.store(con, "history")  # before its rows are numbered in the verdicts
            progress(f"judging {log.entries.audited:,} records")
            spec, declared = request.mapping, request.declared
            audit.judge_all(con, skew=spec.skew, retention=spec.retention, skip=declared.skip)
            _refuse_case(con, log)
            judged = audit.assess(con, declared, never=log.never, set_aside=log.entries.set_aside)
            progress("gathering the evidence")
            processes = evidence.processes(con)
            command = request.command
            if request.redact:
                log, command = _redacted(con, log, request)
            built = report.build(con, log, judged, processes=processes, command=command, options=dict(request.options))
            told: tuple[str, ...] = ()
            if request.filters.resource:
                found = con.execute("select distinct resource from history order by resource").fetchall()
                told = tuple(name for (name,) in found)
            yield Examination(con, log, judged, built, told)


def _refuse_case(con: duckdb.DuckDBPyConnection, log: read.Log) -> None:
    """Raise a UsageError where a status that is declared terminal differs only in case from one that rows have."""
    declared = {status for spec in log.mappings.values() for status in spec.terminal or ()}
    seen = evidence.seen_statuses(con)
    for status in sorted(declared - {*seen}):
        for other in seen:
            if other not in declared and other.lower() == status.lower():
                raise UsageError(
                    f"--terminal {status}: no row has this status, and some have {inert(other, 60)}; say it as they do"
                )


def _redacted(con: duckdb.DuckDBPyConnection, log: read.Log, request: Request) -> tuple[read.Log, tuple[str, ...]]:
    """Every text of the log replaced by a number of its first appearance: in the table `history`, names and command.

    It is done once and below everything that is drawn or written, so that nothing above can leak one. Words of ours
    and of the options stay.
    """
    names = {file.name: f"file-{i}" for i, file in enumerate(log.files, 1)}
    con.execute("create or replace temp table renamed (name varchar, pseudonym varchar)")
    con.executemany("insert into renamed values (?, ?)", list(names.items()))
    con.execute(f"""update history set source = pseudonym || ':' || regexp_extract(source, '[^:]*$') from renamed
        where regexp_extract(source, '(?s)^(.*):{_PLACE}$', 1) = name""")
    terminal = {status for spec in log.mappings.values() for status in spec.terminal or ()}
    rising = {name for spec in log.mappings.values() for name in spec.rising}
    placed = f"{_one_of(str(file.path) for file in log.paths)} or regexp_full_match(value, 'file-[0-9]+:{_PLACE}')"
    for name, columns, stays in (
        ("resource", ("resource", "lease"), "false"), ("worker", ("writer", "before_holder", "after_holder"), "false"),
        ("operation", ("operation",), "false"), ("alert", ("alert",), "false"), ("scope", ("order_scope",), "false"),
        ("status", ("before_status", "after_status"), _one_of(terminal)), ("field", ("fell",), _one_of(rising)),
        ("reason", ("reason",), _one_of(REASONS)), ("unit", ("expiry_unit",), _one_of(EXPIRY_UNITS)),
        ("source", ("source",), placed),
    ):  # fmt: skip
        values = " union all ".join(f"select {c} as value, rowid as first from history" for c in columns)
        con.execute(f"""create or replace temp table pseudonyms as
            select value, '{name}-' || row_number() over (order by min(first), value) as pseudonym
            from ({values}) where value <> '' and not ({stays}) group by value""")
        for column in columns:
            con.execute(f"update history set {column} = pseudonym from pseudonyms where {column} = value")

    def renamed(source: str) -> str:
        name, colon, line = source.rpartition(":")
        return names.get(name, "file") + colon + line

    command = ["fencinglab", "audit", *names.values(), *report.words(request.options)]
    return (
        log._replace(
            files=tuple(f._replace(name=names[f.name]) for f in log.files),
            paths=tuple(f._replace(name=names.get(f.name, "file")) for f in log.paths),
            quotes=(),
            set_aside=tuple(a._replace(source=renamed(a.source)) for a in log.set_aside),
        ),
        tuple(command),
    )


def _one_of(words: Iterable[str]) -> str:
    """SQL: whether `value` is one of the words."""
    return f"coalesce(value in ({', '.join(['null', *map(unwrap.text, sorted(words))])}), false)"


OPTIONS = (
    "map", "format", "terminal", "rising", "protect", "order", "retention", "skew", *Filters._fields, "fail_on",
    "require", "require_exercised", "skip", "accept", "redact",
)  # fmt: skip


def said(text: str) -> dict[str, str]:
    """{option: value} of options of `fencinglab audit` as they are typed; a UsageError where they are none."""
    options: dict[str, str] = {}
    words = iter(shlex.split(text))
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or name not in OPTIONS:
            [near] = nearest(name, OPTIONS, 1)
            raise UsageError(f"`{word}` is no option of `fencinglab audit`; nearest: --{near.replace('_', '-')}")
        if name in report.ALONE:
            options[name] = "True"
        elif (one := value if equals else next(words, "")) == "":
            raise UsageError(f"{word}: its value is missing")
        else:
            options[name] = ";".join(filter(None, (options.get(name) if name == "map" else "", one)))
    return options


def request_of(logs: Sequence[str], options: dict[str, str]) -> Request:
    """The request that options say in the words of the command line; a word that is not allowed is a UsageError."""
    if strange := [name for name in options if name not in OPTIONS]:
        [near] = nearest(strange[0], OPTIONS, 1)
        raise UsageError(f"`{strange[0]}` is no option of an audit; nearest: `{near}`")
    maps = [m.strip() for m in re.split(r"[,;](?=\s*\w+=|[^,;=]*\.toml)", options.get("map", "")) if m.strip()]
    toml = [m for m in maps if m.endswith(".toml") and "=" not in m]
    if len(toml) > 1:
        raise UsageError(f"--map names two files, {' and '.join(toml)}; keep one")
    spec = mapping.load(toml[0]) if toml else mapping.MappingSpec()
    fields = mapping.parse_fields(m for m in maps if m not in toml)
    order = options.get("order")
    if order not in (None, "", "lines"):
        raise UsageError(
            f"--order {order}: allowed is `lines` (the lines of each file are in the receiver's order); "
            "a field is mapped by --map order_key=FIELD"
        )
    retention, skew = (options.get(name) for name in ("retention", "skew"))
    terminal = _listed(options.get("terminal", ""))
    if "none" in terminal and len(terminal) > 1:
        raise UsageError(
            f"--terminal {options['terminal']}: `none` says that no status is final; name statuses, or none"
        )
    spec = replace(
        spec,
        fields={**spec.fields, **fields},
        terminal=() if terminal == ("none",) else terminal or spec.terminal,
        rising=_listed(options.get("rising", "")) or spec.rising,
        protect=_listed(options.get("protect", "")) or spec.protect,
        order=order or spec.order,
        retention=mapping.parse_duration(retention, "--retention") if retention else spec.retention,
        skew=mapping.parse_duration(skew, "--skew") if skew else spec.skew,
    )
    redact = bool(options.get("redact"))
    declared = audit.Declared(
        skip=_allowed("skip", options, tuple(BY_NAME)),
        no_terminal=spec.terminal == (),
        rising=bool(spec.rising),
        fail_on=_allowed("fail_on", options, CLASSES[:3]),
        require_order=bool(_allowed("require", options, ("order",))),
        require_exercised=bool(options.get("require_exercised")),
        accept=_allowed("accept", options, tuple(audit.ACCEPTABLE)),
    )
    return Request(
        logs=tuple(logs), mapping=spec, declared=declared, form=options.get("format") or None,
        filters=Filters(*(options.get(name) or None for name in Filters._fields)),
        redact=redact,
        options={k: "(redacted)" if redact and k in ("resource", "key_prefix") else v for k, v in options.items()},
    )  # fmt: skip


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _allowed(option: str, options: dict[str, str], allowed: Sequence[str]) -> frozenset[str]:
    words = _listed(options.get(option, ""))
    for word in words:
        if word not in allowed:
            raise UsageError(f"--{option.replace('_', '-')} {word}: allowed: {', '.join(allowed)}")
    return frozenset(words)


def audit_logs(logs: Sequence[str], *, more: str = "", **options: Any) -> dict[str, Any]:
    """The report of an audit of these logs; options are those of `fencinglab audit`, as text ("" = not said).

    `more` are others as they are typed there, which count more. See `report.build` for the dictionary. Raises
    UsageError or InputError where the command line would exit 2.
    """
    words = {name: str(value) for name, value in options.items() if value not in ("", None, False)} | said(more)
    request = request_of(logs, words)
    command = ("fencinglab", "audit", *logs, *report.words(words))
    with examine(replace(request, command=command)) as examination:
        return examination.report
