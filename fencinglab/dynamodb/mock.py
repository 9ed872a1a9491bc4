"""Receivers that speak DynamoDB: a mock that decides one request at a time, and others by their endpoint URL.

moto evaluates a condition and writes in two steps, so that of several threads more than one may acquire a lease. `Mock`
puts one mutex round the whole request, reply included. Without it (`atomic=False`) it is the negative control: a
receiver that a drill must catch; its threads take turns often enough that it is caught on any machine. Nothing here
reaches a cloud unless it is told to by `aws=True`.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fencinglab.dynamodb.fidelity import kept, mend
from fencinglab.errors import UsageError

REGION = "eu-central-1"
NOWHERE = "https://mock.invalid"  # a name that no resolver knows: were a request ever sent, it would go nowhere
SERVICES = {"DynamoDB_20120810": "dynamodb", "DynamoDBStreams_20120810": "streams.dynamodb"}
TURN = 1e-5  # seconds; as long as Python's own 5 ms, a thread mostly ends its request before another begins
JSON = {"Content-Type": "application/x-amz-json-1.0"}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Reply(NamedTuple):
    """What a receiver answered over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes


class Mock:
    """A DynamoDB of its own in this process, gone when it is closed: tables, conditions, transactions, streams."""

    def __init__(self, atomic: bool = True) -> None:
        from moto.core.botocore_stubber import BotocoreStubber

        prepare()
        self.atomic = atomic
        self._one: Any = threading.Lock() if atomic else nullcontext()
        self._account = str(random.SystemRandom().randrange(10**11, 10**12))  # moto keeps accounts apart
        self._moto = BotocoreStubber()
        self._transactions: dict[str, int] = {}  # ClientRequestToken -> what was carried out under it
        self._turn = sys.getswitchinterval()

    def __enter__(self) -> Mock:
        if not self.atomic:
            sys.setswitchinterval(TURN)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every table."""
        from moto.dynamodb.models import dynamodb_backends

        dynamodb_backends.pop(self._account, None)
        self._transactions.clear()
        if not self.atomic:
            sys.setswitchinterval(self._turn)

    def answer(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """The reply to one request, which its X-Amz-Target names. What moto cannot do is a 500, as from its server."""
        from botocore.awsrequest import AWSPreparedRequest

        given = {name.lower(): value for name, value in headers.items()} | {"x-moto-account-id": self._account}
        service = SERVICES.get(given.get("x-amz-target", "").partition(".")[0])
        if service is None:
            return _fault(400, "UnknownOperationException", "neither DynamoDB nor DynamoDB Streams")
        try:
            asked = dict(json.loads(body, object_hook=kept))
        except (TypeError, ValueError) as error:
            return _fault(400, "ValidationException", str(error))
        url = f"https://{service}.{REGION}.amazonaws.com/"
        request = AWSPreparedRequest("POST", url, given, json.dumps(asked).encode(), False)
        token = asked.get("ClientRequestToken")  # of a transaction: carried out once
        with self._one:
            if token in self._transactions:
                return self._again(token, hash(body))
            try:
                answered = self._moto.process_request(request)
            except Exception as error:  # any slip inside moto
                return _fault(500, "InternalServerError", f"{type(error).__name__}: {error}")
            if answered is None:
                return _fault(400, "UnknownOperationException", "moto has no such operation")
            status, given_headers, text = answered
            if token and status == 200:
                self._transactions[token] = hash(body)
        return Reply(status, dict(given_headers), text.encode() if isinstance(text, str) else text)

    def _again(self, token: str, request: int) -> Reply:
        """The reply to a transaction under a token that was used: known here for ever, at AWS for ten minutes."""
        if self._transactions[token] == request:
            return Reply(200, JSON, b"{}")
        return _fault(400, "IdempotentParameterMismatchException", f"{token} was the token of another transaction")

    def client(self, service: str = "dynamodb") -> Any:
        """A boto3 client (`dynamodb` or `dynamodbstreams`) whose requests this mock answers without a socket."""
        from botocore.awsrequest import AWSResponse

        def handle(request: Any, **_: object) -> AWSResponse:
            headers = {n: v.decode() if isinstance(v, bytes) else str(v) for n, v in request.headers.items()}
            body = request.body.encode() if isinstance(request.body, str) else request.body
            reply = self.answer(headers, body)
            return AWSResponse(request.url, reply.status, reply.headers, _Raw(reply.body))

        made = _local(service, NOWHERE)
        made.meta.events.register("before-send", handle)
        return made

    @contextmanager
    def served(self) -> Iterator[str]:
        """The URL under which the mock answers on the loopback interface, from many threads, until the block ends."""
        mock = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reply = mock.answer(dict(self.headers), body)
                self.send_response(reply.status)
                for name, value in ({**reply.headers, "Content-Length": str(len(reply.body))}).items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def client(endpoint_url: str | None = None, aws: bool = False, service: str = "dynamodb") -> Any:
    """A boto3 client for the receiver at this URL, or with `aws` for AWS under the user's own credentials.

    Only with `aws` are credentials, profiles and configuration of this machine looked at. With neither, or for an
    address of AWS without `aws`, a UsageError; nothing is sent to find that out.
    """
    if aws:
        import boto3

        return boto3.Session().client(service, endpoint_url=endpoint_url, config=_config())
    if not endpoint_url:
        raise UsageError(
            "no receiver was named, and credentials that lie about are not used: name one with --endpoint-url URL "
            "(a DynamoDB on this machine), --mock, or --aws for AWS itself"
        )
    host = urlsplit(endpoint_url).hostname or ""
    if urlsplit(endpoint_url).scheme not in ("http", "https") or not host:
        raise UsageError(
            f"--endpoint-url {endpoint_url}: not a URL; write http://HOST:PORT, such as http://127.0.0.1:8000"
        )
    if host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".aws")) or host == "amazonaws.com":
        raise UsageError(f"--endpoint-url {endpoint_url}: that is AWS itself; add --aws if its tables are meant")
    return _local(service, endpoint_url)


def lose_replies(client: Any, lost: Callable[[str], bool]) -> None:
    """Let the client lose the replies for which `lost` (of `UpdateItem`, …) is true: decided, but not heard of."""
    from botocore.exceptions import ReadTimeoutError

    def drop(model: Any, **_: object) -> None:
        if lost(model.name):
            raise ReadTimeoutError(endpoint_url=client.meta.endpoint_url)

    client.meta.events.register("after-call", drop)


def _local(service: str, endpoint_url: str) -> Any:
    """A client that looks at nothing on this machine: no profile, no credentials, no configured endpoint, no proxy."""
    direct: dict[str, Any] = {"proxies": {}} if urlsplit(endpoint_url).hostname in LOOPBACK else {}
    return session().create_client(
        service, region_name=REGION, endpoint_url=endpoint_url,
        aws_access_key_id="fencinglab", aws_secret_access_key="none",
        config=_config(ignore_configured_endpoint_urls=True, **direct),
    )  # fmt: skip


@cache
def session() -> Any:
    """A botocore session that knows only the shapes of requests; reading those takes longer than all else."""
    from botocore.session import Session

    nothing = {"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    return Session(session_vars={**nothing, "credentials_file": (None, None, os.devnull, None)})


def _config(**more: Any) -> Any:
    """One attempt a call: a conditional write that botocore repeats by itself is refused by its own success."""
    from botocore.config import Config

    return Config(
        retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=20, max_pool_connections=64, **more
    )


@cache
def prepare() -> None:
    """Let moto do as DynamoDB does, and look at no profile of this machine."""
    import boto3
    from moto.core.base_backend import AccountSpecificBackend

    mend()
    setattr(AccountSpecificBackend, "get_session", lambda: boto3.Session(botocore_session=session()))  # noqa: B010


def _fault(status: int, name: str, message: str) -> Reply:
    body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{name}", "message": message}).encode()
    return Reply(status, JSON, body)


class _Raw(BytesIO):
    """A body as botocore reads it."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()
