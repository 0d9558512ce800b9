"""What goes wrong with one client stays with it: nobody else's answers are late or lost."""

from __future__ import annotations

import socket
import threading

import pytest

from penstock.log import mmsg
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server import tcp as tcp_server
from penstock.log.server.pulls import Poll
from penstock.log.server.push import Push
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge
from penstock.log.wire import manypackets, requests, udp
from penstock.log.wire.errors import Number
from tests.log.server.raw import Raw
from tests.log.server.test_udp import speaker
from tests.log.server.until import until


def in_flight(server: Server) -> int:
    return sum(each.in_flight > 0 for each in server.service.connections)


def test_garbage_behind_pushes_takes_nobodys_answers(server: Server, stuck: threading.Event) -> None:
    with Raw(server.tcp) as bad, Raw(server.tcp) as good:
        for number in range(1, 4):
            bad.push(number, b"bad", acknowledge="fsynced")
        until(lambda: in_flight(server) == 1)
        bad.socket.sendall(b"\xff" * 64)
        until(lambda: any(each.is_ending for each in server.service.connections))
        good.push(1, b"good", acknowledge="fsynced")
        until(lambda: in_flight(server) == 2)
        stuck.set()
        assert good.receive()[1].count == 1
        good.push(2, b"again", acknowledge="fsynced")
        assert good.receive()[1].count == 1
        answers = [bad.receive() for _ in range(4)]  # what it had pushed before is answered too
        assert sorted(number for number, reply, _ in answers if isinstance(reply, requests.Pushed)) == [1, 2, 3]
        assert bad.is_ended()
    assert server.service.in_flight == 0


