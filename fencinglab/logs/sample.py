"""What a sample of a stream shows before it is read: which attributes there are, typed how, under which names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fencinglab.logs import unwrap, values
from fencinglab.logs.inputs import File

if TYPE_CHECKING:
    import duckdb

_SAMPLE = 2_000
_TAGS = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")


class Look(NamedTuple):
    """What a sample of a stream shows before it is read."""

    attributes: dict[str, frozenset[str]]  # of the images and keys: the type tags seen, in order of appearance
    of_key: tuple[str, ...]  # the attributes of the key, which every image has
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
    seen = Look({}, (), (), frozenset(), "Keys" not in names and "keys" in names, True)
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
    [(bare, of_key)] = con.execute(f"""select coalesce(bool_or(json_type({sequence}) <> 'VARCHAR'), false),
        list_sort(list_distinct(flatten(list(json_keys({keys}))))) from look""").fetchall()
    return seen._replace(
        of_key=tuple(of_key or ()),
        keys=tuple(b for (b,) in begins if b),
        attributes={name: frozenset(tags) for name, tags, _, _ in attributes if name},  # none in SQL is without a name
        views=frozenset(v for (v,) in views),
        typed=2 * sum(row[2] for row in attributes) >= sum(row[3] for row in attributes),
        bare=bare,
    )


def identity_tokens(con: duckdb.DuckDBPyConnection, seen: Look, name: str) -> bool:
    """Whether most values of the token attribute in the sample are no numbers, such as UUIDs: they order nothing."""
    [(others,)] = con.execute(f"""select avg(case when regexp_full_match(t, '-?[0-9.eE+]+') then 0 else 1 end)
        from ({_texts(seen, name)}) where t is not null""").fetchall()
    return (others or 0) > 0.5


def names_apart(con: duckdb.DuckDBPyConnection, seen: Look, one: str, other: str) -> bool:
    """Whether two attributes of names have values in the sample and none in common, such as a host and a lease's id."""
    ones, others = (f"select t from ({_texts(seen, name)}) where t <> ''" for name in (one, other))
    [(apart,)] = con.execute(f"""select count(*) > 0 and bool_and(t not in ({others})) and exists({others})
        from ({ones})""").fetchall()
    return bool(apart)


def _texts(seen: Look, name: str) -> str:
    """SQL: the attribute's values as text `t`, of all images in the table `look`."""
    quoted = name.replace('"', '\\"')
    return " union all ".join(
        f"select coalesce({', '.join(f'd->>{unwrap.text(path + tag)}' for tag in tags)}) as t from look"
        for path in (f'$.{seen.spelled(image)}."{quoted}"' for image in ("NewImage", "OldImage"))
        for tags in [(".N", ".n", ".S", ".s") if seen.typed else ("",)]
    )
