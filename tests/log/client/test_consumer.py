"""Consumers: places, groups, filters, and servers that go away."""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import BadExpression
from penstock.log.client import AsyncConsumer, AsyncProducer, Consumer, Producer
from penstock.log.errors import OffsetOutOfRange, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server
from tests.log.server.raw import Raw
from tests.log.server.until import until


def fill(log: Log, partition: int, *values: bytes) -> None:
    log.append("orders", partition, Frame.pack(values)).result()


def test_messages_come_with_all_they_have(server: Server) -> None:
    with Producer(server.address) as producer:
        producer.send("orders", {"id": 1}, key="k", headers={"region": "EU"}, partition=1, time_micros=5)
    with Consumer("orders", server=server.address) as consumer:
        (message,) = consumer.messages(timeout=0.2)
    assert message == ("orders", 1, 0, 5, b"k", b'{"id":1}', {"region": "EU"})
    assert message.json() == {"id": 1}


def test_all_partitions_or_some(server: Server, log: Log) -> None:
    fill(log, 0, b"a", b"b")
    fill(log, 1, b"c")
    with Consumer("orders", server=server.address) as consumer:
        assert sorted(message.value for message in consumer.messages(timeout=0.2)) == [b"a", b"b", b"c"]
    with Consumer("orders", server=server.address, partitions=[1]) as consumer:
        assert [message.value for message in consumer.messages(timeout=0.2)] == [b"c"]
    with pytest.raises(UnknownTopic, match="no partition 2"):
        Consumer("orders", server=server.address, partitions=[2])
    with pytest.raises(UnknownTopic, match="no topic 'nope'"):
        Consumer("nope", server=server.address)


def test_a_place_to_start(server: Server, log: Log) -> None:
    fill(log, 0, b"a", b"b", b"c")
    for start, expected in (("first", [b"a", b"b", b"c"]), (1, [b"b", b"c"]), ("next", [])):
        with Consumer("orders", server=server.address, partitions=[0], start=start) as consumer:
            assert [message.value for message in consumer.messages(timeout=0.2)] == expected
    with (
        Consumer("orders", server=server.address, partitions=[0], start=9) as consumer,
        pytest.raises(OffsetOutOfRange, match="offset 9 is not there yet"),
    ):
        list(consumer.messages(timeout=1))


def test_a_group_goes_on_where_it_committed(server: Server, log: Log) -> None:
    fill(log, 0, *(b"%d" % number for number in range(10)))
    with Consumer("orders", server=server.address, group="billing", partitions=[0]) as consumer:
        for message in consumer:
            if message.offset == 3:
                break
        consumer.commit()
    assert log.committed("billing", "orders", 0) == 4  # not what was fetched, but what was handed out
    with Consumer("orders", server=server.address, group="billing", partitions=[0]) as consumer:
        assert [message.offset for message in consumer.messages(timeout=0.2)] == [4, 5, 6, 7, 8, 9]
        assert consumer.positions == {("orders", 0): 10}
    with Consumer("orders", server=server.address, group="other", partitions=[0]) as consumer:
        assert len(list(consumer.messages(timeout=0.2))) == 10
    with Consumer("orders", server=server.address) as consumer, pytest.raises(ValueError, match="only a consumer of a"):
        consumer.commit()


def test_who_stops_in_the_middle_goes_on_there(server: Server, log: Log) -> None:
    fill(log, 0, *(b"%d" % number for number in range(10)))
    with Consumer("orders", server=server.address, group="g", partitions=[0]) as consumer:
        for expected in range(4):
            for message in consumer:
                assert message.offset == expected
                break
        assert consumer.positions == {("orders", 0): 4}
        assert [message.offset for message in consumer.messages(timeout=0.2)] == [4, 5, 6, 7, 8, 9]

    async def run() -> list[int]:
        found = []
        async with AsyncConsumer("orders", server=server.address, group="g", partitions=[0]) as consumer:
            for _ in range(4):
                async for message in consumer:
                    found.append(message.offset)
                    break
            assert consumer.positions == {("orders", 0): 4}
            found += [message.offset async for message in consumer.messages(timeout=0.2)]
        return found

    assert asyncio.run(run()) == list(range(10))


def test_a_commit_in_the_middle_does_not_include_what_was_only_looked_at(server: Server, log: Log) -> None:
    """The answer to the next pull, in which nothing passes the filter, arrives while a batch is worked on."""
    fill(log, 0, *(b'{"total": %d}' % number for number in range(5)))
    with Consumer("orders", server=server.address, group="g", partitions=[0], where="total < 5", wait=30) as consumer:
        messages = iter(consumer)
        assert next(messages).offset == 0
        (served,) = server.service.connections
        until(lambda: [poll.offset for poll in served.puller.polls] == [5])
        (poll,) = served.puller.polls
        fill(log, 0, *[b'{"total": 100}'] * 5)
        until(lambda: poll.offset == 10)  # it has looked at all of them
        server.service.loop.call_soon_threadsafe(poll.time_out)
        assert select.select([consumer._connection.socket], [], [], 10)[0]  # and its answer is here
        consumer.commit()
        assert log.committed("g", "orders", 0) == 1
        assert [next(messages).offset for _ in range(4)] == [1, 2, 3, 4]
        assert consumer.poll(0.3) == []
        consumer.commit()
        assert log.committed("g", "orders", 0) == 10


