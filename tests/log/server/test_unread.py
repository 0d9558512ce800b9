"""Answers that nobody takes: they cost a bounded amount of memory, and no other client its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests
from tests.log.server.raw import Raw, packed
from tests.log.server.until import until


def unsent(server: Server) -> int:
    return sum(each.transport.get_write_buffer_size() for each in list(server.service.connections) if each.transport)


def flood(raw: Raw, data: bytes) -> None:
    """As much of it as the server takes."""
    raw.socket.settimeout(0.5)
    with suppress(TimeoutError):
        raw.socket.sendall(data)


def test_questions_whose_answers_nobody_takes_are_not_asked(server: Server, log: Log) -> None:
    for number in range(40):
        log.create(f"topic-{number}", 2)
    with Raw(server.tcp, receive_buffer=4096) as slow, Raw(server.tcp) as honest:
        question = packed(1, requests.AskStatistics())
        flood(slow, question * (240_000 // len(question)))
        slowest = 0.0
        for number in range(20):
            began = time.monotonic()
            honest.send(number, requests.AskStatistics())
            honest.receive()
            slowest = max(slowest, time.monotonic() - began)
        until(lambda: any(each.is_held for each in server.service.connections))
        assert unsent(server) < 3 << 20
        assert slowest < 2
        slow.socket.settimeout(20)
        for _ in range(200):  # it gets all it has asked for, if it reads at last
            assert slow.receive()[1].values


def test_pushes_behind_answers_that_nobody_takes_wait_and_are_stored(server: Server, log: Log) -> None:
    log.append("orders", 1, Frame.pack([bytes(1 << 17)] * 8), Acknowledge.FSYNCED).result()
    with Raw(server.tcp, receive_buffer=4096) as raw:
        pulls = b"".join(packed(number, requests.Pull("orders", 1, 0)) for number in range(20))
        pushes = b"".join(
            packed(number, requests.Push("orders", 0, "memory"), Frame.pack([b"%d" % number]).data)
            for number in range(20, 200)
        )
        writing = threading.Thread(target=raw.socket.sendall, args=(pulls + pushes,))
        writing.start()
        until(lambda: any(each.is_held for each in server.service.connections))
        assert sorted(raw.receive()[0] for _ in range(200)) == list(range(200))
        writing.join()
    assert log.ends("orders", 0).next == 180


@pytest.mark.parametrize("is_tls", [False, True])
def test_unread_subscribers_are_bounded_together_and_the_oldest_is_ended(
    serving: Callable[..., Server], log: Log, certificate: tuple[str, str], is_tls: bool
) -> None:
    file, key = certificate
    server = serving(most_unsent=64 << 20, **({"certificate": file, "key": key} if is_tls else {}))
    for _ in range(3):
        log.append("orders", 0, Frame.pack([bytes(1 << 20)] * 8), Acknowledge.FSYNCED).result()
    with ExitStack() as stack:
        subscribers = []
        for _ in range(12):
            subscribers.append(stack.enter_context(Raw(server.tcp, receive_buffer=4096, authority=file * is_tls)))
            for number in range(3):
                subscribers[-1].send(number, requests.Pull("orders", 0, 0, most_bytes=16 << 20))
        until(lambda: server.service.counters.unread >= 1)
        assert server.service.unsent.kept <= 64 << 20
        assert unsent(server) <= (64 << 20) + (16 << 20)  # and the one that is being written
        honest = stack.enter_context(Raw(server.tcp, authority=file * is_tls))
        honest.send(1, requests.Pull("orders", 0, 0, most_bytes=1 << 20))
        assert len(honest.receive()[2]) > 1 << 20
        assert is_reset(subscribers[0].socket)
        assert len(server.service.connections) > 2  # the others may still read
    until(lambda: server.service.unsent.kept == 0)


def is_reset(own: socket.socket) -> bool:
    own.settimeout(0.5)
    try:
        while own.recv(1 << 20):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_a_reader_that_reads_at_last_owes_nothing(server: Server, log: Log) -> None:
    log.append("orders", 0, Frame.pack([bytes(1 << 17)] * 8), Acknowledge.FSYNCED).result()
    with Raw(server.tcp, receive_buffer=4096) as slow:
        for number in range(30):
            slow.send(number, requests.Pull("orders", 0, 0))
        until(lambda: server.service.unsent.kept > 1 << 20)
        assert server.service.statistics()["server"]["unsent_bytes"] > 1 << 20
        for _ in range(30):
            assert len(slow.receive()[2]) > 1 << 20
        until(lambda: server.service.unsent.kept == 0)


def test_ranges_over_http_that_nobody_takes_are_bounded_together(serving: Callable[..., Server], log: Log) -> None:
    server = serving(most_unsent=20 << 20)
    log.append("orders", 0, Frame.pack([b"x" * (1 << 20)] * 8), Acknowledge.FSYNCED).result()
    with ExitStack() as stack:
        readers = []
        for _ in range(10):
            own = stack.enter_context(socket.socket())
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.settimeout(10)
            own.connect(("127.0.0.1", server.http))
            own.sendall(b"GET /topics/orders/messages HTTP/1.1\r\nHost: localhost\r\n\r\n")
            readers.append(own)
        assert is_reset(readers[0])
        assert server.service.unsent.kept <= 20 << 20
        honest = stack.enter_context(socket.create_connection(("127.0.0.1", server.http), 10))
        honest.sendall(b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert honest.recv(1 << 16).startswith(b"HTTP/1.1 200")
    until(lambda: server.service.unsent.kept == 0)
