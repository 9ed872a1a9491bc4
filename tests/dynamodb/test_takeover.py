"""One paused worker tells every broken request file from the good ones."""

from __future__ import annotations

import pytest

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.requests import Operation, Use
from fencinglab.dynamodb.takeover import PAUSES, on_a_mock, side_by_side
from fencinglab.errors import InputError

STALE = "rejected (newer_token)"
DONE = "rejected (terminal)"
# file -> what becomes of A's write, of its finish and of C's acquire, with a pause after the grant, before the write
EXPECTED = {
    "broken-unconditional": [("accepted", "accepted", DONE, "A")] * 2,
    "broken-check-then-write": [("not sent", "not sent", DONE, "B"), ("accepted", "not sent", DONE, "B")],
    "broken-token-as-text": [("accepted", "accepted", DONE, "A")] * 2,
    "broken-finish-twice": [(STALE, STALE, "accepted", "B")] * 2,
    "broken-article-acquire": [(STALE, STALE, "accepted", "B")] * 2,
    "broken-token-read-after": [("accepted", DONE, DONE, "B"), (STALE, STALE, DONE, "B")],
}  # fmt: skip


@pytest.mark.parametrize("name", shelf.names())
def test_each_file_shows_what_it_lets_through(name):
    """A good file refuses A and C whatever the pause; each broken one lets something through, and only its own."""
    found = on_a_mock(shelf.find(name))

    told = [(one.stale_write, one.second_finish, one.reopened, one.value) for one in found]
    assert told == EXPECTED.get(name, [(STALE, STALE, DONE, "B")] * 2)
    assert all(
        turn.worker in "ABC" and turn.decision in ("accepted", "rejected", "not sent") for turn in found[0].turns
    )
    assert (name in EXPECTED) is name.startswith("broken-")


def test_who_is_kept_from_acquiring_has_not_acquired():
    """Where C reads that the item is finished and stops there nothing is accepted; where A stops there is no takeover."""
    file = shelf.find("broken-article-acquire")
    acquire = file.operations["acquire"].input

    def reading(attempt):
        given = {name: acquire[name] for name in ("TableName", "Key")}
        look = Operation("look", "read", "get-item", given, {"attempt": {"N": attempt}})
        return file._replace(operations={"look": look, **file.operations}, program=(Use("look", False), *file.program))

    assert [on_a_mock(one)[0].reopened for one in (file, reading("0"))] == ["accepted", "not sent"]
    with pytest.raises(InputError, match="what A reads of `start` keeps it from acquiring"):
        on_a_mock(reading("1"))


def test_side_by_side_is_a_table():
    """A row for each file and pause, with what became of each of the four that tell."""
    rows = side_by_side([shelf.find("broken-token-read-after")])

    assert [row["A pauses"] for row in rows] == list(PAUSES)
    assert [row["A writes after B"] for row in rows] == ["accepted", STALE]
    assert {row["requests"] for row in rows} == {"broken-token-read-after"}


@pytest.mark.parametrize(
    ("change", "lacks"),
    [({"map": {}}, "`map` names no value"), ({"program": ()}, "no operation is of the kind finish")],
)
def test_a_file_that_cannot_be_told_to_its_end(change, lacks):
    """Without a finish or a mapped value a takeover is refused in a sentence."""
    with pytest.raises(InputError, match=f"request-status.json: {lacks}, so that a takeover cannot be told"):
        side_by_side([shelf.find("request-status")._replace(**change)])
