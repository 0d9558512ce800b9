"""Producers: batches, keys, futures, and messages that are stored once whatever happens to the connection."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.log.client import AsyncProducer, Placed, Producer
from penstock.log.client.engine import Engine
from penstock.log.errors import BadSettings, UnknownTopic
from penstock.log.log import Log
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server
from penstock.log.server.tcp import Connection
from penstock.log.topics import partition_of
from penstock.log.wire import requests
from penstock.log.wire.errors import BadRequest, NoServer, TooMany, WrongToken
from tests.log.server.until import until


def stored(log: Log, partition: int = 0, topic: str = "orders") -> list[bytes]:
    offset, found = 0, []
    while frames := log.read(topic, partition, offset, most_bytes=1 << 20).frames:
        for frame in frames:
            found += frame.values.to_pylist()
        offset = frames[-1].next
    return found


def test_what_is_sent_is_stored_in_order(server: Server, log: Log) -> None:
    with Producer(server.address) as producer:
        sent = [producer.send("orders", f"message {number}", partition=1) for number in range(500)]
        assert sent[0].result(60) == Placed("orders", 1, 0, 1, "fsynced")
        producer.flush()
        assert [each.result(0).offset for each in sent] == list(range(500))
    assert stored(log, 1) == [b"message %d" % number for number in range(500)]


@pytest.mark.parametrize("mode", ["memory", "written", "fsynced"])
def test_the_answer_names_the_mode(server: Server, mode: str) -> None:
    with Producer(server.address, acknowledge=mode) as producer:
        assert producer.send("orders", b"x").result(60).acknowledged == mode


def test_keys_headers_times_and_json(server: Server, log: Log) -> None:
    with Producer(server.address) as producer:
        for number in range(20):
            about = {"key": f"k{number % 5}", "headers": {"region": "EU"}, "time_micros": number + 1}
            producer.send("orders", {"id": number}, **about)
        producer.send("orders", b"plain", partition=0)
    seen = []
    for partition in (0, 1):
        for frame in log.read("orders", partition, 0).frames:
            columns = frame.keys.to_pylist(), frame.headers.to_pylist(), frame.times.tolist(), frame.values.to_pylist()
            for key, headers, moment, value in zip(*columns, strict=True):
                if value == b"plain":
                    assert (key, headers) == (None, None)
                    continue
                assert partition_of(key, 2) == partition
                assert headers == b'{"region":"EU"}'
                seen.append((moment - 1, value))
    assert sorted(seen) == [(number, b'{"id":%d}' % number) for number in range(20)]


def test_messages_without_a_key_take_turns_by_batch(server: Server, log: Log) -> None:
    with Producer(server.address, batch_bytes=300, linger=0.001) as producer:
        for _ in range(200):
            producer.send("orders", bytes(50))
    counts = [log.ends("orders", partition).next for partition in (0, 1)]
    assert sum(counts) == 200
    assert min(counts) > 50


def test_many_messages_at_once(server: Server, log: Log) -> None:
    values = pa.array([b"%d" % number for number in range(10_000)], pa.binary())
    with Producer(server.address) as producer:
        producer.send("orders", b"before", partition=0)
        placed = producer.send_many("orders", values, partition=0).result(60)
        producer.send_many("orders", ["text", {"a": 1}], partition=0)
        producer.send("orders", b"after", partition=0)
    assert (placed.offset, placed.count) == (1, 10_000)
    expected = [b"before", *values.to_pylist(), b"text", b'{"a":1}', b"after"]
    assert stored(log) == expected


def test_batches_wait_for_size_or_time(server: Server) -> None:
    with Producer(server.address, linger=0.3, batch_bytes=10_000) as producer:
        producer.send("orders", b"warm up", partition=0).result(60)
        began = time.monotonic()
        alone = producer.send("orders", b"x", partition=0)
        alone.result(60)
        assert time.monotonic() - began > 0.25
        began = time.monotonic()
        full = [producer.send("orders", bytes(1000), partition=0) for _ in range(10)]
        full[0].result(60)
        assert time.monotonic() - began < 0.25
        requests = server.service.counters.pushed_messages
        assert requests >= 11


def test_flush_does_not_wait_for_the_linger(server: Server) -> None:
    with Producer(server.address, linger=60) as producer:
        sent = producer.send("orders", b"x")
        began = time.monotonic()
        producer.flush(10)
        assert sent.done()
        assert time.monotonic() - began < 5


def test_an_unknown_topic_is_told_at_once_or_made(server: Server, log: Log) -> None:
    with Producer(server.address) as producer:
        with pytest.raises(UnknownTopic, match="no topic 'ordres'"):
            producer.send("ordres", b"x")
        with pytest.raises(UnknownTopic, match="no partition 7"):
            producer.send("orders", b"x", partition=7)
    with Producer(server.address, create=3) as producer:
        producer.send("made", b"x").result(60)
    assert log.topics()["made"].partitions == 3


class Cutting(threading.Thread):
    """Stands before a server, and cuts the first connection when it asks for topics."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = 0

    def run(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.server.tcp))
            if self.connections == 1:
                while b"Topics" not in (asked := client.recv(1 << 16)):
                    server.sendall(asked)
                    client.sendall(server.recv(1 << 16))
                client.close()
                server.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    @staticmethod
    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def test_a_server_that_dies_while_it_is_asked_for_a_topic_is_asked_again(server: Server, log: Log) -> None:
    cutting = Cutting(server)
    cutting.start()
    try:
        with Producer(cutting.address) as producer:
            assert producer.send("orders", b"x", partition=0).result(60).offset == 0
    finally:
        cutting.listener.close()
    assert cutting.connections == 2
    assert log.read("orders", 0, 0).frames[0].values.to_pylist() == [b"x"]


