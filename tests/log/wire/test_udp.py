"""Packets: many at once must give what they give one by one."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.wire import manypackets, udp
from penstock.log.wire.errors import Number

WIDTH = 400
names = st.sampled_from(["a", "orders", "orders2", "x" * 64])
messages = st.lists(st.binary(max_size=30), min_size=1, max_size=5)
pushes = st.tuples(names, st.integers(0, 3), messages, st.integers(0, 2**32 - 1), st.sampled_from(udp.MODES))


def matrix(packets: list[bytes]) -> tuple[manypackets.Bytes, manypackets.Integers]:
    rows = np.full((len(packets), WIDTH), 0xAA, np.uint8)  # what an earlier packet left there
    for row, packet in zip(rows, packets, strict=True):
        row[: len(packet)] = np.frombuffer(packet, np.uint8)
    return rows, np.array([len(packet) for packet in packets], np.int64)


def found(gathered: manypackets.Gathered) -> dict[tuple[bytes, int, str], list[bytes]]:
    result = {}
    for group in gathered.groups:
        cuts = group.offsets.tolist()
        values = group.values.tobytes()
        result[group.topic, group.partition, group.mode] = [values[a:b] for a, b in itertools.pairwise(cuts)]
    return result


@settings(deadline=None)
@given(st.lists(st.tuples(pushes, st.booleans()), min_size=1, max_size=12))
def test_messages_are_gathered_by_topic_and_partition_in_order(sent: list[tuple[tuple, bool]]) -> None:
    packets, expected, numbers = [], defaultdict(list), defaultdict(list)
    for (topic, partition, values, number, mode), with_pass in sent:
        packets.append(udp.push(topic, partition, values, number=number, acknowledge=mode,
                                token="secret" if with_pass else ""))  # fmt: skip
        expected[topic.encode(), partition, mode] += values
        numbers[topic.encode(), partition, mode].append(number)
    gathered = manypackets.gather(*matrix(packets))
    assert found(gathered) == expected
    assert {(each.topic, each.partition, each.mode): each.numbers.tolist() for each in gathered.groups} == numbers
    assert (gathered.malformed, gathered.unauthorised) == (0, 0)


@settings(deadline=None)
@given(st.lists(pushes, min_size=1, max_size=6), st.data())
def test_damaged_packets_are_counted_and_the_others_are_read(sent: list[tuple], data: st.DataObject) -> None:
    packets = [udp.push(topic, partition, values, number=number, acknowledge=mode)
               for topic, partition, values, number, mode in sent]  # fmt: skip
    good = udp.push("good", 1, [b"kept"])
    which = data.draw(st.integers(0, len(packets) - 1))
    damaged = bytearray(packets[which])
    match data.draw(st.sampled_from(["cut", "flip", "noise"])):
        case "cut":
            damaged = damaged[: data.draw(st.integers(0, len(damaged) - 1))]
        case "flip":
            bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
            damaged[bit // 8] ^= 1 << bit % 8
        case "noise":
            damaged = bytearray(data.draw(st.binary(max_size=WIDTH)))
    packets[which] = bytes(damaged)
    gathered = manypackets.gather(*matrix([good, *packets, good]))
    assert found(gathered)[b"good", 1, ""][0] == b"kept"
    assert found(gathered)[b"good", 1, ""][-1] == b"kept"
    assert sum(len(group.packets) for group in gathered.groups) + gathered.malformed == len(packets) + 2
    sent_bytes = b"".join(packets)
    for values in found(gathered).values():
        assert all(value in sent_bytes or value == b"kept" for value in values)  # nothing is invented


def test_a_cut_packet_is_malformed_unless_only_its_one_message_is_shorter() -> None:
    several = udp.push("orders", 0, [b"one", b"three"])
    single = udp.push("orders", 0, [b"message"])
    start = len(single) - len(b"message")
    for cut in range(len(several)):
        assert manypackets.gather(*matrix([several[:cut]])).malformed == 1
    for cut in range(start):
        assert manypackets.gather(*matrix([single[:cut]])).malformed == 1


def test_forged_counts_and_lengths_are_malformed() -> None:
    packet = bytearray(udp.push("orders", 0, [b"one", b"two"]))
    for count in (0, 1000, 0xFFFF):
        packet[12:14] = count.to_bytes(2, "little")
        assert manypackets.gather(*matrix([bytes(packet)])).malformed == 1
    packet = bytearray(udp.push("orders", 0, [b"one", b"two"]))
    packet[22:24] = (0xFFFF).to_bytes(2, "little")
    assert manypackets.gather(*matrix([bytes(packet)])).malformed == 1
    packet = bytearray(udp.push("orders", 0, [b"one"]))
    packet[5] = 255
    assert manypackets.gather(*matrix([bytes(packet)])).malformed == 1


def test_only_packets_with_the_pass_are_taken() -> None:
    packets = [udp.push("orders", 0, [b"no"]), udp.push("orders", 0, [b"wrong"], token="other"),
               udp.push("orders", 0, [b"yes"], token="secret")]  # fmt: skip
    gathered = manypackets.gather(*matrix(packets), udp.pass_of("secret"))
    assert found(gathered) == {(b"orders", 0, ""): [b"yes"]}
    assert (gathered.malformed, gathered.unauthorised) == (0, 2)


def test_names_that_meet_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manypackets, "_FACTORS", np.zeros_like(manypackets._FACTORS))
    packets = [udp.push(name, 0, [name.encode()]) for name in ("a", "b", "a", "c")]
    expected = {(b"a", 0, ""): [b"a", b"a"], (b"b", 0, ""): [b"b"], (b"c", 0, ""): [b"c"]}
    assert found(manypackets.gather(*matrix(packets))) == expected


@settings(deadline=None)
@given(names, st.integers(0, 0xFFFF), st.integers(0, 2**63), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_pull_comes_back_as_it_was(topic: str, partition: int, offset: int, most: int, number: int) -> None:
    packet = udp.pull(topic, partition, offset, most, number=number, token="t")
    assert udp.read_pull(packet) == udp.PullRequest(topic, partition, number, offset, most, udp.pass_of("t"))
    for cut in range(len(packet)):
        with pytest.raises(udp.BadPacket):
            udp.read_pull(packet[:cut])


@settings(deadline=None)
@given(messages)
def test_a_reply_comes_back_as_it_was(values: list[bytes]) -> None:
    request = udp.PullRequest("orders", 3, 9, 5, 100, b"")
    packet = udp.reply(request, 5, 5 + len(values), 77, udp._messages(values), len(values))
    assert udp.read_answer(packet) == udp.PullReply(9, Number.OK, 5, 5 + len(values), 77, tuple(values))


def test_acknowledgements_are_read_one_by_one() -> None:
    rows = manypackets.acknowledgements(np.array([4, 5]), 1, "fsynced", np.array([10, 12]), np.array([2, 1]), Number.OK)
    assert [udp.read_answer(row.tobytes()) for row in rows] == [
        udp.Acknowledgement(4, Number.OK, "fsynced", 10, 2), udp.Acknowledgement(5, Number.OK, "fsynced", 12, 1)
    ]  # fmt: skip


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_noise_is_no_answer_and_no_pull(noise: bytes) -> None:
    for read in (udp.read_answer, udp.read_pull):
        try:
            read(noise)
        except udp.BadPacket:
            continue
        assert noise.startswith(b"PL\x01")


def test_what_fits_no_packet_is_refused() -> None:
    with pytest.raises(udp.BadPacket, match="the limit is 1,472"):
        udp.push("orders", 0, [bytes(1472)])
    with pytest.raises(udp.BadPacket, match="cannot name the topic"):
        udp.push("x" * 65, 0, [b""])
    with pytest.raises(udp.BadPacket, match="at least one message"):
        udp.push("x", 0, [])
