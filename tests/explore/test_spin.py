"""Spin, with a model of its own, agrees with the search; and the comparison can fail."""

from __future__ import annotations

from functools import partial

import peer
import pytest
import spin

here = pytest.mark.skipif(bool(spin.missing()), reason=spin.missing() or "-")


@here
def test_spin_agrees(capsys):
    """For a fix in two steps and one with ids, Spin finds the same lengths and as many states."""
    assert spin.main(["--writes", "1", "--fix", "two-step-holder", "--fix", "fenced-id-per-job"]) == 0
    _, *lines, last = capsys.readouterr().out.splitlines()

    assert [" ".join(line.split()) for line in lines] == [
        "two-step-holder 11 = 11 7 = 7 7 = 7 10 = 10 593 = 593",
        "fenced-id-per-job none = none 6 = 6 none = none 9 = 9 137 = 137",
    ]
    assert last.startswith("all agree")


@here
def test_where_they_part(capsys, monkeypatch):
    """A fix whose model is another's is told from it, by name and both numbers."""
    monkeypatch.setitem(peer.FIXES, "latest", peer.FIXES["fenced"])

    assert spin.main(["--writes", "1", "--fix", "latest"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert "none ≠ 6" in printed[1]
    assert printed[2:] == ["latest, ownership: explore none, Spin 6", "latest, states: explore 145, Spin 173"]


@here
def test_a_model_that_spin_refuses(capsys, monkeypatch):
    """What Spin cannot read is no answer: exit code 2 and Spin's own reason."""
    monkeypatch.setitem(spin.ADMITTED, "nothing", "nonsense")

    assert spin.main(["--writes", "1", "--fix", "unfenced"]) == 2
    assert "`spin` failed, it said: spin: fix.pml:" in capsys.readouterr().err


@pytest.mark.parametrize("command", spin.PACKAGES)
def test_a_missing_command(command, capsys, monkeypatch):
    """Without Spin or a C compiler nothing is searched: exit code 2 and what to install."""
    monkeypatch.setattr(spin.shutil, "which", lambda asked: None if asked == command else asked)

    assert spin.main([]) == 2
    told = capsys.readouterr()
    assert told.err == f"no `{command}` on this machine: install {spin.PACKAGES[command]}\n"
    assert told.out == ""


def test_a_search_that_stops_is_no_answer(capsys, monkeypatch):
    """Where `explore` stops at its bound, what it did not find is not compared: exit code 2."""
    monkeypatch.setattr(spin, "missing", lambda: "")
    monkeypatch.setattr(spin, "explore", partial(spin.explore, most=100))

    assert spin.main(["--fix", "unfenced"]) == 2
    assert capsys.readouterr().err == (
        "--workers 2 --writes 2: too large under unfenced, `explore` stopped after 101 states\n"
    )
