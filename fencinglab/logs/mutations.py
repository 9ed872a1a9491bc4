"""From the mapped fields of log entries, as text, to history rows: what lines and tables have in common."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files as resources
from typing import TYPE_CHECKING, NamedTuple

from fencinglab import history
from fencinglab.errors import InputError
from fencinglab.logs import denial, words
from fencinglab.logs.carry import carry
from fencinglab.logs.inputs import SetAside
from fencinglab.logs.mapping import FIELDS, MappingSpec, plain
from fencinglab.logs.unwrap import text

if TYPE_CHECKING:
    import duckdb

NEVER = frozenset({"before_image", "after_image", "fell", "token_width"})
COLUMNS = tuple(name for name, field in FIELDS.items() if field.line)
MOST_SET_ASIDE = 500_000  # they are held in memory
KEPT = 1 << 16  # bytes of a set-aside entry that are kept

EMPTY = f"select *, ''::varchar as event_id from ({history.select({}, 'range(0)')})"
_SQL = resources("fencinglab.logs").joinpath("mutations.sql").read_text(encoding="utf-8")
_EVENT_IDS = ("@ptr", "eventid", "insertid")
_ABSENT = "('', 'null', 'none', 'nil', 'nan', 'undefined', '-')"  # how loggers write a number that is not there
# moment(t) of values.py where time_unit(t) is known, and without a time zone's cost where none is needed.
_MACRO = """create or replace temp macro instant(t, unit) as case
    when unit = 'text' and ends_with(t, 'Z') then try_cast(t as timestamp)
    when unit = 'ms' and not contains(t, '.') then make_timestamp(try_cast(t as bigint) * 1000)
    when regexp_matches(t, '[0-9]') then try(moment(t)) end"""
_NUMBER = "[+-]?[0-9][0-9., _''eE+-]*"
_SEQUENCE = "[0-9]+([.][0-9]*)?([eE][+]?[0-9]+)?"


class Read(NamedTuple):
    """What a reader gives: a table of history rows, and what is not in it."""

    table: str  # the history's columns, and `event_id` by which duplicates are told (text or null)
    records: int
    set_aside: list[SetAside]
    never: frozenset[str] = NEVER  # history columns that this format can never show
    notes: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()  # notes that quote the log: a redacted report has none of them
    filtered: int = 0  # records that report no mutation; they are not in the table
    blank: int = 0  # lines; with those that inputs.py emptied
    beside: int = 0  # lines that are no entry: headers, further lines of a quoted value
    identity: bool = False  # tokens are identities: `token` is null, order rules cannot be decided
    denied: int = 0  # entries in which a field of `denying` denies a success


def wanted(spec: MappingSpec, names: Iterable[str]) -> list[str]:
    """The fields that the mapping reads, and of the names those that are an event id or may deny a success."""
    names = list(names)
    mapped = [name for column in COLUMNS for name in spec.names(column)]
    return list(dict.fromkeys([*mapped, *filter(None, [_event_id(names)]), *denying(spec, names)]))


def texts(spec: MappingSpec, get: Callable[[str], str], names: Iterable[str], key: str) -> dict[str, str]:
    """{column: SQL of its text} for `event_id`, `denial` and the mapped COLUMNS; `get` gives the SQL of a field.

    Several fields make one resource (joined by `/`) or one value (hashed together); of other columns the
    first that is there counts. Texts are taken without blanks round them (psql fills columns up), empty ones as null,
    except that an empty `before_holder` is nobody; a number that names something as a whole one.
    """
    event_id = _event_id(names)
    made = {"event_id": get(event_id)} if event_id else {}
    for column in COLUMNS:
        fields = spec.names(column)
        given = [f"trim({get(name)})" for name in fields]
        if column in ("resource", "lease", "order_key"):  # pandas writes whole numbers as floats
            given = [f"regexp_replace({one}, '^([0-9]{{1,15}})[.]0+$', '\\1')" for one in given]
        one = given[0] if len(given) == 1 else f"coalesce({', '.join(given)})"
        if not given:
            continue
        if column == "resource" and len(given) > 1:  # null where one of them is
            made[column] = " || '/' || ".join(given)
        elif column == "value":
            joined = ", chr(31), ".join(given)
            made[column] = f"case when {one} is not null then keyed({text(key)}, concat({joined})) end"
        elif column in ("token", "order_key"):
            made[column] = f"case when lower({one}) not in {_ABSENT} then {one} end"
        elif column == "decision":
            made[column] = denial.as_decision(fields[0], one)
        else:
            made[column] = one if column == "before_holder" else f"nullif({one}, '')"
    open_ = " and ".join(f"{made[column]} is null" for column in ("decision", "outcome") if column in made)
    if denied := denial.told(denying(spec, names), get, open_ or "true"):
        decision = spec.get("decision") or ""
        told = decision and ("decision" not in spec.recognised or plain(decision) == "decision")
        made["denial"] = f"case when {made['decision']} is null then {denied} end" if told else denied
    return made


def denying(spec: MappingSpec, names: Iterable[str]) -> dict[str, str]:
    """The fields that may deny a success, as `denial.fields` gives them, of those that are not mapped."""
    return denial.fields({name for column in COLUMNS for name in spec.names(column)}, names)


def entries(table: str, has: Iterable[str], others: Mapping[str, str]) -> str:
    """SQL: the columns of `entries` (see mutations.sql) from a table that `has` some of them, with `others` given."""
    columns = dict.fromkeys(("event_id", "stamp", "fault", "raw", "denial", *COLUMNS), "null::varchar")
    columns |= {"place": "null::bigint"} | {name: f'{table}."{name}"' for name in has} | dict(others)
    return ", ".join(f'{sql} as "{name}"' for name, sql in columns.items())


def _event_id(names: Iterable[str]) -> str | None:
    found = {plain(name): name for name in names}
    return next((found[known] for known in _EVENT_IDS if known in found), None)


def rows(
    con: duckdb.DuckDBPyConnection,
    table: str,
    spec: MappingSpec,
    names: Iterable[str],
    raw: Callable[[], str] | None = None,
    *,
    several: bool = False,
) -> Read:
    """The history rows of the relation `entries` (see mutations.sql) as a new table; `several` files they are from.

    `names` are the fields of the log, mapped or not. `raw` gives the SQL of (place, text), asked for where entries are
    set aside that bring no raw text of their own.
    """
    con.execute(_MACRO)
    [(total, denied, ids, tokens, names_as_tokens, keys, names_as_keys)] = con.execute(f"""select count(*),
        count(denial) filter (fault is null), count(event_id) filter (fault is null),
        count(token) filter (fault is null),
        count(*) filter (fault is null and not regexp_full_match(token, '{_NUMBER}')),
        count(order_key) filter (fault is null),
        count(*) filter (fault is null and not regexp_full_match(order_key, '{_SEQUENCE}')) from entries""").fetchall()
    identity = 2 * names_as_tokens > tokens
    order = "line" if spec.order == "lines" else "key" if keys and 2 * names_as_keys <= keys else None
    meant = words.meanings("(select distinct kind, decision, outcome, reason, denial from entries)")
    con.execute(f"create or replace temp table meant as {meant}")
    _fill(con, table, spec, identity, order, several, ids > 0)
    coded = ids > 0 and _differ(con, table, "event_id")
    if order == "line":
        _refuse_backwards(con, table, spec)
    if "lease" in spec.recognised:
        _refuse_grant_ids(con, table, spec)
    field = spec.get("order_key")
    guessed = order == "key" and "order_key" in spec.recognised
    if contested := _contested(con, table, spec) if guessed else "":
        order = None
    if coded or contested:
        _fill(con, table, spec, identity, order, several, ids > 0 and not coded)
    if several:
        _name_overlaps(con, table)
    notes = list(_notes(con, table, spec))
    if contested:
        notes.append(
            f"`{field}` gives no order: {contested}, as where each worker counts for itself; "
            f"if the receiver counts it all the same: --map order_key={field}"
        )
    elif guessed:
        notes.append(
            f"ordered by `{field}`, by its name: it must be the receiver's count, not one a worker keeps of its own"
        )
    [(undecided,)] = con.execute(f"select count(*) from {table} where decision = 'unknown'").fetchall()
    if undecided and not spec.get("decision"):
        notes += [
            f"if `{name}` holds what the receiver decided: --map decision={name}"
            for name in denial.candidates(denying(spec, names))
        ]
    quotes = tuple(_quotes(con, table))
    if identity:
        notes.append(f"`{spec.get('token')}` holds identities, not numbers: order rules cannot be decided")
    if coded:
        notes.append(
            "event ids are shared by lines of one resource that say different things: they are not used as ids"
        )
    if keys and order is None and not contested:
        notes.append(f"`{spec.get('order_key')}` holds no numbers: it gives no order")
    aside = _set_aside(con, table, raw)
    con.execute("".join(f"alter table {table} drop column {name};" for name in ("fault", "remarks", "says")))
    [(kept,)] = con.execute(f"select count(*) from {table}").fetchall()
    if order and kept:
        _carry(con, table, leases=spec.get("lease") is not None)
    con.execute("drop table settings; drop table meant")
    records = total - len(aside)
    return Read(
        table,
        records,
        aside,
        notes=tuple(notes),
        quotes=quotes,
        filtered=records - kept,
        identity=identity,
        denied=denied,
    )


def _fill(
    con: duckdb.DuckDBPyConnection,
    table: str,
    spec: MappingSpec,
    identity: bool,
    order: str | None,
    several: bool,
    ids: bool,
) -> None:
    """Fill the table with what mutations.sql gives, the faulty rows too."""
    settings = {
        "identity": str(identity),
        "order_by": f"{text(order) if order else 'null'}::varchar",
        "terminal": f"[{', '.join(map(text, spec.terminal or ()))}]::varchar[]",
        "events": str(spec.get("kind") is not None),
        "ids": str(ids),
        "compared": str(several or ids or order == "key"),
        "nameless": text(f"no value in {spec.get('resource')}, the mapped resource"),
    }
    listed = ", ".join(f"{value} as {name}" for name, value in settings.items())
    con.execute(f"create or replace temp table settings as select {listed}")
    con.execute(f"""create or replace temp table {table} as
        select *, ''::varchar as fault, 0::utinyint as remarks, 0::ubigint as says from ({EMPTY})""")
    con.execute(f"""insert into {table} by name
        select * exclude (scope, line, place, raw, reports) from ({_SQL}) where reports""")


def _contested(con: duckdb.DuckDBPyConnection, table: str, spec: MappingSpec) -> str:
    """Why the values of the order's field cannot be the receiver's count, or nothing."""
    rows = f"from {table} where order_key is not null and fault is null"
    fallen = f"""select 1 {rows} qualify "at" + to_microseconds(at_precision + {spec.skew}) < max("at") over (
        partition by hash(resource) order by order_key rows between unbounded preceding and 1 preceding) limit 1"""
    if _differ(con, table, "order_key"):
        return "entries of one resource that say different things have the same value of it"
    return "in one resource it rises while time falls" if con.execute(fallen).fetchall() else ""


def _differ(con: duckdb.DuckDBPyConnection, table: str, column: str) -> bool:
    """Whether two rows of one resource that have the same value in the column do not say the same."""
    rows = f"from {table} where {column} is not null and fault is null"
    same = f"select 1 {rows} group by hash(resource, {column}) having min(says) <> max(says) limit 1"
    return bool(con.execute(same).fetchall())


def _refuse_backwards(con: duckdb.DuckDBPyConnection, table: str, spec: MappingSpec) -> None:
    """Raise an InputError where time falls along most lines of a file: that they are in order was said by a slip."""
    step = """epoch_us("at") - lag(epoch_us("at")) over (partition by order_scope order by order_key)"""
    found = con.execute(f"""select order_scope, count(*) filter (step < -slack), count(*) filter (step > slack)
        from (select order_scope, at_precision + {spec.skew} as slack, {step} as step
            from {table} where fault is null and "at" is not null) group by order_scope order by 1""").fetchall()
    for name, fell, rose in found:
        if fell > max(1, rose):
            raise InputError(
                f"{name}: from line to line time falls {fell:,} times and rises {rose:,} times, so its lines are not "
                "in the receiver's order; does it list the newest first? "
                f"`tac {shlex.quote(name)}` turns lines round, `sort @timestamp asc` a query"
            )


def _refuse_grant_ids(con: duckdb.DuckDBPyConnection, table: str, spec: MappingSpec) -> None:
    """Raise an InputError where most leases of resources that have several issued one token: ids of a grant do so."""
    counted = con.execute(f"""select count(*), count(*) filter (tokens = 1), min(lease) filter (tokens = 1) from (
            select lease, count(distinct token) as tokens from {table}
            where fault is null and lease <> resource and hash(resource) in (
                select hash(resource) from {table} where fault is null and token is not null and lease <> resource
                group by all having count(distinct lease) > 1)
            group by lease having tokens > 0)""").fetchall()
    [(leases, of_one, lease)] = counted
    if of_one > max(2, leases / 2):  # two are soon named by hand
        field = spec.get("lease")
        raise InputError(
            f"`{field}`: {of_one:,} of {leases:,} leases, such as {lease[:60]}, issued one token only; is it the id of "
            f"a grant: --map lease=none; or do tokens compare only within one `{field}`: --map lease={field}"
        )


def _name_overlaps(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Give the entries that stand in several files, as where exports overlap, one event id.

    Only those of one operation at one millisecond; the k-th such entry of one file is the k-th of another.
    """
    again = "event_id is null and operation is not null and at_precision <= 1000 and fault is null"
    con.execute(f"""update {table} set event_id = named.event_id from (
            select row, 'again ' || says || ' ' || row_number() over (partition by file, says order by line) as event_id
            from (select rowid as row, says, regexp_extract(source, '^(.*):[0-9]+$', 1, 's') as file,
                    regexp_extract(source, '[0-9]+$')::bigint as line
                from {table} where {again} and hash(resource, says) in (
                    select hash(resource, says) from {table} where {again} group by all having count(*) > 1))
        ) as named where rowid = named.row""")


