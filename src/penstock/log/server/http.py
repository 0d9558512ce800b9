"""HTTP for people: a message in, a range out, topics and numbers, with `curl`.

The standard library's server, one thread per connection: what needs speed speaks TCP or UDP. `HELP` says what there is.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock import __version__
from penstock.errors import PenstockError
from penstock.log.frame import LARGEST_MESSAGE, Frame
from penstock.log.server.listening import is_loopback
from penstock.log.server.prometheus import CONTENT_TYPE, exposition
from penstock.log.server.pulls import STOPPING, look
from penstock.log.server.query import Query
from penstock.log.server.service import Service
from penstock.log.server.shown import json_lines, lines
from penstock.log.settings import Acknowledge
from penstock.log.topics import partition_of
from penstock.log.wire.errors import BadRequest, Number, number_of
from penstock.log.wire.requests import Output, Pull

_LOGGER = logging.getLogger(__name__)
_LINES, _JSON, _TEXT = "application/x-ndjson", "application/json", "text/plain; charset=utf-8"
_IDLE = 30.0
_LONGEST_WAIT = 60.0
_MOST_MESSAGES = 1000
_STATUS = {
    Number.UNKNOWN_TOPIC: 404, Number.OUT_OF_RANGE: 416, Number.TOKEN: 401, Number.CLOSED: 503, Number.TOO_MANY: 503,
    Number.TOO_LARGE: 413, Number.NOT_STORED: 507, Number.INTERNAL: 500, Number.DAMAGED: 500,
}  # fmt: skip
HELP = """\
Penstock log {version}

GET  /topics                        the topics
PUT  /topics/NAME?partitions=2      create one
GET  /topics/NAME                   the first and next offset of its partitions
POST /topics/NAME/messages          the body is a message; with ?lines=1 every line is one
     ?partition=0 ?key=TEXT ?acknowledge=memory|written|fsynced
GET  /topics/NAME/messages          messages as JSON lines; with ?raw=1 their bytes, one per line
     ?partition=0 ?offset=0|first|next ?most=1000 ?wait=SECONDS ?where=EXPRESSION ?schema=DDL ?durable=1
GET  /statistics                    all counters as JSON
GET  /metrics                       the same for Prometheus

