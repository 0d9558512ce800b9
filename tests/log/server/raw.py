"""A client that says exactly what a test wants, right or wrong."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from penstock.log.frame import Frame
from penstock.log.wire import requests, tcp
from penstock.log.wire.requests import Reply, Said


class Raw:
    def __init__(self, port: int | None, *, hello: bool = True, receive_buffer: int = 0, authority: str = "") -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        if authority:
            context = ssl.create_default_context(cafile=authority)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.reader = tcp.Reader()
        self.found: list[tcp.Packed] = []
        if hello:
            self.send(0, requests.Hello())
            assert isinstance(self.receive()[1], requests.Welcome)

    def send(self, number: int, said: Said, *bulk: bytes | memoryview) -> None:
        self.socket.sendall(packed(number, said, *bulk))

    def push(self, number: int, *values: bytes, **where: Any) -> None:
        self.send(number, pushing(**where), Frame.pack(values).data)

    def receive(self) -> tuple[int, Reply, bytes]:
        while not self.found:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError
            self.found += self.reader.feed(data)
        first = self.found.pop(0)
        return first.number, requests.reply(first.head), bytes(first.bulk)

    def is_ended(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def pushing(topic: str = "orders", partition: int = 0, acknowledge: str = "memory") -> requests.Push:
    return requests.Push(topic, partition, acknowledge)


def packed(number: int, said: Said, *bulk: bytes | memoryview) -> bytes:
    return b"".join(tcp.pack(number, requests.written(said), *bulk))
