"""Our own log: `penstock log serve` in a process of its own, through TCP with our producer, and through UDP."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from penstock import __version__
from penstock.bench.log.peers.base import FSYNCED, MEMORY, WRITTEN, Peer, Publisher, Serving
from penstock.bench.log.processes import HOST, running, wait_until
from penstock.errors import BadMachine
from penstock.log.client import AsyncProducer, Consumer
from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.wire import requests, udp
from penstock.log.wire.errors import Number

_COMMAND = "from penstock.cli.main import main; main()"
_ANSWER_SECONDS = 10.0
_MODES = {mode: f"acknowledge={mode}" for mode in (MEMORY, WRITTEN, FSYNCED)}


@dataclass(frozen=True)
class Served:
    mode: str
    tcp: int
    push: int
    pull: int
    by_udp: bool = False

    @property
    def address(self) -> str:
        return f"{HOST}:{self.tcp}"

    async def create(self, topic: str) -> None:
        with Connection(Address.of(self.address)) as connection:
            connection.ask(requests.Create(topic, 1))

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        if self.by_udp:
            loop = asyncio.get_running_loop()
            _, sensor = await loop.create_datagram_endpoint(
                lambda: Sensor(topic, self.mode), remote_addr=(HOST, self.push)
            )
            return sensor
        producer = AsyncProducer(self.address, acknowledge=self.mode, linger=0)
        await producer.flush()  # connects
        return Producing(producer, topic)

    async def read(self, topic: str, count: int) -> list[bytes]:
        found: list[bytes] = []
        with Consumer(topic, server=self.address) as consumer:
            for batch in consumer.batches(timeout=1.0):
                found.extend(batch.frame.values.to_pylist())
                if len(found) >= count:
                    break
        return found


@dataclass(frozen=True)
class Producing:
    producer: AsyncProducer
    topic: str

    async def publish(self, value: bytes) -> None:
        await (await self.producer.send(self.topic, value))

    async def publish_many(self, values: Sequence[bytes]) -> None:
        await (await self.producer.send_many(self.topic, values))

    async def close(self) -> None:
        await self.producer.close()


class Sensor(asyncio.DatagramProtocol):
    """A publisher that sends one packet and waits for its answer. On loopback none is lost, or the run fails."""

    def __init__(self, topic: str, mode: str) -> None:
        self._topic, self._mode = topic, mode
        self._number = 0
        self._answer: asyncio.Future[None] | None = None
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: object) -> None:
        answer, said = self._answer, udp.read_answer(data)
        if answer is None or answer.done() or said.number != self._number:
            return
        if said.error is Number.OK:
            answer.set_result(None)
        else:
            answer.set_exception(BadMachine(f"the log refused a packet: {said.error.name}", None, "see its output"))

    async def publish(self, value: bytes) -> None:
        assert self._transport is not None
        self._number += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.sendto(udp.push(self._topic, 0, [value], number=self._number, acknowledge=self._mode))
        async with asyncio.timeout(_ANSWER_SECONDS):
            await self._answer

    async def publish_many(self, values: Sequence[bytes]) -> None:
        for value in values:
            await self.publish(value)

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@contextmanager
def _serve(directory: Path, mode: str, by_udp: bool = False) -> Iterator[Serving]:
    ports = ["--port", "0", "--http-port", "-1", "--push-port", "0", "--pull-port", "0"]
    command = [sys.executable, "-c", _COMMAND, "log", "serve", str(directory / "data"), *ports]
    with running(command, directory, None) as said:
        found: list[str] = []

        def listens() -> bool:
            found[:] = re.findall(rf"^  (?:tcp|udp push|udp pull) +{HOST}:(\d+)$", said.read_text(), re.MULTILINE)
            return len(found) == 3

        wait_until(listens, None, said)
        tcp, push, pull = map(int, found)
        yield Served(mode, tcp, push, pull, by_udp)


@contextmanager
def _serve_udp(directory: Path, mode: str) -> Iterator[Serving]:
    with _serve(directory, mode, by_udp=True) as served:
        yield served


def _nothing() -> None:
    return None


PEER = Peer("penstock", "Penstock", _MODES, _nothing, lambda: __version__, _serve)
UDP = Peer("penstock-udp", "Penstock, UDP", _MODES, _nothing, lambda: __version__, _serve_udp, streams=False)
