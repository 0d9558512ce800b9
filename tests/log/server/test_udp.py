"""The server at its UDP ports, with packets that are lost, doubled, mixed up, cut and forged."""

from __future__ import annotations

import itertools
import random
import socket
from collections.abc import Callable

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge
from penstock.log.wire import manypackets, udp
from penstock.log.wire.errors import Number
from tests.log.server.until import until


def speaker(port: int | None) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.settimeout(5)
    made.connect(("127.0.0.1", port))
    return made


def stored(log: Log, partition: int = 0) -> list[bytes]:
    offset, found = 0, []
    while reading := log.read("orders", partition, offset, most_bytes=1 << 20).frames:
        for frame in reading:
            found += frame.values.to_pylist()
        offset = reading[-1].next
    return found


def wait_for(log: Log, count: int, partition: int = 0) -> list[bytes]:
    until(lambda: log.ends("orders", partition).next >= count)
    return stored(log, partition)


def test_messages_are_pushed_and_pulled(server: Server, log: Log) -> None:
    with speaker(server.push) as push, speaker(server.pull) as pull:
        push.send(udp.push("orders", 1, [b"one", b"two"]))
        push.send(udp.push("orders", 1, [b"three"]))
        assert wait_for(log, 3, partition=1) == [b"one", b"two", b"three"]
        pull.send(udp.pull("orders", 1, 1, 1000, number=17))
        reply = udp.read_answer(pull.recv(2000))
        assert reply in (  # one frame or two, as the packets came
            udp.PullReply(17, Number.OK, 1, 3, 3, (b"two", b"three")),
            udp.PullReply(17, Number.OK, 1, 2, 3, (b"two",)),
        )
        pull.send(udp.pull("orders", 1, 3, 1000))
        assert udp.read_answer(pull.recv(2000)) == udp.PullReply(0, Number.OK, 3, 3, 3, ())


@pytest.mark.parametrize("mode", ["memory", "written", "fsynced"])
def test_acknowledgements_say_where_and_how_safe(server: Server, log: Log, mode: str) -> None:
    with speaker(server.push) as push:
        for number in range(20):
            push.send(udp.push("orders", 0, [b"%d" % number] * (number % 3 + 1), number=number, acknowledge=mode))
        answers = sorted((udp.read_answer(push.recv(100)) for _ in range(20)), key=lambda each: each.number)
    messages = stored(log)
    for number, answer in enumerate(answers):
        assert (answer.number, answer.error, answer.mode) == (number, Number.OK, mode)
        assert messages[answer.first : answer.first + answer.count] == [b"%d" % number] * (number % 3 + 1)
    assert sum(answer.count for answer in answers) == len(messages)


def test_refusals_have_numbers(server: Server) -> None:
    with speaker(server.push) as push, speaker(server.pull) as pull:
        push.send(udp.push("nope", 0, [b"x"], number=1, acknowledge="memory"))
        assert udp.read_answer(push.recv(100)).error == Number.UNKNOWN_TOPIC
        push.send(udp.push("orders", 9, [b"x"], number=2, acknowledge="memory"))
        assert udp.read_answer(push.recv(100)).error == Number.UNKNOWN_TOPIC
        pull.send(udp.pull("nope", 0, 0, 10))
        assert udp.read_answer(pull.recv(100)).error == Number.UNKNOWN_TOPIC
        pull.send(udp.pull("orders", 0, 10**9, 10))
        assert udp.read_answer(pull.recv(100)).error == Number.OUT_OF_RANGE
        pull.send(udp.pull("orders", 0, 2**63 + 5, 10))
        assert udp.read_answer(pull.recv(100)).error == Number.OUT_OF_RANGE
    assert server.service.counters.udp_refused == 5


def test_replies_fit_into_a_packet_and_say_how_to_go_on(server: Server, log: Log) -> None:
    sent = [bytes([number % 251]) * (number % 90) for number in range(400)]
    log.append("orders", 0, Frame.pack(sent), Acknowledge.MEMORY).result()
    found: list[bytes] = []
    with speaker(server.pull) as pull:
        while len(found) < len(sent):
            pull.send(udp.pull("orders", 0, len(found), 10**6))
            packet = pull.recv(5000)
            assert len(packet) <= udp.PACKET_BYTES
            answer = udp.read_answer(packet)
            assert (answer.first, answer.next, answer.end) == (len(found), len(found) + len(answer.messages), 400)
            assert answer.messages
            found += answer.messages
        pull.send(udp.pull("orders", 0, 80, 100))
        assert sum(map(len, udp.read_answer(pull.recv(5000)).messages)) <= 100
    assert found == sent


