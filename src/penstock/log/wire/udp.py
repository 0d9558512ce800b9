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
from typing import Any, TypeAlias

import numpy as np

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
_MAGIC, _VERSION, _HAS_PASS, _MODE = b"PL", 1, 128, 3
_RANGE = struct.Struct("<QI")
_PLACES = struct.Struct("<QQQ")
_FIRST = struct.Struct("<Q")

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


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
    mode |= _HAS_PASS if token else 0
    start = HEADER.pack(_MAGIC, _VERSION, kind, mode, len(name), partition, number & 0xFFFFFFFF, count, 0)
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
    start = HEADER.pack(_MAGIC, _VERSION, REPLY, 0, 0, request.partition, request.number, count, error)
    return start + _PLACES.pack(first, following, end) + messages


REPLY_START = HEADER.size + _PLACES.size


def acknowledgements(
    numbers: Integers, partition: int, mode: str, firsts: Integers, counts: Integers, error: Number
) -> Bytes:
    """One packet in every row."""
    rows = np.zeros(len(numbers), _ACKNOWLEDGEMENT)
    rows["magic"], rows["version"], rows["kind"] = _MAGIC_NUMBER, _VERSION, ACKNOWLEDGEMENT
    rows["flags"], rows["partition"], rows["status"] = MODES.index(mode), partition, error
    rows["number"], rows["count"], rows["first"] = numbers, counts, firsts
    return rows.view(np.uint8).reshape(len(rows), _ACKNOWLEDGEMENT.itemsize)


def read_pull(packet: bytes) -> PullRequest:
    kind, flags, name, partition, number, count, status, rest = _read(packet)
    token_pass = b""
    if flags & _HAS_PASS:
        token_pass, rest = rest[:PASS_BYTES], rest[PASS_BYTES:]
    if kind != PULL or count or status or flags & ~_HAS_PASS or len(rest) != name + _RANGE.size or not name:
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
        return Acknowledgement(number, error, MODES[flags & _MODE], _FIRST.unpack(rest)[0], count)
    if kind != REPLY or name or len(rest) < _PLACES.size:
        raise BadPacket("a packet is no answer")
    first, following, end = _PLACES.unpack_from(rest)
    return PullReply(number, error, first, following, end, _cut(rest[_PLACES.size :], count))


def _read(packet: bytes) -> tuple[int, int, int, int, int, int, int, bytes]:
    if len(packet) < HEADER.size:
        raise BadPacket(f"a packet of {len(packet)} bytes is too short")
    magic, version, kind, flags, name, partition, number, count, status = HEADER.unpack_from(packet)
    if magic != _MAGIC or version != _VERSION:
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


# Many pushes at once: the packets of one call of recvmmsg are the rows of a matrix.

