"""Topics that are deleted: all of one or nothing, and never mistaken for a new one of the same name."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.log.client import AsyncConsumer, Catalogue, Consumer, Producer
from penstock.log.errors import BadTopic, NotAcknowledged, TopicDeleted, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.reader import FileReader, ServerReader
from penstock.log.server.listing import statistics_page
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge, Settings
from penstock.log.wire.requests import Refused
from tests.log.server.raw import Raw
from tests.log.server.test_http import curl
from tests.log.server.until import until
from tests.log.simulated import PowerLoss, SimulatedDisk

HERE = Path("/log")
PLAIN = Settings(levels=())


def filled(log: Log, topic: str, *values: bytes) -> None:
    log.append(topic, 0, Frame.pack(values)).result(60)


def test_a_deleted_topic_is_gone_with_its_messages_and_offsets(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t", 3)
        log.create("other")
        filled(log, "t", b"a", b"b")
        filled(log, "other", b"c")
        log.commit("g", "t", 0, 2)
        log.commit("g", "other", 0, 1)
        log.delete("t")
        assert list(log.topics()) == ["other"]
        assert os.listdir(tmp_path / "topics") == ["other"]
        assert log.groups() == {("g", "other", 0): 1}
        with pytest.raises(UnknownTopic, match="no topic 't'"):
            log.read("t", 0, 0)
        log.create("t", 1)
        assert log.ends("t", 0).next == 0
        assert log.committed("g", "t", 0) is None
        filled(log, "t", b"new")
    with Log(tmp_path) as log:
        assert log.read("t", 0, 0).frames[0].values.to_pylist() == [b"new"]
        with pytest.raises(UnknownTopic):
            log.delete("nope")


def test_the_power_may_fail_at_any_step_of_a_deletion() -> None:
    outcomes = set()
    for step in range(40):
        disk = SimulatedDisk()
        log = Log(HERE, PLAIN, disk)
        log.create("t", 2)
        log.create("other")
        filled(log, "t", b"a")
        filled(log, "other", b"b")
        log.commit("g", "t", 0, 1)
        log.commit("g", "other", 0, 1)
        disk.crash_at = disk.steps + step
        is_done = False
        try:
            log.delete("t")
            is_done = True
        except PowerLoss:
            pass
        for found in (disk.after_power_loss(), disk.after_kill()):
            with Log(HERE, PLAIN, found) as again:
                is_there = "t" in again.topics()
                outcomes.add(is_there)
                assert not (is_done and is_there)
                assert again.read("other", 0, 0).frames[0].values.to_pylist() == [b"b"]
                assert again.committed("g", "other", 0) == 1
                if is_there:
                    assert again.read("t", 0, 0).frames[0].values.to_pylist() == [b"a"]
                    assert again.committed("g", "t", 0) == 1
                else:
                    assert found.names(HERE / "topics") == ["other"]
                    again.create("t", 1)
                    assert (again.committed("g", "t", 0), again.ends("t", 0).next) == (None, 0)
    assert outcomes == {True, False}


KILLED = """
import os, sys, threading
from pathlib import Path
from penstock.log.frame import Frame
from penstock.log.log import Log

log = Log(Path(sys.argv[1]))
log.create("t", 200)
for number in range(200):
    log.append("t", number, Frame.pack([b"x" * 1000])).result()
