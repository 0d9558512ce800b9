"""The server at its TCP port: pipelined requests, wrong ones, slow readers."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.serve import Server
from penstock.log.server.tcp import Connection
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import Number
from tests.log.server.raw import Raw, packed, pushing
from tests.log.server.until import until


def values(bulk: bytes, reply: requests.Reply) -> list[bytes]:
    assert isinstance(reply, requests.Pulled)
    found, at = [], 0
    for size in reply.sizes:
        found += Frame.parse(bulk[at : at + size]).values.to_pylist()
        at += size
    return found


def test_messages_go_in_and_come_out(server: Server) -> None:
    with Raw(server.tcp) as raw:
        for mode in ("memory", "written", "fsynced"):
            raw.push(1, mode.encode(), acknowledge=mode)
            number, reply, _ = raw.receive()
            assert (number, reply.acknowledged, reply.count) == (1, mode, 1)
        raw.send(2, requests.Pull("orders", 0, 0))
        _, reply, bulk = raw.receive()
        assert values(bulk, reply) == [b"memory", b"written", b"fsynced"]
        assert (reply.next, reply.end) == (3, 3)


def test_small_answers_do_not_wait_for_each_other(server: Server) -> None:
    with Raw(server.tcp):
        (served,) = server.service.connections
        assert served.transport is not None
        own = served.transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_every_question_is_answered(server: Server) -> None:
    with Raw(server.tcp) as raw:
        def ask(said: requests.Said) -> requests.Reply:
            raw.send(9, said)
            return raw.receive()[1]

        assert ask(requests.Topics()).topics == {"orders": 2}
        assert ask(requests.Create("new", 3)) == requests.Done()
        assert ask(requests.Topics()).topics == {"new": 3, "orders": 2}
        raw.push(1, b"a", b"b")
        raw.receive()
        assert ask(requests.AskEnds("orders", 0)).next == 2
        assert ask(requests.AskOffset("orders", 0, 0)) == requests.OffsetIs(0)
        assert ask(requests.AskCommitted("g", "orders", 0)) == requests.OffsetIs(None)
        assert ask(requests.Commit("g", "orders", 0, 2)) == requests.Done()
        assert ask(requests.AskCommitted("g", "orders", 0)) == requests.OffsetIs(2)
        one, two = ask(requests.AskProducer("me")), ask(requests.AskProducer("me"))
        assert (one.producer, one.epoch + 1) == (two.producer, two.epoch)
        assert ask(requests.AskStatistics()).values["server"]["requests"] > 8


@pytest.mark.parametrize(("said", "number"), [
    (requests.Pull("nope", 0, 0), Number.UNKNOWN_TOPIC),
    (requests.Pull("orders", 7, 0), Number.UNKNOWN_TOPIC),
    (requests.Pull("orders", 0, 5), Number.OUT_OF_RANGE),
    (requests.Pull("orders", 0, 0, output=requests.Output("a <")), Number.BAD_EXPRESSION),
    (requests.Pull("orders", 0, 0, output=requests.Output("python('os:getcwd', 'STRING') = 1")), Number.BAD_EXPRESSION),
    (requests.Create("../up"), Number.BAD_NAME),
    (requests.Create("orders", 3), Number.BAD_NAME),
    (requests.Hello(), Number.MALFORMED),
    (requests.Pull("orders", 0, 0, wait=math.nan), Number.MALFORMED),
    (requests.Pull("orders", 0, 0, wait=math.inf), Number.MALFORMED),
    (requests.Pull("orders", 0, 0, most_bytes=-1), Number.MALFORMED),
    (requests.Pull("orders", -1, 0), Number.MALFORMED),
    (requests.Pull("orders", 2**62, 0), Number.UNKNOWN_TOPIC),
    (requests.Pull("orders", 0, 2**62), Number.OUT_OF_RANGE),
    (requests.Create("huge", 2**62), Number.BAD_NAME),
    (requests.AskNumber("orders", 0, -1), Number.MALFORMED),
    (requests.Commit("g", "orders", 0, -1), Number.MALFORMED),
    (requests.AskOffset("orders", 0, 2**63), Number.MALFORMED),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_by_number(server: Server, said: requests.Said, number: Number) -> None:
    with Raw(server.tcp) as raw:
        raw.send(3, said)
        answered, reply, _ = raw.receive()
        assert (answered, reply.number) == (3, number)
        raw.send(4, requests.Topics())
        assert isinstance(raw.receive()[1], requests.TopicList)  # the connection goes on


@pytest.mark.parametrize("head", [
    b"\x82\xa4type\xa6Create\xa5topic\xa2\xff\xfe", b"\x82\xa4type\xa6Topics\xa1x" + b"\x91" * 5000 + b"\x01",
])  # fmt: skip
def test_a_head_that_is_no_request_is_refused_and_the_connection_goes_on(server: Server, head: bytes) -> None:
    with Raw(server.tcp) as raw:
        raw.socket.sendall(b"".join(tcp.pack(5, head)))
        number, reply, _ = raw.receive()
        assert isinstance(reply, requests.Refused)
        assert (number, reply.number) == (5, Number.MALFORMED)
        raw.send(6, requests.Topics())
        number, listed, _ = raw.receive()
        assert isinstance(listed, requests.TopicList)
        assert (number, listed.topics) == (6, {"orders": 2})


def test_a_frame_is_not_trusted(server: Server, log: Log) -> None:
    good = bytes(Frame.pack([b"one", b"two"]).data)
    with Raw(server.tcp) as raw:
        for place in range(0, len(good), 3):
            damaged = bytearray(good)
            damaged[place] ^= 0x41
            raw.send(1, pushing(), bytes(damaged))
            assert raw.receive()[1].number == Number.MALFORMED
        raw.send(1, pushing(), good + bytes(8))
        assert raw.receive()[1].number == Number.MALFORMED
        raw.send(1, pushing())
        assert raw.receive()[1].number == Number.MALFORMED
        raw.send(1, pushing(acknowledge="maybe"), good)
        assert raw.receive()[1].number == Number.MALFORMED
    assert log.ends("orders", 0).next == 0


def test_answers_come_when_they_are_ready(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.send(1, requests.Pull("orders", 0, 0, wait=20))
        raw.send(2, requests.Pull("orders", 1, 0, wait=20))
        raw.send(3, requests.AskEnds("orders", 0))
        assert raw.receive()[0] == 3
        raw.push(4, b"second", partition=1)
        assert sorted([raw.receive()[0], raw.receive()[0]]) == [2, 4]
        raw.push(5, b"first", partition=0)
        assert sorted([raw.receive()[0], raw.receive()[0]]) == [1, 5]


def test_a_thousand_requests_in_one_piece(server: Server) -> None:
    with Raw(server.tcp) as raw:
        frame = Frame.pack([b"x"]).data
        raw.socket.sendall(b"".join(packed(number, pushing(), frame) for number in range(1000)))
        replies = [raw.receive() for _ in range(1000)]
        assert sorted(number for number, _, _ in replies) == list(range(1000))
        assert {number: reply.first for number, reply, _ in replies} == {number: number for number in range(1000)}


def test_a_long_poll_ends_in_time(server: Server) -> None:
    with Raw(server.tcp) as raw:
        began = time.monotonic()
        raw.send(1, requests.Pull("orders", 0, 0, wait=0.2))
        _, reply, _ = raw.receive()
        assert (reply.next, reply.sizes) == (0, ())
        assert 0.15 < time.monotonic() - began < 5


def test_a_long_poll_with_a_filter_waits_for_a_message_that_passes(server: Server) -> None:
    with Raw(server.tcp) as raw, Raw(server.tcp) as other:
        raw.send(1, requests.Pull("orders", 0, 0, wait=20, output=requests.Output("total < 10")))
        for total in (50, 40, 5):
            other.push(1, b'{"total": %d}' % total)
            other.receive()
        _, reply, bulk = raw.receive()
        assert values(bulk, reply) == [b'{"total": 5}']
        assert Frame.parse(bulk).offsets.tolist() == [2]
        assert reply.next == 3


def test_a_filter_reads_past_messages_that_are_empty(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.push(1, b"", b"")
        raw.receive()
        raw.push(2, b'{"total": 7}')
        raw.receive()
        for output in (requests.Output("total < 10"), requests.Output("", (("total", "total"),))):
            raw.send(3, requests.Pull("orders", 0, 0, wait=20, output=output))
            _, reply, bulk = raw.receive()
            assert len(values(bulk, reply)) == 1


def test_select_makes_new_messages(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.push(1, b'{"total": 7, "id": 1}', b"broken", b'{"total": 70, "id": 2}', b'{"total": 8, "id": 3}')
        raw.receive()
        output = requests.Output("total < 10", (("twice", "total * 2"), ("id", "id")))
        raw.send(2, requests.Pull("orders", 0, 0, output=output))
        _, reply, bulk = raw.receive()
        assert values(bulk, reply) == [b'{"twice":14.0,"id":1}', b'{"twice":16.0,"id":3}']
        assert Frame.parse(bulk).offsets.tolist() == [0, 3]
        assert reply.examined == 4


def test_only_durable_messages_are_read_if_that_is_asked(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.push(1, b"soon", acknowledge="memory")
        raw.receive()
        raw.send(2, requests.Pull("orders", 0, 0, wait=20, durable=True))
        _, reply, bulk = raw.receive()
        assert values(bulk, reply) == [b"soon"]
        assert server.log.ends("orders", 0).durable == 1


def test_the_first_request_is_hello(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.send(1, requests.Topics())
        assert raw.receive()[1].number == Number.MALFORMED
        assert raw.is_ended()


def test_another_version_is_refused(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.send(1, requests.Hello(version=99))
        assert raw.receive()[1].number == Number.VERSION
        assert raw.is_ended()


@pytest.mark.parametrize("token", ["", "wrong", "secre", "secrett"])
def test_a_wrong_token_is_refused(serving: Callable[..., Server], token: str) -> None:
    server = serving(token="secret")
    with Raw(server.tcp, hello=False) as raw:
        raw.send(1, requests.Hello(token=token))
        assert raw.receive()[1].number == Number.TOKEN
        assert raw.is_ended()
    with Raw(server.tcp, hello=False) as raw:
        raw.send(1, requests.Hello(token="secret"))
        assert isinstance(raw.receive()[1], requests.Welcome)


def test_a_connection_that_breaks_at_any_byte_pushes_all_or_nothing(server: Server, log: Log) -> None:
    whole = packed(0, requests.Hello()) + packed(1, pushing(acknowledge="written"), Frame.pack([b"message"]).data)
    for cut in range(len(whole)):
        with Raw(server.tcp, hello=False) as raw:
            raw.socket.sendall(whole[:cut])
    with Raw(server.tcp) as raw:  # and none of them has disturbed the server
        raw.push(1, b"the only one", acknowledge="written")
        assert raw.receive()[1].first == 0
    assert log.ends("orders", 0).next == 1


def test_requests_may_come_byte_by_byte(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in packed(0, requests.Hello()) + packed(1, pushing(), Frame.pack([b"slow"]).data):
            raw.socket.sendall(bytes([byte]))
        assert isinstance(raw.receive()[1], requests.Welcome)
        assert raw.receive()[1].count == 1


def test_an_oversized_length_ends_the_connection_with_a_reason(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.push(1, b"before")
        raw.socket.sendall(tcp.HEADER.pack(2**32 - 1, 7, 8, tcp.MARK))
        assert raw.receive()[1].count == 1
        number, reply, _ = raw.receive()
        assert (number, reply.number) == (7, Number.MALFORMED)
        assert "longer than" in reply.what
        assert raw.is_ended()


def test_http_at_the_wrong_port_is_told_so(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.socket.sendall(b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert "this is HTTP" in raw.receive()[1].what


def test_a_client_that_has_said_all_still_gets_its_answers(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.push(1, b"last", acknowledge="fsynced")
        raw.send(2, requests.Pull("orders", 1, 0, wait=0.2))
        raw.socket.shutdown(socket.SHUT_WR)
        assert sorted([raw.receive()[0], raw.receive()[0]]) == [1, 2]
        assert raw.is_ended()


def test_a_slow_reader_does_not_fill_the_memory_of_the_server(server: Server, log: Log) -> None:
    """500 pulls of a megabyte each, of which nobody reads the answers."""
    block = Frame.pack([bytes(1 << 17)] * 8)
    log.append("orders", 0, block, Acknowledge.FSYNCED).result()
    with Raw(server.tcp, receive_buffer=4096) as slow:
        slow.socket.sendall(packed(1, requests.Pull("orders", 0, 0)) * 500)
        until(lambda: server.service.paused)
        unsent = [each.transport.get_write_buffer_size() for each in server.service.connections if each.transport]
        assert sum(unsent) < 4 << 20
        with Raw(server.tcp) as other:  # nobody else waits for it
            other.push(1, b"quick")
            assert other.receive()[1].count == 1
        slow.socket.settimeout(20)
        for _ in range(20):  # it gets all it has asked for, if it reads at last
            assert len(slow.receive()[2]) > 1 << 20


def test_pushes_beyond_the_credit_wait_in_the_network(
    serving: Callable[..., Server], log: Log, stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(credit=200_000)
    frame, sent = Frame.pack([bytes(50_000)]).data, 200
    held, begin = [0], Connection.push

    def watched(self: Connection, *about: Any) -> None:
        begin(self, *about)
        held.append(server.service.in_flight)

    monkeypatch.setattr(Connection, "push", watched)
    with Raw(server.tcp) as raw:
        push = pushing(acknowledge="fsynced")
        writing = threading.Thread(target=lambda: [raw.send(number, push, frame) for number in range(sent)])
        writing.start()
        until(lambda: server.service.paused)  # nothing is answered before it has more than it may
        stuck.set()
        replies = [raw.receive() for _ in range(sent)]
        writing.join()
    assert [reply.first for _, reply, _ in sorted(replies, key=lambda each: each[0])] == list(range(sent))
    assert all(reply.credit > 50_000 for _, reply, _ in replies)
    assert 200_000 < max(held) < 200_000 + 2 * 50_200  # as much as was granted is taken, and one more


def test_too_many_connections_are_refused(serving: Callable[..., Server]) -> None:
    server = serving(most_connections=2)
    with Raw(server.tcp), Raw(server.tcp), Raw(server.tcp, hello=False) as third:
        third.send(1, requests.Hello())
        assert third.receive()[1].number == Number.TOO_MANY
    until(lambda: not server.service.connections)
    with Raw(server.tcp):
        pass


def test_a_thousand_waiting_readers_cost_nothing_and_all_wake(serving: Callable[..., Server]) -> None:
    server = serving()
    with Raw(server.tcp) as raw:
        for number in range(1000):
            raw.send(number, requests.Pull("orders", 0, 0, wait=30))
        raw.send(5000, requests.Topics())
        assert raw.receive()[0] == 5000
        with Raw(server.tcp) as other:
            other.push(1, b"here")
            other.receive()
        assert sorted(raw.receive()[0] for _ in range(1000)) == list(range(1000))


def test_only_the_partition_that_is_full_is_waited_for(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, released = log._partitions["orders", 0].store, threading.Event()
    write = store.write

    def stuck(batches: Any) -> None:
        assert released.wait(20)
        write(batches)

    monkeypatch.setattr(store, "write", stuck)
    message, count = b"x" * (1 << 20), 6
    with Raw(server.tcp) as filling, Raw(server.tcp) as other:
        for number in range(count):
            filling.push(number, message)
        filling.push(count, b"behind", partition=1)
        until(lambda: ("orders", 0) in server.service.full)
        other.push(1, b"first", partition=1)
        others = other.receive()[1].first
        other.send(2, requests.AskEnds("orders", 0))
        assert other.receive()[1].next < count
        released.set()
        answers = {number: reply for number, reply, _ in (filling.receive() for _ in range(count + 1))}
    assert [answers[number].first for number in range(count)] == list(range(count))
    assert {answers[count].first, others} == {0, 1}
    assert server.service.in_flight == 0


def test_a_push_that_never_finds_room_is_refused(server: Server, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    store = log._partitions["orders", 0].store

    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write", full)
    with Raw(server.tcp) as raw:
        for number in range(6):
            raw.push(number, b"x" * (1 << 20))
        answers = dict(raw.receive()[:2] for _ in range(6))
        assert {answers[number].number for number in (4, 5)} == {Number.NOT_STORED}
        raw.push(6, b"elsewhere", partition=1)
        assert raw.receive()[1].first == 0
    assert server.service.in_flight == 0


def test_a_session_that_connects_anew_ends_its_last_connection_unread(server: Server, log: Log) -> None:
    whole = packed(1, pushing(acknowledge="written"), Frame.pack([b"late"]).data)
    with (
        Raw(server.tcp, hello=False) as old,
        Raw(server.tcp, hello=False) as other,
        Raw(server.tcp, hello=False) as new,
    ):
        old.send(0, requests.Hello(session="one"))
        assert isinstance(old.receive()[1], requests.Welcome)
        other.send(0, requests.Hello(session="two"))
        assert isinstance(other.receive()[1], requests.Welcome)
        old.socket.sendall(whole[:-10])
        new.send(0, requests.Hello(session="one"))
        assert isinstance(new.receive()[1], requests.Welcome)
        with suppress(ConnectionError):
            old.socket.sendall(whole[-10:])
        assert old.is_ended()
        new.push(1, b"now", acknowledge="written")
        pushed = new.receive()[1]
        assert isinstance(pushed, requests.Pushed)
        assert pushed.first == 0
        other.push(1, b"another", acknowledge="written")
        assert isinstance(other.receive()[1], requests.Pushed)
        assert len(server.service.sessions) == 2
    until(lambda: not len(server.service.sessions))
    assert log.ends("orders", 0).next == 2
