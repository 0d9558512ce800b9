"""Starting and stopping: where a server listens, TLS, and that stopping loses nothing."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.log.client import Consumer, Producer
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server import serve
from penstock.log.server.listening import CannotListen, Listening, is_loopback
from penstock.log.server.serve import Server
from penstock.log.wire import requests
from penstock.log.wire.errors import NoServer, Number, WrongToken
from tests.log.server.raw import Raw, packed, pushing
from tests.log.server.until import until


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_a_server_listens_elsewhere_only_with_a_token(host: str) -> None:
    with pytest.raises(CannotListen, match="without a token, a server does not listen at"):
        Listening(host=host)
    assert Listening(host=host, token="secret").host == host


def test_udp_beside_tls_is_told(log: Log, certificate: tuple[str, str], caplog: pytest.LogCaptureFixture) -> None:
    file, key = certificate
    safe = Listening(tcp=0, http=0, push=None, pull=None, certificate=file, key=key)
    open_too = Listening(tcp=0, http=0, push=None, pull=0, certificate=file, key=key)
    assert safe.notes() == []
    assert Listening().notes() == []
    with Server(log, safe):
        assert not caplog.messages
    with Server(log, open_too):
        assert caplog.messages == [f"note: {note}" for note in open_too.notes()]
        assert caplog.messages[0].startswith("note: UDP has no TLS, so what goes over it can be read on the network")


def test_loopback_is_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "127.0.0.1.example.org", "10.0.0.1", "")))


def test_a_port_that_is_taken_is_named_and_nothing_is_left_open(log: Log, server: Server) -> None:
    for name in ("tcp", "http", "push", "pull"):
        ports = {"tcp": 0, "http": 0, "push": 0, "pull": 0} | {name: getattr(server, name)}
        before = threading.active_count()
        with pytest.raises(CannotListen, match=f"cannot listen at 127.0.0.1:{getattr(server, name)}: Address already"):
            Server(log, Listening(**ports)).start()
        until(lambda before=before: threading.active_count() <= before)


def test_ports_can_be_left_out(log: Log) -> None:
    with Server(log, Listening(tcp=0, http=None, push=None, pull=None)) as server:
        assert (server.http, server.push, server.pull) == (None, None, None)
        with Raw(server.tcp):
            pass


def test_tls_and_a_token(serving: Callable[..., Server], certificate: tuple[str, str]) -> None:
    file, key = certificate
    server = serving(certificate=file, key=key, token="secret")
    with Producer(server.address, token="secret", authority=file) as producer:
        assert producer.send("orders", b"private", partition=0).result(60).offset == 0
        sent = [producer.send("orders", bytes(1000), partition=0) for _ in range(2000)]
        assert sent[-1].result(60).offset == 2000
    with Consumer("orders", server=server.address, token="secret", authority=file) as consumer:
        assert sum(len(batch) for batch in consumer.batches(timeout=0.5)) == 2001
    with pytest.raises(WrongToken, match="the server wants a token, and got another token"):
        Producer(server.address, token="other", authority=file)
    with pytest.raises(NoServer, match="no TLS with"):
        Consumer("orders", server=server.address, token="secret", tls=True)  # nobody we know has signed it
    with pytest.raises(NoServer):
        Consumer("orders", server=server.address, token="secret")
    done = subprocess.run(["curl", "-sS", "--cacert", file, "-H", "Authorization: Bearer secret",
                           f"https://localhost:{server.http}/topics"], capture_output=True, text=True)  # fmt: skip
    assert json.loads(done.stdout) == {"orders": {"partitions": 2}}, done.stderr


def test_a_client_that_stops_in_the_handshake_stops_nobody(
    serving: Callable[..., Server], certificate: tuple[str, str]
) -> None:
    file, key = certificate
    server = serving(certificate=file, key=key)
    with socket.create_connection(("127.0.0.1", server.http)), socket.create_connection(("127.0.0.1", server.tcp)):
        with Producer(server.address, authority=file) as producer:
            producer.send("orders", b"x").result(60)
        done = subprocess.run(["curl", "-sS", "-m", "5", "--cacert", file, f"https://localhost:{server.http}/topics"],
                              capture_output=True, text=True)  # fmt: skip
        assert done.stdout, done.stderr


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path, log: Log) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(CannotListen, match=r"cannot use .*bad.pem"):
        Server(log, Listening(tcp=0, http=0, push=0, pull=0, certificate=str(tmp_path / "bad.pem"))).start()
    with pytest.raises(CannotListen, match="a key without a certificate"):
        Listening(key="key.pem")


def test_stopping_answers_or_refuses_every_push_that_has_begun(log: Log, serving: Callable[..., Server]) -> None:
    server = serving()
    sent = 400
    frame = Frame.pack([b"x" * 100]).data
    with Raw(server.tcp) as raw:
        def write() -> None:
            for number in range(1, sent + 1):
                try:
                    raw.socket.sendall(packed(number, pushing(acknowledge="fsynced"), frame))
                except OSError:
                    return

        writing = threading.Thread(target=write)
        writing.start()
        replies = [raw.receive()]
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        try:
            while True:
                replies.append(raw.receive())
        except (EOFError, ConnectionError):
            pass
        stopping.join()
        writing.join()
    stored = log.ends("orders", 0).next
    acknowledged = [number for number, reply, _ in replies if isinstance(reply, requests.Pushed)]
    refused = [number for number, reply, _ in replies if isinstance(reply, requests.Refused)]
    assert acknowledged == list(range(1, len(acknowledged) + 1))
    assert stored == len(acknowledged)  # what was stored was answered
    assert log.ends("orders", 0).durable == stored
    assert all(reply.number == Number.CLOSED for _, reply, _ in replies if isinstance(reply, requests.Refused))
    assert refused == list(range(len(acknowledged) + 1, len(acknowledged) + len(refused) + 1))


def test_stopping_ends_long_polls_and_lets_idle_clients_go(server: Server) -> None:
    with Raw(server.tcp) as waiting, Raw(server.tcp) as idle:
        waiting.send(1, requests.Pull("orders", 0, 0, wait=100))
        waiting.send(2, requests.Topics())
        assert waiting.receive()[0] == 2
        began = time.monotonic()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert waiting.receive()[1].sizes == ()
        assert waiting.is_ended()
        assert idle.is_ended()
    stopping.join()
    assert time.monotonic() - began < 5
    server.stop()  # again: nothing happens


def test_stopping_does_not_wait_for_http_clients_that_ask_nothing(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.http)) as idle:
        idle.sendall(b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(5000).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 4


def test_stopping_does_not_wait_for_ever_for_a_client_that_takes_nothing(
    serving: Callable[..., Server], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_LAST_ANSWERS", 1.0)
    server = serving()
    log.append("orders", 0, Frame.pack([bytes(1 << 20)] * 8)).result()
    with Raw(server.tcp, receive_buffer=4096) as slow:
        for number in range(20):
            slow.send(number, requests.Pull("orders", 0, 0, most_bytes=8 << 20))
        until(lambda: server.service.unsent.kept)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 8
