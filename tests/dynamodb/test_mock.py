"""The mock decides one request at a time, other receivers are named, and nothing leaves the machine by accident."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from functools import partial

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from receivers import acquire, at_once, table

from fencinglab.dynamodb.mock import REGION, Mock, client, lose_replies
from fencinglab.errors import UsageError

LURES = {  # what may lie about on a machine, none of it true
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_SESSION_TOKEN": "none",
    "AWS_PROFILE": "production", "AWS_DEFAULT_REGION": "us-west-2", "AWS_ENDPOINT_URL": "http://192.0.2.1",
    "AWS_ENDPOINT_URL_DYNAMODB": "http://192.0.2.1", "HTTP_PROXY": "http://192.0.2.1:3128",
    "HTTPS_PROXY": "http://192.0.2.1:3128", "AWS_ACCOUNT_ID": "123456789012",
}  # fmt: skip


@pytest.fixture
def lured(monkeypatch):
    """A machine full of credentials, from which no connection but to itself can be made; gives what was tried."""
    tried, connect = [], socket.socket.connect

    def watched(self, address):
        tried.append(address)
        if address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a connection to {address} was tried")
        return connect(self, address)

    for name, value in LURES.items():
        monkeypatch.setenv(name, value)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", watched)
    return tried


def test_two_workers_at_once_get_one_lease():
    """Of two simultaneous acquires one succeeds and one fails its condition, in each of 200 rounds."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        for number in range(200):
            won = at_once(*(partial(acquire, receiver, f"req-{number % 3}", w, 100 * number + 100) for w in "AB"))
            assert sum(item is not None for item in won) == 1, f"round {number}"


def test_the_unlocked_mock_is_caught():
    """Without the mutex more than one of eight workers acquires, within 100 rounds."""
    with Mock(atomic=False) as mock:
        receiver = mock.client()
        table(receiver)
        for number in range(100):
            won = at_once(*(partial(acquire, receiver, "req", w, 100 * number + 100) for w in "ABCDEFGH"))
            if sum(item is not None for item in won) > 1:
                return
    pytest.fail("the negative control held for 100 rounds")


def test_threads_take_turns_as_before():
    """Once the unlocked mock is closed, threads take turns as often as before it was opened; the locked one never asks for more."""
    before = sys.getswitchinterval()
    with Mock(atomic=False):
        assert sys.getswitchinterval() < before
    with Mock():
        assert sys.getswitchinterval() == before
    assert sys.getswitchinterval() == before


def test_additions_are_not_lost():
    """Of 160 additions by eight threads none is lost, none is told the same number as another."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)

        def add():
            return [
                receiver.update_item(
                    TableName="request-status", Key={"requestId": {"S": "req"}}, UpdateExpression="ADD fencingToken :one",
                    ExpressionAttributeValues={":one": {"N": "1"}}, ReturnValues="UPDATED_NEW",
                )["Attributes"]["fencingToken"]["N"]
                for _ in range(20)
            ]  # fmt: skip

        told = [int(number) for numbers in at_once(*[add] * 8) for number in numbers]
    assert sorted(told) == list(range(1, 161))


def test_served_on_loopback():
    """The same mock answers on 127.0.0.1 to many threads, and its address is free again afterwards."""
    with Mock() as mock, mock.served() as url:
        receiver = client(url)
        table(receiver)
        won = at_once(*(partial(acquire, receiver, "req", w, 100) for w in "ABCD"))
        kept = mock.client().get_item(TableName="request-status", Key={"requestId": {"S": "req"}})["Item"]
    assert [item["fencingToken"] for item in won if item] == [{"N": "1"}] == [kept["fencingToken"]]
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=2)
    assert not [t for t in threading.enumerate() if "serve_forever" in t.name]


def test_mocks_know_nothing_of_each_other():
    """Two mocks have tables of their own, and a closed one has none."""
    with Mock() as one, Mock() as other:
        table(one.client())
        assert one.client().list_tables()["TableNames"] == ["request-status"]
        assert other.client().list_tables()["TableNames"] == []
        one.close()
        assert one.client().list_tables()["TableNames"] == []


def test_mocks_are_opened_at_one_moment():
    """Also the first ones of a process, by four threads at once, all answer."""
    script = """
