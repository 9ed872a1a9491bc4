"""`fencinglab drill`: its refusals in one sentence, its list, and a short drill with its files."""

from __future__ import annotations

import json

import pytest

from fencinglab import cli
from fencinglab.drill.scenarios import SCENARIOS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--aws", "--mock"], "--aws and a mock are two receivers; name one"),
        (["--aws", "--unlocked-mock"], "--aws and a mock are two receivers; name one"),
        (["--mock", "--endpoint-url", "http://127.0.0.1:9"], "not allowed with argument"),
        (["--endpoint-url", "https://dynamodb.eu-west-1.amazonaws.com"], "that is AWS itself; add --aws"),
        (["--endpoint-url", "localhost"], "not a URL; write http://HOST:PORT"),
        (["--endpoint-url", "http://127.0.0.1:9", "--scenario", "replay"], "127.0.0.1:9 does not make request-status-drill"),
        (["--table", "jobs"], "--table jobs: the mock begins empty; leave it out, or give --endpoint-url or --aws"),
        (["--aws"], "--aws: You must specify a region; AWS_DEFAULT_REGION and AWS_PROFILE count"),
        (["--rounds", "0"], "--rounds 0: must be 1 or more"),
        (["--lease", "-1"], "--lease -1: must be 2 or more; clocks tell whole seconds, so that one of 1 s may be over at once"),
        (["--fail-on", "unsafest"], "--fail-on unsafest: `unsafest` is none of window, cost"),
        (["--scenario", "reply"], "there is no such scenario (`list` tells all); nearest: replay"),
        (["--requests", "request-state"], "neither a request file that comes with fencinglab nor a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_drilled_is_said(words, sentence, capsys, monkeypatch):
    """Each unusable option ends with exit code 2 and one sentence, whatever credentials lie about."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")  # for the AWS CLI of today, not for boto3
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)

    assert cli.main(["drill", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_an_endpoint_of_aws_that_is_no_url_is_said(capsys, monkeypatch):
    """With a region what is left to be wrong is the endpoint."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    assert cli.main(["drill", "--aws", "--endpoint-url", "localhost"]) == 2
    assert "--endpoint-url: Invalid endpoint: localhost; write http://HOST:PORT" in capsys.readouterr().err


def test_a_request_that_dynamodb_refuses_is_told_first(tmp_path, capsys):
    """A reserved word in a file of one's own is told with the operation's name before anything is sent."""
    from fencinglab.dynamodb import shelf

    text = (shelf.FOLDER / "request-status.json").read_text(encoding="utf-8")
    (tmp_path / "mine.json").write_text(text.replace("apiStatus", "status"), encoding="utf-8")

    assert cli.main(["drill", "--requests", str(tmp_path / "mine.json")]) == 2
    assert "mine.json: operation `record_response` would be refused: " in capsys.readouterr().err


def test_the_list_names_every_scenario(capsys):
    """`--scenario list` names each with a sentence."""
    assert cli.main(["drill", "--scenario", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{name} " in printed and scenario.says in printed for name, scenario in SCENARIOS.items())


def test_a_short_drill_leaves_its_files(tmp_path, capsys):
    """A drill prints its report, writes what it recorded and the audit of it, and exits as the audit does."""
    assert cli.main(["drill", "--scenario", "lost-reply", "--quiet", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("request-status.json on the mock: all that 1 scenario expects came true.")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"stream.jsonl", "workers.jsonl", "drill.txt", "report.json", "report.html", "findings.csv"} <= names
    log = [json.loads(line) for line in (tmp_path / "out" / "workers.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in log] == ["grant", "write", "finish"]
    assert {line["outcome"] for line in log} == {"ok"}
