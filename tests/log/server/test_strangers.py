"""Who has not said hello, or not shown the token, costs little and keeps nobody out."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.complaints import Complaints
from penstock.log.server.serve import Server
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import Number
from tests.log.server.raw import Raw, packed, pushing
from tests.log.server.until import until


@contextmanager
def connected(port: int | None, count: int, start: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), 10)))
            made[-1].sendall(start)
        yield made


def is_gone(own: socket.socket) -> bool:
    try:
        while own.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_a_stranger_cannot_begin_a_large_frame(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.socket.sendall(tcp.HEADER.pack(32 << 20, 7, 40, tcp.MARK))
        number, reply, _ = raw.receive()
        assert (number, reply.number) == (7, Number.MALFORMED)
        assert "longer than the 16,384" in reply.what
        assert raw.is_ended()


def test_hello_may_have_large_pushes_behind_it(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.socket.sendall(packed(1, requests.Hello()) + packed(2, pushing(), Frame.pack([bytes(1 << 20)]).data))
        assert raw.receive()[1].largest > 1 << 20
        assert raw.receive()[1].count == 1


def test_silent_connections_keep_nobody_out(serving: Callable[..., Server]) -> None:
    server = serving(most_connections=20, most_strangers=8)
    with connected(server.tcp, 60) as silent:
        with Raw(server.tcp) as raw:
            raw.push(1, b"here")
            assert raw.receive()[1].count == 1
        assert all(map(is_gone, silent[:40]))  # they had to make room
    assert server.service.counters.strangers >= 40


def test_who_says_nothing_is_ended_in_time(serving: Callable[..., Server]) -> None:
    server = serving(stranger_seconds=0.4)
    with Raw(server.tcp) as known, Raw(server.tcp, hello=False) as silent, Raw(server.tcp, hello=False) as slow:
        for byte in packed(1, requests.Hello())[:20]:
            slow.socket.sendall(bytes([byte]))
        began = time.monotonic()
        for stranger in (silent, slow):
            assert stranger.receive()[1].number == Number.TOO_MANY
            assert stranger.is_ended()
        assert time.monotonic() - began < 5
        known.send(1, requests.Topics())
        assert isinstance(known.receive()[1], requests.TopicList)


def test_no_request_of_a_stranger_is_looked_at_twice(server: Server) -> None:
    with Raw(server.tcp, hello=False) as raw:
        raw.socket.sendall(tcp.pack(5, b"\xc1")[0] * 500)
        assert raw.receive()[1].number == Number.MALFORMED
        assert raw.is_ended()
    assert server.service.counters.refused == 1


def test_unfinished_handshakes_are_strangers_too(
    serving: Callable[..., Server], certificate: tuple[str, str]
) -> None:
    file, key = certificate
    server = serving(certificate=file, key=key, most_strangers=5, stranger_seconds=1.0)
    with connected(server.tcp, 30, b"\x16\x03\x01") as silent:
        assert all(map(is_gone, silent))
    until(lambda: not len(server.service.strangers))
    assert not server.service.connections


def test_unfinished_frames_of_clients_are_bounded_together(serving: Callable[..., Server]) -> None:
    server = serving(most_unfinished=4 << 20)
    large = tcp.HEADER.pack(8 << 20, 7, 40, tcp.MARK) + bytes(1 << 20)
    with ExitStack() as stack:
        clients = [stack.enter_context(Raw(server.tcp)) for _ in range(8)]
        for client in clients:
            client.socket.sendall(large)
        number, reply, _ = clients[0].receive()
        assert (number, reply.number) == (0, Number.TOO_MANY)
        assert "that are not all there have more than 4,194,304 bytes" in reply.what
        until(lambda: server.service.unfinished.kept > 3 << 20)
        held = sum(each.reader.held for each in list(server.service.connections))
        assert held <= 5 << 20  # little ones are not counted, and one may just be read
        with Raw(server.tcp) as other:
            other.push(1, b"small")
            assert other.receive()[1].count == 1
    until(lambda: server.service.unfinished.kept == 0)


def test_places_are_given_back(serving: Callable[..., Server], log: Log) -> None:
    server = serving(most_connections=2, most_strangers=2)
    for _ in range(20):
        with Raw(server.tcp), Raw(server.tcp, hello=False):
            pass
        until(lambda: server.service.known == 0)
    until(lambda: not len(server.service.strangers))


@pytest.mark.parametrize("token", ["wrong", "x" * 60_000])
def test_a_wrong_token_of_any_length_is_refused(serving: Callable[..., Server], token: str) -> None:
    server = serving(token="secret")
    with Raw(server.tcp, hello=False) as raw:
        raw.send(1, requests.Hello(token=token))
        assert raw.receive()[1].number in (Number.TOKEN, Number.MALFORMED)
        assert raw.is_ended()


@pytest.mark.parametrize("frame", [
    b"garbage" * 10, tcp.pack(1, b"\x82\xa4type\xa5Hello\xa5token\xa2\xff\xfe")[0], tcp.pack(1, b"\x91" * 9000)[0],
    tcp.HEADER.pack(2**32 - 1, 7, 8, tcp.MARK), b"GET / HTTP/1.1\r\n\r\n", packed(1, requests.Topics()),
    packed(1, requests.Hello(token="wrong")), packed(1, requests.Hello(version=2**70 % 2**60)),
])  # fmt: skip
def test_strangers_write_nothing_into_the_servers_output(
    serving: Callable[..., Server], caplog: pytest.LogCaptureFixture, frame: bytes
) -> None:
    server = serving(token="secret")
    for port in (server.tcp, server.http):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), 60) as own:
                own.sendall(frame)
                own.shutdown(socket.SHUT_WR)
                with suppress(ConnectionResetError):
                    while own.recv(65536):
                        pass
    assert caplog.text == ""


def test_the_same_failure_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(every=100)
    for number in range(1000):
        complaints.failed("a request failed", ValueError("x" * 10_000 + str(number)))
        complaints.noticed("somebody was slow")
    assert len(caplog.records) == 2
    assert all(len(message) < 300 for message in caplog.messages)
    told = Complaints(every=0)
    told._said["somebody was slow"] = (1e-9, 7)
    told.noticed("somebody was slow")
    assert caplog.messages[-1] == "somebody was slow (7 more since the last such line)"


# ---- HTTP


def answer_of(port: int | None, request: bytes) -> bytes:
    """Everything that comes back until the server closes, or nothing for half a second."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), 5) as own:
        own.sendall(request)
        own.settimeout(0.5)
        try:
            while data := own.recv(1 << 16):
                found += data
        except OSError:
            pass
    return found