_START = np.dtype([
    ("magic", "<u2"), ("version", "u1"), ("kind", "u1"), ("flags", "u1"), ("name", "u1"), ("partition", "<u2"),
    ("number", "<u4"), ("count", "<u2"), ("status", "<u2"),
])  # fmt: skip
_ACKNOWLEDGEMENT = np.dtype([*_START.descr, ("first", "<u8")])
_MAGIC_NUMBER = int.from_bytes(_MAGIC, "little")
_FACTORS = np.random.default_rng().integers(1, 2**63, LONGEST_NAME // 8 + 1, np.uint64) * np.uint64(2) + np.uint64(1)
"""Chosen anew by every process, so that nobody can make names that meet."""
_COLUMNS = np.arange(LONGEST_NAME, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Group:
    """Messages of one topic, partition and mode, in the order of their packets: as a frame needs them."""

    topic: bytes
    partition: int
    mode: str
    packets: Integers
    counts: Integers
    numbers: Integers
    offsets: np.ndarray[Any, np.dtype[np.int32]]
    values: Bytes


@dataclass(frozen=True, slots=True)
class Gathered:
    groups: list[Group]
    malformed: int
    unauthorised: int


def gather(matrix: Bytes, sizes: Integers, wanted_pass: bytes = b"") -> Gathered:
    """The pushes in these packets. Nothing here is done for one packet or message alone, but for the groups."""
    packets = _Packets(matrix, sizes)
    well_formed = packets.well_formed()
    allowed = well_formed
    if wanted_pass:
        allowed = well_formed & packets.has_pass & packets.passes(wanted_pass)
    rows = np.flatnonzero(allowed)
    malformed = len(sizes) - int(np.count_nonzero(well_formed))
    unauthorised = len(sizes) - malformed - len(rows)
    groups = [packets.group(chosen) for chosen in packets.grouped(rows)] if len(rows) else []
    return Gathered(groups, malformed, unauthorised)


class _Packets:
    def __init__(self, matrix: Bytes, sizes: Integers) -> None:
        self.matrix, self.sizes = matrix, sizes.astype(np.int64)
        self.width = matrix.shape[1]
        self.flat = matrix.reshape(-1)
        starts = np.ascontiguousarray(matrix[:, : HEADER.size]).view(_START).reshape(-1)
        self.start = starts
        self.has_pass: Flags = (starts["flags"] & _HAS_PASS) != 0
        self.counts: Integers = starts["count"].astype(np.int64)
        self.name_at: Integers = HEADER.size + PASS_BYTES * self.has_pass.astype(np.int64)
        self.lengths_at: Integers = self.name_at + starts["name"]
        self.values_at: Integers = self.lengths_at + np.where(self.counts > 1, 2 * self.counts, 0)

    def well_formed(self) -> Flags:
        start = self.start
        good: Flags = (self.sizes >= HEADER.size) & (start["magic"] == _MAGIC_NUMBER) & (start["version"] == _VERSION)
        good &= (start["kind"] == PUSH) & (self.counts > 0) & (start["status"] == 0)
        good &= (start["flags"] & ~np.uint8(_HAS_PASS | _MODE)) == 0
        good &= (start["name"] > 0) & (start["name"] <= LONGEST_NAME) & (self.values_at <= self.sizes)
        several = np.flatnonzero(good & (self.counts > 1))
        if len(several):
            spans = np.add.reduceat(self.lengths(several), _before(self.counts[several]))
            good[several[spans != (self.sizes - self.values_at)[several]]] = False
        return good

    def passes(self, wanted: bytes) -> Flags:
        found = self.matrix[:, HEADER.size : HEADER.size + PASS_BYTES]
        same: Flags = (found == np.frombuffer(wanted, np.uint8)).all(axis=1)
        return same

    def lengths(self, rows: Integers) -> Integers:
        """The length of every message in these packets."""
        counts = self.counts[rows]
        spans = (self.sizes - self.values_at)[rows]
        if not (counts > 1).any():
            return spans
        within = np.arange(counts.sum()) - np.repeat(_before(counts), counts)
        at = np.repeat(rows * self.width + self.lengths_at[rows], counts) + 2 * within
        at = np.minimum(at, len(self.flat) - 2)  # a packet of one message has no lengths there
        listed = self.flat[at].astype(np.int64) | (self.flat[at + 1].astype(np.int64) << 8)
        return np.where(np.repeat(counts > 1, counts), listed, np.repeat(spans, counts))

    def grouped(self, rows: Integers) -> list[Integers]:
        """The rows of each topic, partition and mode, in order."""
        keys = self._keys(rows)
        if (keys == keys[0]).all():
            return [rows]
        marks = (keys * _FACTORS).sum(axis=1, dtype=np.uint64)
        _, first, group = np.unique(marks, return_index=True, return_inverse=True)
        if not (keys == keys[first[group]]).all():
            _, group = np.unique(keys, axis=0, return_inverse=True)
            group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        borders = np.flatnonzero(np.diff(group[order])) + 1
        return np.split(rows[order], borders)

    def _keys(self, rows: Integers) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Name, partition and mode of each packet as numbers."""
        names = self._names(rows)
        names[self.start["name"][rows, None] <= _COLUMNS] = 0
        keys = np.empty((len(rows), LONGEST_NAME // 8 + 1), np.uint64)
        keys[:, 1:] = names.view(np.uint64)
        chosen = self.start[rows]
        keys[:, 0] = (
            chosen["partition"].astype(np.uint64) << np.uint64(16)
            | chosen["name"].astype(np.uint64) << np.uint64(8)
            | (chosen["flags"] & _MODE)
        )
        return keys

    def _names(self, rows: Integers) -> Bytes:
        """What stands where the names are, and behind them."""
        has_pass = self.has_pass[rows]
        room = np.zeros((len(rows), LONGEST_NAME), np.uint8)
        for chosen, at in ((~has_pass, HEADER.size), (has_pass, HEADER.size + PASS_BYTES)):
            found = self.matrix[:, at : at + LONGEST_NAME]
            if chosen.all():
                room[:, : found.shape[1]] = found[rows]
            elif chosen.any():
                room[chosen, : found.shape[1]] = found[rows[chosen]]
        return room

    def group(self, rows: Integers) -> Group:
        first = int(rows[0])
        start = self.start[first]
        name_at = first * self.width + int(self.name_at[first])
        topic = self.flat[name_at : name_at + int(start["name"])].tobytes()
        lengths = self.lengths(rows)
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        spans = (self.sizes - self.values_at)[rows]
        at = np.repeat(rows * self.width + self.values_at[rows] - _before(spans), spans) + np.arange(int(offsets[-1]))
        return Group(
            topic, int(start["partition"]), MODES[int(start["flags"]) & _MODE], rows, self.counts[rows],
            self.start["number"][rows].astype(np.int64), offsets, self.flat[at],
        )  # fmt: skip


def _before(counts: Integers) -> Integers:
    """The sum of what stands before each."""
    return np.cumsum(counts) - counts
