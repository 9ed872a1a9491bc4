"""DynamoDB Streams records as history rows.

A stream holds accepted writes with their images; it holds no refused write, no write that changed
nothing, no writer and no condition. The token in an item's image is the *item's*: which token a
mutation presented is known only where this mutation stored it (`written_token`, or a `version` that
every mutation raises). Order is the sequence number, per item, within one stream label.

A look at a sample says which attributes there are; the images are then read as structs of them. One
record a line is read by a fast path; lines that it does not understand, and every other wrapping, by a
general one. `streams.sql` says what a record means.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fencinglab import history
from fencinglab.logs import unwrap, values
from fencinglab.logs.inputs import File
from fencinglab.logs.mapping import MappingSpec

if TYPE_CHECKING:
    import duckdb

NEVER = frozenset({"reason", "outcome", "sent_at", "current_token"})
_AFTER = frozenset({
    "writer", "token", "fenced", "protected", "operation", "alert", "fell", "token_width", "expiry_unit",
    "after_token", "after_holder", "after_expires_at", "after_status", "after_terminal", "after_terminal_version",
    "after_version", "after_value", "after_image",
})  # fmt: skip
NEVER_IN = {  # a stream of one view only
    "NEW_AND_OLD_IMAGES": frozenset[str](), "NEW_IMAGE": frozenset({"before_image"}), "OLD_IMAGE": _AFTER,
    "KEYS_ONLY": _AFTER | {name.replace("after", "before") for name in _AFTER if name.startswith("after")},
}  # fmt: skip
STREAMS_SQL = resources("fencinglab.logs").joinpath("streams.sql").read_text(encoding="utf-8")
_SAMPLE = 2_000
_MOST = 200  # attributes that make up an image
_TAGS = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")
_COLLECTIONS = {"M", "L", "SS", "NS", "BS", "OBJECT", "ARRAY"}  # typed and plain
_TOKENS = ("token", "written_token")
_SCALARS = (
    "token", "written_token", "writer", "holder", "expires_at", "status", "terminal_version", "version", "operation",
    "alert",
)  # fmt: skip
_ANY = ("value", "next_poll")  # compared only, so they may be maps and sets
_SIDES = (("before", "was"), ("after", "now"))


class Look(NamedTuple):
    """What a sample of a stream shows before it is read."""

    attributes: dict[str, frozenset[str]]  # of the images and keys: the type tags seen, in order of appearance
    key: str | None  # an attribute of the key, which every image has
    keys: tuple[str, ...]  # how the text of a key with one text attribute begins
    views: frozenset[str]  # NEW_AND_OLD_IMAGES, NEW_IMAGE, OLD_IMAGE, KEYS_ONLY
    lowered: bool  # names were lower-cased (Athena, Glue)
    typed: bool  # values are DynamoDB JSON ({"N": "42"}), not plain JSON
    bare: bool = False  # sequence numbers are numbers, not text

    def spelled(self, name: str) -> str:
        """A name of the record as the log spells it."""
        return name.lower() if self.lowered else name


def look(con: duckdb.DuckDBPyConnection, lines: Sequence[File], documents: Sequence[File], work: Path) -> Look:
    """A look at the first records of a few files of each kind; leaves them in the table `look`."""
    values.define(con)

    def few(files: Sequence[File]) -> list[File]:
        return [*files[:10], *files[10:][-10:]]

    def found(entries: list[str]) -> bool:
        parts = [f"select record from {unwrap.records(f'(select * from {e} limit {_SAMPLE})')}" for e in entries]
        con.execute(f"""create or replace temp table look as select record->'$.dynamodb' as d
            from ({" union all ".join(parts)}) where json_type(record, '$.dynamodb') = 'OBJECT' limit {_SAMPLE}""")
        return con.execute("select count(*) from look").fetchone() != (0,)

    entries = [unwrap.sample(few(lines))] if lines else []
    entries += [unwrap.documents(few(documents))] if documents else []
    if not found(entries) and lines:
        found([unwrap.mend(con, few(lines), work)])
    names = {k for (k,) in con.execute("select distinct unnest(json_keys(d)) from look").fetchall()}
    seen = Look({}, None, (), frozenset(), "Keys" not in names and "keys" in names, True)
    new, old, keys, view, sequence = (
        f"(d->'$.{seen.spelled(n)}')" for n in ("NewImage", "OldImage", "Keys", "StreamViewType", "SequenceNumber")
    )
    tags = ", ".join(f"'{tag}'" for tag in _TAGS)
    attributes = con.execute(f"""select name, list(distinct tag), count(*) filter (tag in ({tags})), count(*) from (
            select name, first, case when json_type(value) = 'OBJECT' and len(json_keys(value)) = 1
                    and upper(json_keys(value)[1]) in ({tags})
                then upper(json_keys(value)[1]) else json_type(value) end as tag
            from (select unnest(json_keys(image)) as name, unnest(range(len(json_keys(image)))) as first,
                    unnest(from_json(image->'$.*', '["JSON"]')) as value
                from (select unnest([{new}, {old}, {keys}]) as image from look) where json_type(image) = 'OBJECT'))
        group by name order by min(first), name""").fetchall()
    views = con.execute(f"""select distinct coalesce({view}->>'$', case when {old} is not null then 'NEW_AND_OLD_IMAGES'
        when {new} is not null then 'NEW_IMAGE' else 'KEYS_ONLY' end) from look""").fetchall()
    begins = con.execute(f"""select distinct regexp_extract({keys}::varchar, '^\\{{"[^"]*":\\{{"[Ss]":"') as b from look
        where len(json_keys({keys})) = 1 order by b limit 4""").fetchall()
    [(bare, key)] = con.execute(f"""select coalesce(bool_or(json_type({sequence}) <> 'VARCHAR'), false),
        min(json_keys({keys})[1]) from look""").fetchall()
    return seen._replace(
        key=key,
        keys=tuple(b for (b,) in begins if b),
        attributes={name: frozenset(tags) for name, tags, _, _ in attributes if name},  # none in SQL is without a name
        views=frozenset(v for (v,) in views),
        typed=2 * sum(row[2] for row in attributes) >= sum(row[3] for row in attributes),
        bare=bare,
    )


def identity_tokens(con: duckdb.DuckDBPyConnection, seen: Look, name: str) -> bool:
    """Whether most values of the token attribute in the sample are no numbers, such as UUIDs: they order nothing."""
    quoted = name.replace('"', '\\"')
    texts = " union all ".join(
        f"select coalesce({', '.join(f'd->>{unwrap.text(path + tag)}' for tag in tags)}) as t from look"
        for path in (f'$.{seen.spelled(image)}."{quoted}"' for image in ("NewImage", "OldImage"))
        for tags in [(".N", ".n", ".S", ".s") if seen.typed else ("",)]
    )
    [(others,)] = con.execute(f"""select avg(case when regexp_full_match(t, '-?[0-9.eE+]+') then 0 else 1 end)
        from ({texts}) where t is not null""").fetchall()
    return (others or 0) > 0.5


def read(
    con: duckdb.DuckDBPyConnection,
    lines: Sequence[File],
    documents: Sequence[File],
    spec: MappingSpec,
    seen: Look,
    key: str,
    work: Path,
) -> None:
    """Fill the tables `stream` and `unread`; `key` keys the value hashes, duplicates are still in.

    `stream` holds history rows with `event_id` and `fault` (why the row cannot be used, or null). Its
    `source` is the path; `unwrap.find` gives the line of the rows that are shown. `unread` holds
    (path, line, index, reason, raw) of values that are no record at all; the line is null in documents.
    """
    mapped = {
        "terminal": f"[{', '.join(map(unwrap.text, spec.terminal))}]::varchar[]"
        if spec.terminal
        else "null::varchar[]",
        "leased": str(bool(spec.get("holder") or spec.get("expires_at"))),
        "holder": str(bool(spec.get("holder"))),
        "token": str(bool(spec.get("token"))),
        "version": str(bool(spec.get("version"))),
    } | {
        f"{role}_fault": unwrap.text(f"{spec.get(role)} is not a whole number of at most {history.TOKEN_DIGITS} digits")
        for role in _TOKENS
    }
    con.execute(f"create or replace temp table mapped as select {', '.join(f'{v} as {k}' for k, v in mapped.items())}")
    made = _made(spec)
    con.execute(history.table("stream", made, "event_id varchar", "fault varchar"))
    con.execute("""create or replace temp table unread
        (path varchar, line bigint, index bigint, reason varchar, raw varchar)""")
    stored = ", ".join(f'"{name}"' for name in (*(n for n in history.NAMES if n not in made), "event_id", "fault"))

    def insert(records: str, item: _Item) -> None:
        changes = f"({_changes(records, spec, seen, item, key)}) as changes"
        rows = STREAMS_SQL.replace("from changes", f"from {changes}", 1)
        con.execute(f"insert into stream by name select {stored} from ({rows})")

    item = _Item(spec, seen)
    for each in (item, item.of_any_type()) if lines else ():
        columns = ", ".join(f"{unwrap.text(name)}: {unwrap.text(of)}" for name, of in each.record().items())
        insert(
            f"""select filename as path, * exclude (filename) from read_json({unwrap.paths(lines)}, filename = true,
            columns = {{{columns}}}, format = 'newline_delimited', records = 'true', ignore_errors = true)""",
            each,
        )
        strange = [p for (p,) in con.execute("select distinct source from stream where resource is null").fetchall()]
        con.execute("delete from stream where source in (select unnest(?::varchar[]))", [strange])
        lines = [f for f in lines if str(f.path) in strange]
        if not lines:
            break
    item = item.of_any_type()
    members = ", ".join(f"{_name(name)} {of}" for name, of in item.record().items())
    for files, by_line in ((lines, True), (documents, False)):
        if not files:
            continue
        entries = unwrap.text_lines(files, work) if by_line else unwrap.documents(files)
        broken = unwrap.mend(con, files, work) if by_line else ""
        if broken:
            entries = f"(select * from {entries} where value is not null union all select * from {broken})"
        con.execute(f"create or replace temp table opened as select * from {unwrap.records(entries)}")
        con.execute(f"""create or replace temp table shaped as
            select *, try_cast(record as struct({members})) as shape from opened""")
        insert("select path, unnest(shape) from shaped", item)
        con.execute("delete from stream where resource is null")
        if broken:
            con.execute(f"""insert into unread select path, line, null, '{unwrap.BROKEN}', raw
                from {broken} where value is null""")
        keys = f"$.dynamodb.{seen.spelled('Keys')}"
        con.execute(f"""insert into unread select path, line, case when siblings > 1 then index end,
                case when json_type(record, '$.dynamodb') = 'OBJECT'
                    then 'no stream record of the shape that the others have' else 'no stream record' end,
                left(record::varchar, {unwrap.RAW})
            from shaped where shape is null or key_text(record->'{keys}') is null""")


def _made(spec: MappingSpec) -> dict[str, str]:
    """{column: SQL} of what needs no room: what a stream never shows, what is not mapped, and what follows."""
    made = dict.fromkeys(NEVER, "null") | {"lease": "resource", "decision": "'accepted'"}
    for name in ("expires_at", "status", "terminal_version", "version", "value", "operation", "alert"):
        if not spec.get(name):
            made |= {column: "null" for column in (name, f"before_{name}", f"after_{name}") if column in history.NAMES}
    if not spec.terminal:
        made |= {"before_terminal": "null", "after_terminal": "null"}
    return made if spec.rising else made | {"fell": "null"}


class _Item:
    """SQL for the attributes of an image, which is read as a struct.

    Of each mapped attribute only the types are read that the sample shows, since each costs time: a record with
    another one has no resource, and its file is read again as `of_any_type`.
    """

    def __init__(self, spec: MappingSpec, seen: Look, any_type: bool = False) -> None:
        self.spec, self.seen = spec, seen
        self.tokens = [name for key in _TOKENS for name in _names(spec, key)]
        mapped = [(key, name) for key in spec.fields for name in _names(spec, key)]
        mapped += [("", name) for name in spec.rising]
        collections = {name for name, tags in seen.attributes.items() if tags & _COLLECTIONS}
        self.scalars = list(dict.fromkeys(n for key, n in mapped if key not in _ANY or n not in collections))
        self.nested = collections - set(self.scalars)
        # names of a struct differ by more than case; of two that do not, the mapped one stays
        every = [*(n for _, n in mapped), *spec.protect, *seen.attributes][:_MOST]
        self.names = list({n.lower(): n for n in reversed(every)}.values())
        self.tags = {}  # of what is read typed: the tags of a text, a number or nothing
        for name in self.scalars if seen.typed else ():
            wide = ("S", "N", "NULL") if name in self.tokens else ("S", "N")
            known = tuple(tag for tag in ("S", "N", "NULL") if tag in seen.attributes.get(name, ()))
            self.tags[name] = wide if any_type or not set(known) & {"S", "N"} else known
        self.closed = [] if any_type else [n for n in self.tags if seen.attributes.get(n, set()) & {"S", "N"}]

    def of_any_type(self) -> _Item:
        """The same attributes, whatever type their values have."""
        return _Item(self.spec, self.seen, True)

    def odd(self) -> str:
        """Whether a mapped attribute has a value of a type that is not read."""
        tests = [
            f"({image}.{_name(name)} is not null and coalesce({', '.join(self._tagged(name, image))}) is null)"
            for image in ("now", "old")
            for name in self.closed
        ]
        return " or ".join(tests) or "false"

    def _tagged(self, name: str, image: str, tags: Sequence[str] = ("N", "S", "NULL")) -> list[str]:
        """The values of an attribute under its tags, of which one is not null."""
        return [f'{image}.{_name(name)}."{tag}"' for tag in tags if tag in self.tags[name]]

    def record(self) -> dict[str, str]:
        """{name: type} of the members of one record, spelled as the log spells them."""
        image = "struct(" + ", ".join(f"{_name(n)} {self._type(n)}" for n in self.names) + ")"
        inner = {
            "ApproximateCreationDateTime": "varchar", "Keys": "json", "NewImage": image, "OldImage": image,
            "SequenceNumber": "varchar",
        }  # fmt: skip
        outer = {"eventID": "varchar", "eventName": "varchar", "eventSourceARN": "varchar", "userIdentity": "varchar"}
        outer["dynamodb"] = "struct(" + ", ".join(f'"{self.seen.spelled(n)}" {of}' for n, of in inner.items()) + ")"
        return {self.seen.spelled(name): of for name, of in outer.items()}

    def _type(self, name: str) -> str:
        if not self.seen.typed:
            return "varchar"
        if name not in self.tags:
            return "json"
        return "struct(" + ", ".join(f'"{self.seen.spelled(tag)}" varchar' for tag in self.tags[name]) + ")"

    def scalar(self, name: str | None, image: str) -> str:
        """The attribute's text or number, as text; null where it is missing or something else."""
        if name is None:
            return "null::varchar"
        if name not in self.tags:
            return f"{image}.{_name(name)}"
        first, *others = self._tagged(name, image, ("N", "S"))
        return f"coalesce({', '.join((first, *others))})" if others else first

    def comparable(self, name: str, image: str) -> str:
        """What of the attribute is equal where its value is, in whatever order the members of a map or set stand."""
        value = self.scalar(name, image)
        return f"fingerprint({value})" if name in self.nested else value

    def image(self, image: str) -> str:
        """One number for everything in the image, whatever its order; also where there is no image."""
        parts = ", ".join(self.comparable(name, image) for name in self.names)
        return f"hash({parts or '1'})"

    def hashed(self, names: Sequence[str], image: str, key: str) -> str:
        """The keyed hash of several attributes together; null where all are missing."""
        if not names:
            return "null::varchar"
        scalars = ", ".join(self.comparable(n, image) for n in names)
        joined = f"{scalars}::varchar" if len(names) == 1 else f"nullif(concat_ws(chr(31), {scalars}), '')"
        return f"keyed({unwrap.text(key)}, {joined})"

    def changed(self, names: Sequence[str]) -> str:
        """Whether any of the attributes differs between the two images."""
        sides = ((self.comparable(n, "was"), self.comparable(n, "now")) for n in dict.fromkeys(names))
        tests = (f"{was} is distinct from {now}" for was, now in sides)
        return " or ".join(tests) or "false"

    def fell(self, names: Sequence[str]) -> str:
        """The first of the attributes that fell, empty where none did, null where one is not known."""
        if not names:
            return "null::varchar"
        was, now = ([f"try_cast({self.scalar(n, i)} as decimal(38,9))" for n in names] for i in ("was", "now"))
        fallen = " ".join(f"when {b} < {a} then {unwrap.text(n)}" for n, a, b in zip(names, was, now, strict=True))
        known = " and ".join(f"({b} is not null or {a} is null)" for a, b in zip(was, now, strict=True))
        return f"case when was is null or now is null then null {fallen} when {known} then '' end"

    def width(self, name: str | None) -> str:
        """Characters of the stored token where it is text, 0 where it is a number."""
        if name is None or not self.seen.typed:
            return "null::integer"
        number, text = ((self._tagged(name, "now", (tag,)) or ["null"])[0] for tag in "NS")
        return f"case when {number} is not null then 0 else length({text}) end"

    def there(self, name: str | None) -> str:
        """Whether the attribute has a value in the new image, of whatever type."""
        if name is None:
            return "false"
        value = f"now.{_name(name)}"
        if not self.seen.typed:
            return f"coalesce({value}, 'null') <> 'null'"
        nothing = self._tagged(name, "now", ("NULL",))
        return f"({value} is not null{''.join(f' and {tag} is null' for tag in nothing)})"

    def fault(self) -> str:
        """Why the record cannot be used, or null; never with the value, which is payload."""
        rounded = f"not regexp_full_match(sequence, '[0-9]{{1,{history.ORDER_DIGITS}}}')"
        faults = {
            rounded: f"the sequence number is not 1 to {history.ORDER_DIGITS} digits (rounded by a spreadsheet?)",
        }
        if self.seen.bare:  # a double keeps 17 digits
            faults["regexp_full_match(sequence, '[0-9]{17}0+')"] = "the sequence number was rounded (by JavaScript?)"
        if self.seen.key in self.names and self.seen.key not in self.scalars:
            begins = ", ".join(f"{image}.{_name(self.seen.key)}" for image in ("now", "old"))
            odd = f"starts_with(coalesce({begins}), '{{') = {not self.seen.typed}"
            faults[odd] = "its values are not written as those of the others"
        return "case " + " ".join(f"when {test} then {unwrap.text(why)}" for test, why in faults.items()) + " end"


