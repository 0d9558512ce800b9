"""Pushes of many connections: those that come while others are written wait for them and are written together."""

from __future__ import annotations

import threading

from penstock.log.client import Producer
from penstock.log.log import Log
from penstock.log.server.serve import Server
from tests.log.server.until import until


def test_what_comes_while_others_are_written_is_written_at_once(
    server: Server, log: Log, stuck: threading.Event
) -> None:
    producers = [Producer(server.address, linger=0) for _ in range(20)]
    sent = [producers[0].send("orders", b"first", partition=0)]
    wait_for(server, 1)
    sent += [producer.send("orders", b"later", partition=0) for producer in producers[1:]]
    wait_for(server, 20)
    assert log._partition("orders", 0).next == 1
    before = log.statistics().rounds
    stuck.set()
    assert sorted(each.result(60).offset for each in sent) == list(range(20))
    assert log.statistics().rounds - before <= 3
    for producer in producers:
        producer.close()


def test_who_asks_for_memory_does_not_wait_for_the_disk(server: Server, stuck: threading.Event) -> None:
    with Producer(server.address, linger=0) as slow, Producer(server.address, linger=0, acknowledge="memory") as fast:
        waits = slow.send("orders", b"slow", partition=0)
        wait_for(server, 1)
        assert fast.send("orders", b"fast", partition=0).result(60).acknowledged == "memory"
        assert not waits.done()
        stuck.set()
        assert waits.result(60).offset == 0


def wait_for(server: Server, pushes: int) -> None:
    """Until the server has read so many pushes that it has not answered."""
    until(lambda: sum(connection.in_flight > 0 for connection in list(server.service.connections)) >= pushes)
