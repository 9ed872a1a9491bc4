"""How values are written in logs, as DuckDB macros that every reader uses: whole numbers, times, hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencinglab.history import TOKEN_DIGITS

if TYPE_CHECKING:
    import duckdb

# plain_number: a small whole number as one writes it, told several times faster than by a pattern; the macros below
# try it first, and what they give does not depend on it.
# whole_number: exact to 38 digits, `42.0` is 42; anything else (a sign, a fraction, an exponent) is null.
# moment: epoch seconds, milliseconds, microseconds or nanoseconds by magnitude, else a written time; UTC
# where no zone is written. time_unit says which of them it is.
# fingerprint: one number for a JSON value, whatever the order of its members and set elements: the sum over its
# names and scalars (two values that trade places go unseen).
# key_text: the value of a DynamoDB key; of a composite one the values in the order of their names, `|` between.
# item_key: the key in `table/key`; a resource without a table is its own key.
MACROS = rf"""
create or replace temp macro plain_number(t) as try_cast(t as ubigint)::varchar = t;
create or replace temp macro whole_number(t) as case
    when plain_number(t) then try_cast(t as ubigint)::decimal({TOKEN_DIGITS},0)
    when regexp_full_match(t, '[0-9]{{1,{TOKEN_DIGITS}}}') then try_cast(t as decimal({TOKEN_DIGITS},0))
    when regexp_full_match(t, '[0-9]{{1,{TOKEN_DIGITS}}}[.]0+')
        then try_cast(split_part(t, '.', 1) as decimal({TOKEN_DIGITS},0)) end;
create or replace temp macro time_unit(t) as case
    when t is null then null
    when length(t) <= 11 and plain_number(t) then 's'
    when regexp_full_match(t, '[0-9]+([.][0-9]+)?([eE][+]?[0-9]+)?') then case
        when try_cast(t as double) < 1e11 then 's' when try_cast(t as double) < 1e14 then 'ms'
        when try_cast(t as double) < 1e17 then 'us' else 'ns' end
    else 'text' end;
create or replace temp macro written_time(t) as coalesce(
    try_cast(replace(t, ',', '.') as timestamptz) at time zone 'UTC',
    try_strptime(t, ['%a %b %d %H:%M:%S %Y', '%a, %d %b %Y %H:%M:%S GMT']));
create or replace temp macro moment(t) as case
    when length(t) <= 11 and plain_number(t) then make_timestamp(try_cast(t as bigint) * 1000000)
    else case time_unit(t)
        when 's' then make_timestamp(round(try_cast(t as double) * 1e6)::bigint)
        when 'ms' then make_timestamp(round(try_cast(t as double) * 1e3)::bigint)
        when 'us' then make_timestamp(round(try_cast(t as double))::bigint)
        when 'ns' then make_timestamp(try_cast(try_cast(t as hugeint) // 1000 as bigint))
        when 'text' then written_time(t) end end;
create or replace temp macro fingerprint(j) as case when j is not null then
    hash(list_sum(list_transform(string_split(translate(j, ':{{}}[]', ','), ','), lambda x: hash(x)))) end;
create or replace temp macro key_scalar(v) as coalesce(
    v->>'$.S', v->>'$.s', v->>'$.B', v->>'$.b',
    regexp_replace(coalesce(v->>'$.N', v->>'$.n', v->>'$'), '^(-?[0-9]+)[.]0+$', '\1'));
create or replace temp macro key_text(k) as
    nullif(array_to_string(list_transform(list_sort(map_entries(try_cast(try_cast(k as json) as map(varchar, json)))),
        lambda e: replace(key_scalar(e.value), '|', '\|')), '|'), '');
create or replace temp macro item_key(resource) as substr(resource, instr(resource, '/') + 1);
create or replace temp macro keyed(key, t) as case when t is not null then to_hex(hash(key || t)) end;
"""


def define(con: duckdb.DuckDBPyConnection) -> None:
    """Define the macros on a connection, whose time zone becomes UTC."""
    con.execute("set timezone = 'UTC'")
    con.execute(MACROS)
