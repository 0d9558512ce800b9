"""What comes over networks: frames of TCP, requests and replies, packets of UDP."""

from __future__ import annotations

import msgspec
import numpy as np

from penstock.errors import PenstockError
from penstock.log.errors import BadFrame
from penstock.log.frame import Frame
from penstock.log.server.tcp import received_frame
from penstock.log.wire import manypackets, requests, tcp, udp
from tests.fuzz.parser import Parser, pieces

WIDTH = 256


def streams(data: bytes) -> None:
    """Cut anywhere, a stream has the same frames. The first byte says how long the pieces are."""
    size, stream = (data[0] or 1, data[1:]) if data else (1, b"")
    whole = _read(tcp.Reader(1 << 16), [stream])
    cut = _read(tcp.Reader(1 << 16), [stream[at : at + size] for at in range(0, len(stream), size)])
    assert cut[0] == whole[0]
    assert cut[1] == whole[1]
    for number, head, bulk in whole[0]:
        packed = b"".join(tcp.pack(number, head, bulk))
        assert _read(tcp.Reader(), [packed]) == ([(number, head, bulk)], False)


def _read(reader: tcp.Reader, parts: list[bytes]) -> tuple[list[tuple[int, bytes, bytes]], bool]:
    found = []
    try:
        for part in parts:
            for packed in reader.feed(part):
                found.append((packed.number, bytes(packed.head), bytes(packed.bulk)))
    except tcp.NotAFrame:
        return found, True
    assert reader.missing > 0
    return found, False


def heads(data: bytes) -> None:
    for read in (requests.request, requests.reply):
        try:
            found = read(data)
        except (msgspec.MsgspecError, tcp.NotAFrame):
            continue
        assert read(requests.written(found)) == found


def pushed_frames(data: bytes) -> None:
    try:
        frame = received_frame(memoryview(data))
    except BadFrame:
        return
    assert frame.count == len(frame.values)


def pulls_and_answers(data: bytes) -> None:
    for read in (udp.read_pull, udp.read_answer):
        try:
            found = read(data)
        except udp.BadPacket:
            continue
        if isinstance(found, udp.PullRequest) and not found.token_pass:
            again = udp.pull(found.topic, found.partition, found.offset, found.most_bytes, number=found.number)
            assert again == data


def pushed_packets(data: bytes) -> None:
    """Many packets at once are read as each of them alone would be. A first byte of 1 asks for a pass."""
    wanted = udp.pass_of("token") if data[:1] == b"\x01" else b""
    packets = [packet[:WIDTH] for packet in pieces(data[1:], b"\xfe\xfe")]
    matrix = np.full((len(packets), WIDTH), 0x5A, np.uint8)
    for row, packet in zip(matrix, packets, strict=True):
        row[: len(packet)] = np.frombuffer(packet, np.uint8)
    gathered = manypackets.gather(matrix, np.array([len(packet) for packet in packets]), wanted)
    expected, malformed, unauthorised = _one_by_one(packets, wanted)
    assert (gathered.malformed, gathered.unauthorised) == (malformed, unauthorised)
    found: dict[tuple[bytes, int, str], list[bytes]] = {}
    for group in gathered.groups:
        text = group.values.tobytes()
        values = [text[a:b] for a, b in zip(group.offsets.tolist(), group.offsets[1:].tolist(), strict=False)]
        assert (group.topic, group.partition, group.mode) not in found
        assert sum(group.counts.tolist()) == len(values)
        found[group.topic, group.partition, group.mode] = values
    assert found == expected


def _one_by_one(packets: list[bytes], wanted: bytes) -> tuple[dict[tuple[bytes, int, str], list[bytes]], int, int]:
    found: dict[tuple[bytes, int, str], list[bytes]] = {}
    malformed = unauthorised = 0
    for packet in packets:
        try:
            kind, flags, name, partition, _, count, status, rest = udp._read(packet)
            given, rest = (rest[:16], rest[16:]) if flags & udp.HAS_PASS else (b"", rest)
            if kind != udp.PUSH or not count or status or flags & ~(udp.HAS_PASS | udp.MODE):
                raise udp.BadPacket("no push")
            if not 0 < name <= udp.LONGEST_NAME or len(rest) < name or (flags & udp.HAS_PASS and len(given) < 16):
                raise udp.BadPacket("no name")
            messages = udp._cut(rest[name:], count)
        except udp.BadPacket:
            malformed += 1
            continue
        if wanted and given != wanted:
            unauthorised += 1
            continue
        found.setdefault((rest[:name], partition, udp.MODES[flags & udp.MODE]), []).extend(messages)
    return found, malformed, unauthorised


def made_packets(data: bytes) -> None:
    """What a client makes, a server reads."""
    messages = pieces(data)
    try:
        packet = udp.push("orders", 3, messages, number=7, acknowledge="written", token="t")
    except PenstockError:
        return
    row = np.frombuffer(packet, np.uint8).reshape(1, -1)
    (group,) = manypackets.gather(row, np.array([len(packet)]), udp.pass_of("t")).groups
    assert group.values.tobytes() == b"".join(messages)
    assert np.diff(group.offsets).tolist() == [len(message) for message in messages]


_FRAME = bytes(Frame.pack([b"a", b"b"], times=[1, 2]).data)
_SAID: list[requests.Said] = [
    requests.Hello(token="t"), requests.Topics(), requests.Create("orders", 3), requests.Push("orders", 1, "written"),
    requests.Pull("orders", 0, 5, output=requests.Output("n > 1", (("a", "n"),), "n BIGINT")),
    requests.AskOffset("orders", 0, 7), requests.Commit("g", "orders", 0, 5), requests.AskNumber("orders", 0, 9),
    requests.Welcome(1, 2, 3), requests.TopicList({"orders": 2}), requests.Pulled(5, 9, (136, 140)),
    requests.StatisticsAre({"a": {"b": [1, None]}}), requests.Refused(4, "what", "fix"), requests.OffsetIs(None),
]  # fmt: skip
_HEADS = [requests.written(said) for said in _SAID]
_STREAM = b"".join(b"".join(tcp.pack(number, head, _FRAME)) for number, head in enumerate(_HEADS[:4]))
_PULL = udp.PullRequest("orders", 1, 7, 5, 1000, b"")
_PUSHES = [udp.push("orders", 1, [b"a", b"bc", b""], acknowledge="fsynced"),
           udp.push("cars", 0, [b"one"], token="token"),
           udp.push("orders", 1, [b"more"], acknowledge="fsynced", token="token")]  # fmt: skip
PARSERS = [
    Parser(streams, [b"\x07" + _STREAM, b"\x01" + _STREAM[:100], b"\xffGET / HTTP/1.1\r\n\r\n",
                     b"\x05\x16\x03\x01" + bytes(20)]),
    Parser(heads, _HEADS),
    Parser(pushed_frames, [_FRAME, _FRAME + b"x"]),
    Parser(pulls_and_answers, [udp.pull("orders", 1, 5, 1000), udp.pull("orders", 1, 5, 9, token="t"),
                               udp.reply(_PULL, 5, 7, 9, b"\x01\0\x02\0abc", 2), udp.reply(_PULL, 5, 6, 9, b"abc", 1)]),
    Parser(pushed_packets, [first + b"\xfe\xfe".join(_PUSHES) for first in (b"\0", b"\x01")] + [b"\0" + _PUSHES[0]]),
    Parser(made_packets, [b"a\xfe\xfebc", b"", b"one"]),
]  # fmt: skip
