"""What the tests of dynamodb/ share: tables, the article's acquire, races, and a ministack on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
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
    port = _free_port()
    given = {"SERVICES": "dynamodb,dynamodbstreams", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0"}
    command = [sys.executable, "-m", "hypercorn", "ministack.app:app", "--bind", f"127.0.0.1:{port}"]
    with _running(command, f"http://127.0.0.1:{port}", "/_ministack/health", given) as url:
        yield url


@contextmanager
def dynalite(cache: Path) -> Iterator[str]:
    """The URL of a dynalite on loopback, installed from npm into `cache` once; skips where there is no Node."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("dynalite needs Node and npm")
    script = cache / "node_modules" / "dynalite" / "cli.js"
    if not script.exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cache), "dynalite@4.0.0"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            pytest.skip("dynalite cannot be installed: npm does not answer")
        if done.returncode:
            pytest.skip(f"dynalite cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    port = _free_port()
    command = ["node", str(script), "--host", "127.0.0.1", "--port", str(port)]
    command += ["--createTableMs", "0", "--deleteTableMs", "0"]
    with _running(command, f"http://127.0.0.1:{port}", "/", {}) as url:
        yield url


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _running(command: list[str], url: str, health: str, given: dict[str, str]) -> Iterator[str]:
    """Run a server until the block ends; the block begins when it answers, whatever it answers."""
    process = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(150):
            time.sleep(0.2)
            try:
                urllib.request.urlopen(url + health, timeout=2).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                continue
        else:
            raise RuntimeError(f"{command[0]} did not answer at {url} within 30 s")
        yield url
    finally:
        process.terminate()
        process.wait(10)
