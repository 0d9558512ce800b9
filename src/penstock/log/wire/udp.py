"""Packets of UDP: the paper's push, pull and reply, extended by version, topic, partition and several messages in one.

Every packet begins with 16 bytes, little endian:

| bytes | |
|---|---|
| 0-1 | `PL` |
| 2 | version, 1 |
| 3 | kind: 1 push, 2 pull, 3 reply to a pull, 4 acknowledgement of a push |
| 4 | acknowledgement in the lowest two bits: 0 none, 1 memory, 2 written, 3 fsynced; 128 if a pass follows |
| 5 | length of the topic's name |
| 6-7 | partition |
| 8-11 | a number of the sender's choice, which the answer repeats |
| 12-13 | count of messages |
| 14-15 | in answers the number of an error (`errors.Number`), else 0 |

Then the pass (16 bytes, made from the server's token, see `pass_of`) if there is one, and the name of the topic. Then
a push has its messages; a pull has the first offset (8 bytes) and how many bytes of messages the reply may have at
most (4 bytes). A reply has no name; it has the offset of its first message, the offset to go on with, and the offset
where the log ends (8 bytes each), then its messages. An acknowledgement has the offset of the first message (8 bytes).

*Messages* are the bytes of one message, if the count is one; otherwise the length of each (2 bytes), then their bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.log.wire.errors import Number

PUSH_PORT, PULL_PORT = 19999, 19998
PACKET_BYTES = 1472
"""What fits into an Ethernet frame beside the headers of IPv4 and UDP."""
LARGEST_PACKET = 65507
LONGEST_NAME = 64
PUSH, PULL, REPLY, ACKNOWLEDGEMENT = 1, 2, 3, 4
MODES = ("", "memory", "written", "fsynced")

HEADER = struct.Struct("<2sBBBBHIHH")
PASS_BYTES = 16
MAGIC, VERSION, HAS_PASS, MODE = b"PL", 1, 128, 3
_RANGE = struct.Struct("<QI")
_PLACES = struct.Struct("<QQQ")
_FIRST = struct.Struct("<Q")


class BadPacket(PenstockError):
    """A datagram that is none of the log's packets, or a message that does not fit into one."""


def pass_of(token: str) -> bytes:
    """What packets carry instead of the token itself."""
    return hashlib.blake2b(token.encode(), digest_size=PASS_BYTES, person=b"penstock udp").digest()


def push(topic: str, partition: int, messages: Sequence[bytes], *, number: int = 0, acknowledge: str = "",
         token: str = "", largest: int = PACKET_BYTES) -> bytes:  # fmt: skip
    """One packet with these messages."""
    start = _start(PUSH, topic, partition, number, MODES.index(acknowledge), len(messages), token)
    whole = start + _messages(messages)
    if len(whole) > largest:
        raise BadPacket(f"{len(messages)} messages make a packet of {len(whole):,} bytes, the limit is {largest:,}",
                        None, "send fewer at once, or over TCP")  # fmt: skip
    return whole


def pull(topic: str, partition: int, offset: int, most_bytes: int, *, number: int = 0, token: str = "") -> bytes:
    return _start(PULL, topic, partition, number, 0, 0, token) + _RANGE.pack(offset, most_bytes)


def _start(kind: int, topic: str, partition: int, number: int, mode: int, count: int, token: str) -> bytes:
    name = topic.encode()
    if not 0 < len(name) <= LONGEST_NAME:
        raise BadPacket(f"a packet cannot name the topic {topic!r}", None, f"names have 1 to {LONGEST_NAME} bytes")
    if not 0 <= partition <= 0xFFFF or not 0 <= count <= 0xFFFF:
        raise BadPacket(f"a packet cannot have partition {partition} or {count} messages", None, "use TCP")
    mode |= HAS_PASS if token else 0
    start = HEADER.pack(MAGIC, VERSION, kind, mode, len(name), partition, number & 0xFFFFFFFF, count, 0)
    return start + (pass_of(token) if token else b"") + name


def _messages(messages: Sequence[bytes]) -> bytes:
    if not messages:
        raise BadPacket("a push has at least one message")
    if len(messages) == 1:
        return messages[0]
    if max(map(len, messages)) > 0xFFFF:
        raise BadPacket("a message is longer than a packet", None, "send it over TCP")
    return struct.pack(f"<{len(messages)}H", *map(len, messages)) + b"".join(messages)


@dataclass(frozen=True, slots=True)
class PullRequest:
    topic: str
    partition: int
    number: int
    offset: int
    most_bytes: int
    token_pass: bytes


@dataclass(frozen=True, slots=True)
class PullReply:
    number: int
    error: Number
    first: int
    next: int
    end: int
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    number: int
    error: Number
    mode: str
    first: int
    count: int


def reply(request: PullRequest, first: int, following: int, end: int, messages: bytes, count: int,
          error: Number = Number.OK) -> bytes:  # fmt: skip
    """The packet that answers; `messages` are as `_messages` writes them."""
    start = HEADER.pack(MAGIC, VERSION, REPLY, 0, 0, request.partition, request.number, count, error)
    return start + _PLACES.pack(first, following, end) + messages


REPLY_START = HEADER.size + _PLACES.size


def read_pull(packet: bytes) -> PullRequest:
    kind, flags, name, partition, number, count, status, rest = _read(packet)
    token_pass = b""
    if flags & HAS_PASS:
        token_pass, rest = rest[:PASS_BYTES], rest[PASS_BYTES:]
    if kind != PULL or count or status or flags & ~HAS_PASS or len(rest) != name + _RANGE.size or not name:
        raise BadPacket("a packet is no pull")
    offset, most_bytes = _RANGE.unpack_from(rest, name)
    try:
        topic = rest[:name].decode()
    except UnicodeDecodeError:
        raise BadPacket("the name of a topic is not UTF-8") from None
    return PullRequest(topic, partition, number, offset, most_bytes, token_pass)


def read_answer(packet: bytes) -> PullReply | Acknowledgement:
    kind, flags, name, _, number, count, status, rest = _read(packet)
    try:
        error = Number(status)
    except ValueError:
        error = Number.INTERNAL
    if kind == ACKNOWLEDGEMENT and len(rest) == _FIRST.size and not name:
        return Acknowledgement(number, error, MODES[flags & MODE], _FIRST.unpack(rest)[0], count)
    if kind != REPLY or name or len(rest) < _PLACES.size:
        raise BadPacket("a packet is no answer")
    first, following, end = _PLACES.unpack_from(rest)
    return PullReply(number, error, first, following, end, _cut(rest[_PLACES.size :], count))


def _read(packet: bytes) -> tuple[int, int, int, int, int, int, int, bytes]:
    if len(packet) < HEADER.size:
        raise BadPacket(f"a packet of {len(packet)} bytes is too short")
    magic, version, kind, flags, name, partition, number, count, status = HEADER.unpack_from(packet)
    if magic != MAGIC or version != VERSION:
        raise BadPacket("a packet does not begin as the log's packets do")
    return kind, flags, name, partition, number, count, status, packet[HEADER.size :]


def _cut(data: bytes, count: int) -> tuple[bytes, ...]:
    if count <= 1:
        if not count and data:
            raise BadPacket("a packet without messages has bytes of messages")
        return (data,) * count
    if len(data) < 2 * count:
        raise BadPacket("a packet is shorter than its messages")
    lengths = struct.unpack_from(f"<{count}H", data)
    at, found = 2 * count, []
    for length in lengths:
        found.append(data[at : at + length])
        at += length
    if at != len(data):
        raise BadPacket("the lengths in a packet are not those of its messages")
    return tuple(found)
