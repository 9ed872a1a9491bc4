"""A counterexample of requests is what a receiver really does: sent in one go, every request is decided as the search says."""

from __future__ import annotations

import json

import pytest

from fencinglab.check.check import check
from fencinglab.dynamodb import requests, sending, shelf
from fencinglab.dynamodb.mock import Mock
from fencinglab.explore import walk
from fencinglab.explore.sender import plain

BROKEN = ("broken-unconditional", "broken-check-then-write", "broken-token-as-text", "broken-finish-twice")


@pytest.mark.parametrize("name", BROKEN)
def test_every_counterexample_is_sent_in_one_go(name):
    """On a new mock, never set back in between, each shortest run has the same decisions and leaves the same items."""
    answer = check(shelf.find(name), most=100_000).answer
    team, file = answer.model, answer.model.file
    violated = [verdict for verdict in answer.verdicts if verdict.run and verdict.status == "violated"]

    assert violated
    for verdict in violated:
        with Mock() as mock:
            receiver, where = mock.client(), requests.places(file)
            with sending.tables(receiver, file, streams=False):
                for place, item in zip(where, requests.begin(file), strict=True):
                    if item is not None:
                        receiver.put_item(TableName=place.table, Item=json.loads(item))
                for move, _, worker in walk.moves(team, verdict.run):
                    if move.step.accepted is None:
                        continue
                    message = worker.copy if move.step.act == "copy arrives" else worker.waiting
                    bindings = plain(dict(message.bindings))
                    request = requests.bind(file, team.program[message.place].operation, bindings)
                    answered = sending.send(receiver, file, request, bindings)
                    assert (answered.decision == "accepted") == move.step.accepted, (verdict.invariant, move.step)
                    assert team.stands.seen(sending.read(receiver, where)) == move.shared.items