def test_batches_as_arrow(server: Server, log: Log) -> None:
    fill(log, 0, *(b"%d" % number for number in range(1000)))
    with Consumer("orders", server=server.address, partitions=[0], most_bytes=1000) as consumer:
        batches = list(consumer.batches(timeout=0.2))
    assert len(batches) >= 3
    assert [value for batch in batches for value in batch.values] == [b"%d" % number for number in range(1000)]
    assert batches[0].to_arrow().schema.names == ["offset", "time", "key", "value", "headers"]


def test_the_server_filters_and_transforms(server: Server, log: Log) -> None:
    fill(log, 0, *(b'{"total": %d, "id": %d}' % (number * 10, number) for number in range(10)))
    options = {"server": server.address, "partitions": [0], "group": "g"}
    with Consumer("orders", where="total < 50 AND id > 1", select={"double": "total * 2"}, **options) as consumer:
        found = [(message.offset, message.json()) for message in consumer.messages(timeout=0.2)]
        consumer.commit()
    assert found == [(2, {"double": 40.0}), (3, {"double": 60.0}), (4, {"double": 80.0})]
    assert log.committed("g", "orders", 0) == 10  # what did not pass is done as well
    with Consumer("orders", where="total <", **options) as consumer, pytest.raises(BadExpression, match="expected"):
        list(consumer.messages(timeout=1))


def test_a_consumer_waits_for_what_comes(server: Server, log: Log) -> None:
    timer = threading.Timer(0.3, lambda: fill(log, 1, b"late"))
    timer.start()
    with Consumer("orders", server=server.address) as consumer:
        began = time.monotonic()
        assert next(iter(consumer)).value == b"late"
        assert 0.2 < time.monotonic() - began < 5
        assert consumer.poll(0.05) == []
    timer.join()


def test_seek(server: Server, log: Log) -> None:
    fill(log, 0, b"a", b"b", b"c")
    with Consumer("orders", server=server.address, partitions=[0]) as consumer:
        assert len(list(consumer.messages(timeout=0.2))) == 3
        consumer.seek("orders", 0, 1)
        assert [message.value for message in consumer.messages(timeout=0.2)] == [b"b", b"c"]


def test_a_consumer_survives_its_server(tmp_path: Path) -> None:
    ports = {"http": None, "push": None, "pull": None}
    with Log(tmp_path / "log") as log:
        log.create("orders")
        fill(log, 0, b"a")
        server = Server(log, Listening(tcp=0, **ports)).start()
        with Consumer("orders", server=server.address, group="g") as consumer:
            messages = iter(consumer)
            assert next(messages).value == b"a"
            server.stop()
            fill(log, 0, b"b")
            with Server(log, Listening(tcp=server.tcp, **ports)):
                assert next(messages).value == b"b"
                consumer.commit()
        assert log.committed("g", "orders", 0) == 2


def test_the_same_in_an_event_loop(server: Server, log: Log) -> None:
    fill(log, 0, b"a", b"b")

    async def run() -> list[bytes]:
        found = []
        async with AsyncConsumer("orders", server=server.address, group="g") as consumer:
            async for message in consumer.messages(timeout=0.3):
                found.append(message.value)
            async with AsyncProducer(server.address) as producer:
                await producer.send("orders", b"c", partition=1)
            async for batch in consumer.batches(timeout=1):
                found += batch.values
                break
            await consumer.commit()
            assert consumer.positions == {("orders", 0): 2, ("orders", 1): 1}
        return found

    assert asyncio.run(run()) == [b"a", b"b", b"c"]
    assert (log.committed("g", "orders", 0), log.committed("g", "orders", 1)) == (2, 1)


def test_a_consumer_whose_place_is_taken_waits_for_another(serving: Callable[..., Server], log: Log) -> None:
    server = serving(most_connections=1)
    fill(log, 0, b"first")
    with Consumer("orders", server=server.address, partitions=[0]) as consumer:
        messages = consumer.messages(timeout=20)
        assert next(messages).value == b"first"
        (served,) = server.service.connections
        server.service.loop.call_soon_threadsafe(served.transport.abort)
        until(lambda: not server.service.known)
        with Raw(server.tcp) as other:
            refused = server.service.counters.refused
            reading = threading.Thread(target=lambda: found.append(next(messages).value))
            found: list[bytes] = []
            reading.start()
            until(lambda: server.service.counters.refused > refused)
            other.push(1, b"second")
            other.receive()
        reading.join(20)
        assert found == [b"second"]
