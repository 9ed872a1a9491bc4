"""A row has every column of the history, both sides, and hashes that are the same in every run."""

from __future__ import annotations

import pytest

from fencinglab.history import NAMES
from fencinglab.model.lease import Lease
from fencinglab.model.receiver import Held
from fencinglab.model.rows import BASE, clock, moment, row

LEASE = Lease(41, "A", 60)


def test_a_row_has_every_column_in_order():
    """Nothing that is not known is left out: it is None."""
    made = row(7, "scope", (LEASE, Held()), (LEASE, Held()), {"resource": "report"})

    assert tuple(made) == NAMES
    assert (made["resource"], made["writer"], made["order_key"]) == ("report", None, "7".zfill(40))


def test_a_name_that_is_no_column_is_a_slip():
    """A column of another name is caught where the row is made."""
    with pytest.raises(KeyError, match="fence"):
        row(1, "scope", (LEASE, None), (LEASE, None), {"fence": 41})


def test_a_resource_that_does_not_exist_has_no_image():
    """Before there is a resource nobody holds it and its image is 0; afterwards both sides say what is held."""
    made = row(1, "scope", (None, None), (LEASE, Held(value="x", status="DONE", terminal_version=1, version=2)), {})

    assert {k: v for k, v in made.items() if k.startswith("before_") and v is not None} == {
        "before_image": 0,
        "before_holder": "",
    }
    after = {k.removeprefix("after_"): v for k, v in made.items() if k.startswith("after_")}
    assert {after.pop("image") > 0, len(after.pop("value")) == 16} == {True}
    assert after == {
        "token": 41, "holder": "A", "expires_at": moment(60), "status": "DONE", "terminal": True, "terminal_version": 1, "version": 2
    }  # fmt: skip


def test_hashes_are_plain():
    """The same state has the same hash in every run, and another state another."""
    images = [
        row(1, "scope", (LEASE, None), (LEASE, held), {})["after_image"] for held in (Held(), Held(), Held(value="x"))
    ]

    assert images[0] == images[1] == 12714624093328980205
    assert images[2] != images[0]


@pytest.mark.parametrize(("second", "text"), [(0, "00:00"), (65, "01:05"), (3600, "1:00:00"), (86_400, "24:00:00")])
def test_a_second_is_told_as_a_clock_shows_it(second, text):
    """Logical seconds are printed as minutes and seconds, with hours where there are any."""
    assert clock(second) == text
    assert (moment(second) - BASE).total_seconds() == second