def test_an_answer_that_fails_ends_its_own_connection_only(
    server: Server, stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = tcp_server.Connection.pushed

    def failing(self: tcp_server.Connection, push: Push) -> None:
        if bytes(push.frame.values[0].as_py()) == b"bad":
            raise RuntimeError("this one cannot be answered")
        pushed(self, push)

    monkeypatch.setattr(tcp_server.Connection, "pushed", failing)
    with Raw(server.tcp) as bad, Raw(server.tcp) as good:
        bad.push(1, b"bad", acknowledge="fsynced")
        until(lambda: in_flight(server) == 1)
        good.push(1, b"good", acknowledge="fsynced")
        until(lambda: in_flight(server) == 2)
        stuck.set()
        assert good.receive()[1].count == 1
        assert bad.is_ended()


def test_a_reader_that_fails_when_it_is_woken_leaves_the_others_awake(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Poll.found

    def failing(self: Poll, seen: object) -> None:
        if self.request.most_messages == 7 and seen.frames:  # type: ignore[attr-defined]
            raise RuntimeError("this one cannot read")
        found(self, seen)  # type: ignore[arg-type]

    monkeypatch.setattr(Poll, "found", failing)
    with Raw(server.tcp) as bad, Raw(server.tcp) as good, Raw(server.tcp) as writing:
        for reader, most in ((bad, 7), (good, 9), (good, 9)):
            reader.send(most, requests.Pull("orders", 0, 0, most_messages=most, wait=20))
        until(lambda: sum(len(each.puller.polls) for each in server.service.connections) == 3)
        writing.push(1, b"here")
        writing.receive()
        assert [good.receive()[0], good.receive()[0]] == [9, 9]
        assert bad.receive()[1].number == Number.INTERNAL
        bad.send(2, requests.Pull("orders", 0, 0))  # and it can go on
        assert bad.receive()[1].next == 1


def test_an_error_that_nobody_has_named_is_the_answer_of_those_it_hit(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(log._partition("orders", 0), "append_singles", failing)
    with Raw(server.tcp) as bad, Raw(server.tcp) as good:
        bad.push(1, b"bad")
        assert bad.receive()[1].number == Number.INTERNAL
        good.push(1, b"good", partition=1)
        assert good.receive()[1].count == 1
    assert server.service.in_flight == 0


def test_the_log_goes_on_when_a_server_was_stopped_before_its_answers(
    log: Log, server: Server, stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The committing thread answers a push whose event loop is closed, and others behind it."""
    monkeypatch.setattr("penstock.log.server.serve._LAST_ANSWERS", 0.1)
    with Raw(server.tcp) as late:
        late.push(1, b"late", acknowledge="fsynced")
        until(lambda: in_flight(server) == 1)
        server.stop()
        behind = log.append("orders", 0, Frame.pack([b"behind"]))
        stuck.set()
        assert behind.result(60).first == 1


def test_a_packet_that_cannot_be_answered_takes_no_others_with_it(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three pulls are taken in one call of the kernel: the first waits until the others are there."""
    log.append("orders", 0, Frame.pack([b"here"]), Acknowledge.MEMORY).result()
    read, entered, may_go = log.read, threading.Event(), threading.Event()

    def failing(topic: str, partition: int, offset: int, **limits: int) -> object:
        entered.set()
        assert may_go.wait(20)
        if partition == 1:
            raise OSError(5, "Input/output error")
        return read(topic, partition, offset, **limits)

    monkeypatch.setattr(log, "read", failing)
    with speaker(server.pull) as first, speaker(server.pull) as bad, speaker(server.pull) as good:
        first.send(udp.pull("orders", 0, 0, 100))
        assert entered.wait(10)
        bad.send(udp.pull("orders", 1, 0, 100))
        good.send(udp.pull("orders", 0, 0, 100))
        may_go.set()
        assert udp.read_answer(good.recv(2000)).messages == (b"here",)
        assert udp.read_answer(bad.recv(2000)).error == Number.INTERNAL


def test_packets_for_a_partition_that_fails_take_no_others_with_them(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, entered, may_go = log.append, threading.Event(), threading.Event()

    def failing(topic: str, partition: int, *rest: object) -> object:
        entered.set()
        assert may_go.wait(20)
        if partition == 1:
            raise OSError(5, "Input/output error")
        return append(topic, partition, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "append", failing)
    with speaker(server.push) as push:
        push.send(udp.push("orders", 0, [b"first"], number=1, acknowledge="memory"))
        assert entered.wait(10)
        push.send(udp.push("orders", 1, [b"bad"], number=2, acknowledge="memory"))
        push.send(udp.push("orders", 0, [b"good"], number=3, acknowledge="memory"))
        may_go.set()
        answers = {answer.number: answer.error for answer in (udp.read_answer(push.recv(100)) for _ in range(3))}
    assert answers == {1: Number.OK, 2: Number.INTERNAL, 3: Number.OK}


def test_acknowledgements_go_on_after_some_that_could_not_be_made(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, failures = manypackets.acknowledgements, [ValueError("not these")]

    def failing(*about: object) -> object:
        if failures:
            raise failures.pop()
        return made(*about)  # type: ignore[arg-type]

    monkeypatch.setattr(manypackets, "acknowledgements", failing)
    with speaker(server.push) as push:
        push.send(udp.push("orders", 0, [b"lost"], number=1, acknowledge="memory"))
        until(lambda: not failures)
        push.send(udp.push("orders", 0, [b"heard"], number=2, acknowledge="memory"))
        assert udp.read_answer(push.recv(100)).number == 2


def test_a_port_goes_on_after_the_kernel_has_refused_a_call(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    receive, failures = mmsg.Receiver.receive, [OSError(12, "Cannot allocate memory")] * 2

    def failing(self: mmsg.Receiver) -> int:
        if failures:
            raise failures.pop()
        return receive(self)

    monkeypatch.setattr(mmsg.Receiver, "receive", failing)
    until(lambda: not failures)
    with speaker(server.push) as push:
        push.send(udp.push("orders", 0, [b"heard"], number=2, acknowledge="memory"))
        assert udp.read_answer(push.recv(100)).error == Number.OK


def test_http_counts_connections_whose_thread_could_not_be_started(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    assert server._http is not None
    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", failing)
        with socket.create_connection(("127.0.0.1", server.http), 10) as refused:
            assert refused.recv(1) == b""
    assert not len(server._http.strangers)
    with socket.create_connection(("127.0.0.1", server.http), 10) as served:
        served.sendall(b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert served.recv(5000).startswith(b"HTTP/1.1 200")
