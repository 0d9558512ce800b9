"""One connection in an event loop, with any number of unanswered requests."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from penstock import __version__
from penstock.errors import PenstockError
from penstock.log.client.address import Address
from penstock.log.client.connection import lost, no_server, unreachable
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import error_of
from penstock.log.wire.requests import Refused, Reply, Said, Welcome

Answer = asyncio.Future[tuple[Reply, memoryview]]


class AioConnection(asyncio.Protocol):
    def __init__(self, address: Address) -> None:
        self.address = address
        self.transport: asyncio.Transport | None = None
        self.welcome: Welcome = Welcome(0, 0, 0)
        self.error: PenstockError | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = tcp.Reader()
        self._number = 0
        self._asked: dict[int, Answer] = {}
        self._pushed: dict[int, Callable[[Reply], None]] = {}
        self._can_write = asyncio.Event()
        self._can_write.set()
        self.closed = asyncio.Event()

    @staticmethod
    async def open(address: Address, timeout: float = 30.0, session: str = "") -> AioConnection:
        """The server ends an earlier connection of the same session, and reads nothing of it any more."""
        loop = asyncio.get_running_loop()
        context = address.context()
        name = address.host if context is not None else None
        try:
            async with asyncio.timeout(timeout):
                _, made = await loop.create_connection(
                    lambda: AioConnection(address), address.host, address.port, ssl=context, server_hostname=name
                )
                hello = requests.Hello(token=address.token, client=f"penstock {__version__}", session=session)
                reply, _ = await made.ask(hello, requests.GREETING)
        except (OSError, ssl.SSLError) as error:  # TimeoutError is one
            raise unreachable(address, error) from None
        assert isinstance(reply, Welcome)
        made.welcome = reply
        return made

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        own = transport.get_extra_info("socket")
        if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        try:
            for packed in self._reader.feed(data):
                self._answered(packed)
        except tcp.NotAFrame as error:
            self.error = no_server(self.address, error)
            self.close()

    def _answered(self, packed: tcp.Packed) -> None:
        reply = requests.reply(packed.head)
        call = self._pushed.pop(packed.number, None)
        if call is not None:
            call(reply)
            return
        answer = self._asked.pop(packed.number, None)
        if packed.number == 0 and isinstance(reply, Refused):
            self.error = error_of(reply.number, reply.what, reply.fix)
        if answer is not None and not answer.done():
            answer.set_result((reply, packed.bulk))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.error = self.error or lost(self.address, str(error) if error else "the connection ended")
        self._can_write.set()
        self.closed.set()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(self.error)
                answer.exception()  # nobody may be waiting for it
        self._asked.clear()
        self._pushed.clear()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # ---- requests

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def send(self, said: Said, *bulk: bytes | memoryview) -> Answer:
        """The answer, as it was given: a refusal is a reply too."""
        answer: Answer = self._loop.create_future()
        if self.transport is None or self.transport.is_closing():
            answer.set_exception(self.error or lost(self.address))
            answer.exception()
            return answer
        self._asked[self._write(said, *bulk)] = answer
        return answer

    def push(self, said: Said, bulk: memoryview, call: Callable[[Reply], None]) -> None:
        """Have `call` called with the answer, as soon as it is there. If the connection is lost, never."""
        if self.is_open:
            self._pushed[self._write(said, bulk)] = call

    def _write(self, said: Said, *bulk: bytes | memoryview) -> int:
        """The number of the request."""
        assert self.transport is not None
        self._number = self._number % 0xFFFFFFFF + 1
        self.transport.write(b"".join(tcp.pack(self._number, requests.written(said), *bulk)))
        return self._number

    async def ask(self, said: Said, *bulk: bytes | memoryview) -> tuple[Reply, memoryview]:
        """One request and its answer; a refusal is raised."""
        await self._can_write.wait()
        reply, data = await self.send(said, *bulk)
        if isinstance(reply, Refused):
            raise error_of(reply.number, reply.what, reply.fix)
        return reply, data

    async def end(self) -> None:
        """Close, and wait until the other side knows: with TLS that takes a few messages."""
        self.close()
        try:
            async with asyncio.timeout(1):
                await self.closed.wait()
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()
