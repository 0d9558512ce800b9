"""The bytes of one TCP connection: reading requests, sending answers, and closing.

A connection may have `credit` bytes of pushes unanswered. When it has more, or when it does not take its answers, the
server stops reading from it: what a client can make the server hold is bounded, whatever the client does.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.log.server.pulls import Puller
from penstock.log.server.questions import Questions
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import BadRequest, TooMany, number_of
from penstock.log.wire.requests import Refused, Said

if TYPE_CHECKING:
    from penstock.log.server.service import Service

_LITTLE = 64 * 1024
"""Of a frame that is not all there; less is not counted."""
_PIECE = 256 * 1024
_LAST_TRIES = 10


class Talking(asyncio.Protocol):
    def __init__(self, service: Service) -> None:
        self.service = service
        self.limits = service.listening
        self.reader = tcp.Reader(min(self.limits.stranger_bytes, service.largest))
        self.transport: asyncio.Transport | None = None
        self.in_flight = self.working = self.unsent = 0
        self.is_known = self.is_held = self.is_waiting = self.is_counted = self.is_tls = False
        self.is_ending = self.has_said_all = self.is_silent = False
        self.puller, self.questions = Puller(service), Questions(service)

    def begin(self, packed: tcp.Packed) -> None:
        """Handle one request."""
        raise NotImplementedError

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.is_tls = transport.get_extra_info("sslcontext") is not None
        answer_at_once(transport)
        transport.set_write_buffer_limits(1, 0)  # whatever waits is counted until all of it is gone
        self.service.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.puller.cancel()
        self.questions.cancel()
        self.service.forget(self, was_known=self.is_known)

    def data_received(self, data: bytes) -> None:
        if self.is_ending:
            return
        try:
            for packed in self.reader.feed(data):
                self.begin(packed)
                if self.is_held or self.is_ending:  # what was read already waits too
                    break
        except tcp.NotAFrame as error:
            self.service.counters.malformed += 1
            self.refuse(error.number, BadRequest(error.what, None, error.fix))
            self.end()
        except Exception as error:
            self.fail(error)
        if self.is_counted or self.reader.held > _LITTLE:
            self.count_held()

    def count_held(self) -> None:
        held = 0 if self.is_ending else self.reader.held
        self.is_counted = held > _LITTLE
        if self.is_counted:
            self.service.unfinished.keep(self, held, self.end_unfinished)
        else:
            self.service.unfinished.free(self)

    def end_unfinished(self) -> None:
        what = f"frames of all connections that are not all there have more than {self.limits.most_unfinished:,} bytes"
        self.service.complaints.noticed(f"{what}: the oldest is given up")
        self.refuse(0, TooMany(what, None, "send smaller ones, or try again later"))
        self.reader = tcp.Reader(0)
        self.end()

    def pause_writing(self) -> None:
        self.is_waiting = True

    def resume_writing(self) -> None:
        self.is_waiting = False
        self.unsent = 0
        self.service.unsent.free(self)
        self.block(False)

    # ---- answers

    def reply(self, number: int, said: Said, *bulk: memoryview) -> None:
        self.reply_written(number, requests.written(said), *bulk)

    def reply_written(self, number: int, head: bytes, *bulk: memoryview) -> None:
        transport = self.transport
        if transport is None or self.is_silent or transport.is_closing():
            return
        parts = tcp.pack(number, head, *bulk)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if self.is_tls and len(data) > _PIECE:
            # The layer of TLS hands one piece on before it says that the one below it is full.
            for at in range(0, len(data), _PIECE):
                transport.write(data[at : at + _PIECE])
        else:
            transport.write(data)
        if self.is_waiting:
            self.count_unsent(len(data))

    def refuse(self, number: int, error: BaseException, credit: int = 0) -> None:
        self.service.counters.refused += 1
        if not isinstance(error, PenstockError):
            self.service.complaints.failed("a request failed", error)
            error = PenstockError(f"the server failed: {type(error).__name__}: {error}", None, "look at its output")
        self.reply(number, Refused(number_of(error), error.what, error.fix or "", credit))

    def count_unsent(self, size: int) -> None:
        """Count the bytes of an answer, which is in memory until all of it is sent."""
        self.unsent += size
        self.service.unsent.keep(self, self.unsent, self.end_unread)
        if self.unsent > self.limits.unsent or self.service.unsent.is_crowded:
            self.block(True)

    def end_unread(self) -> None:
        self.service.counters.unread += 1
        self.service.complaints.noticed(
            f"answers that clients do not take have more than {self.limits.most_unsent:,} bytes: "
            "the connection that has waited longest is ended"
        )
        if self.transport is not None:
            self.transport.abort()

    # ---- flow control

    @property
    def is_busy(self) -> bool:
        return self.in_flight > 0 or self.working > 0

    def block(self, is_blocked: bool) -> None:
        """Stop reading for this client, from the log and from its connection, while its answers wait to be taken."""
        if is_blocked == self.puller.is_blocked:
            return
        self.puller.is_blocked = self.questions.is_blocked = is_blocked
        if not is_blocked:
            self.puller.go_on()
            self.questions.go_on()
        self.hold()

    def started(self) -> None:
        self.working += 1
        self.hold()

    def ended(self) -> None:
        self.working -= 1
        self.hold()

    def hold(self) -> None:
        """Stop reading from the client, or go on."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.is_ending or self.has_said_all:
            if not self.is_busy:
                self.fall_silent()
            return
        is_crowded = self.service.in_flight > self.limits.most_in_flight
        hold = self.puller.is_blocked or self.in_flight > self.limits.credit or self.working > self.limits.most_requests
        hold = hold or (is_crowded and self.in_flight > 0)
        if hold == self.is_held:
            return
        self.is_held = hold
        if hold:
            self.service.paused.add(self)
            self.transport.pause_reading()
        else:
            self.service.paused.discard(self)
            self.transport.resume_reading()
            self.service.loop.call_soon(self.read_on)

    def read_on(self) -> None:
        if not self.is_held and self.transport is not None and self.reader.held:
            self.data_received(b"")

    # ---- the end

    def end(self) -> None:
        """No more requests. What has begun is still answered; what still comes is read and thrown away.

        Closing a socket that has unread bytes would take the last answers away from the client.
        """
        if self.is_ending:
            return
        self.is_ending = True
        if self.transport is None or self.transport.is_closing():
            return
        if self.is_held:
            self.is_held = False
            self.transport.resume_reading()
        self.puller.stop_waiting()
        self.hold()
        self.service.loop.call_later(1, self.abort_when_sent, _LAST_TRIES)

    def fall_silent(self) -> None:
        """Close the connection when everything is answered."""
        if self.transport is None or self.is_silent:
            return
        self.is_silent = True
        if self.is_ending and self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def fail(self, error: BaseException) -> None:
        """A failure that no request can be told of: it is the end of this connection, and of no other."""
        self.service.complaints.failed("a connection failed", error)
        if self.transport is not None:
            self.transport.abort()

    def abort_when_sent(self, tries: int) -> None:
        """The client has had time to close; if there is something that it has not taken yet, a little more."""
        if self.transport is None:
            return
        if tries and (self.is_busy or self.transport.get_write_buffer_size()):
            self.service.loop.call_later(1, self.abort_when_sent, tries - 1)
        else:
            self.transport.abort()

    def eof_received(self) -> bool:
        """A client that has said everything may still wait for answers."""
        self.has_said_all = True
        can_wait = self.transport is not None and self.transport.can_write_eof()
        return can_wait and not self.is_ending and (self.is_busy or self.is_held)


def answer_at_once(transport: asyncio.Transport) -> None:
    """Small answers do not wait for each other: asyncio sees to that only for sockets that it has made itself."""
    own = transport.get_extra_info("socket")
    if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
