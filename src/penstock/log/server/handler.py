"""One HTTP connection: checks who asks, reads what they send, and answers."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock import __version__
from penstock.errors import PenstockError
from penstock.log.frame import LARGEST_MESSAGE
from penstock.log.server.listening import is_loopback
from penstock.log.wire.errors import BadRequest, Number, number_of

if TYPE_CHECKING:
    from penstock.log.server.http import HttpServer
    from penstock.log.server.service import Service

_LOGGER = logging.getLogger(__name__)
JSON_LINES, JSON, TEXT = "application/x-ndjson", "application/json", "text/plain; charset=utf-8"
_IDLE = 30.0
LONGEST_HEAD = 64 * 1024
_LITTLE = 64 * 1024
"""Bytes of a body or an answer; less is not counted."""
_THROWN_AWAY = 1 << 20
"""Of a body that is not wanted: a client that has sent it reads why only then."""
_STATUS = {
    Number.UNKNOWN_TOPIC: 404, Number.TOPIC_DELETED: 410,
    Number.OUT_OF_RANGE: 416, Number.TOKEN: 401, Number.CLOSED: 503, Number.TOO_MANY: 503,
    Number.TOO_LARGE: 413, Number.NOT_STORED: 507, Number.INTERNAL: 500, Number.DAMAGED: 500,
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"
    server_version = f"penstock-log/{__version__}"
    sys_version = ""
    timeout = _IDLE
    disable_nagle_algorithm = True
    is_answered = False

    @property
    def service(self) -> Service:
        return self.server.service

    # ---- requests

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = self.incoming = Incoming(self.connection.makefile("rb", 0))

    def handle_one_request(self) -> None:
        self.incoming.left = LONGEST_HEAD
        self.is_answered, self.unread = False, 0
        self.command, self.requestline, self.request_version = "", "", self.protocol_version
        try:
            super().handle_one_request()
        except HeadTooLong as error:
            self.close_connection = True
            self.refuse(error)
        if self.unread:
            self.close_connection = True
            self._throw_away()

    def guarded(self, answer: Callable[[], None]) -> None:
        """Let in who may ask, read what they send, and answer, whatever happens."""
        self.service.counters.http_requests += 1
        self.server.count_busy(1)
        try:
            self._let_in()
            self.body = self._read_body()
            answer()
        except PenstockError as error:
            self.refuse(error)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self.service.complaints.failed("a request over HTTP failed", error)
            what = f"the server failed: {type(error).__name__}: {error}"
            self.refuse(PenstockError(what, None, "look at its output"))
        finally:
            self.server.count_busy(-1)
        if self.service.is_stopping.is_set():
            self.close_connection = True

    def handle_expect_100(self) -> bool:
        """Refuse before the client sends a body that would be refused anyway."""
        try:
            self._let_in()
        except PenstockError as error:
            self.close_connection = True
            self.refuse(error)
            return False
        self.unread = 0
        return super().handle_expect_100()

    def _let_in(self) -> None:
        """Check the token and the size; nothing of the body is read before this."""
        self.unread = self._length()
        self._check_sender()
        self.server.know(self.connection)
        if self.unread > LARGEST_MESSAGE:
            raise TooLarge(f"a body of {self.unread:,} bytes", None, f"at most {LARGEST_MESSAGE:,}")

    def _length(self) -> int:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise NoLength("the request does not say how long its body is", None, "send Content-Length, not chunks")
        if length is None:
            return 0
        if not (length.isascii() and length.isdigit()) or len(self.headers.get_all("Content-Length", [])) > 1:
            self.close_connection = True
            raise BadRequest(f"Content-Length is {length[:40]!r}")
        return int(length[:20])

    def _check_sender(self) -> None:
        listening = self.service.listening
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        if listening.token and not (kind.lower() == "bearer" and listening.is_token(given.strip())):
            self.service.counters.unauthorised += 1
            raise NoToken("the server wants a token", None, "send the header Authorization: Bearer TOKEN")
        if not listening.token:
            # A page in a browser of this machine must not speak to us, under whatever name it found us.
            host, origin = self.headers.get("Host", "127.0.0.1"), self.headers.get("Origin")
            if not _is_here(f"//{host}") or (origin and not _is_here(origin)):
                raise Forbidden("this server answers programs of its own machine only", None, "start it with a token")

    def _read_body(self) -> bytes:
        length, self.unread = self.unread, 0
        if length <= _LITTLE:
            return self._read(length)
        unfinished = self.service.unfinished
        self.service.wake(partial(unfinished.keep, self, length, self.give_up))
        try:
            return self._read(length)
        finally:
            self.service.wake(partial(unfinished.free, self))

    def _read(self, length: int) -> bytes:
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the body ended early")
        return body

    def _throw_away(self) -> None:
        left = min(self.unread, _THROWN_AWAY)
        with suppress(OSError):
            self.connection.settimeout(1)
            while left and (data := self.rfile.read1(min(left, _LITTLE))):
                left -= len(data)

    def give_up(self) -> None:
        """Break the connection, from any thread; the thread of the connection notices."""
        self.service.complaints.noticed("what HTTP clients send or take too slowly is too much: the oldest is given up")
        shut(self.connection)

    # ---- answers

    def refuse(self, error: PenstockError) -> None:
        self.service.counters.refused += 1
        if self.is_answered:
            self.close_connection = True
            return
        number = number_of(error)
        status = getattr(error, "status", _STATUS.get(number, 400))
        body = {"error": type(error).__name__, "number": int(number), "what": error.what}
        headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        self.send_json(body | ({"fix": error.fix} if error.fix else {}), HTTPStatus(status), headers)

    def send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None) -> None:
        self.send((json.dumps(value, ensure_ascii=False) + "\n").encode(), JSON, status, headers)

    def send(
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
            self._write(body)

    def _write(self, body: bytes) -> None:
        self.connection.settimeout(_IDLE)
        if len(body) <= _LITTLE:
            self.wfile.write(body)
            return
        unsent = self.service.unsent
        self.service.wake(partial(unsent.keep, self, len(body), self.give_up))
        try:
            self.wfile.write(body)
        finally:
            self.service.wake(partial(unsent.free, self))

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOGGER.debug(format, *arguments)


class Incoming(io.BufferedReader):
    """What a client sends; `left` is how many bytes the head of its request may still have."""

    left = 0

    def readline(self, size: int | None = -1) -> bytes:
        most = self.left + 1 if size is None or size < 0 else min(size, self.left + 1)
        line = super().readline(most)
        self.left -= len(line)
        if self.left < 0:
            raise HeadTooLong(f"the head of a request has more than {LONGEST_HEAD:,} bytes")
        return line


def shut(connection: socket.socket) -> None:
    """Also while another thread is in a call of it; what TLS keeps in memory stays as it is."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _is_here(address: str) -> bool:
    try:
        return is_loopback(urlsplit(address).hostname or "")
    except ValueError:  # no address at all
        return False


class Missing(BadRequest):
    status = HTTPStatus.NOT_FOUND


class NoLength(BadRequest):
    status = HTTPStatus.LENGTH_REQUIRED


class TooLarge(BadRequest):
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class HeadTooLong(BadRequest):
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class NoToken(BadRequest):
    status = HTTPStatus.UNAUTHORIZED


class Forbidden(BadRequest):
    status = HTTPStatus.FORBIDDEN
