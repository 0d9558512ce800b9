"""TCP: requests are read as they come, answered when they are done, in whatever order that is.

A connection may have `credit` bytes of pushes unanswered. When it has more, or when it does not take its answers, the
server stops reading from it: what a client can make the server hold is bounded, whatever the client does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import PenstockError
from penstock.log.errors import BadFrame
from penstock.log.frame import OFFSETS, SEVERAL, Frame
from penstock.log.server.pulls import Puller
from penstock.log.server.push import Push
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import BadRequest, Number, TooMany, WrongToken, number_of
from penstock.log.wire.requests import Refused, Said

if TYPE_CHECKING:
    from penstock.log.server.service import Service

_LOGGER = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.limits = service.listening
        self.reader = tcp.Reader(min(tcp.LARGEST, service.largest))
        self.transport: asyncio.Transport | None = None
        self.is_known = False
        self.in_flight = 0
        self.working = 0
        self.is_held = self.is_full = self.is_ending = self.has_said_all = False
        self.puller = Puller(service)

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        answer_at_once(transport)
        transport.set_write_buffer_limits(self.limits.unsent)
        if len(self.service.connections) >= self.limits.most_connections:
            self.refuse(0, TooMany(f"{self.limits.most_connections:,} connections are open", None, "try again later"))
            transport.close()
        self.service.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.puller.cancel()
        self.service.connections.discard(self)
        self.service.paused.discard(self)

    def data_received(self, data: bytes) -> None:
        if self.is_ending:
            return
        try:
            for packed in self.reader.feed(data):
                self.begin(packed)
                if self.is_ending:
                    return
        except tcp.NotAFrame as error:
            self.service.counters.malformed += 1
            self.refuse(error.number, BadRequest(error.what, None, error.fix))
            self.end()

    def pause_writing(self) -> None:
        self.is_full = self.puller.is_blocked = True
        self.hold()

    def resume_writing(self) -> None:
        self.is_full = self.puller.is_blocked = False
        self.puller.go_on()
        self.hold()

    # ---- requests

    def begin(self, packed: tcp.Packed) -> None:
        number = packed.number
        try:
            request = requests.request(packed.head)
        except msgspec.MsgspecError as error:
            self.refuse(number, BadRequest(f"this is no request: {error}"))
            return
        self.service.counters.requests += 1
        if not self.is_known:
            self.greet(number, request)
        elif isinstance(request, requests.Push):
            self.push(number, request, packed)
        elif isinstance(request, requests.Pull):
            self.started()
            self.puller.begin(request, partial(self.pulled, number))
        else:
            self.started()
            self.answer_later(number, request)

    def greet(self, number: int, request: requests.Request) -> None:
        if not isinstance(request, requests.Hello):
            self.refuse(number, BadRequest("the first request of a connection is Hello"))
        elif request.version != requests.VERSION:
            what = f"this server speaks version {requests.VERSION}, not {request.version}"
            self.reply(number, Refused(Number.VERSION, what, "update the older of the two"))
        elif not self.limits.is_token(request.token):
            self.service.counters.unauthorised += 1
            what = "another token" if request.token else "no token"
            error = WrongToken(f"the server wants a token, and got {what}", None, "give the server's token")
            self.refuse(number, error)
        else:
            self.is_known = True
            self.reply(number, requests.Welcome(requests.VERSION, self.limits.credit, self.reader.largest))
            return
        self.end()

    def push(self, number: int, request: requests.Push, packed: tcp.Packed) -> None:
        size = packed.size
        try:
            mode = Acknowledge.of(request.acknowledge)
            frame = received_frame(packed.bulk)
            place = request.topic, request.partition
            self.service.push(Push(self.service, self, number, size, frame, mode, place))
        except Exception as error:
            self.refuse(number, error, size)
            return
        self.in_flight += size
        self.service.in_flight += size
        self.hold()

    def pushed(self, push: Push) -> None:
        """In the event loop, after the log has answered."""
        self.in_flight -= push.size
        self.service.in_flight -= push.size
        if self.transport is None:
            return
        receipt = push.receipt
        if receipt is None:
            assert push.error is not None
            self.refuse(push.number, push.error, push.size)
        else:
            self.reply(push.number, requests.Pushed(
                receipt.first, receipt.count, str(receipt.acknowledged), receipt.duplicate, push.size
            ))  # fmt: skip
        self.hold()

    def pulled(self, number: int, reply: Said | BaseException, bulk: list[memoryview]) -> None:
        if isinstance(reply, BaseException):
            self.refuse(number, reply)
        else:
            self.reply(number, reply, *bulk)
        self.ended()

    def answer_later(self, number: int, request: requests.Request) -> None:
        """Whatever may touch the disk runs in a thread."""

        def finish(answer: asyncio.Future[Said]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if error is not None:
                self.refuse(number, error)
            elif not answer.cancelled():
                self.reply(number, answer.result())
            self.ended()

        answering: Callable[[], Said] = partial(self.service.answer, request)
        self.service.in_thread(answering).add_done_callback(finish)

    # ---- answers

    def reply(self, number: int, said: Said, *bulk: memoryview) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        parts = tcp.pack(number, requests.written(said), *bulk)
        self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def refuse(self, number: int, error: BaseException, credit: int = 0) -> None:
        self.service.counters.refused += 1
        if not isinstance(error, PenstockError):
            _LOGGER.error("a request failed", exc_info=error)
            error = PenstockError(f"the server failed: {type(error).__name__}: {error}", None, "look at its output")
        self.reply(number, Refused(number_of(error), error.what, error.fix or "", credit))

    # ---- flow control

    def started(self) -> None:
        self.working += 1
        self.hold()

    def ended(self) -> None:
        self.working -= 1
        self.hold()

    def hold(self) -> None:
        """Read on, or not."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.has_said_all:
            if not self.is_busy:
                self.transport.close()
            return
        is_crowded = self.service.in_flight > self.limits.most_in_flight
        hold = self.is_full or self.in_flight > self.limits.credit or self.working > self.limits.most_requests
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

    def end(self) -> None:
        """No more requests. What was answered is still sent; what still comes is read and thrown away.

        Closing a socket that has unread bytes would take the last answers away from the client.
        """
        self.is_ending = True
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if self.is_held:
            self.is_held = False
            transport.resume_reading()
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()
        self.service.loop.call_later(1, self.abort_when_sent, 10)

    def abort_when_sent(self, tries: int) -> None:
        """The client has had time to close; if there is something that it has not taken yet, a little more."""
        if self.transport is None:
            return
        if tries and self.transport.get_write_buffer_size():
            self.service.loop.call_later(1, self.abort_when_sent, tries - 1)
        else:
            self.transport.abort()

    def eof_received(self) -> bool:
        """A client that has said everything may still wait for answers."""
        self.has_said_all = True
        can_wait = self.transport is not None and self.transport.can_write_eof()
        return can_wait and not self.is_ending and self.is_busy

    @property
    def is_busy(self) -> bool:
        return self.in_flight > 0 or self.working > 0


def answer_at_once(transport: asyncio.Transport) -> None:
    """Small answers do not wait for each other: asyncio sees to that only for sockets that it has made itself."""
    own = transport.get_extra_info("socket")
    if own is not None and own.family in (socket.AF_INET, socket.AF_INET6):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def received_frame(bulk: memoryview) -> Frame:
    """A frame from a stranger."""
    frame = Frame.parse(bulk)
    if frame.bytes != len(bulk):
        raise BadFrame(f"{len(bulk) - frame.bytes} bytes stand behind a frame", None, "push one frame at a time")
    if frame.header.columns & OFFSETS or frame.header.producer == SEVERAL:
        raise BadFrame("a frame that was read cannot be pushed as it is", None, "make a new one of its messages")
    return frame
