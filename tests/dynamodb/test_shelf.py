"""The request files of data/requests: each reads, runs, runs unchanged with the AWS CLI, and says what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fencinglab.dynamodb import requests, shelf
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.placeholders import Unbound
from fencinglab.dynamodb.requests import begin, places
from fencinglab.dynamodb.sending import read, refused, step, tables
from fencinglab.errors import InputError
from fencinglab.explore.hazards import HAZARDS
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.history import KINDS
from fencinglab.logs.mapping import FIELDS

NAMES = shelf.names()
GOOD = [name for name in NAMES if not name.startswith("broken-")]
POLLING = "polling-stops"  # nothing finished is acquired again: of the article's list, not an invariant of the model


def bindings(file, name, number, replies):
    """What a worker A that has acquired once binds for its `number`-th operation."""
    known = {"worker": "A", "now": 1000 + number, "operation": f"A/{name}", "value": "hash-1", **replies}
    try:
        return known | {"token": requests.token(file, known)}
    except Unbound:
        return known


def walk(file):
    """The operations in the order in which a run can use them all."""
    return [*file.creates, *(use.operation for use in file.program)]


def test_the_files_are_there():
    """Three good files and one variant, and one for each mistake that the issue names."""
    assert set(NAMES) == {
        "request-status", "late-render", "lease-beside-resource", "lease-beside-resource-promised",
        "broken-unconditional", "broken-check-then-write", "broken-token-as-text", "broken-finish-twice",
        "broken-article-acquire", "broken-token-read-after",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_whole(name):
    """It says in a sentence what it is, maps only known columns, claims only known words, and DynamoDB takes it."""
    file = shelf.find(name)

    assert re.fullmatch(r"[A-Z][^.]*\.", file.says)
    assert set(file.map) <= set(FIELDS)
    assert {one.kind for one in file.operations.values()} <= {*KINDS, "read"}
    assert len(file.of_kind("grant")) == 1 and file.of_kind("finish")
    assert {*file.claims.holds, *file.claims.breaks} <= {*INVARIANTS, POLLING}
    assert set(file.claims.hazards) <= set(HAZARDS)
    assert bool(file.claims.breaks) is name.startswith("broken-")
    assert not {*file.claims.breaks} & {*file.claims.holds}
    assert refused(file) is None


@pytest.fixture
def aws(monkeypatch):
    """The AWS CLI, run in this process and without anything that lies about on the machine."""
    from awscli.clidriver import create_clidriver

    given = {
        "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
    }  # fmt: skip
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    return create_clidriver().main


@pytest.mark.parametrize("name", NAMES)
def test_the_aws_cli_runs_it_unchanged(name, aws, capsys):
    """Each bound request, given to `aws dynamodb … --cli-input-json`, does what `step` does with it: same items."""
    file, replies = shelf.find(name), {}
    with Mock() as here, Mock() as there, there.served() as url:
        ours, theirs = here.client(), client(url)
        with tables(ours, file), tables(theirs, file):
            items, where = begin(file), places(file)
            for place, item in zip(where, items, strict=True):
                if item:
                    theirs.put_item(TableName=place.table, Item=json.loads(item))
            for number, operation in enumerate(walk(file)):
                known = bindings(file, operation, number, replies)
                try:
                    request = requests.bind(file, operation, known)
                except Unbound:
                    continue
                made = step(ours, file, items, operation, known)
                items = made.items
                code = aws(["dynamodb", request.action, "--cli-input-json", request.text, "--endpoint-url", url])
                printed = capsys.readouterr()
                assert (code == 0) is (made.decision == "accepted"), printed.err
                assert read(theirs, where) == items, operation
                if made.reply is not None and made.decision == "accepted":
                    told = json.loads(printed.out)
                    assert requests.frozen(told.get("Attributes", told.get("Item"))) == made.reply
                    replies |= requests.learned(operation, json.loads(made.reply))
                else:
                    assert made.decision == "accepted" or "ConditionalCheckFailed" in printed.err


def test_the_articles_command_runs_as_written(tmp_path, monkeypatch, aws, capsys):
    """The article's own command line acquires, with its values in a file; it acquires a finished request again.

    So does broken-article-acquire, whose acquire has the same expressions; request-status refuses it as terminal.
    """
    monkeypatch.chdir(tmp_path)
    values = {":owner": {"S": "A"}, ":exp": {"N": "1060"}, ":one": {"N": "1"}, ":now": {"N": "1000"}}
    Path("lease-values.json").write_text(json.dumps(values))
    command = [
        "dynamodb", "update-item", "--table-name", "request-status", "--key", '{"requestId":{"S":"req-8f23"}}',
        "--update-expression", "SET leaseOwner=:owner, leaseExpiresAt=:exp ADD fencingToken :one",
        "--condition-expression", "attribute_not_exists(leaseOwner) OR leaseExpiresAt < :now",
        "--expression-attribute-values", "file://lease-values.json", "--return-values", "ALL_NEW",
    ]  # fmt: skip
    article, corrected = shelf.find("broken-article-acquire"), shelf.find("request-status")
    finished = {
        "requestId": {"S": "req-8f23"},
        "apiStatus": {"S": "SUCCEEDED"},
        "terminalVersion": {"N": "1"},
        "fencingToken": {"N": "41"},
    }
    with Mock() as mock, mock.served() as url:
        receiver = client(url)
        with tables(receiver, article):
            receiver.put_item(TableName="request-status", Item=finished)
            assert aws([*command, "--endpoint-url", url]) == 0
            assert json.loads(capsys.readouterr().out)["Attributes"]["fencingToken"] == {"N": "42"}
            known = {"worker": "A", "now": 1000, "operation": "A/1"}
            acquired = step(receiver, article, (requests.frozen(finished),), "acquire", known)
            asked = step(receiver, corrected, (requests.frozen(finished), None), "acquire", known)
    assert (acquired.decision, json.loads(acquired.items[0])["leaseOwner"]) == ("accepted", {"S": "A"})
    assert (asked.decision, asked.reason, asked.items[0]) == ("rejected", "terminal", requests.frozen(finished))


def test_a_file_is_found_by_name_or_path(tmp_path):
    """A name, or the path of a file of one's own; anything else is a sentence with the nearest names."""
    text = (shelf.FOLDER / "late-render.json").read_text(encoding="utf-8")
    (tmp_path / "mine.json").write_text("\ufeff" + text, encoding="utf-8")  # as some editors save it
    (tmp_path / "latin.json").write_bytes(b'{"says": "caf\xe9"}')

    assert shelf.find(str(tmp_path / "mine.json"))._replace(name="") == shelf.find("late-render")._replace(name="")
    for wanted, sentence in (
        ("late-rendr", "nearest: late-render"), ("nothing-like-it", "nearest: "),
        (str(tmp_path / "latin.json"), "byte 14 is not UTF-8"), (str(tmp_path), "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            shelf.find(wanted)
