"""The nearest of the names that there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencinglab.errors import nearest

NAMES = ("report-generation", "request-status", "short-pause", "stale-alert", "ttl-restart")


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("reprt", "report-generation"),
        ("reqest-status", "request-status"),
        ("short", "short-pause"),
        ("ttl", "ttl-restart"),
    ],
)
def test_a_slip_or_a_beginning_is_enough(word, first):
    """A name with a letter less, or only its beginning, leads to the name that was meant."""
    assert nearest(word, NAMES)[0] == first


@given(st.sampled_from(NAMES), st.integers(1, 4))
def test_a_name_is_nearest_to_itself(name, most):
    """Of a name that there is the nearest is itself, and never more are given than were asked for."""
    found = nearest(name, NAMES, most)

    assert found[0] == name
    assert len(found) <= most


def test_what_is_like_nothing_has_a_nearest_all_the_same():
    """A word that resembles no name gets a name, so that a message never ends without one."""
    assert set(nearest("§", NAMES)) <= {*NAMES} and nearest("§", NAMES)
