"""Files are written whole or not at all; no cell of a table acts in a spreadsheet."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from fencinglab.errors import UsageError
from fencinglab.output import place, table


def test_files_are_placed_by_name(tmp_path):
    """Texts, texts in parts and bytes are written below the folder, which is made where it is missing."""
    paths = place({"a.txt": "x\n", "in/b.txt": ["y", "\n"], "c.bin": b"\xff"}, tmp_path / "new" / "out")

    assert [(path.relative_to(tmp_path).as_posix(), path.read_bytes()) for path in paths] == [
        ("new/out/a.txt", b"x\n"), ("new/out/in/b.txt", b"y\n"), ("new/out/c.bin", b"\xff")
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == ["a.txt", "c.bin", "in"]


def test_a_slip_leaves_what_was_there(tmp_path):
    """When a part fails, the files of before stand and nothing else is left."""
    place({"a.txt": "before"}, tmp_path)

    def parts():
        yield "after"
        raise RuntimeError("slip")

    with pytest.raises(RuntimeError, match="slip"):
        place({"a.txt": parts()}, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "before")]


def test_a_place_that_cannot_be_is_one_sentence(tmp_path):
    """A file where the folder should be is a UsageError with the reason."""
    Path(tmp_path, "taken").write_text("x")

    with pytest.raises(
        UsageError, match=r"^--out .*taken: cannot be written \(File exists\); name a folder that you own$"
    ):
        place({"a.txt": ""}, tmp_path / "taken")


def test_cells_are_inert():
    """A text that a spreadsheet would run gets an apostrophe, hidden characters are shown, nothing known is empty."""
    lines = [*table(["a", "b"], [{"a": "=1+1", "b": None}, {"a": "x\x1b,y", "b": 41}])]

    assert lines == ["a,b\n", "'=1+1,\n", '"x\N{REPLACEMENT CHARACTER},y",41\n']


def test_a_number_stays_a_number():
    """A number below zero gets no apostrophe; a text that looks like one, such as a token in a log, does."""
    [_, *lines] = table(["a", "b"], [{"a": -3.32, "b": Decimal("-41")}, {"a": "-3.32", "b": -1}])

    assert lines == ["-3.32,-41\n", "'-3.32,-1\n"]