from receivers import acquire, at_once, table
from fencinglab.dynamodb.mock import Mock
def use():
    with Mock() as mock:
        table(mock.client())
        return acquire(mock.client(), "req", "A", 100)["fencingToken"]["N"]
print(at_once(use, use, use, use))
"""
    there = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": there}, capture_output=True, text=True
    )

    assert done.stdout == "['1', '1', '1', '1']\n", done.stderr


def test_what_moto_cannot_do_is_a_server_error():
    """A condition over which moto stumbles is HTTP 500, as from its server, not a Python error."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        with pytest.raises(ClientError) as caught:
            receiver.put_item(
                TableName="request-status", Item={"requestId": {"S": "r"}},
                ConditionExpression="NOT NOT kept = :n", ExpressionAttributeValues={":n": {"N": "1"}},
            )  # fmt: skip
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        for headers in (
            {},
            {"X-Amz-Target": "Kinesis_20131202.ListStreams"},
            {"X-Amz-Target": "DynamoDB_20120810.Nothing"},
        ):
            assert mock.answer(headers, b"{}").status in (400, 500)
        for body in (b"{", b"7", b'"text"'):
            assert mock.answer({"X-Amz-Target": "DynamoDB_20120810.GetItem"}, body).status == 400


def test_a_lost_reply_was_decided():
    """A client that loses a reply has a timeout; the item is written all the same."""
    with Mock() as mock:
        receiver = mock.client()
        table(receiver)
        lose_replies(receiver, lambda operation: operation == "UpdateItem")
        with pytest.raises(ReadTimeoutError):
            acquire(receiver, "req", "A", 100)
        kept = receiver.get_item(TableName="request-status", Key={"requestId": {"S": "req"}})["Item"]
        assert kept["leaseOwner"] == {"S": "A"}


def test_nothing_leaves_the_machine_unless_told_to(lured):
    """With credentials, a profile, endpoints and proxies in the environment, no named receiver is a refusal in words."""
    with pytest.raises(
        UsageError, match=r"no receiver was named, and credentials .* --endpoint-url .* --mock, or --aws"
    ):
        client()
    assert lured == []


@pytest.mark.parametrize(
    "url",
    [
        "https://dynamodb.eu-central-1.amazonaws.com",
        "https://dynamodb.cn-north-1.amazonaws.com.cn",
        "https://dynamodb.eu-west-1.api.aws",
        "https://AMAZONAWS.com:443/",
    ],
)
def test_an_address_of_aws_needs_aws(url, lured):
    """An endpoint that is AWS itself is refused unless AWS is asked for by name."""
    with pytest.raises(UsageError, match="that is AWS itself; add --aws"):
        client(url)
    assert lured == []


@pytest.mark.parametrize("url", ["localhost:8000", "8000", "ftp://localhost", "http://"])
def test_an_endpoint_is_a_url(url):
    """What is no http URL is refused with an example."""
    with pytest.raises(UsageError, match=r"not a URL; write http://HOST:PORT"):
        client(url)


def test_mock_and_loopback_use_nothing_that_lies_about(lured):
    """In-process nothing connects at all; at a loopback URL only loopback, past proxies and configured endpoints."""
    with Mock() as mock:
        table(mock.client())
        assert lured == []
        with mock.served() as url:
            receiver = client(url)
            assert receiver.list_tables()["TableNames"] == ["request-status"]
            assert receiver.meta.region_name == REGION
            assert receiver._request_signer._credentials.access_key == "fencinglab"
    assert {address[0] for address in lured} == {"127.0.0.1"}


def test_aws_is_reached_only_by_its_word(lured):
    """With `aws` the client is the user's own: their region, their credentials; made, and nothing sent."""
    os.environ.pop("AWS_PROFILE")
    made = client("https://dynamodb.us-west-2.amazonaws.com", aws=True)
    assert made.meta.region_name == "us-west-2"
    assert made._request_signer._credentials.access_key == LURES["AWS_ACCESS_KEY_ID"]
    assert lured == []


def test_no_profile_of_this_machine_matters():
    """A profile that there is not stops neither a request file from being read nor the mock from answering."""
    words = [sys.executable, "-m", "fencinglab", "drill", "--quiet", "--scenario", "rate-limit"]
    done = subprocess.run(words, env={**os.environ, "AWS_PROFILE": "nope"}, capture_output=True, text=True)

    assert "request-status.json on the mock: all that 1 scenario expects came true." in done.stdout, done.stderr
