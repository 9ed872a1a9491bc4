"""Which records to audit, as the user says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fencinglab.errors import UsageError
from fencinglab.logs.unwrap import text

if TYPE_CHECKING:
    import duckdb


class Filters(NamedTuple):
    """Which records to audit; times are what `moment` of values.py reads."""

    since: str | None = None
    until: str | None = None
    key_prefix: str | None = None
    resource: str | None = None


EVERYTHING = Filters()


def outside(con: duckdb.DuckDBPyConnection, filters: Filters) -> str:
    """SQL: whether a row is outside the filters, or empty where there are none; UsageError for a time that is none."""
    tests = []
    for option, value, compare in (("--since", filters.since, "<"), ("--until", filters.until, ">=")):
        if value is not None:
            [(moment,)] = con.execute("select moment(?)::varchar", [value]).fetchall()
            if moment is None:
                raise UsageError(f"{option} {value}: write a time such as 2026-11-29T14:00:00Z")
            tests.append(f""""at" {compare} timestamp {text(moment)}""")
    if filters.key_prefix is not None:
        prefix = text(filters.key_prefix)
        tests.append(f"not starts_with(item_key(resource), {prefix}) and not starts_with(resource, {prefix})")
    if filters.resource is not None:
        wanted = text(filters.resource)
        tests.append(f"item_key(resource) <> {wanted} and resource <> {wanted}")
    return " or ".join(f"({test})" for test in tests)
