"""Text from a log is harmless before anybody reads it."""

import pytest

from fencinglab.inert import inert


@pytest.mark.parametrize("text", ["a\nb", "a\x1bb", "a\u2028b", "a\u202eb", "a\u200bb", "a\ud800b"])
def test_a_hidden_character_becomes_a_mark(text: str) -> None:
    """A line end, a control, format or direction character or a lone surrogate becomes a visible mark."""
    assert inert(text, 10) == "a\N{REPLACEMENT CHARACTER}b"


def test_both_ends_of_a_long_text_stay() -> None:
    """A text beyond the width is cut in its middle, to exactly the width."""
    cut = inert("begin" + "x" * 10_000_000 + "end", 20)

    assert (len(cut), cut[:5], cut[-3:], "…" in cut) == (20, "begin", "end", True)


def test_what_fits_stays_as_it_is() -> None:
    """A text of the width, with letters of any script, is not touched."""
    assert inert("tøken-4\N{CJK UNIFIED IDEOGRAPH-4E2D}", 8) == "tøken-4\N{CJK UNIFIED IDEOGRAPH-4E2D}"