A server with a token wants the header Authorization: Bearer TOKEN.
"""


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], Handler, bind_and_activate=False)
        self.socket.close()
        self.service = service
        tls = service.listening.tls()
        # The handshake is made by the connection's own thread: a client that does not go on stops nobody else.
        self.socket = listener if tls is None else tls.wrap_socket(
            listener, server_side=True, do_handshake_on_connect=False
        )
        self.socket.listen(self.request_queue_size)
        self.active = self.busy = 0
        self.lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            crowded = self.active >= self.service.listening.most_connections
            self.active += not crowded
        if crowded:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.lock:
                self.active -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOGGER.debug("a connection of %s broke", client_address, exc_info=True)

    def count_busy(self, more: int) -> None:
        with self.lock:
            self.busy += more

    def wait_until_idle(self, seconds: float) -> None:
        """Until every request that has begun is answered; connections that ask nothing are not waited for."""
        end = time.monotonic() + seconds
        while self.busy and time.monotonic() < end:
            time.sleep(0.01)


class Handler(BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"
    server_version = f"penstock-log/{__version__}"
    sys_version = ""
    timeout = _IDLE
    disable_nagle_algorithm = True

    @property
    def service(self) -> Service:
        return self.server.service

    def do_GET(self) -> None:
        self._do({"": self.index, "topics": self.topics, "statistics": self.statistics, "metrics": self.metrics})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self._do({"topics": self.create})

    def do_POST(self) -> None:
        self._do({"topics": self.post})

    def _do(self, known: dict[str, Callable[[list[str], Query], None]]) -> None:
        self.service.counters.http_requests += 1
        self.is_answered = False
        self.server.count_busy(1)
        try:
            self.body = self._read_body()
            self._check_sender()
            address = urlsplit(self.path)
            parts = [unquote(part) for part in address.path.strip("/").split("/")]
            if parts[0] not in known:
                raise _Missing(f"{self.command} {address.path} is nothing", None, "GET / lists what there is")
            known[parts[0]](parts[1:], Query(address.query))
        except PenstockError as error:
            self._refuse(error)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            _LOGGER.exception("a request failed")
            what = f"the server failed: {type(error).__name__}: {error}"
            self._refuse(PenstockError(what, None, "look at its output"))
        finally:
            self.server.count_busy(-1)
        if self.service.is_stopping.is_set():
            self.close_connection = True

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise _NoLength("the request does not say how long its body is", None, "send Content-Length, not chunks")
        if length is None:
            return b""
        if not (length.isascii() and length.isdigit()) or len(self.headers.get_all("Content-Length", [])) > 1:
            self.close_connection = True
            raise BadRequest(f"Content-Length is {length!r}")
        if int(length) > LARGEST_MESSAGE:
            self.close_connection = True
            raise _TooLarge(f"a body of {int(length):,} bytes", None, f"at most {LARGEST_MESSAGE:,}")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the body ended early")
        return body

    def handle_expect_100(self) -> bool:
        """Before a client sends what would be refused anyway."""
        length = self.headers.get("Content-Length", "")
        if length.isdigit() and int(length) > LARGEST_MESSAGE:
            return True
        return super().handle_expect_100()

    def _check_sender(self) -> None:
        listening = self.service.listening
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        if listening.token and not (kind.lower() == "bearer" and listening.is_token(given.strip())):
            self.service.counters.unauthorised += 1
            raise _NoToken("the server wants a token", None, "send the header Authorization: Bearer TOKEN")
        if not listening.token:
            # A page in a browser of this machine must not speak to us, under whatever name it found us.
            host = urlsplit(f"//{self.headers.get('Host', '127.0.0.1')}").hostname or ""
            origin = self.headers.get("Origin")
            if not is_loopback(host) or (origin and not is_loopback(urlsplit(origin).hostname or "")):
                raise _Forbidden("this server answers programs of its own machine only", None, "start it with a token")

    # ---- what there is

    def index(self, rest: list[str], query: Query) -> None:
        self._send(HELP.format(version=__version__).encode(), _TEXT)

    def statistics(self, rest: list[str], query: Query) -> None:
        self._send_json(self.service.statistics())

    def metrics(self, rest: list[str], query: Query) -> None:
        self._send(exposition(self.service.statistics()).encode(), CONTENT_TYPE)

    def topics(self, rest: list[str], query: Query) -> None:
        log = self.service.log
        if not rest:
            self._send_json({name: {"partitions": topic.partitions} for name, topic in log.topics().items()})
        elif len(rest) == 1:
            topic = log.topics().get(rest[0])
            ends = [log.ends(rest[0], number) for number in range(topic.partitions if topic else 1)]
            self._send_json({"topic": rest[0], "partitions": [
                {"partition": number, "first": one.first, "next": one.next, "durable": one.durable}
                for number, one in enumerate(ends)
            ]})  # fmt: skip
        elif rest[1:] == ["messages"]:
            self.messages(rest[0], query)
        else:
            raise _Missing(f"{self.path} is nothing", None, "GET / lists what there is")

    def create(self, rest: list[str], query: Query) -> None:
        if len(rest) != 1:
            raise _Missing(f"{self.path} is nothing", None, "PUT /topics/NAME creates a topic")
        partitions = query.integer("partitions", 1, 1)
        query.end()
        self._refuse_when_stopping()
        topic = self.service.log.create(rest[0], partitions)
        self._send_json({"topic": topic.name, "partitions": topic.partitions}, HTTPStatus.CREATED)

    def post(self, rest: list[str], query: Query) -> None:
        if rest[1:] != ["messages"]:
            raise _Missing(f"{self.path} is nothing", None, "POST /topics/NAME/messages pushes a message")
        topic, key = rest[0], query.text("key")
        is_lines = query.flag("lines") or self.headers.get_content_type() == _LINES
        mode = Acknowledge.of(query.text("acknowledge", "fsynced"))
        known = self.service.log.topics().get(topic)
        usual = partition_of(key.encode(), known.partitions) if key and known else 0
        partition = query.integer("partition", usual)
        query.end()
        values = [line for line in self.body.splitlines() if line] if is_lines else [self.body]
        if not values:
            raise BadRequest("no line has anything in it")
        keys = [key.encode()] * len(values) if key else None
        future = self.service.append(topic, partition, Frame.pack(values, keys=keys), mode)
        try:
            receipt = future.result(_LONGEST_WAIT)
        except FutureTimeout:
            what = f"not {mode} after {_LONGEST_WAIT:g} seconds"
            raise PenstockError(what, None, "it may still come to be") from None
        self._send_json({
            "topic": topic, "partition": partition, "first": receipt.first, "count": receipt.count,
            "acknowledged": str(receipt.acknowledged),
        }, HTTPStatus.CREATED)  # fmt: skip

    def messages(self, topic: str, query: Query) -> None:
        partition = query.integer("partition", 0)
        place = query.text("offset", "first")
        most, wait = query.integer("most", _MOST_MESSAGES, 1), query.number("wait", 0, 0, _LONGEST_WAIT)
        is_raw, durable = query.flag("raw"), query.flag("durable")
        output = Output(query.text("where"), (), query.text("schema"))
        query.end()
        ends = self.service.log.ends(topic, partition)
        offset = {"first": ends.first, "next": ends.next}.get(place, -1)
        if offset < 0:
            query.values = {"offset": place}
            offset = query.integer("offset", 0)
        request = Pull(topic, partition, offset, 4 << 20, most, 0, durable, output)
        frames, following, end = self._pulled(request, wait)
        shown = lines if is_raw else json_lines
        body = b"".join(line for frame in frames for line in shown(frame))
        headers = {"Penstock-Next": str(following), "Penstock-End": str(end)}
        self._send(body, "application/octet-stream" if is_raw else _LINES, headers=headers)

    def _pulled(self, request: Pull, wait: float) -> tuple[list[Frame], int, int]:
        """Reads until there is something, the log ends or the time is over."""
        deadline, arrived = time.monotonic() + wait, threading.Event()
        cancel = self.service.log.on_append(request.topic, request.partition, arrived.set) if wait else None
        offset = request.offset
        try:
            while True:
                found = look(self.service, request, offset)
                offset = found.next
                left = deadline - time.monotonic()
                if found.frames or (not found.examined and (left <= 0 or self.service.is_stopping.is_set())):
                    return found.frames, found.next, found.end
                if not found.examined:
                    arrived.wait(min(left, 0.2))
                    arrived.clear()
        finally:
            if cancel is not None:
                cancel()

    # ---- answers

    def _refuse_when_stopping(self) -> None:
        if self.service.is_stopping.is_set():
            raise STOPPING

    def _refuse(self, error: PenstockError) -> None:
        self.service.counters.refused += 1
        if self.is_answered:
            self.close_connection = True
            return
        number = number_of(error)
        status = getattr(error, "status", _STATUS.get(number, 400))
        body = {"error": type(error).__name__, "number": int(number), "what": error.what}
        headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        self._send_json(body | ({"fix": error.fix} if error.fix else {}), HTTPStatus(status), headers)

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None) -> None:
        self._send((json.dumps(value, ensure_ascii=False) + "\n").encode(), _JSON, status, headers)

    def _send(
        self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
    ) -> None:
        self.is_answered = True
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(body)), "X-Content-Type-Options": "nosniff"}
        for name, value in (own | (headers or {})).items():
            self.send_header(name, value)
        if self.close_connection or self.service.is_stopping.is_set():
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOGGER.debug(format, *arguments)


class _Missing(BadRequest):
    status = HTTPStatus.NOT_FOUND


class _NoLength(BadRequest):
    status = HTTPStatus.LENGTH_REQUIRED


class _TooLarge(BadRequest):
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class _NoToken(BadRequest):
    status = HTTPStatus.UNAUTHORIZED


class _Forbidden(BadRequest):
    status = HTTPStatus.FORBIDDEN