def test_mistakes_are_told_at_once(server: Server, serving: Callable[..., Server]) -> None:
    with pytest.raises(NoServer, match=r"no log server answers at 127\.0\.0\.1:1: Connection refused"):
        Producer("127.0.0.1:1")
    with pytest.raises(PenstockError, match="is not the address of a server"):
        Producer("127.0.0.1:http")
    with pytest.raises(BadSettings, match="an acknowledgement 'maybe'"):
        Producer(server.address, acknowledge="maybe")
    with pytest.raises(NoServer, match="is no log server"):
        Producer(f"127.0.0.1:{server.http}")
    with pytest.raises(WrongToken, match="got no token"):
        Producer(serving(token="secret").address)
    with Producer(server.address) as producer, pytest.raises(BadRequest, match="a message of 16,777,217 bytes"):
        producer.send("orders", bytes((16 << 20) + 1))


def test_a_batch_that_fails_says_so_and_the_next_ones_go_on(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a disk is full for a moment: one batch in the middle of several on the way is not stored."""
    producers = log._partition("orders", 0).producers
    duplicate, calls = producers.duplicate, []

    def failing(run: Any) -> Any:
        calls.append(run)
        if len(calls) == 3:
            raise BadSettings("no")
        return duplicate(run)

    monkeypatch.setattr(producers, "duplicate", failing)
    with Producer(server.address, batch_bytes=1) as producer:
        sent = [producer.send("orders", b"%d" % number, partition=0) for number in range(20)]
        results = []
        for each in sent:
            try:
                results.append(each.result(60).offset)
            except PenstockError:
                results.append(None)
    assert results == [0, 1, None, *range(2, 19)]
    assert stored(log) == [b"%d" % number for number in range(20) if number != 2]


def test_a_batch_that_the_server_would_not_take_fails_before_it_is_sent(
    serving: Callable[..., Server], log: Log
) -> None:
    server = serving(credit=100_000)
    with Producer(server.address) as producer:
        first = producer.send("orders", b"a", partition=0)
        large = producer.send_many("orders", [bytes(1000)] * 200, partition=0)
        last = producer.send("orders", b"b", partition=0)
        assert (first.result(60).offset, last.result(60).offset) == (0, 1)
        with pytest.raises(BadRequest, match="is more than the 100,000 that the server takes at once"):
            large.result(60)
    assert stored(log) == [b"a", b"b"]


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Connections break before or after an answer to a push is sent, at every so many pushes."""
    pushes = [0, 0]
    pushed = Connection.pushed

    def broken(self: Connection, push: Any) -> None:
        pushes[0] += 1
        if pushes[1] and pushes[0] % pushes[1] == 0 and self.transport is not None:
            self.transport.abort()
        pushed(self, push)

    monkeypatch.setattr(Connection, "pushed", broken)
    return pushes


@pytest.mark.parametrize("every", [2, 7])
def test_lost_answers_neither_lose_nor_double_messages(
    server: Server, log: Log, breaking: list[int], every: int
) -> None:
    breaking[1] = every
    with Producer(server.address, batch_bytes=200, linger=0.001) as producer:
        sent = []
        for number in range(300):
            before = breaking[0]
            sent.append(producer.send("orders", b"%d" % number, partition=0))
            if number % 20 == 0:
                until(lambda before=before: breaking[0] > before)  # one more was answered, or not
        breaking[1] = 0
        producer.flush(30)
        offsets = [each.result(0).offset for each in sent]
    assert stored(log) == [b"%d" % number for number in range(300)]
    assert all(offset in (place, -1) for place, offset in enumerate(offsets))


def test_what_was_sent_before_is_asked_for_with_its_numbers_before_it_gets_new_ones(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are stored and their answers lost; then the first is refused, before there is credit to send the second."""
    producers = log._partition("orders", 0).producers
    duplicate, reply, connect = producers.duplicate, Connection.reply, Engine._connect
    calls: list[Any] = []
    lost: list[requests.Said] = []

    def failing(run: Any) -> Any:
        calls.append(run)
        if len(calls) == 3:
            raise BadSettings("no")
        return duplicate(run)

    def losing(self: Connection, number: int, said: requests.Said, *bulk: memoryview) -> None:
        if not isinstance(said, requests.Pushed) or len(lost) == 2:
            reply(self, number, said, *bulk)
            return
        lost.append(said)
        if len(lost) == 2 and self.transport is not None:
            self.transport.abort()

    async def poor(self: Engine) -> None:
        await connect(self)
        if lost:
            self._credit = 1

    monkeypatch.setattr(producers, "duplicate", failing)
    monkeypatch.setattr(Connection, "reply", losing)
    monkeypatch.setattr(Engine, "_connect", poor)
    with Producer(server.address, batch_bytes=1) as producer:
        first, second = (producer.send("orders", value, partition=0) for value in (b"a", b"b"))
        with pytest.raises(PenstockError, match="no"):
            first.result(60)
        assert second.result(60) == Placed("orders", 0, 1, 1, "fsynced", duplicate=True)
        producer.send("orders", b"c", partition=0).result(60)
    assert stored(log) == [b"a", b"b", b"c"]


def test_a_server_that_comes_back_gets_everything(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.create("orders")
        server = Server(log, Listening(tcp=0, http=None, push=None, pull=None)).start()
        port = server.tcp
        producer = Producer(server.address)
        producer.send("orders", b"before").result(60)
        server.stop()
        during = [producer.send("orders", b"%d" % number) for number in range(100)]
        until(lambda: not producer._engine.connection.is_open)
        assert not any(each.done() for each in during)
        with Server(log, Listening(tcp=port, http=None, push=None, pull=None)):
            producer.close()
            assert [each.result(0).offset for each in during] == list(range(1, 101))
        assert len(stored(log)) == 101


def test_a_server_that_does_not_come_back_fails_what_waits(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.create("orders")
        server = Server(log, Listening(tcp=0, http=None, push=None, pull=None)).start()
        producer = Producer(server.address, retry_for=0.3)
        server_gone = producer.send("orders", b"x")
        server_gone.result(60)
        server.stop()
        with pytest.raises(NoServer):
            producer.send("orders", b"y").result(60)
        producer.close()


def test_the_buffer_is_bounded(serving: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving()
    stuck = threading.Event()
    push = server.service.push
    monkeypatch.setattr(server.service, "push", lambda given: stuck.wait(20) and push(given))
    producer = Producer(server.address, buffer_bytes=10_000, batch_bytes=1000, retry_for=0.5)
    with pytest.raises(TooMany, match="bytes of messages have no answer"):
        list(map(partial(producer.send, "orders"), [bytes(500)] * 100))
    assert producer._engine.buffered < 12_000
    stuck.set()
    producer.close()


def test_several_threads_may_send(server: Server, log: Log) -> None:
    with Producer(server.address, batch_bytes=500) as producer:
        def send(name: int) -> None:
            for number in range(200):
                producer.send("orders", b"%d %d" % (name, number), partition=0)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = stored(log)
    for name in range(4):
        mine = [value for value in found if value.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, number) for number in range(200)]


def test_a_closed_producer_takes_nothing(server: Server) -> None:
    producer = Producer(server.address)
    producer.send("orders", b"x")
    producer.close()
    producer.close()
    with pytest.raises(NoServer, match="the producer was closed"):
        producer.send("orders", b"y")


def test_the_same_in_an_event_loop(server: Server, log: Log) -> None:
    async def run() -> list[Placed]:
        async with AsyncProducer(server.address, buffer_bytes=20_000, batch_bytes=1000) as producer:
            sent = [await producer.send("orders", bytes(100), partition=0) for _ in range(1000)]
            placed = [await each for each in sent]
            many = await producer.send_many("orders", [b"a", b"b"], partition=0)
            await producer.flush()
            with pytest.raises(UnknownTopic):
                await producer.send("nope", b"")
            return [*placed, await many]

    placed = asyncio.run(run())
    assert [each.offset for each in placed] == list(range(1001))
    assert log.ends("orders", 0).next == 1002


def test_no_server_in_an_event_loop() -> None:
    async def run() -> None:
        async with AsyncProducer("127.0.0.1:1"):
            pass

    with pytest.raises(NoServer):
        asyncio.run(run())


def test_a_producer_that_connects_anew_goes_on_with_its_session(server: Server, log: Log) -> None:
    def sessions() -> set[str]:
        return set(server.service.sessions._names.values())

    with Producer(server.address) as producer, Producer(server.address) as other:
        producer.send("orders", b"a", partition=0).result(60)
        other.send("orders", b"b", partition=0).result(60)
        before = sessions()
        assert len(before) == 2
        old = set(server.service.connections)
        for connection in old:
            assert connection.transport is not None
            server.service.loop.call_soon_threadsafe(connection.transport.abort)
        until(lambda: not old & server.service.connections)
        producer.send("orders", b"c", partition=0).result(60)
        other.send("orders", b"d", partition=0).result(60)
        assert sessions() == before
    assert stored(log) == [b"a", b"b", b"c", b"d"]