def _carry(con: duckdb.DuckDBPyConnection, table: str, leases: bool) -> None:
    """Fill what the rows of a table do not say from those before them."""
    names = (*history.NAMES, "event_id")
    counts = ", ".join(f'count("{name}")' for name in names)
    deleted = "count(*) filter (decision = 'accepted' and kind in ('delete', 'ttl_delete'))"
    [(deletes, *filled)] = con.execute(f"select {deleted}, {counts} from {table}").fetchall()
    known = [name for name, count in zip(names, filled, strict=True) if count]
    carried = carry("select * from uncarried", known, deletes=deletes > 0, leases=leases)
    con.execute(f"drop table if exists uncarried; alter table {table} rename to uncarried")
    con.execute(f"create temp table {table} as {EMPTY}")
    con.execute(f"insert into {table} by name {carried}")
    con.execute("drop table uncarried")


def _notes(con: duckdb.DuckDBPyConnection, table: str, spec: MappingSpec) -> Iterator[str]:
    """What was read in a way that a reader of the report should know of."""
    remarks = ", ".join(f"count(*) filter (fault is null and remarks & {1 << bit} <> 0)" for bit in range(6))
    [(*times, zoneless, unnamed)] = con.execute(f"select {remarks} from {table}").fetchall()
    for column, count in zip(("at", "sent_at", "expires_at", "before_expires_at"), times, strict=True):
        if count:
            yield f"times in `{spec.get(column)}` that cannot be read and are taken as not known: {count:,}"
    if zoneless:
        yield f"times written without a zone, read as UTC: {zoneless:,}"
    if unnamed:
        yield f"lines read as writes though no word in `{spec.get('kind')}` says so: {unnamed:,}"