def _changes(records: str, spec: MappingSpec, seen: Look, item: _Item, key: str) -> str:
    """SQL: the relation `changes` of streams.sql, of the records that the SQL text `records` gives."""
    fields = dict(spec.fields)
    # An item with neither holder nor expiry has no grants: its token is the mark that each write stores.
    if not (spec.get("holder") or spec.get("expires_at")) and spec.get("token"):
        fields.setdefault("written_token", fields["token"])
    sides = ", ".join(
        [f"{item.scalar(fields.get(name), image)} as {side}_{name}" for side, image in _SIDES for name in _SCALARS]
        + [f"{item.hashed(_names(spec, 'value'), image, key)} as {side}_value" for side, image in _SIDES]
    )
    # Without old images the previous new image of the item stands in, redelivered records apart.
    previous = (
        "last_value(now) over (partition by stream, resource order by lpad(sequence, 40, '0') "
        "rows between unbounded preceding and current row exclude group)"
    )
    was = "old"
    if "NEW_IMAGE" in seen.views:
        was = f"case when event_name <> 'INSERT' then coalesce(old, {previous}) end"
    # Within `case`, where DuckDB shares no expressions, the images' hashes would cost three times as much.
    return f"""select * replace (case when was_there then before_image end as before_image,
                case when is_there then after_image end as after_image)
        from (select path, event_id, event_name, by_service, resource, stream, sequence, created,
            {item.image("old")} as before_image, {item.image("now")} as after_image,
            old is not null as was_there, now is not null as is_there,
            event_name = 'INSERT' or was is not null as before_known,
            event_name = 'REMOVE' or now is not null as after_known,
            {sides}, {item.changed(_names(spec, "next_poll"))} as next_poll_changed,
            {item.changed(spec.protect)} as other_protected_changed,
            {item.fell(spec.rising)} as fell, {item.width(spec.get("token"))} as token_width,
            {item.there(spec.get("token"))} as token_there,
            {item.there(fields.get("written_token"))} as written_token_there, {item.fault()} as fault
        from (select *, {was} as was from (
            select * replace (coalesce(stream, 'unnamed stream') as stream),
                case when not coalesce({item.odd()}, false)
                    then coalesce(substr(stream, 1, instr(stream, '/')), '') || {_key(seen)} end as resource
            from (select path, coalesce(eventID, d.SequenceNumber) as event_id, eventName as event_name,
                coalesce(contains(userIdentity, 'dynamodb.amazonaws.com'), false) as by_service,
                substr(eventSourceARN, nullif(instr(eventSourceARN, ':table/'), 0) + 7) as stream,
                d.Keys as keys, d.SequenceNumber as sequence, d.ApproximateCreationDateTime as created,
                d.NewImage as now, d.OldImage as old
            from (select * exclude (dynamodb), dynamodb as d from ({records}))))))"""


def _key(seen: Look) -> str:
    """SQL: the text of the key in `keys`, by plain cutting where it is one simple text."""
    cut = "".join(
        f"when starts_with(keys, {unwrap.text(b)}) then substr(keys, {len(b) + 1}, length(keys) - {len(b) + 3}) "
        for b in seen.keys
    )
    odd = " or ".join(f"contains(keys, {mark})" for mark in ("chr(92)", "'\"},\"'", "'|'"))
    return f"case when {odd} then key_text(keys) {cut}else key_text(keys) end"


def _names(spec: MappingSpec, key: str) -> list[str]:
    field = spec.get(key)
    return field.split(",") if field else []


def _name(name: str) -> str:
    """The name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