def test_a_message_that_fits_no_packet_is_named_and_passed_over(server: Server, log: Log) -> None:
    log.append("orders", 0, Frame.pack([b"a", bytes(3000), b"b"]), Acknowledge.MEMORY).result()
    with speaker(server.pull) as pull:
        pull.send(udp.pull("orders", 0, 0, 5000))
        assert udp.read_answer(pull.recv(5000)).messages == (b"a",)
        pull.send(udp.pull("orders", 0, 1, 5000))
        assert udp.read_answer(pull.recv(5000)) == udp.PullReply(0, Number.TOO_LARGE, 1, 2, 3, ())
        pull.send(udp.pull("orders", 0, 2, 5000))
        assert udp.read_answer(pull.recv(5000)).messages == (b"b",)


def test_loss_doubles_and_disorder_change_which_messages_are_there_but_not_what_is_in_them(
    server: Server, log: Log
) -> None:
    chance = random.Random(5)
    packets = [udp.push("orders", number % 2, [b"%d.%d" % (number, index) for index in range(number % 4 + 1)])
               for number in range(600)]  # fmt: skip
    kept = [packet for packet in packets if chance.random() > 0.1]
    arriving = sorted(kept + [packet for packet in kept if chance.random() < 0.1], key=lambda _: chance.random())
    with speaker(server.push) as push:
        for place, packet in enumerate(arriving):
            push.send(packet)
            if place % 50 == 49:  # none of them is lost in the kernel
                until(lambda sent=place + 1: server.service.counters.udp_packets == sent)
    expected: list[list[bytes]] = [[], []]
    for packet in arriving:
        group = manypackets.gather(*_one(packet)).groups[0]
        cuts = group.offsets.tolist()
        expected[group.partition] += [group.values.tobytes()[a:b] for a, b in itertools.pairwise(cuts)]
    for partition in (0, 1):
        assert wait_for(log, len(expected[partition]), partition) == expected[partition]


def _one(packet: bytes) -> tuple[manypackets.Bytes, manypackets.Integers]:
    import numpy as np

    return np.frombuffer(packet, np.uint8).reshape(1, -1), np.array([len(packet)])


def test_cut_forged_and_random_packets_store_nothing_they_do_not_say(server: Server, log: Log) -> None:
    chance = random.Random(7)
    good = udp.push("orders", 0, [b"first", b"second"], number=3)
    bad = [good[:cut] for cut in range(len(good))]
    bad += [good + b"more", b"", bytes(5000), bytes(udp.LARGEST_PACKET)]
    bad += [chance.randbytes(chance.randrange(200)) for _ in range(200)]
    bad += [b"PL\x01\x01" + chance.randbytes(chance.randrange(100)) for _ in range(200)]
    with speaker(server.push) as push, speaker(server.pull) as pull:
        for place, packet in enumerate(bad):
            push.send(packet)
            pull.send(packet)
            if place % 50 == 49:
                until(lambda sent=place + 1: server.service.counters.udp_packets == sent)
                until(lambda sent=place + 1: server.service.counters.udp_pulls == sent)
        push.send(udp.push("orders", 0, [b"alive"], number=9, acknowledge="memory"))
        while (answer := udp.read_answer(push.recv(100))).number != 9:
            assert answer.error  # a forged header may ask for an answer
        assert answer.error == Number.OK
        pull.send(udp.pull("orders", 0, 0, 100, number=10))
        while (reply := udp.read_answer(pull.recv(5000))).number != 10:
            pass
        assert reply.messages == (b"alive",)
    counters = server.service.counters
    assert counters.udp_truncated == 2
    assert counters.udp_malformed > len(bad)
    assert stored(log) == [b"alive"]


def test_a_server_with_a_token_takes_only_packets_with_its_pass(serving: Callable[..., Server], log: Log) -> None:
    server = serving(token="secret")
    with speaker(server.push) as push, speaker(server.pull) as pull:
        push.send(udp.push("orders", 0, [b"without"], acknowledge="memory"))
        push.send(udp.push("orders", 0, [b"wrong"], token="other", acknowledge="memory"))
        push.send(udp.push("orders", 0, [b"right"], token="secret", acknowledge="memory"))
        assert udp.read_answer(push.recv(100)).error == Number.OK
        pull.send(udp.pull("orders", 0, 0, 100))
        pull.send(udp.pull("orders", 0, 0, 100, token="other"))
        pull.send(udp.pull("orders", 0, 0, 100, number=5, token="secret"))
        assert udp.read_answer(pull.recv(5000)) == udp.PullReply(5, Number.OK, 0, 1, 1, (b"right",))
    assert stored(log) == [b"right"]
    assert server.service.counters.udp_unauthorised == 4


def test_packets_that_are_in_the_kernel_when_the_server_stops_are_stored(server: Server, log: Log) -> None:
    with speaker(server.push) as push:
        for number in range(500):
            push.send(udp.push("orders", 0, [b"%d" % number]))
        server.stop()
    assert stored(log) == [b"%d" % number for number in range(500)]
