"""A file of some operations takes the others from a whole one, or is refused in one sentence."""

from __future__ import annotations

import json

import pytest

from fencinglab import cli
from fencinglab.dynamodb import shelf
from fencinglab.errors import InputError

STATUS = json.loads((shelf.FOLDER / "request-status.json").read_text(encoding="utf-8"))


def partial(tmp_path, *names, change=lambda text: text, **more):
    """A file with only these operations of request-status, its text changed, and further names."""
    kept = json.loads(change(json.dumps({name: STATUS["operations"][name] for name in names})))
    (tmp_path / "mine.json").write_text(json.dumps({"operations": kept, **more}), encoding="utf-8")
    return str(tmp_path / "mine.json")


def test_one_operation_is_enough(tmp_path):
    """Its table, item and other operations are those of the rest; which came from where is kept."""
    file = shelf.find(partial(tmp_path, "finish"), "request-status")
    whole = shelf.find("request-status")

    assert (file.name, file.rest) == ("mine.json", "request-status.json")
    assert {*file.operations} - {*file.taken} == {"finish"}
    assert file._replace(name="", rest="", taken=(), says="", claims=()) == whole._replace(name="", says="", claims=())


def test_an_operation_of_another_name_stands_in_for_its_kind(tmp_path):
    """It takes the place of the first of its kind, in a table of its own name; a name keeps its kind unsaid."""

    def renamed(text):
        raw = json.loads(text.replace('"TableName": "request-status"', '"TableName": "jobs"'))
        del raw["record_response"]["kind"]
        return json.dumps({"complete": raw["finish"], "record_response": raw["record_response"]})

    file = shelf.find(partial(tmp_path, "finish", "record_response", change=renamed), "request-status")

    assert [use.operation for use in file.program][:6] == [
        "acquire", "renew", "record_response", "schedule_next_poll", "decide_retry", "complete",
    ]  # fmt: skip
    assert "finish" not in file.operations
    assert file.tables[0]["TableName"] == "jobs" == file.operations["acquire"].input["TableName"]


def test_an_acquire_of_another_name_tells_the_token(tmp_path):
    """The token is looked for in the reply of the operation that acquires, whatever its name is."""
    file = shelf.find(
        partial(tmp_path, "acquire", change=lambda text: text.replace('"acquire"', '"take"')), "request-status"
    )

    assert file.token == "$take.fencingToken"


@pytest.mark.parametrize(
    ("change", "more", "sentence"),
    [
        (lambda text: text.replace('"Key": {"requestId"', '"Key": {"id"'), {}, "its key is id, that of request-status.json is requestId"),
        (lambda text: text.replace("$resource", "$job"), {"given": {"job": "j-1"}}, 'operation `finish` is about the item {"requestId":{"S":"j-1"}}'),
        (lambda text: text, {"map": {"token": "fence"}}, "`map` has `fence` for token, request-status.json has `fencingToken`"),
        (lambda text: text.replace('"finish": {"kind": "finish"', '"undo": {"kind": "effect"'), {}, "operation `undo` is of the kind effect"),
        (lambda text: text.replace('"finish": {"kind": "finish"', '"finish": {"kind": "finsh"'), {}, "`finsh` is no kind"),
        (lambda text: text, {"program": ["acquire", "finsh"]}, "`program` names `finsh`"),
        (lambda text: text, {"map": ["token"]}, "`map` must be a JSON object, not list"),
        (lambda text: text.replace('"Key": {"requestId": {"S": "$resource"}}', '"Key": 5'), {}, "Invalid type for parameter"),
        (lambda text: text.replace('"update-item"', '"transact-write-items": {"TransactItems": 5}, "was"'), {}, "has no `was`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path, change, more, sentence):
    """Another key, another item, another attribute and a kind without a place are one sentence each."""
    with pytest.raises(InputError) as caught:
        shelf.find(partial(tmp_path, "finish", change=change, **more), "request-status")

    assert sentence in str(caught.value)


def test_a_whole_file_needs_no_rest(capsys):
    """A rest of which nothing is taken is refused, and a whole file beside one that lacks something is left as it is."""
    assert cli.main(["check", "request-status", "--rest", "late-render"]) == 2
    assert "--rest late-render: request-status.json lacks nothing; leave it out" in capsys.readouterr().err
    assert shelf.find("request-status", "late-render") == shelf.find("request-status")


def test_without_a_rest_it_is_refused(tmp_path, capsys):
    """A file that names no acquire and no --rest is one sentence, and exit 2; one that lacks a part names it."""
    assert cli.main(["check", partial(tmp_path, "finish")]) == 2
    assert "mine.json: no operation is of the kind grant, by which a worker acquires" in capsys.readouterr().err
    assert cli.main(["check", partial(tmp_path, "acquire")]) == 2
    assert "`table` is missing" in capsys.readouterr().err


def test_the_answer_says_which_came_from_where(tmp_path, capsys):
    """Whoever reads the answer sees what was the team's own."""
    words = ["check", partial(tmp_path, "finish"), "--rest", "broken-unconditional", "--max-states", "50", "--quiet"]
    cli.main(words)

    assert (
        "from        mine.json: finish; broken-unconditional.json: acquire, record_response" in capsys.readouterr().out
    )
