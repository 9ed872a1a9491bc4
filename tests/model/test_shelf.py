"""Timelines are found by name, beside a file, or in a file; what cannot be found or read is one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencinglab.errors import InputError
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.timeline import parse

NAMED_HARMS = {  # what the project has promised to show, one a harm
    "report-generation", "stale-backoff", "stale-terminal", "stale-alert", "two-schedulers", "terminal-delivered-twice",
    "ttl-restart", "authority-restored", "external-e-mail", "scope-mismatch", "check-in-a-separate-step",
    "short-pause", "long-pause", "pause-after-check", "lost-reply", "delayed-message", "paused-before-acquiring",
    "killed-for-good",
}  # fmt: skip


def test_every_named_harm_has_a_timeline():
    """Each harm that was promised is on the shelf."""
    assert {*shelf.names()} >= NAMED_HARMS


@pytest.mark.parametrize("name", shelf.names())
def test_a_timeline_of_the_shelf_is_in_good_order(name):
    """Each has a title that fits in a list, a sentence on what to look for, fixes and companions that exist."""
    timeline = shelf.find(name)
    text = (shelf.FOLDER / f"{name}.timeline").read_text(encoding="utf-8")
    bare = [re.sub(r"\s+#.*|^#.*", "", line) for line in text.splitlines()]

    assert timeline.name == name
    assert len(timeline.title) <= 72
    assert timeline.shows
    assert {*timeline.fixes} <= {*FIXES}
    assert all(shelf.find(other) for other in timeline.also)
    assert [line for line in bare if line] == [line for line in str(timeline).splitlines() if line]


@pytest.mark.parametrize("word", ["C07-leader-not-told", "C07", "leader-not-told"])
def test_an_incident_has_a_number_and_words(word):
    """An incident is found by its name, its number or its words; its name is the whole."""
    assert shelf.find(word).name == "C07-leader-not-told"


def test_what_an_incident_is_called_is_unique():
    """No number and no words stand for two incidents, or for a timeline."""
    words = [word for name in shelf.incidents() for word in name.split("-", 1)]

    assert len({*words, *shelf.incidents(), *shelf.names()}) == 3 * len(shelf.incidents()) + len(shelf.names())


def test_a_file_of_ones_own(tmp_path):
    """A path is read as a file, and named by it in an error; a name of the shelf is never taken for a file."""
    mine = tmp_path / "mine.timeline"
    mine.write_text(str(shelf.find("short-pause")), encoding="utf-8")

    assert shelf.find(str(mine)).events == shelf.find("short-pause").events
    mine.write_text("title: x\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"^{re.escape(str(mine))}: the header says no `workers`"):
        shelf.find(str(mine))


def test_a_companion_stands_beside_the_file_or_on_the_shelf(tmp_path):
    """What a file names under `also` is looked for beside it first, then on the shelf."""
    mine, other = tmp_path / "mine.timeline", tmp_path / "other.timeline"
    text = str(shelf.find("short-pause")).replace("first", "also: other, long-pause\nfirst")
    mine.write_text(text, encoding="utf-8")
    other.write_text(str(shelf.find("short-pause")), encoding="utf-8")

    assert [t.name for t in shelf.companions(parse(text), str(mine))] == ["other", "long-pause"]


FAULTS = {
    "a name that is none": (
        "shortpause",
        None,
        r"`shortpause` is neither a timeline .* nor a file; nearest: short-pause.*",
    ),
    "a name like none": (
        "xyz",
        None,
        r"`xyz` is neither .* \(`fencinglab replay` lists them\) nor a file; nearest: .*",
    ),
    "no name": ("", None, r"`` is neither a timeline .* nor a file; nearest: .*"),
    "a folder": (".", None, r"\.: cannot be read \(Is a directory\); name a text file"),
    "no text": ("bad", b"title: \xff\n", r"bad: byte 8 is not UTF-8; save it as UTF-8 text"),
    "no page": ("bad", b"#" * 100_001, r"bad: is longer than 100,000 bytes; a timeline is a page of text"),
}


@pytest.mark.parametrize(("wanted", "content", "sentence"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_used_is_one_sentence(tmp_path, monkeypatch, wanted, content, sentence):
    """A name without a timeline is answered with the nearest, a file that cannot be read with the reason."""
    monkeypatch.chdir(tmp_path)
    if content:
        Path(wanted).write_bytes(content)

    with pytest.raises(InputError) as error:
        shelf.find(wanted)
    assert re.fullmatch(sentence, str(error.value)), str(error.value)
