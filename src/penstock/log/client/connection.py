"""One blocking connection: a request and its answer, or several unanswered requests at a time."""

from __future__ import annotations

import os
import select
import socket
import ssl
from collections import deque

from penstock import __version__
from penstock.log.client.address import Address
from penstock.log.closing import Closing
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import NoServer, error_of
from penstock.log.wire.requests import Refused, Reply, Said

_AT_ONCE = 1 << 18


def unreachable(address: Address, error: BaseException) -> NoServer:
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if number and number > 0 else str(error) or type(error).__name__
    if isinstance(error, ssl.SSLError):
        return NoServer(f"no TLS with {address}: {error.reason or error}", None,
                        "does the server use TLS, and is its certificate known?")  # fmt: skip
    return NoServer(f"no log server answers at {address}: {reason}", None, "start one: penstock log serve DIRECTORY")


def lost(address: Address, why: str = "the connection ended") -> NoServer:
    return NoServer(f"the server at {address} is gone: {why}", None, "is it still running?")


def no_server(address: Address, error: tcp.NotAFrame) -> NoServer:
    return NoServer(f"what answers at {address} is no log server: {error.what}", None,
                    "is it the port for TCP, and does it use TLS?")  # fmt: skip


class Connection(Closing):
    """Not for several threads at once."""

    def __init__(self, address: Address, timeout: float = 30.0) -> None:
        self.address, self.timeout = address, timeout
        self._reader = tcp.Reader()
        self._received: deque[tcp.Packed] = deque()
        self._number = 0
        try:
            own = socket.create_connection((address.host, address.port), timeout)
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = address.context()
            self.socket = own if context is None else context.wrap_socket(own, server_hostname=address.host)
        except OSError as error:
            raise unreachable(address, error) from None
        try:
            hello = requests.Hello(token=address.token, client=f"penstock {__version__}")
            said = self.ask(hello, requests.GREETING)[0]
        except BaseException:
            self.close()
            raise
        assert isinstance(said, requests.Welcome)
        self.welcome = said

    def send(self, said: Said, *bulk: bytes | memoryview) -> int:
        """Send a request; returns its number, which the answer will have."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        try:
            self.socket.sendall(b"".join(tcp.pack(self._number, requests.written(said), *bulk)))
        except OSError as error:
            raise lost(self.address, error.strerror or str(error)) from None
        return self._number

    def receive(self, timeout: float | None = None) -> tuple[int, Reply, memoryview] | None:
        """The next answer, or None if none comes in time."""
        while not self._received:
            try:
                if timeout is not None and not self._is_readable(timeout):
                    return None
                data = self.socket.recv(_AT_ONCE)
            except TimeoutError:
                raise lost(self.address, f"no answer for {self.timeout:g} seconds") from None
            except OSError as error:
                raise lost(self.address, error.strerror or str(error)) from None
            if not data:
                raise lost(self.address)
            try:
                self._received.extend(self._reader.feed(data))
            except tcp.NotAFrame as error:
                raise no_server(self.address, error) from None
        packed = self._received.popleft()
        try:
            return packed.number, requests.reply(packed.head), packed.bulk
        except tcp.NotAFrame as error:
            raise no_server(self.address, error) from None

    def _is_readable(self, timeout: float) -> bool:
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return True
        return bool(select.select([self.socket], [], [], timeout)[0])

    def ask(self, said: Said, *bulk: bytes | memoryview) -> tuple[Reply, memoryview]:
        """One request and its answer; a refusal is raised."""
        number = self.send(said, *bulk)
        while True:
            received = self.receive()
            assert received is not None
            found, reply, data = received
            if isinstance(reply, Refused) and found in (number, 0):
                raise error_of(reply.number, reply.what, reply.fix)
            if found == number:
                return reply, data

    def close(self) -> None:
        self.socket.close()
