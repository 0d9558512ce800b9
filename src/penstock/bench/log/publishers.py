"""What publishers do while the clock runs, and how long each of them waits for its acknowledgements."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.bench.log.peers.base import Publisher, Serving
from penstock.errors import BadMachine

CHUNK, WINDOW = 1000, 8
"""Messages that a stream's publisher hands over at once, and how many such chunks are on the way."""
_DISTINCT = 64
_WARM = 3


@dataclass(frozen=True, slots=True)
class Timed:
    """What was acknowledged in how many seconds, and how long single acknowledgements took."""

    messages: int
    seconds: float
    waits: tuple[float, ...]

    def wait(self, part: float) -> float:
        """The wait that this part of all acknowledgements did not exceed, in seconds."""
        waits = sorted(self.waits)
        return waits[min(len(waits) - 1, int(part * len(waits)))]


def message(publisher: int, number: int, size: int) -> bytes:
    """A message that no other publisher sends, if its size leaves room for saying so."""
    return (b"%d.%d " % (publisher, number)).ljust(size, b".")[:size]


async def waiting(serving: Serving, topic: str, publishers: int, size: int, seconds: float, check: bool) -> Timed:
    """Publishers with a connection each, that wait for the acknowledgement of every message."""
    await serving.create(topic)
    clients = [await serving.publisher(topic) for _ in range(publishers)]
    sent: Counter[bytes] = Counter()
    waits: list[float] = []

    async def publish(number: int, client: Publisher, values: Iterator[int], end: float | None) -> None:
        for count in values:
            started = time.perf_counter()
            if end is not None and started >= end:
                break
            value = message(number, count, size)
            await client.publish(value)
            waits.append(time.perf_counter() - started)
            sent[value] += 1

    numbers = [itertools.count() for _ in clients]
    try:
        await asyncio.gather(*(publish(n, each, itertools.islice(numbers[n], _WARM), None)
                               for n, each in enumerate(clients)))  # fmt: skip
        waits.clear()
        started = time.perf_counter()
        await asyncio.gather(*(publish(n, each, numbers[n], started + seconds) for n, each in enumerate(clients)))
        took = time.perf_counter() - started
        timed = Timed(len(waits), took, tuple(waits))
    finally:
        await asyncio.gather(*(client.close() for client in clients))
    await verify(serving, topic, sent, check)
    return timed


async def streaming(serving: Serving, topic: str, size: int, seconds: float, check: bool) -> Timed:
    """One publisher that has `WINDOW` chunks of `CHUNK` messages on the way; a wait is that for a whole chunk."""
    await serving.create(topic)
    client = await serving.publisher(topic, streams=True)
    chunks = [[message(chunk, number, size) for number in range(CHUNK)] for chunk in range(_DISTINCT)]
    sent: Counter[int] = Counter()
    waits: list[float] = []

    async def publish(order: Iterator[int], end: float) -> None:
        for number in order:
            started = time.perf_counter()
            if started >= end:
                break
            await client.publish_many(chunks[number % _DISTINCT])
            waits.append(time.perf_counter() - started)
            sent[number % _DISTINCT] += 1

    try:
        order = itertools.count()
        await publish(itertools.islice(order, _WARM), float("inf"))
        waits.clear()
        started = time.perf_counter()
        await asyncio.gather(*(publish(order, started + seconds) for _ in range(WINDOW)))
        took = time.perf_counter() - started
        timed = Timed(len(waits) * CHUNK, took, tuple(waits))
    finally:
        await client.close()
    counted: Counter[bytes] = Counter()
    for number, times in sent.items():
        for value in chunks[number]:
            counted[value] += times
    await verify(serving, topic, counted, check)
    return timed


async def verify(serving: Serving, topic: str, sent: Counter[bytes], check: bool) -> None:
    """Every acknowledged message is there, as often as it was acknowledged."""
    if not check:
        return
    count = sum(sent.values())
    found = Counter(await serving.read(topic, count))
    if found != sent:
        lost, foreign = (sent - found).total(), (found - sent).total()
        raise BadMachine(f"of {count:,} acknowledged messages {lost:,} cannot be read back, and {foreign:,} are others",
                         None, "its numbers would mean nothing: look for the cause in the server's output")  # fmt: skip
