"""Every guard is broken by a timeline and held by another, and what a fix improves and leaves is computed."""

from __future__ import annotations

import pytest

from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.guard import GUARDS
from fencinglab.model.matrix import matrix, proposals

MATRIX = matrix()
OUTSIDE = {"external-e-mail", "mixed-versions", "scope-mismatch"}  # harm that passes by every guard


def harmed(fix: str) -> set[str]:
    return {timeline for (timeline, of), found in MATRIX.items() if of == fix and found}


def test_the_matrix_has_every_cell():
    """Every timeline of the shelf is replayed under every fix."""
    assert {*MATRIX} == {(timeline, fix) for timeline in shelf.names() for fix in FIXES}


@pytest.mark.parametrize("guard", GUARDS)
def test_every_guard_is_broken_and_held(guard):
    """For every guard there is a timeline that does harm under it, other than by passing it by, and one that does none."""
    for fix in (fix.name for fix in FIXES.values() if fix.guard == guard):
        alone = FIXES[fix][3:] == FIXES["unfenced"]._replace(guard=guard)[3:]
        assert not alone or harmed(fix) - OUTSIDE, fix
        assert {*shelf.names()} - harmed(fix), fix


@pytest.mark.parametrize("fix", FIXES)
def test_every_fix_improves_something_and_leaves_something(fix):
    """Every fix but none at all prevents a harm that is done without it, and under every fix some harm is left."""
    assert fix == "unfenced" or harmed("unfenced") - harmed(fix)
    assert harmed(fix)


def test_what_passes_by_every_guard():
    """Effects outside, a version without fencing and two leases over one resource harm whatever the guard is.

    A key that the service outside honours stops a second mail, a receiver that wants a token an old version.
    """
    for fix in FIXES.values():
        helps = {"external-e-mail": fix.effect_key, "mixed-versions": fix.strict}
        expected = OUTSIDE - {name for name, helped in helps.items() if helped}
        assert harmed(fix.name) & OUTSIDE == expected, fix.name


def test_the_four_proposed_fixes_each_improve_and_leave():
    """Each of the four is shown to prevent a harm on one timeline, and to leave one on another."""
    rows = proposals()

    assert [row.fix for row in rows] == ["longer-lease", "renewed-often", "client-check", "fenced"]
    for row in rows:
        assert MATRIX[row.improved_by, "unfenced"][0].says == row.without
        assert not MATRIX[row.improved_by, row.fix]
        assert MATRIX[row.exposed_by, row.fix][0].says == row.still


def test_a_matrix_of_some():
    """A matrix may be asked of a few timelines and fixes."""
    assert [*matrix([shelf.find("short-pause")], ["fenced", "unfenced"])] == [
        ("short-pause", "fenced"),
        ("short-pause", "unfenced"),
    ]
