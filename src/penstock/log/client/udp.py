"""UDP: many tiny messages in few packets, for publishers that are too small for TCP.

Packets are lost, doubled and mixed up, and so may messages be. Who needs them once uses `Producer`.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.log import mmsg
from penstock.log.closing import Closing
from penstock.log.wire import udp
from penstock.log.wire.errors import NoServer, Number, error_of

AT_ONCE = 256
"""Packets that may be unanswered: their answers fit into any socket's buffer."""
_TRIES = 3


class Packet(NamedTuple):
    number: int
    data: bytes
    messages: Sequence[bytes]


class UdpClient(Closing):
    """Pushes to one port of a server and pulls from another; not for several threads at once."""

    def __init__(
        self, host: str = "127.0.0.1", push_port: int = udp.PUSH_PORT, pull_port: int = udp.PULL_PORT, *,
        token: str = "", timeout: float = 1.0, packet_bytes: int = udp.PACKET_BYTES,
    ) -> None:  # fmt: skip
        self.token, self.timeout, self.packet_bytes = token, timeout, packet_bytes
        self.sent = 0
        """Packets of pushes, also those that were lost."""
        self._number = 0
        self._push, self._pull = _connected(host, push_port), _connected(host, pull_port)
        self._sender = mmsg.Sender(self._push, AT_ONCE, packet_bytes)
        self._answers = mmsg.Receiver(self._push, AT_ONCE)

    def push(
        self, topic: str, messages: Iterable[bytes], *, partition: int = 0, acknowledge: str = ""
    ) -> list[bytes]:
        """Send messages, as many in a packet as fit; those of packets that nothing was heard of are returned.

        Only a push that asks to `acknowledge` (`memory`, `written` or `fsynced`) hears anything. A refusal raises.
        """
        unheard: list[bytes] = []
        waiting: list[Packet] = []
        for packet in self._packets(topic, partition, messages, acknowledge):
            waiting.append(packet)
            if len(waiting) == AT_ONCE:
                unheard += self._exchange(waiting, topic, bool(acknowledge))
                waiting = []
        return unheard + self._exchange(waiting, topic, bool(acknowledge))

    def pull(
        self, topic: str, offset: int, *, partition: int = 0, most_bytes: int = udp.PACKET_BYTES
    ) -> udp.PullReply:
        """What fits into one packet, from an offset on. Asking again does no harm, so it is asked three times."""
        self._number += 1
        request = udp.pull(topic, partition, offset, most_bytes, number=self._number, token=self.token)
        number = self._number & 0xFFFFFFFF
        for _ in range(_TRIES):
            reply = self._asked(request, number)
            if reply is not None:
                return self._checked(reply, topic)
        host, port = self._pull.getpeername()[:2]
        raise NoServer(f"no log server answers at {host}:{port} over UDP", None,
                       "see whether it runs, and whether its token is this one: it answers nobody else")  # fmt: skip

    def read(self, topic: str, offset: int = 0, *, partition: int = 0) -> Iterator[tuple[int, bytes]]:
        """Messages with their offsets, from an offset to the end that the partition has when that is reached."""
        while True:
            reply = self.pull(topic, offset, partition=partition)
            yield from enumerate(reply.messages, reply.first)
            if reply.next >= reply.end:
                return
            offset = reply.next

    def close(self) -> None:
        self._push.close()
        self._pull.close()

    def _packets(self, topic: str, partition: int, messages: Iterable[bytes], mode: str) -> Iterator[Packet]:
        empty = udp.HEADER.size + (udp.PASS_BYTES if self.token else 0) + len(topic.encode())
        some: list[bytes] = []
        size = empty
        for message in messages:
            if some and (size + _grown(some, message) > self.packet_bytes or len(some) == 0xFFFF):
                yield self._packet(topic, partition, some, mode)
                some, size = [], empty
            size += _grown(some, message)
            some.append(message)
        if some:
            yield self._packet(topic, partition, some, mode)

    def _packet(self, topic: str, partition: int, messages: Sequence[bytes], mode: str) -> Packet:
        self._number += 1
        data = udp.push(topic, partition, messages, number=self._number, acknowledge=mode, token=self.token,
                        largest=self.packet_bytes)  # fmt: skip
        return Packet(self._number & 0xFFFFFFFF, data, messages)

    def _exchange(self, packets: Sequence[Packet], topic: str, answered: bool) -> list[bytes]:
        for row, packet in enumerate(packets):
            self._sender.data[row, : len(packet.data)] = np.frombuffer(packet.data, np.uint8)
            self._sender.sizes[row] = len(packet.data)
        self._sender.send(len(packets))
        self.sent += len(packets)
        if not answered:
            return []
        waiting = {packet.number: packet for packet in packets}
        deadline = time.monotonic() + self.timeout
        while waiting and (left := deadline - time.monotonic()) > 0:
            mmsg.set_timeout(self._push, max(left, 0.001))
            for row in range(self._answers.receive()):
                answer = self._answer(self._answers.data[row, : self._answers.sizes[row]].tobytes())
                if isinstance(answer, udp.Acknowledgement) and waiting.pop(answer.number, None) is not None:
                    deadline = time.monotonic() + self.timeout
                    self._accept(answer, topic)
        return [message for packet in waiting.values() for message in packet.messages]

    def _accept(self, answer: udp.Acknowledgement, topic: str) -> None:
        if answer.error is not Number.OK:
            raise error_of(answer.error, f"a push to topic {topic!r} was refused: {_words(answer.error)}")

    def _asked(self, request: bytes, number: int) -> udp.PullReply | None:
        deadline = time.monotonic() + self.timeout
        try:
            self._pull.send(request)
            while (left := deadline - time.monotonic()) > 0:
                self._pull.settimeout(left)
                answer = self._answer(self._pull.recv(udp.LARGEST_PACKET))
                if isinstance(answer, udp.PullReply) and answer.number == number:
                    return answer
        except (TimeoutError, ConnectionRefusedError):
            pass
        return None

    def _checked(self, reply: udp.PullReply, topic: str) -> udp.PullReply:
        if reply.error is Number.TOO_LARGE:
            raise error_of(reply.error, f"the message at offset {reply.first} of topic {topic!r} fits no packet",
                           f"read it over TCP; go on at offset {reply.next}")  # fmt: skip
        if reply.error is not Number.OK:
            raise error_of(reply.error, f"a pull from topic {topic!r} was refused: {_words(reply.error)}")
        return reply

    @staticmethod
    def _answer(packet: bytes) -> udp.PullReply | udp.Acknowledgement | None:
        try:
            return udp.read_answer(packet)
        except udp.BadPacket:
            return None


def _grown(some: Sequence[bytes], message: bytes) -> int:
    """By how many bytes a packet grows: the lengths of the first two come with the second."""
    return len(message) + (0, 4)[len(some)] if len(some) < 2 else len(message) + 2


def _words(error: Number) -> str:
    return error.name.lower().replace("_", " ")


def _connected(host: str, port: int) -> socket.socket:
    """Connected, so that only this server's packets come in."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        own = socket.socket(family, kind, protocol)
        own.connect(address)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise NoServer(f"cannot send packets to {host}:{port}: {why}", None, "see whether the name is right") from None
    return own
