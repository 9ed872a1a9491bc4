"""A worker in a process of its own, which can be stopped, continued and killed: no sleep pretends to be a pause."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from fencinglab.drill.desk import Desk, Stopped, of_a_holder
from fencinglab.dynamodb.hold import Hold, Told, took
from fencinglab.dynamodb.requests import Requests
from fencinglab.errors import InputError

PATIENCE = 60  # seconds for the process to start and answer


class Child:
    """The process of one worker: it acquires, waits for a word, and then sends all that only a holder may send."""

    def __init__(self, desk: Desk, worker: str, resource: str) -> None:
        self.desk, self.worker = desk, worker
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=_work, args=(there, desk.connect, desk.file, worker, resource, desk.given), daemon=True
        )

    def __enter__(self) -> Child:
        resource_tracker.ensure_running()  # started by the process itself it would let the signal through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the drill, which ends this
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def acquired(self) -> bool:
        """Whether it acquired."""
        return took(self.desk.file, self._heard())

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self._process.pid or 0, number)

    def rest(self) -> list[Told]:
        """What it was told of everything else that it sent."""
        return self._heard("go on")

    def code(self) -> int | None:
        """The exit code once it is gone; minus the signal that killed it."""
        self._process.join(PATIENCE)
        return self._process.exitcode

    def _heard(self, word: str = "") -> list[Told]:
        """What it tells, after that word; Stopped where it is gone or says nothing."""
        try:
            if word:
                self._here.send(word)
            if not self._here.poll(PATIENCE):
                raise Stopped(f"{self.worker}'s process did not answer within {PATIENCE} s")
            told: list[Told] | InputError = self._here.recv()
        except (EOFError, ConnectionError):
            raise Stopped(f"{self.worker}'s process ended by itself") from None
        if isinstance(told, InputError):
            raise told
        self.desk.noted(self.worker, told)
        return told


def _work(
    there: Any, connect: Callable[[], Any], file: Requests, worker: str, resource: str, given: dict[str, Any]
) -> None:
    hold = Hold(connect(), worker, resource, lambda: int(time.time()), file, **given)
    try:
        there.send([*hold.take()])
        there.recv()
        there.send([told for name in of_a_holder(file) if (told := hold.sent(name))])
    except InputError as why:
        there.send(why)
