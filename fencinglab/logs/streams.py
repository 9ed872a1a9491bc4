"""DynamoDB Streams records as history rows.

A stream holds accepted writes with their images; it holds no refused write, no write that changed
nothing, no writer and no condition. The token in an item's image is the *item's*: which token a
mutation presented is known only where this mutation stored it (`written_token`, or a `version` that
every mutation raises). Order is the sequence number, per item, within one stream label.

One record a line is read by a fast path; lines that it does not understand, and every other wrapping,
by a general one. Both meet in one struct, from which `_rows` makes the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files as resources
from typing import TYPE_CHECKING, NamedTuple

from fencinglab import history
from fencinglab.logs import unwrap, values
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec

if TYPE_CHECKING:
    import duckdb

NEVER = frozenset({"reason", "outcome", "sent_at", "current_token"})
_SAMPLE = 2_000
_STREAMS_SQL = resources("fencinglab.logs").joinpath("streams.sql").read_text(encoding="utf-8")


class Look(NamedTuple):
    """What a sample of a stream shows before it is read."""

    attributes: tuple[str, ...]  # of the images and keys, in order of appearance
    views: frozenset[str]  # NEW_AND_OLD_IMAGES, NEW_IMAGE, OLD_IMAGE, KEYS_ONLY
    lowered: bool  # keys were lower-cased (Athena, Glue)
    typed: bool  # values are DynamoDB JSON ({"N": "42"}), not plain JSON


def look(con: duckdb.DuckDBPyConnection, lines: Sequence[File], documents: Sequence[File]) -> Look:
    """A look at the first records of a few files of each kind; leaves them in the table `look`."""
    parts = [
        f"select record from {unwrap.records(f'(select * from {read(few)} where value is not null limit {_SAMPLE})')}"
        for read, files in ((unwrap.text_lines, lines), (unwrap.documents, documents))
        for few in [[*files[:10], *files[10:][-10:]]]
        if few
    ]
    con.execute(f"""create or replace temp table look as select record->'$.dynamodb' as d
        from ({" union all ".join(parts)}) where json_type(record, '$.dynamodb') = 'OBJECT' limit {_SAMPLE}""")
    keys = {k for (k,) in con.execute("select distinct unnest(json_keys(d)) from look").fetchall()}
    lowered = "Keys" not in keys and "keys" in keys
    new, old, key, view = (_spelled(n, lowered) for n in ("NewImage", "OldImage", "Keys", "StreamViewType"))
    found = con.execute(f"""select name, min(place) as first, bool_and(tag) from (
            select unnest(json_keys(image)) as name, unnest(range(len(json_keys(image)))) as place,
                unnest(list_transform(from_json(image->'$.*', '["JSON"]'), lambda v:
                    coalesce(json_type(v) = 'OBJECT' and len(json_keys(v)) = 1
                        and upper(json_keys(v)[1]) in ('S','N','B','BOOL','NULL','M','L','SS','NS','BS'), false))) as tag
            from (select unnest([d->'$."{new}"', d->'$."{old}"', d->'$."{key}"']) as image from look)
            where json_type(image) = 'OBJECT') group by name order by first, name""").fetchall()
    views = con.execute(f"""select distinct coalesce(d->>'$."{view}"', case
        when json_exists(d, '$."{old}"') then 'NEW_AND_OLD_IMAGES' when json_exists(d, '$."{new}"') then 'NEW_IMAGE'
        else 'KEYS_ONLY' end) from look""").fetchall()
    return Look(
        attributes=tuple(name for name, *_ in found),
        views=frozenset(v for (v,) in views),
        lowered=lowered,
        typed=not found or all(tag for *_, tag in found),
    )


def identity_tokens(con: duckdb.DuckDBPyConnection, seen: Look, name: str) -> bool:
    """Whether most values of the token attribute in the sample are no numbers, such as UUIDs: they order nothing."""
    images = " union all ".join(
        f"select {_scalar(f'd->{unwrap.text(_path(_spelled(i, seen.lowered), name))}', seen.typed)} as t from look"
        for i in ("NewImage", "OldImage")
    )
    others = con.execute(f"""select avg(case when regexp_full_match(t, '-?[0-9.eE+]+') then 0 else 1 end)
        from ({images}) where t is not null""").fetchone()
    return bool(others and (others[0] or 0) > 0.5)


def read(
    con: duckdb.DuckDBPyConnection,
    lines: Sequence[File],
    documents: Sequence[File],
    spec: MappingSpec,
    seen: Look,
    key: str,
) -> None:
    """Fill the tables `stream` and `unread`; `key` keys the value hashes, duplicates are still in.

    `stream` holds history rows with `event_id` and `fault` (why the row cannot be used, or null). Its
    `source` is the path; `unwrap.find` gives the line of the rows that are shown. `unread` holds
    (path, line, reason, raw) of values that are no record at all.
    """
    values.define(con)
    mapped = {
        "terminal": f"[{', '.join(map(unwrap.text, spec.terminal))}]::varchar[]"
        if spec.terminal
        else "null::varchar[]",
        "leased": str(bool(spec.get("holder") or spec.get("expires_at"))),
        "token": str(bool(spec.get("token"))),
        "version": str(bool(spec.get("version"))),
    }
    con.execute(f"create or replace temp table mapped as select {', '.join(f'{v} as {k}' for k, v in mapped.items())}")
    con.execute(f"""create or replace temp table stream as
        select *, ''::varchar as event_id, ''::varchar as fault from ({history.select({}, "range(0)")})""")
    con.execute("create or replace temp table unread (path varchar, line bigint, reason varchar, raw varchar)")
    fields = _record(seen)
    members = ", ".join(f'"{name}" {of}' for name, of in fields.items())
    columns = ", ".join(f"{unwrap.text(name)}: {unwrap.text(of)}" for name, of in fields.items())

    def insert(records: str) -> None:
        changes = f"({_changes(records, spec, seen, key)}) as changes"
        con.execute(f"insert into stream by name {_STREAMS_SQL.replace('from changes', f'from {changes}', 1)}")

    again: list[File] = []
    if lines:
        insert(f"""select filename as path, * exclude (filename) from read_json({unwrap.paths(lines)}, filename = true,
            columns = {{{columns}}}, format = 'newline_delimited', records = 'true', ignore_errors = true)""")
        strange = [p for (p,) in con.execute("select distinct source from stream where resource is null").fetchall()]
        con.execute("delete from stream where source in (select unnest(?::varchar[]))", [strange])
        again = [f for f in lines if str(f.path) in strange]
    for files, entries in ((again, unwrap.text_lines), (documents, unwrap.documents)):
        if not files:
            continue
        con.execute(f"create or replace temp table opened as select * from {unwrap.records(entries(files))}")
        insert(f"select path, unnest(try_cast(record as struct({members}))) from opened")
        con.execute("delete from stream where resource is null")
        keys = f"$.dynamodb.{_spelled('Keys', seen.lowered)}"
        con.execute(f"""insert into unread
            select path, line, 'not JSON', left(raw, {unwrap.RAW}) from {entries(files)} where value is null
            union all select path, line, 'no stream record', left(record::varchar, {unwrap.RAW}) from opened
            where not coalesce(json_type(record, '{keys}') = 'OBJECT', false)""")


def _record(seen: Look) -> dict[str, str]:
    """{name: type} of the members of one record, spelled as the log spells them."""
    keys = "map(varchar, struct(S varchar, N varchar, B varchar))" if seen.typed else "map(varchar, varchar)"
    inner = {"ApproximateCreationDateTime": "varchar", "Keys": keys, "NewImage": "json", "OldImage": "json",
             "SequenceNumber": "varchar"}  # fmt: skip
    outer = {"eventID": "varchar", "eventName": "varchar", "eventSourceARN": "varchar", "userIdentity": "varchar"}
    outer["dynamodb"] = "struct(" + ", ".join(f'"{name}" {of}' for name, of in inner.items()) + ")"
    return {name.lower(): of.lower() for name, of in outer.items()} if seen.lowered else outer


def _changes(records: str, spec: MappingSpec, seen: Look, key: str) -> str:
    """SQL: the relation `changes` of streams.sql, of the records that the SQL text `records` gives."""
    item = _Item(spec, seen)
    # An item with neither holder nor expiry has no grants: its token is the mark that each write stores.
    fields = dict(spec.fields)
    if not (spec.get("holder") or spec.get("expires_at")) and spec.get("token"):
        fields.setdefault("written_token", fields["token"])
    mapped = ", ".join(
        f"{item.scalar(fields.get(name), image)} as {side}_{name}" for side, image in _SIDES for name in _SCALARS
    )
    hashed = ", ".join(f"{item.hashed(_names(spec, 'value'), image, key)} as {side}_value" for side, image in _SIDES)
    guarded = [name for key_ in _GUARDED for name in _names(spec, key_)]
    # Without old images the previous new image of the item stands in, redelivered records apart.
    previous = (
        "last_value(now) over (partition by stream, resource order by lpad(sequence, 40, '0') rows between "
        "unbounded preceding and current row exclude group)"
    )
    was = f"case when event_name <> 'INSERT' then {previous} end" if seen.views == {"NEW_IMAGE"} else "old"
    return f"""select path, event_id, event_name, by_service, resource, stream, sequence, created,
            fingerprint(old_image) as before_image, fingerprint(new_image) as after_image,
            event_name = 'INSERT' or was is not null as before_known, event_name = 'REMOVE' or now is not null as after_known,
            {mapped}, {hashed},
            {item.changed(_names(spec, "next_poll"))} as next_poll_changed,
            {item.changed([*guarded, *spec.protect])} as protected_changed,
            {item.fell(spec.rising)} as fell, {item.width(spec.get("token"))} as token_width, {item.fault(spec)} as fault
        from (select *, {was} as was from (
            select path, coalesce(eventID, d.SequenceNumber) as event_id, eventName as event_name,
                coalesce(contains(userIdentity, 'dynamodb.amazonaws.com'), false) as by_service,
                {_resource(seen)} as resource, coalesce(nullif(eventSourceARN, ''), 'unnamed stream') as stream,
                d.SequenceNumber as sequence, d.ApproximateCreationDateTime as created,
                d.NewImage as new_image, d.OldImage as old_image,
                json_extract_string(d.NewImage, {item.paths}) as now, json_extract_string(d.OldImage, {item.paths}) as old
            from (select * exclude (dynamodb), dynamodb as d from ({records}))))"""


def _resource(seen: Look) -> str:
    """SQL: table and key; the values of a composite key in the order of their attributes' names."""
    value = "coalesce(k.value.S, k.value.N, k.value.B)" if seen.typed else "k.value"
    number = (
        f"regexp_replace({value}, '[.]0+$', '')"
        if not seen.typed
        else f"coalesce(k.value.S, regexp_replace(k.value.N, '[.]0+$', ''), k.value.B)"
    )
    return f"""nullif(concat(nullif(split_part(split_part(eventSourceARN, ':table/', 2), '/', 1), '') || '/',
        array_to_string(list_transform(list_sort(map_entries(d.Keys)), lambda k: replace({number}, '|', '\\|')), '|')), '')"""


