"""What the tests of dynamodb/ share: tables, the article's acquire, races, and a ministack on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

ARTICLE = {  # as the request-status article writes it
    "UpdateExpression": "SET leaseOwner=:owner, leaseExpiresAt=:exp ADD fencingToken :one",
    "ConditionExpression": "attribute_not_exists(leaseOwner) OR leaseExpiresAt < :now",
}


def table(client: Any, name: str = "request-status", key: str = "requestId") -> None:
    """Make a table with a text key and a stream."""
    client.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip


def acquire(client: Any, key: str, worker: str, now: int) -> dict[str, Any] | None:
    """The new item of the article's acquire, or None where its condition failed."""
    values = {":owner": {"S": worker}, ":exp": {"N": str(now + 60)}, ":now": {"N": str(now)}, ":one": {"N": "1"}}
    try:
        return client.update_item(
            TableName="request-status", Key={"requestId": {"S": key}}, ExpressionAttributeValues=values,
            ReturnValues="ALL_NEW", **ARTICLE,
        )["Attributes"]  # fmt: skip
    except client.exceptions.ConditionalCheckFailedException:
        return None


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls give, each in a thread of its own, begun together."""
    barrier, given = threading.Barrier(len(calls)), [None] * len(calls)

    def go(place: int) -> None:
        barrier.wait()
        given[place] = calls[place]()

    threads = [threading.Thread(target=go, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


@contextmanager
def ministack() -> Iterator[str]:
    """The URL of a ministack that serves DynamoDB on loopback alone; skips where it is not installed."""
    if find_spec("ministack") is None:
        pytest.skip("ministack is not installed: pip install ministack")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"SERVICES": "dynamodb,dynamodbstreams", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0"}
    command = [sys.executable, "-m", "hypercorn", "ministack.app:app", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(150):
            time.sleep(0.2)
            try:
                with urllib.request.urlopen(f"{url}/_ministack/health", timeout=2):
                    break
            except OSError:
                continue
        else:
            raise RuntimeError("ministack did not answer within 30 s")
        yield url
    finally:
        process.terminate()
        process.wait(10)