def test_a_body_is_not_read_before_the_token(serving: Callable[..., Server]) -> None:
    server = serving(token="secret")
    head = b"POST /topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.http), 5) as own:
        own.sendall(head)
        assert own.recv(1 << 16).startswith(b"HTTP/1.1 401")
    with_body = head.replace(b"16000000", b"300000") + bytes(300_000)
    assert answer_of(server.http, with_body).startswith(b"HTTP/1.1 401")  # what it has sent takes nothing away


def test_who_waits_for_100_is_refused_instead(serving: Callable[..., Server]) -> None:
    server = serving(token="secret")
    head = b"POST /topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n"
    assert answer_of(server.http, head + b"\r\n").startswith(b"HTTP/1.1 401")
    known = head + b"Authorization: Bearer secret\r\n\r\n"
    assert answer_of(server.http, known).startswith(b"HTTP/1.1 100")


@pytest.mark.parametrize("start", [b"", b"GET /topics HTTP/1.1\r\nHost: loc", b"POST"])
def test_silent_http_connections_keep_nobody_out(serving: Callable[..., Server], start: bytes) -> None:
    server = serving(most_connections=20, most_strangers=8)
    with connected(server.http, 60, start) as silent:
        assert b" 200 " in answer_of(server.http, b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert all(map(is_gone, silent[:40]))
    assert server.service.counters.strangers >= 40


def test_a_request_that_comes_too_slowly_is_ended_in_time(serving: Callable[..., Server]) -> None:
    server = serving(stranger_seconds=0.5, token="secret")
    with socket.create_connection(("127.0.0.1", server.http), 5) as own:
        began = time.monotonic()
        own.settimeout(0.05)
        for byte in b"GET /topics HTTP/1.1\r\n" + b"X: y\r\n" * 100:
            try:
                own.sendall(bytes([byte]))
                assert own.recv(100) == b""
                break
            except TimeoutError:
                pass
            except ConnectionError:
                break
        assert 0.4 < time.monotonic() - began < 5


def test_the_head_of_a_request_is_bounded(server: Server) -> None:
    head = b"GET /topics HTTP/1.1\r\nHost: localhost\r\n" + b"X-Long: " + b"x" * 30_000 + b"\r\n"
    assert b" 200 " in answer_of(server.http, head + b"\r\n")
    answer = answer_of(server.http, head + b"X-Other: " + b"x" * 40_000 + b"\r\n\r\n")
    assert answer == b"" or b" 431 " in answer  # bytes that nobody reads may take the answer away


def test_a_client_that_is_known_keeps_its_place(serving: Callable[..., Server]) -> None:
    server = serving(most_strangers=2, stranger_seconds=0.3)
    known = http.client.HTTPConnection("localhost", server.http, timeout=5)
    for _ in range(3):
        known.request("GET", "/topics")
        assert known.getresponse().read() == b'{"orders": {"partitions": 2}}\n'
        with connected(server.http, 4) as silent:
            assert all(map(is_gone, silent))
    known.close()
    until(lambda: not server._http.known)  # type: ignore[union-attr]


def test_too_many_http_clients_are_told_so(serving: Callable[..., Server]) -> None:
    server = serving(most_connections=2)
    ask = b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(server.http, 2, ask) as known:
        for own in known:
            assert own.recv(1 << 16).startswith(b"HTTP/1.1 200")
        answer = answer_of(server.http, ask)
        assert b" 503 " in answer
        assert b"2 connections are open" in answer


def test_unfinished_bodies_are_bounded_together(serving: Callable[..., Server]) -> None:
    server = serving(most_unfinished=4 << 20)
    head = b"POST /topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    with connected(server.http, 8, head + bytes(1000)) as senders:
        assert all(map(is_gone, senders[:4]))
        until(lambda: server.service.unfinished.kept == 4_000_000)
    until(lambda: server.service.unfinished.kept == 0)