class _Item:
    """SQL for the mapped attributes of an image, which `paths` extracts in one go as a list of their JSON."""

    def __init__(self, spec: MappingSpec, seen: Look) -> None:
        named = [name for key in spec.fields for name in _names(spec, key)]
        self.typed = seen.typed
        self.names = list(dict.fromkeys([*named, *spec.rising, *spec.protect]))
        self.paths = f"[{', '.join(unwrap.text(_path(name)) for name in self.names)}]"

    def whole(self, name: str, image: str) -> str:
        """The attribute as it stands."""
        return f"{image}[{self.names.index(name) + 1}]"

    def scalar(self, name: str | None, image: str) -> str:
        """The attribute's text or number, as text; null where it is missing or something else."""
        if name is None:
            return "null::varchar"
        return f"typed_scalar({self.whole(name, image)})" if self.typed else self.whole(name, image)

    def hashed(self, names: Sequence[str], image: str, key: str) -> str:
        """The keyed hash of several attributes together; null where all are missing."""
        if not names:
            return "null::varchar"
        joined = ", chr(31), ".join(self.whole(n, image) for n in names)
        return f"case when coalesce({', '.join(self.whole(n, image) for n in names)}) is not null then keyed({unwrap.text(key)}, concat({joined})) end"

    def changed(self, names: Sequence[str]) -> str:
        """Whether any of the attributes differs between the two images."""
        return (
            " or ".join(f"{self.whole(n, 'was')} is distinct from {self.whole(n, 'now')}" for n in dict.fromkeys(names))
            or "false"
        )

    def fell(self, names: Sequence[str]) -> str:
        """The first of the attributes that fell, empty where none did, null where one is not known."""
        if not names:
            return "null::varchar"
        pairs = [
            (
                n,
                f"try_cast({self.scalar(n, 'was')} as decimal(38,9))",
                f"try_cast({self.scalar(n, 'now')} as decimal(38,9))",
            )
            for n in names
        ]
        fallen = " ".join(f"when {now} < {was} then {unwrap.text(n)}" for n, was, now in pairs)
        known = " and ".join(f"({now} is not null or {was} is null)" for _, was, now in pairs)
        return f"case when was is null or now is null then null {fallen} when {known} then '' end"

    def width(self, name: str | None) -> str:
        """Characters of the stored token where it is text, 0 where it is a number."""
        if name is None or not self.typed:
            return "null::integer"
        return f"case upper({self.whole(name, 'now')}[3]) when 'N' then 0 when 'S' then length({self.scalar(name, 'now')}) end"

    def fault(self, spec: MappingSpec) -> str:
        """Why the record cannot be used, or null; never with the value, which is payload."""
        digits = f"not regexp_full_match(sequence, '[0-9]{{1,{history.ORDER_DIGITS}}}')"
        tests = {
            digits: f"the sequence number is not 1 to {history.ORDER_DIGITS} digits (rounded by a spreadsheet?)",
        }
        for name in dict.fromkeys(n for key in ("token", "written_token") for n in _names(spec, key)):
            given = self.whole(name, "now")
            absent = f"coalesce({given}, 'null') in ('null', '{{\"NULL\":true}}', '{{\"null\":true}}')"
            tests[f"not {absent} and whole_number({self.scalar(name, 'now')}) is null"] = (
                f"{name} is not a whole number of at most {history.TOKEN_DIGITS} digits"
            )
        return "case " + " ".join(f"when {test} then {unwrap.text(reason)}" for test, reason in tests.items()) + " end"


_SIDES = (("before", "was"), ("after", "now"))
_SCALARS = (
    "token",
    "written_token",
    "writer",
    "holder",
    "expires_at",
    "status",
    "terminal_version",
    "version",
    "operation",
    "alert",
)
_GUARDED = ("status", "value", "expires_at", "holder", "token", "next_poll")


def _names(spec: MappingSpec, key: str) -> list[str]:
    field = spec.get(key)
    return field.split(",") if field else []


def _path(name: str, inner: str | None = None) -> str:
    """The JSON path of an attribute, or of an attribute inside another."""
    quoted = ['"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"' for part in (name, inner) if part is not None]
    return "$." + ".".join(quoted)


def _scalar(value: str, typed: bool) -> str:
    return (
        f"coalesce({value}->>'$.N', {value}->>'$.n', {value}->>'$.S', {value}->>'$.s')" if typed else f"{value}->>'$'"
    )


def _spelled(name: str, lowered: bool) -> str:
    return name.lower() if lowered else name
