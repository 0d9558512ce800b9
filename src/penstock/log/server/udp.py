"""UDP: pushes and pulls as packets, received and answered many at a time.

Each of the two ports has one thread, which sleeps in the kernel until packets come and then takes all that are there.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.log import mmsg
from penstock.log.errors import BadFrame
from penstock.log.frame import Frame
from penstock.log.records import Receipt
from penstock.log.server.listening import CannotListen, Listening
from penstock.log.server.service import Service
from penstock.log.settings import Acknowledge
from penstock.log.wire import manypackets, udp
from penstock.log.wire.errors import Number, number_of

_RECEIVE_BUFFER = 16 << 20
_LOOK_UP = 0.1
"""Seconds after which a thread that has nothing to do looks whether it should end."""
_MOST_OWED = 4096
_RECEIVE_BUFFER_FORCE = 33
"""SO_RCVBUFFORCE, which Python does not name: above the limit of the machine, for who may."""
_LAST_PACKETS = 1.0
"""Seconds that a server which stops takes at most to read what is in the kernel already."""


def bound_socket(listening: Listening, port: int, kind: socket.SocketKind = socket.SOCK_DGRAM) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    own = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((listening.host, port))
    except OSError as error:
        own.close()
        what = f"cannot listen at {listening.host}:{port}: {os.strerror(error.errno or 0)}"
        fix = "another server may be running there; choose another port, or 0 for any"
        raise CannotListen(what, None, fix) from None
    return own


class UdpPort(threading.Thread):
    """What both ports have in common."""

    def __init__(self, service: Service, port: int, name: str, answer_width: int) -> None:
        super().__init__(name=name, daemon=True)
        self.service = service
        self.socket = bound_socket(service.listening, port)
        self.port: int = self.socket.getsockname()[1]
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, _RECEIVE_BUFFER)
        mmsg.set_timeout(self.socket, _LOOK_UP)
        token = service.listening.token
        self.wanted_pass = udp.pass_of(token) if token else b""
        self.receiver = mmsg.Receiver(self.socket, width=service.listening.packet_bytes)
        self.sender = mmsg.Sender(self.socket, width=answer_width)

    def run(self) -> None:
        end: float | None = None
        while end is None or time.monotonic() < end:
            count = self._received()
            if end is None and self.service.is_stopping.is_set():
                end = time.monotonic() + _LAST_PACKETS
            if end is not None and not count:
                break
        self.finish()

    def _received(self) -> int:
        """How many packets came; nothing that goes wrong with them ends the thread."""
        try:
            count = self.receiver.receive()
            if count:
                self.take(count)
        except Exception as error:
            self.service.complaints.failed("packets could not be worked on", error)
            self.service.is_stopping.wait(_LOOK_UP)  # if it is the kernel, it will not be better at once
            return 0
        return count

    def take(self, count: int) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.socket.close()


@dataclass(frozen=True, slots=True)
class _Owed:
    """Packets whose senders wait for an answer."""

    group: manypackets.Group
    addresses: mmsg.Array
    address_sizes: mmsg.Array
    result: Future[Receipt] | BaseException


class PushPort(UdpPort):
    def __init__(self, service: Service, port: int) -> None:
        super().__init__(service, port, "penstock-log-push", udp.HEADER.size + 8)
        # Bounded: while the disk does not answer, packets wait in the kernel, and then are lost there.
        self.owed: queue.Queue[_Owed | None] = queue.Queue(_MOST_OWED)
        self.answering = threading.Thread(target=self._answer, name="penstock-log-acknowledge", daemon=True)

    def run(self) -> None:
        self.answering.start()
        super().run()

    def take(self, count: int) -> None:
        gathered = manypackets.gather(self.receiver.data[:count], self.receiver.sizes[:count], self.wanted_pass)
        counters = self.service.counters
        counters.udp_packets += count
        counters.udp_calls += 1
        counters.udp_truncated = self.receiver.truncated
        counters.udp_malformed += gathered.malformed
        counters.udp_unauthorised += gathered.unauthorised
        now = time.time_ns() // 1000
        for group in gathered.groups:
            self._append(group, now)

    def _append(self, group: manypackets.Group, now: int) -> None:
        """Append pushes, also while the server stops: these packets were in the kernel already."""
        mode = Acknowledge.of(group.mode) if group.mode else Acknowledge.MEMORY
        result: Future[Receipt] | BaseException
        try:
            topic = group.topic.decode()
            frame = _frame(group, now)
            result = self.service.log.append(topic, group.partition, frame, mode)
            self.service.counters.udp_messages += frame.count
        except UnicodeDecodeError:
            result = BadFrame("the name of a topic is not UTF-8")
        except PenstockError as error:
            result = error
        except Exception as error:
            self.service.complaints.failed("packets could not be stored", error)
            result = error
        if isinstance(result, BaseException):
            self.service.counters.udp_refused += len(group.packets)
        if group.mode:
            rows = group.packets
            addresses = self.receiver.addresses[rows], self.receiver.address_sizes[rows]
            self.owed.put(_Owed(group, *addresses, result))

    def _answer(self) -> None:
        while (owed := self.owed.get()) is not None:
            error, first, mode = Number.OK, 0, owed.group.mode
            try:
                if isinstance(owed.result, BaseException):
                    raise owed.result
                receipt = owed.result.result()
                first, mode = receipt.first, str(receipt.acknowledged)
            except Exception as failure:
                error = number_of(failure)
            counts = owed.group.counts
            firsts = first + np.cumsum(counts) - counts if error is Number.OK else np.zeros(len(counts), np.int64)
            try:
                self._send(owed, manypackets.acknowledgements(
                    owed.group.numbers, owed.group.partition, mode, firsts, counts, error
                ))  # fmt: skip
            except Exception as failure:
                self.service.complaints.failed("acknowledgements could not be sent", failure)

    def _send(self, owed: _Owed, packets: manypackets.Bytes) -> None:
        count = len(packets)
        self.sender.data[:count] = packets
        self.sender.sizes[:count] = packets.shape[1]
        self.sender.send_to(owed.addresses, owed.address_sizes)

    def finish(self) -> None:
        self.owed.put(None)
        self.answering.join()
        super().finish()


def _frame(group: manypackets.Group, now: int) -> Frame:
    buffers = [None, pa.py_buffer(group.offsets), pa.py_buffer(group.values)]
    count = len(group.offsets) - 1
    return Frame.pack(pa.Array.from_buffers(pa.binary(), count, buffers), times=np.full(count, now, np.int64))


class PullPort(UdpPort):
    def __init__(self, service: Service, port: int) -> None:
        super().__init__(service, port, "penstock-log-pull", service.listening.packet_bytes)

    def take(self, count: int) -> None:
        rows: list[int] = []
        receiver, sender = self.receiver, self.sender
        for row in range(count):
            answer = self._answer(receiver.data[row, : receiver.sizes[row]].tobytes())
            if answer is not None:
                at = len(rows)
                sender.data[at, : len(answer)] = np.frombuffer(answer, np.uint8)
                sender.sizes[at] = len(answer)
                rows.append(row)
        if rows:
            chosen = np.array(rows)
            sender.send_to(receiver.addresses[chosen], receiver.address_sizes[chosen])

    def _answer(self, packet: bytes) -> bytes | None:
        counters = self.service.counters
        counters.udp_pulls += 1
        try:
            request = udp.read_pull(packet)
        except udp.BadPacket:
            counters.udp_malformed += 1
            return None
        if self.wanted_pass and request.token_pass != self.wanted_pass:
            counters.udp_unauthorised += 1
            return None
        try:
            return self._reply(request)
        except Exception as error:
            if not isinstance(error, PenstockError):
                self.service.complaints.failed("a packet could not be answered", error)
            counters.udp_refused += 1
            return udp.reply(request, 0, 0, 0, b"", 0, number_of(error))

    def _reply(self, request: udp.PullRequest) -> bytes:
        """A reply with as many messages as fit; a message that fits no packet is passed over, with an error."""
        log = self.service.log
        ends = log.ends(request.topic, request.partition)
        room = min(self.sender.width - udp.REPLY_START, max(request.most_bytes, 1))
        reading = log.read(request.topic, request.partition, request.offset, most_bytes=room)
        if not reading.frames:
            return udp.reply(request, request.offset, request.offset, ends.next, b"", 0)
        column = reading.frames[0].value_column
        ends_of = column.offsets[1:].astype(np.int64)
        sizes = ends_of + np.where(np.arange(len(ends_of)) > 0, 2 * np.arange(1, len(ends_of) + 1), 0)
        count = int(np.searchsorted(sizes, room, side="right"))
        first = reading.frames[0].first
        if count == 0:
            end = max(ends.next, first + 1)
            return udp.reply(request, first, first + 1, end, b"", 0, Number.TOO_LARGE)
        values = bytes(column.data[: int(ends_of[count - 1])])
        if count > 1:
            values = np.diff(column.offsets[: count + 1]).astype("<u2").tobytes() + values
        return udp.reply(request, first, first + count, max(ends.next, first + count), values, count)
