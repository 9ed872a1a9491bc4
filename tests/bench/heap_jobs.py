"""The jobs of `peers.py` as a plain loop over a heap: a process is a generator that yields how long it waits."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import peers


class _Event:
    """What several processes may wait for."""

    __slots__ = ("loop", "waiting")

    def __init__(self, loop: Loop) -> None:
        self.loop, self.waiting = loop, []

    def succeed(self) -> None:
        waiting, self.waiting = self.waiting, []
        for process, ticket in waiting:
            self.loop.schedule(0, process, ticket)


class _First:
    """A time or an event, whichever comes first."""

    __slots__ = ("delay", "event")

    def __init__(self, delay: int, event: _Event) -> None:
        self.delay, self.event = delay, event


class _Delay(int):
    def __or__(self, event: Any) -> Any:
        return _First(int(self), event)


class Loop:
    """Time, and a heap of processes to go on with. A process that was woken by one thing is not woken by the other."""

    def __init__(self) -> None:
        self.now, self.number = 0, 0
        self.heap: list[tuple[int, int, Iterator[Any], int]] = []
        self.tickets: dict[int, int] = {}

    def event(self) -> _Event:
        return _Event(self)

    def timeout(self, delay: int) -> _Delay:
        return _Delay(delay)

    def process(self, generator: Iterator[Any]) -> None:
        self.tickets[id(generator)] = 0
        self.schedule(0, generator, 0)

    def schedule(self, delay: int, process: Iterator[Any], ticket: int) -> None:
        self.number += 1
        heapq.heappush(self.heap, (self.now + delay, self.number, process, ticket))

    def run(self) -> None:
        heap, tickets = self.heap, self.tickets
        while heap:
            self.now, _, process, ticket = heapq.heappop(heap)
            if tickets.get(id(process)) != ticket:
                continue
            waits = next(process, None)
            if waits is None:
                tickets.pop(id(process), None)
                continue
            ticket += 1
            tickets[id(process)] = ticket
            if isinstance(waits, _Event):
                waits.waiting.append((process, ticket))
            elif isinstance(waits, _First):
                waits.event.waiting.append((process, ticket))
                self.schedule(waits.delay, process, ticket)
            else:
                self.schedule(waits, process, ticket)


class Job(peers.Job):
    """A job told to this loop instead of SimPy's."""

    loop = Loop
