"""TCP: requests are read as they come, answered when they are done, in whatever order that is."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from penstock.log.errors import BadFrame
from penstock.log.frame import OFFSETS, SEVERAL, Frame
from penstock.log.server.push import Push
from penstock.log.server.talking import Talking
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import BadRequest, Number, TooMany, WrongToken
from penstock.log.wire.requests import Refused, Said

if TYPE_CHECKING:
    from penstock.log.server.service import Service


class Connection(Talking):
    """One client."""

    def __init__(self, service: Service, own: socket.socket) -> None:
        super().__init__(service)
        self.socket = own
        service.strangers.enter(self, self.end_stranger)
        # One for each: a clock that looks at all now and then makes the event loop slower for those who are known.
        self._patience = service.loop.call_later(service.strangers.seconds, self.end_late)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.is_no_stranger()

    def is_no_stranger(self) -> None:
        """It is known, or gone."""
        self._patience.cancel()
        self.service.strangers.leave(self)

    def end_late(self) -> None:
        if self.service.strangers.leave(self):
            self.end_stranger()

    def end_stranger(self) -> None:
        """In the event loop: it has said nothing for too long, or too many others have come since."""
        self.service.counters.strangers += 1
        if self.transport is None:  # in the handshake of TLS
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            return
        what = f"a connection without Hello is ended after {self.limits.stranger_seconds:g} seconds, or sooner"
        self.refuse(0, TooMany(what, None, "say Hello at once"))
        self.transport.abort()

    # ---- requests

    def begin(self, packed: tcp.Packed) -> None:
        number = packed.number
        try:
            request = requests.request(packed.head)
        except msgspec.MsgspecError as error:
            self.refuse(number, BadRequest(f"this is no request: {error}"))
            if not self.is_known:
                self.end()
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
            self.questions.ask(request, partial(self.answered, number))

    def greet(self, number: int, request: requests.Request) -> None:
        if not isinstance(request, requests.Hello):
            self.refuse(number, BadRequest("the first request of a connection is Hello"))
        elif request.version != requests.VERSION:
            what = f"this server speaks version {requests.VERSION}, not {request.version}"
            self.reply(number, Refused(Number.VERSION, what, "update the older of the two"))
        elif not self.limits.is_token(request.token):
            self.service.counters.unauthorised += 1
            what = "another token" if request.token else "no token"
            fix = "give it: --token-file or PENSTOCK_LOG_TOKEN for commands, token=... in a program"
            error = WrongToken(f"the server wants a token, and got {what}", None, fix)
            self.refuse(number, error)
        elif self.service.known >= self.limits.most_connections:
            what = f"{self.limits.most_connections:,} connections are open"
            self.refuse(number, TooMany(what, None, "try again later"))
        else:
            self.become_known()
            self.service.sessions.begin(request.session, self)
            self.reply(number, requests.Welcome(requests.VERSION, self.limits.credit, self.reader.largest))
            return
        self.end()

    def become_known(self) -> None:
        self.is_known = True
        self.service.known += 1
        self.is_no_stranger()
        self.reader.largest = self.service.largest

    def push(self, number: int, request: requests.Push, packed: tcp.Packed) -> None:
        size = packed.size
        try:
            mode = Acknowledge.of(request.acknowledge)
            frame = received_frame(packed.bulk)
            place = request.topic, request.partition
            self.service.push(Push(self.service, self, number, size, frame, mode, place, request.identity))
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
            self.reply_written(number, requests.written(reply), *bulk)
        self.ended()

    def answered(self, number: int, answer: bytes | BaseException) -> None:
        if isinstance(answer, BaseException):
            self.refuse(number, answer)
        else:
            self.reply_written(number, answer)
        self.ended()


def received_frame(bulk: memoryview) -> Frame:
    """A frame from a stranger."""
    frame = Frame.parse(bulk)
    if frame.bytes != len(bulk):
        raise BadFrame(f"{len(bulk) - frame.bytes} bytes stand behind a frame", None, "push one frame at a time")
    if frame.header.columns & OFFSETS or frame.header.producer == SEVERAL:
        raise BadFrame("a frame that was read cannot be pushed as it is", None, "make a new one of its messages")
    return frame
