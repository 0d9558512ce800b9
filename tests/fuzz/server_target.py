"""A server of the log: whatever is sent over HTTP or TCP, no answer is a failure of the server."""

from __future__ import annotations

import asyncio
import io
import logging
import traceback
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from penstock.errors import PenstockError
from penstock.log import topics
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server import pages, pulls
from penstock.log.server.listening import Listening
from penstock.log.server.query import Query
from penstock.log.server.service import Service
from penstock.log.server.tcp import Connection
from penstock.log.settings import Acknowledge, Settings
from penstock.log.wire import requests, tcp
from tests.fuzz.parser import Parser, text_of
from tests.log.simulated import SimulatedDisk

SETTINGS = Settings(levels=(), segment_bytes=4096, index_every=512, flush_after=60.0)
VALUES = [b'{"n":1,"s":"a"}', b"text", b"\xff", b'"\\u00e9"', b"[1, 2.5]"]
pages._LONGEST_WAIT = pulls._LONGEST_WAIT = 0.002  # nobody waits for what a fuzzer does not push
topics.MOST_PARTITIONS = 3


class Failures(logging.Handler):
    """What a server says of itself, it says to its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)

    def check(self) -> None:
        found, self.found = self.found, []
        for record in found:
            error = record.exc_info[1] if record.exc_info else None
            raise AssertionError(f"{record.getMessage()}\n{''.join(traceback.format_exception(error))}")


FAILURES = Failures()
_LOGGER = logging.getLogger("penstock")
_LOGGER.addHandler(FAILURES)
_LOGGER.propagate = False


class Served:
    """A service that lives for some inputs, because opening a log takes longer than most of them."""

    inputs = 100

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: FAILURES.emit(_record(context)))
        self.left = 0
        self.log: Log | None = None

    def service(self, token: str = "") -> Service:
        if not self.left:
            if self.log is not None:
                self.log.close()
            self.log, self.left = Log(Path("/log"), SETTINGS, SimulatedDisk()), self.inputs
            self.log.create("orders", 2)
            self.log.append("orders", 0, Frame.pack(VALUES, times=[1] * len(VALUES)), Acknowledge.MEMORY)
        self.left -= 1
        assert self.log is not None
        return Service(self.log, Listening(token=token), self.loop)


SERVED = Served()


def _record(context: dict[str, Any]) -> logging.LogRecord:
    error = context.get("exception")
    return logging.LogRecord("asyncio", logging.ERROR, "", 0, context["message"], None,
                             (type(error), error, None) if error else None)  # fmt: skip


class MemorySocket:
    """The end of a connection that has sent everything."""

    def __init__(self, sent: bytes) -> None:
        self.sent, self.answered = sent, bytearray()

    def makefile(self, mode: str, *_: Any) -> io.BytesIO:
        return io.BytesIO(self.sent)

    def sendall(self, data: bytes) -> None:
        self.answered += data

    def settimeout(self, seconds: float) -> None: ...

    def setsockopt(self, *_: Any) -> None: ...


def http_requests(data: bytes) -> None:
    """The first byte says whether the server wants a token."""
    service = SERVED.service("secret" if data[:1] == b"\x01" else "")
    server = SimpleNamespace(service=service, count_busy=lambda more: None, know=lambda client: None,
                             making=nullcontext())  # fmt: skip
    client = MemorySocket(data[1:])
    pages.Pages(client, ("127.0.0.1", 1), server)  # type: ignore[arg-type]
    FAILURES.check()
    assert b'"what": "the server failed' not in client.answered, bytes(client.answered)


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def tcp_requests(data: bytes) -> None:
    """Each piece is a head, before the mark, and bulk; the connection is known already."""
    service = SERVED.service()
    connection, transport = Connection(service, MemorySocket(b"")), MemoryTransport()  # type: ignore[arg-type]
    connection.connection_made(transport)
    connection.is_known = True
    for number, piece in enumerate(data.split(b"\xc1\xc1")):  # a byte that MessagePack never uses
        head, _, bulk = piece.partition(b"\xc1")
        if head:
            connection.data_received(b"".join(tcp.pack(number, head, bulk)))
    for _ in range(500):
        service.loop.run_until_complete(asyncio.sleep(0.001 if connection.is_busy else 0))
        if not connection.is_busy:
            break
    connection.connection_lost(None)
    service.close()
    FAILURES.check()


def queries(data: bytes) -> None:
    text = text_of(data)
    if text is None:
        return
    query = Query(text)
    try:
        assert query.integer("partition", 0) >= 0
        assert 0 <= query.number("wait", 0, 0, 60) <= 60
        query.flag("raw")
        query.end()
    except PenstockError:
        return


def _asked(line: str, body: bytes = b"", *headers: str) -> bytes:
    start = "".join(f"{text}\r\n" for text in (f"{line} HTTP/1.1", "Host: localhost", *headers))
    return f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body


_HTTP = [
    _asked("GET /"), _asked("GET /topics"), _asked("PUT /topics/new?partitions=2"), _asked("GET /topics/orders"),
    _asked("POST /topics/orders/messages?key=a&acknowledge=memory", b'{"n":1}'), _asked("GET /statistics"),
    _asked("POST /topics/orders/messages?lines=1", b'a\n"\\u00e9"\n[1.5]\n') + _asked("GET /topics/orders/messages"),
    _asked("GET /topics/orders/messages?partition=0&offset=1&wait=0.001&raw=1&durable=1"), _asked("GET /metrics"),
    _asked(f"GET /topics/orders/messages?where={quote('n > 0')}&schema={quote('n BIGINT')}"), _asked("HEAD /nothing"),
    _asked("GET /", b"", "Origin: http://127.0.0.1:1", "Expect: 100-continue", "Authorization: Bearer secret"),
    _asked("GET /", b"", "Transfer-Encoding: chunked"), b"GET /\r\n", b"GET http://[::1]/topics HTTP/1.1\r\n\r\n",
]  # fmt: skip
_FRAME = bytes(Frame.pack([b"a", b"b"], times=[1, 2], producer=5).data)
_SAID: list[requests.Said] = [
    requests.Topics(), requests.Create("new", 2), requests.AskEnds("orders", 0), requests.AskOffset("orders", 0, 1),
    requests.Commit("g", "orders", 0, 1), requests.AskCommitted("g", "orders", 0), requests.AskProducer("p"),
    requests.AskNumber("orders", 0, 5), requests.AskStatistics(), requests.Hello(),
    requests.Pull("orders", 0, 1, 100, 2, 0.001, True), requests.Pull("orders", 0, 5, wait=0.001),
    requests.Pull("orders", 0, 0, output=requests.Output("n > 0", (("a", "upper(s)"),), "n BIGINT, s STRING")),
]  # fmt: skip
_HEADS = [requests.written(said) for said in _SAID]
_PUSHES = [requests.written(requests.Push("orders", 1, mode)) + b"\xc1" + _FRAME for mode in ("memory", "fsynced")]
PARSERS = [
    Parser(http_requests, [b"\0" + raw for raw in _HTTP] + [b"\x01" + _HTTP[0], b"\x01" + _HTTP[11]]),
    Parser(tcp_requests, [*_HEADS, *_PUSHES, b"\xc1\xc1".join((*_PUSHES, _HEADS[2], _HEADS[10]))]),
    Parser(queries, [b"partition=0&wait=1.5&raw=1", b"partition=%31&x", b"wait=nan", b"raw"]),
]