log.commit("g", "t", 0, 1)
print("ready", flush=True)
sys.stdin.readline()
log.delete("t")
print("deleted", flush=True)
sys.stdin.readline()
"""


def test_a_process_that_is_killed_while_it_deletes_leaves_the_topic_or_none(tmp_path: Path) -> None:
    for number, delay in enumerate((0.0, 0.002, 0.01, 0.05)):
        directory = tmp_path / str(number)
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(directory)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        threading.Event().wait(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Log(directory) as log:
            if "t" in log.topics():
                assert [log.ends("t", place).next for place in range(200)] == [1] * 200
                assert log.committed("g", "t", 0) == 1
            else:
                assert os.listdir(directory / "topics") == []
                assert not log.groups()


def test_a_log_of_an_earlier_version_keeps_its_offsets_and_is_told_from_a_new_one(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        filled(log, "t", b"a")
        log._groups._journal.set(b"g\nt\n0", b"1")
        log._groups._journal.set(b"g\ngone\n0", b"1")
    file = tmp_path / "topics" / "t" / "topic.json"
    file.write_text(json.dumps({"format": 1, "partitions": 1}))
    with Log(tmp_path) as log:
        assert log.groups() == {("g", "t", 0): 1}
        assert log.topics()["t"].identity
        log.delete("t")
        log.create("t")
        assert log.committed("g", "t", 0) is None


def test_whoever_waits_for_a_topic_is_told_that_it_was_deleted(server: Server, log: Log) -> None:
    with Consumer("orders", server=server.address, wait=30.0) as consumer:
        consumer.poll(0.1)  # now a pull waits at the server
        log.delete("orders")
        with pytest.raises(TopicDeleted, match="topic 'orders' was deleted"):
            consumer.poll(20.0)


def test_an_asynchronous_consumer_is_told_too(server: Server, log: Log) -> None:
    async def consume() -> None:
        async with AsyncConsumer("orders", server=server.address, wait=30.0) as consumer:
            asyncio.get_running_loop().call_later(0.1, log.delete, "orders")
            async for _ in consumer.messages(20.0):
                raise AssertionError

    with pytest.raises(TopicDeleted):
        asyncio.run(consume())


def test_a_push_that_waits_for_the_disk_is_told(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(levels=(), flush_after=60)) as log:
        log.create("t")
        partition = log._partitions["t", 0]
        with partition.at_rest():  # the committer cannot come
            waiting = log.append("t", 0, Frame.pack([b"a"]), Acknowledge.FSYNCED)
            log.delete("t")
        with pytest.raises(TopicDeleted):
            waiting.result(60)


def test_a_new_topic_of_the_same_name_is_not_taken_for_the_old_one(server: Server, log: Log) -> None:
    filled(log, "orders", *[b"old"] * 3)
    with (
        Producer(server.address) as producer,
        Consumer("orders", server=server.address, group="g", partitions=[0]) as consumer,
        Catalogue(server.address) as catalogue,
    ):
        producer.send("orders", b"old", partition=0).result()
        assert len(consumer.poll(5.0)[0]) >= 1
        old = catalogue.topic("orders")
        catalogue.delete(old)
        catalogue.create("orders", 2)
        filled(log, "orders", *[b"new"] * 9)
        with pytest.raises(TopicDeleted):
            producer.send("orders", b"lost", partition=0).result()
        with pytest.raises(TopicDeleted):
            consumer.commit()
        with pytest.raises(TopicDeleted):
            consumer.poll(5.0)
        with pytest.raises(TopicDeleted):
            catalogue.delete(old)
        assert log.ends("orders", 0).next == 9
        assert log.committed("g", "orders", 0) is None
        with Consumer("orders", server=server.address, group="g", partitions=[0]) as again:
            assert [message.value for message in again.messages(0.5)] == [b"new"] * 9
        with Producer(server.address) as later:
            assert later.send("orders", b"right", partition=0).result().offset == 9


def test_readers_who_wait_at_a_new_topic_of_the_same_name_hear_of_its_messages(server: Server, log: Log) -> None:
    with Consumer("orders", server=server.address, partitions=[0], wait=30.0) as first:
        first.poll(0.1)  # the server watches the old one now
        log.delete("orders")
        log.create("orders", 2)
        with Consumer("orders", server=server.address, partitions=[0], wait=30.0) as second:
            second.poll(0.1)
            filled(log, "orders", b"new")
            assert second.poll(10.0)[0].values == [b"new"]


@pytest.mark.parametrize("how", ["files", "server"])
def test_ranges_of_a_topic_are_not_read_from_another(how: str, server: Server, log: Log) -> None:
    filled(log, "orders", b"old")
    reader = (FileReader(log.directory, "orders") if how == "files"
              else ServerReader(Catalogue(server.address)._connection.address, "orders"))  # fmt: skip
    old = reader.found()
    assert [piece.frame.count for piece in reader.pieces(0, 0, 1, old.identity)] == [1]
    log.delete("orders")
    log.create("orders", 2)
    filled(log, "orders", b"new")
    with pytest.raises(TopicDeleted):
        list(reader.pieces(0, 0, 1, old.identity))
    assert next(iter(reader.pieces(0, 0, 1, reader.found().identity))).frame.values.to_pylist() == [b"new"]
    reader.close()


def test_http_deletes_what_is_confirmed(server: Server, log: Log) -> None:
    refused = json.loads(curl(server, "-X DELETE HERE/topics/orders"))
    assert refused["what"] == "topic 'orders' and all its messages would be gone for good"
    assert refused["fix"] == "say that you mean it: ?confirm=orders"
    assert "orders" in log.topics()
    assert json.loads(curl(server, "-X DELETE 'HERE/topics/orders?confirm=orders'")) == {
        "topic": "orders", "deleted": True
    }  # fmt: skip
    assert curl(server, "-o /dev/null -w '%{http_code}' -X DELETE 'HERE/topics/orders?confirm=orders'") == "404"


def test_a_topic_is_created_again_with_other_partitions(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t", 2)
        with pytest.raises(BadTopic):
            log.create("t", 3)
        log.delete("t")
        assert log.create("t", 3).partitions == 3
        with pytest.raises(PenstockError, match="offset 5 is not there yet"):
            log.read("t", 2, 5)


def test_a_deletion_whose_fsync_fails_leaves_no_topic_that_takes_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    with Log(tmp_path) as log:
        log.create("t")
        filled(log, "t", b"a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            log.delete("t")
        with pytest.raises(UnknownTopic):
            filled(log, "t", b"b")
        log.create("t")
        filled(log, "t", b"c")
    with Log(tmp_path) as log:
        assert log.read("t", 0, 0).frames[0].values.to_pylist() == [b"c"]


def test_a_deletion_that_was_not_begun_is_told_and_leaves_the_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, other: Path) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    with Log(tmp_path) as log:
        log.create("t")
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", refuse)
            with pytest.raises(NotAcknowledged, match="topic 't' cannot be deleted"):
                log.delete("t")
        filled(log, "t", b"a")
    with Log(tmp_path) as log:
        assert log.ends("t", 0).next == 1


def test_deleting_a_topic_frees_its_space_on_a_full_disk_and_the_next_opening_forgets_its_offsets() -> None:
    disk = SimulatedDisk()
    with Log(HERE, PLAIN, disk) as log:
        log.create("t")
        log.create("other")
        filled(log, "t", b"a" * 1000)
        filled(log, "other", b"b")
        log.commit("g", "t", 0, 1)
        log.commit("g", "other", 0, 1)
        disk.room = 0
        log.delete("t")
        assert disk.names(HERE / "topics") == ["other"]
        disk.room = None
        log.create("t")
        assert log.committed("g", "t", 0) is None
    with Log(HERE, PLAIN, disk.after_kill()) as log:
        assert log.groups() == {("g", "other", 0): 1}


def test_who_means_a_topic_that_was_deleted_does_nothing_to_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(tmp_path) as log:
        old = log.create("t")
        filled(log, "t", b"a")
        partition = log._partitions["t", 0]
        log.delete("t", old.identity)
        log.create("t")
        with pytest.raises(TopicDeleted):
            log.delete("t", old.identity)
        assert "t" in log.topics()
        with monkeypatch.context() as patch:
            patch.setattr(log, "_partition", lambda *_: partition)  # as if it was found a moment before
            with pytest.raises(TopicDeleted):
                log.commit("g", "t", 0, 1, old.identity)
            with pytest.raises(TopicDeleted):
                log.committed("g", "t", 0, old.identity)
        assert log.committed("g", "t", 0) is None
        assert not log.groups()


def test_statistics_pass_over_a_topic_that_is_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(tmp_path) as log:
        for topic in ("a", "b", "c"):
            log.create(topic)
        before = log.places()
        log.delete("b")
        monkeypatch.setattr(log, "places", lambda: before)
        page, next = statistics_page(log, None, most=2)
        assert [one["topic"] for one in page["partitions"]] == ["a", "c"]
        assert next is None
        assert statistics_page(log, None, most=1)[1] == ("a", 0)


def test_a_server_keeps_nothing_of_topics_that_were_deleted_or_never_there(server: Server, log: Log) -> None:
    with Consumer("orders", server=server.address, wait=30.0) as consumer, Raw(server.tcp) as raw:
        consumer.poll(0.1)  # now a pull waits at the server
        raw.push(1, b"x", topic="nope")
        assert isinstance(raw.receive()[1], Refused)
        raw.push(2, b"x", topic="orders")
        raw.receive()
        log.delete("orders")
        until(lambda: not server.service._watches)
        until(lambda: not server.service._unanswered)
