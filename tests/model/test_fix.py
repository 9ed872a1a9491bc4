"""Fixes are named combinations; together they are every row of the tables that they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_floors import FLOORS

from fencinglab import model
from fencinglab.errors import InputError
from fencinglab.model.fix import FIXES, Fix, named
from fencinglab.model.guard import GUARDS
from fencinglab.model.receiver import DUPLICATES

# The rows that explorers have agreed upon -> what each is here: guard, duplicate rule, client check, renewals, aborts.
ROWS = {
    "nothing": ("unfenced", "unguarded", "none", False, False, False),
    "a longer lease": ("longer-lease", "unguarded", "none", False, False, False),
    "renew, abort on failure": ("renew-or-abort", "unguarded", "none", False, True, True),
    "client checks, then writes": ("client-check", "unguarded", "none", True, False, False),
    "token checked in two steps": ("two-step-token", "two-step-token", "none", False, False, False),
    "holder checked in two steps": ("two-step-holder", "two-step-holder", "none", False, False, False),
    "token >= highest seen": ("fenced", "at-or-above", "none", False, False, False),
    "token > highest seen": ("fenced-above", "above", "none", False, False, False),
    ">= and an id per attempt": ("fenced-id-per-attempt", "at-or-above", "attempt", False, False, False),
    ">= and an id per job": ("fenced-id-per-job", "at-or-above", "job", False, False, False),
    "token == latest issued": ("latest", "latest", "none", False, False, False),
    "current unexpired holder": ("holder", "current-holder", "none", False, False, False),
    "current holder and an id": ("holder-id", "current-holder", "attempt", False, False, False),
    "latest token and an id": ("latest-id", "latest", "attempt", False, False, False),
    "raised by the grant": ("promised", "promised", "none", False, False, False),
    "renew more often": ("renewed-often", "unguarded", "none", False, True, False),
}


@pytest.mark.parametrize(("name", "guard", "duplicates", "checks", "renews", "aborts"), ROWS.values(), ids=ROWS)
def test_every_row_of_the_tables_is_a_fix(name, guard, duplicates, checks, renews, aborts):
    """Each row of the tables is a fix with just that combination."""
    fix = FIXES[name]

    assert (fix.guard, fix.duplicates, fix.client_check, fix.renews, fix.aborts) == (
        guard,
        duplicates,
        checks,
        renews,
        aborts,
    )


@pytest.mark.parametrize("fix", FIXES.values(), ids=FIXES)
def test_a_fix_says_what_it_improves_and_what_it_leaves(fix):
    """A fix has its two sentences, a guard and a duplicate rule that exist, and differs from all others."""
    assert fix.improves.endswith(".")
    assert fix.leaves.endswith(".")
    assert fix.guard in GUARDS
    assert fix.duplicates in DUPLICATES
    assert [other.name for other in FIXES.values() if other[3:] == fix[3:]] == [fix.name]


def test_every_guard_and_duplicate_rule_is_in_a_fix():
    """No guard and no duplicate rule is without a fix that uses it."""
    assert {fix.guard for fix in FIXES.values()} == {*GUARDS}
    assert {fix.duplicates for fix in FIXES.values()} == {*DUPLICATES}


def test_a_fix_by_name():
    """A name gives its fix; one that is none is answered with the nearest."""
    assert named("fenced") is FIXES["fenced"]
    with pytest.raises(InputError, match=r"^`fence` is no fix; nearest: fenced, "):
        named("fence")
    with pytest.raises(InputError, match=r"^`fenced,latest-id` is no fix \(one at a time: repeat --fix\); nearest: "):
        named("fenced,latest-id")


def test_a_fix_that_says_nothing_is_no_fix():
    """Whatever a fix does not say is what a team without that measure has."""
    assert Fix("x", "x", "x")[3:] == FIXES["unfenced"][3:]


def test_the_model_can_be_read_aloud():
    """Lease, guard, receiver and fix together are under 500 lines."""
    folder = Path(__file__).parents[2] / "fencinglab" / "model"
    lines = [len((folder / f"{name}.py").read_text().splitlines()) for name in ("lease", "guard", "receiver", "fix")]

    assert sum(lines) < 500


def test_it_is_read_in_the_order_of_its_imports():
    """The package names its modules in the order in which each may import those before it."""
    [wing] = [names for names in FLOORS[1] if "model" in names]

    assert [f"model.{name}" for name in re.findall(r"`(\w+)`", model.__doc__)] == [*wing[:-1]]
