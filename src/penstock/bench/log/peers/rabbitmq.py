"""RabbitMQ streams: the server of the Debian package `rabbitmq-server`, the client rstream."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.bench.log.peers.base import FSYNCED, MEMORY, WRITTEN, Peer, Publisher, Serving
from penstock.bench.log.processes import HOST, free_port, running

_MODES = {WRITTEN: "a stream with one replica; confirmed when it has been given to the file system"}
_LACKS = {
    MEMORY: "RabbitMQ keeps streams in files only",
    FSYNCED: "RabbitMQ confirms messages of a stream without fsync",
}
_SERVERS = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Not the command of the same name, which Debian makes become another user."""
_GUEST: dict[str, Any] = {"host": HOST, "username": "guest", "password": "guest"}
_QUIET_SECONDS = 2.0


@dataclass(frozen=True)
class Served:
    port: int

    async def create(self, topic: str) -> None:
        producer = self._producer()
        async with producer:
            await producer.create_stream(topic)

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        producer = self._producer()
        await producer.start()
        return Publishing(producer, topic)

    async def read(self, topic: str, count: int) -> list[bytes]:
        from rstream import Consumer, ConsumerOffsetSpecification, OffsetType

        found: list[bytes] = []
        has_all = asyncio.Event()

        async def take(message: Any, _: Any) -> None:
            found.append(bytes(message))
            if len(found) >= count:
                has_all.set()

        consumer = Consumer(port=self.port, **_GUEST)
        await consumer.start()
        await consumer.subscribe(
            topic, take, offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST), initial_credit=50
        )
        seen = -1
        while not has_all.is_set() and seen < len(found):
            seen = len(found)
            with suppress(TimeoutError):
                await asyncio.wait_for(has_all.wait(), _QUIET_SECONDS)
        await consumer.close()
        return found

    def _producer(self) -> Any:
        from rstream import Producer

        return Producer(port=self.port, **_GUEST)


@dataclass(frozen=True)
class Publishing:
    producer: Any
    topic: str

    async def publish(self, value: bytes) -> None:
        await self.producer.send_wait(self.topic, value)

    async def publish_many(self, values: Sequence[bytes]) -> None:
        left, done = len(values), asyncio.get_running_loop().create_future()

        async def confirmed(status: Any) -> None:
            nonlocal left
            left -= 1
            if not status.is_confirmed and not done.done():
                done.set_exception(RuntimeError(f"RabbitMQ did not confirm: {status.response_code}"))
            elif left == 0 and not done.done():
                done.set_result(None)

        await self.producer.send_batch(self.topic, list(values), on_publish_confirm=confirmed)
        await done

    async def close(self) -> None:
        await self.producer.close()


def _missing() -> str | None:
    if find_spec("rstream") is None:
        return 'RabbitMQ has no client here: pip install "penstock[bench]"'
    if not _SERVERS.exists():
        return "RabbitMQ is not installed: scripts/rabbitmq install"
    return None


def _version() -> str:
    library = _SERVERS.parent.parent / "lib"
    found = sorted(path.name.removeprefix("rabbitmq_server-") for path in library.glob("rabbitmq_server-*"))
    server = found[-1] if found else "unknown"
    return f"rabbitmq-server {server}, rstream {importlib.metadata.version('rstream')}"


@contextmanager
def _serve(directory: Path, mode: str) -> Iterator[Serving]:
    """With a port mapper of its own, which otherwise would stay behind."""
    port, mapper = free_port(), free_port()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "rabbitmq.conf").write_text(
        f"listeners.tcp = none\nstream.listeners.tcp.1 = {HOST}:{port}\n"
        f"stream.advertised_host = {HOST}\nstream.advertised_port = {port}\n"
    )
    (directory / "plugins").write_text("[rabbitmq_stream].\n")
    environment = {
        "HOME": str(directory),
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": f"penstock-{os.getpid()}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "logs"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
        "RABBITMQ_LOGS": "-",
    }
    with (
        running([shutil.which("epmd") or "epmd"], directory, mapper, environment),
        running([str(_SERVERS)], directory, port, environment),
    ):
        yield Served(port)


PEER = Peer("rabbitmq", "RabbitMQ streams", _MODES, _missing, _version, _serve, _LACKS)