def _quotes(con: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    """What such lines say, where that is a word and no sentence."""
    common = con.execute(f"""select kind, count(*) as times from entries semi join (
            select source from {table} where remarks & 32 <> 0 and fault is null
        ) as unnamed on source = scope || ':' || line
        where not contains(kind, ' ') group by all order by times desc, 1 limit 5""").fetchall()
    if common:
        yield f"read as writes: {', '.join(f'{name[:40]} ({times:,})' for name, times in common)}"


def _set_aside(con: duckdb.DuckDBPyConnection, table: str, raw: Callable[[], str] | None) -> list[SetAside]:
    """What mutations.sql finds fault with, in the order of the files; it leaves the table."""
    [(count,)] = con.execute(f"delete from {table} where fault is not null").fetchall()
    if not count:
        return []
    con.execute(f"""create or replace temp table faulty as
        select scope, line, source, fault, place, raw from ({_SQL}) where fault is not null""")
    if count > MOST_SET_ASIDE:
        source, fault = con.execute("select source, fault from faulty order by scope, line limit 1").fetchall()[0]
        cure = "is it another format, or does it need another --map?"
        raise InputError(f"{source}: {count:,} entries cannot be read, this one because of: {fault}; {cure}")
    found = f"left join ({raw()}) as found using (place)" if raw else "cross join (select null as text) as found"
    aside = con.execute(f"""select source, fault, left(coalesce(raw, found.text, ''), {KEPT}) from faulty {found}
        order by scope, line""").fetchall()
    con.execute("drop table faulty")
    return [SetAside(source, fault, begin.encode()[:KEPT]) for source, fault, begin in aside]
