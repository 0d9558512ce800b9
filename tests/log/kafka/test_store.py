"""Kafka as last level: the same messages at the same offsets, whoever answers; and what is not so is named."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock.log.check import check as check_log
from penstock.log.errors import (
    BadSettings,
    BadTopic,
    ForeignWriter,
    KafkaUnavailable,
    NotAcknowledged,
    OffsetOutOfRange,
    UnknownTopic,
)
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kafka, Kind, LevelSettings, Retention, Settings
from tests.broker import Broker
from tests.log.checker import check, read_all
from tests.log.test_log import eventually

M, W, F = Acknowledge


def kafka_records(settings: Settings, topic: str, partition: int = 0) -> list[Any]:
    """What a stranger reads from the topic."""
    from confluent_kafka import Consumer, TopicPartition

    assert settings.last is not None
    consumer = Consumer({"bootstrap.servers": settings.last.servers, "group.id": "x", "enable.partition.eof": True,
                         "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(settings.last.prefix + topic, partition, 0)])
    found = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is not None:
            consumer.close()
            return found
        found.append(message)


def write_as_stranger(settings: Settings, topic: str, values: list[bytes]) -> None:
    from confluent_kafka import Producer

    assert settings.last is not None
    producer = Producer({"bootstrap.servers": settings.last.servers})
    for value in values:
        producer.produce(settings.last.prefix + topic, value, partition=0)
    assert producer.flush(20) == 0


def push(log: Log, *values: bytes, mode: Acknowledge = F, partition: int = 0, **columns: Any) -> int:
    return log.append("t", partition, Frame.pack(values, **columns), mode).result(60).first


@pytest.mark.parametrize("levels", [Settings().levels, ()], ids=["levels", "none"])
def test_messages_go_through_the_levels_and_come_back_from_kafka(
    kafka: Broker, tmp_path: Path, levels: tuple[LevelSettings, ...]
) -> None:
    last = kafka.settings().last
    settings = Settings(levels=levels, last=last)
    with Log(tmp_path, settings) as log:
        log.create("t", 2)
        assert push(log, b"a", b"", mode=F, times=[5, 1_000_000_123_456]) == 0
        assert push(log, b"b", b"c", mode=W, keys=[b"k", None], headers=[None, b'{"x": 1}']) == 2
        assert push(log, b"d", mode=M) == 4
        assert push(log, b"other", partition=1) == 0
        eventually(lambda: log.ends("t", 0).durable == 5)
        near = [frame.to_arrow() for frame in log.read("t", 0, 0).frames]
    with Log(tmp_path, settings) as log:
        assert log.ends("t", 0) == type(log.ends("t", 0))(0, 5, 5)
        far: list[Any] = []
        while len(far) < 5:  # a reading may have less than all
            reading = log.read("t", 0, len(far))
            assert reading.level == 0
            far += [row for frame in reading.frames for row in frame.to_arrow().to_pylist()]
        assert far == [row for batch in near for row in batch.to_pylist()]
        assert log.read("t", 0, 3, most_messages=1).frames[0].values.to_pylist() == [b"c"]
        assert push(log, b"e") == 5
        assert [value for _, value in read_all(lambda offset: log.read("t", 0, offset))] == [
            b"a", b"", b"b", b"c", b"d", b"e"]  # fmt: skip
    found = [(one.offset(), one.value(), one.key()) for one in kafka_records(settings, "t")]
    assert found == [(number, value, b"k" if number == 2 else None)
                     for number, value in enumerate([b"a", b"", b"b", b"c", b"d", b"e"])]  # fmt: skip


def test_many_messages_are_read_in_order_from_kafka(kafka: Broker, tmp_path: Path) -> None:
    level = LevelSettings(Kind.MEMORY, 50_000, batch=2000)
    settings = Settings(levels=(level,), last=kafka.settings().last, throughput=1e6)
    with Log(tmp_path, settings) as log:
        log.create("t")
        values = [b"%d" % number for number in range(20_000)]
        futures = [log.append("t", 0, Frame.pack(values[at : at + 100])) for at in range(0, 20_000, 100)]
        assert [future.result(60).first for future in futures] == list(range(0, 20_000, 100))
        assert log.statistics().partitions[0].levels[0].first > 0
        found = read_all(lambda offset: log.read("t", 0, offset, most_bytes=7000))
        check(found, dict(enumerate(values)), values)


def test_times_are_found(kafka: Broker, tmp_path: Path) -> None:
    for levels in (Settings().levels, ()):
        with Log(tmp_path / str(len(levels)), Settings(levels=levels, last=kafka.settings().last)) as log:
            log.create("t")
            push(log, *[b"x"] * 6, times=[1000, 5000, 5001, 5999, 6000, 9000])
            push(log, b"x", times=[9500], mode=M)
            found = [log.offset_at("t", 0, time) for time in (0, 1001, 5000, 5001, 5002, 6000, 6001, 9200, 9501)]
            assert found == [0, 1, 1, 2, 3, 4, 5, 6, 7]


def test_pushing_again_is_known_after_a_restart(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings()
    with Log(tmp_path, settings) as log:
        log.create("t")
        me = log.producer("me")
        batches = [Frame.pack([b"%d" % n] * 3, producer=me.id, epoch=me.epoch, sequence=3 * n) for n in range(4)]
        for batch in batches:
            log.append("t", 0, batch)
        push(log, b"nobody")
        for note in tmp_path.rglob("kafka.note"):
            kept = note.read_bytes()
    for clean in (True, False):
        if not clean:
            note.write_bytes(kept)
        with Log(tmp_path, settings) as log:
            receipts = [log.append("t", 0, batch).result(60) for batch in batches]
            assert [(one.first, one.duplicate) for one in receipts] == [(0, True), (3, True), (6, True), (9, True)]
            assert log.ends("t", 0).next == 13


def test_a_lost_directory_is_no_lost_message(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings()
    with Log(tmp_path / "a", settings) as log:
        log.create("t")
        push(log, b"a", b"b")
    with Log(tmp_path / "b", settings) as log:
        log.create("t")
        assert push(log, b"c") == 2
        assert [value for _, value in read_all(lambda offset: log.read("t", 0, offset))] == [b"a", b"b", b"c"]


def test_large_messages_go_through(settings: Settings, tmp_path: Path) -> None:
    large = [bytes([number]) * (3 << 20) for number in range(3)]
    with Log(tmp_path, settings) as log:
        log.create("t")
        futures = [log.append("t", 0, Frame.pack([value])) for value in large]
        assert [future.result(60).first for future in futures] == [0, 1, 2]
        assert [value for _, value in read_all(lambda offset: log.read("t", 0, offset))] == large


def test_without_flushing_nothing_is_called_fsynced(kafka: Broker, tmp_path: Path) -> None:
    with Log(tmp_path, kafka.settings(fsync=False)) as log:
        log.create("t")
        with pytest.raises(NotAcknowledged, match=r"fsynced: Kafka\(fsync=False\)"):
            log.append("t", 0, Frame.pack([b"a"]))
        assert push(log, b"a", mode=W) == 0


def test_a_topic_that_does_not_flush_is_refused_where_fsynced_is_promised(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings(fsync=False)
    assert settings.last is not None
    with Log(tmp_path / "a", settings) as log:
        log.create("t")
    said = r"flush\.messages=9223372036854775807(.|\n)*set flush\.messages=1 "
    other = kafka.settings(prefix=settings.last.prefix)
    with Log(tmp_path / "b", other) as log, pytest.raises(BadTopic, match=said):
        log.create("t")


def test_a_stranger_s_record_is_refused_by_name_when_it_is_written(settings: Settings, tmp_path: Path) -> None:
    with Log(tmp_path, settings) as log:
        log.create("t")
        push(log, b"ours")
        write_as_stranger(settings, "t", [b"theirs"])
        with pytest.raises(ForeignWriter, match="message 1 is at 2 there"):
            push(log, b"ours too")
        with pytest.raises(ForeignWriter, match=r"something else writes(.|\n)*in another topic|nothing can be written"):
            push(log, b"more", mode=M)
        assert log.read("t", 0, 0).frames[0].values.to_pylist() == [b"ours"]
        assert log.ends("t", 0).next == 1
    with Log(tmp_path, settings) as log:
        assert "not a message of this log" in str(log.findings()[0])
        assert log.ends("t", 0).next == 1
        with pytest.raises(ForeignWriter):
            push(log, b"more", mode=M)
        assert [value for _, value in read_all(lambda offset: log.read("t", 0, offset))] == [b"ours"]


def test_a_stranger_s_record_is_noticed_while_nothing_is_pushed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.log.kafka.connection.WATCH_EVERY", 0.1)
    with Log(tmp_path, settings) as log:
        log.create("t")
        push(log, b"ours")
        write_as_stranger(settings, "t", [b"theirs"])
        eventually(lambda: "something else writes" in (log.statistics().partitions[0].broken or ""))
        assert log.ends("t", 0).next == 1


def test_what_kafka_removes_is_gone(kafka: Broker, settings: Settings, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    assert settings.last is not None
    with Log(tmp_path, Settings(levels=(), last=settings.last)) as log:
        log.create("t")
        push(log, *[b"%d" % number for number in range(10)])
        place = TopicPartition(settings.last.prefix + "t", 0, 4)
        admin = AdminClient({"bootstrap.servers": kafka.address})
        admin.delete_records([place])[place].result()
        with pytest.raises(OffsetOutOfRange, match=r"offset 2 is no longer there(.|\n)*read from 4"):
            log.read("t", 0, 2)
        assert log.ends("t", 0).first == 4
        assert log.read("t", 0, 4).frames[0].values.to_pylist()[0] == b"4"


def test_a_topic_that_kafka_lost_is_named(kafka: Broker, settings: Settings, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    assert settings.last is not None
    name = settings.last.prefix + "t"
    with Log(tmp_path, settings) as log:
        log.create("t", 2)
        push(log, b"a")
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.delete_topics([name])[name].result()
    with pytest.raises(UnknownTopic, match="has no topic"):
        Log(tmp_path, settings)
    with Log(tmp_path / "other", settings) as log:
        log.create("t", 2)
    with pytest.raises(UnknownTopic, match="is not the one that this log was in"):
        Log(tmp_path, settings)
    with Log(tmp_path / "third", settings) as log, pytest.raises(BadTopic, match="has 2 partitions, not 3"):
        log.create("t", 3)


def test_a_leader_that_has_not_heard_of_its_epoch_is_asked_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kafka answers for moments when a topic was deleted and is made again."""
    from confluent_kafka import KafkaError, KafkaException

    from penstock.log.kafka.connection import Connection

    ask, refusals = Connection._ask_offsets, [KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH]

    def refused_at_first(self: Connection, places: Sequence[Any], which: Any) -> dict[Any, Future[Any]]:
        if not refusals:
            return ask(self, places, which)
        refused: Future[Any] = Future()
        refused.set_exception(KafkaException(KafkaError(refusals.pop())))
        return dict.fromkeys(places, refused)

    monkeypatch.setattr(Connection, "_ask_offsets", refused_at_first)
    with Log(tmp_path, settings) as log:
        log.create("t", 2)
        assert push(log, b"a") == 0
    assert not refusals


def test_a_wrong_address_is_named(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(KafkaUnavailable, match=r"Kafka at 127\.0\.0\.1:1 does not answer within 1 s: .*refused"):
        Log(tmp_path, Settings(last=Kafka("127.0.0.1:1", timeout=1.0)))
    Log(tmp_path).close()


def test_files_and_kafka_are_not_mixed(settings: Settings, tmp_path: Path) -> None:
    with Log(tmp_path / "files") as log:
        log.create("t")
        log.append("t", 0, Frame.pack([b"in a file"])).result()
    with pytest.raises(BadSettings, match="in files, not in Kafka"):
        Log(tmp_path / "files", settings)
    with Log(tmp_path / "kafka", settings) as log:
        log.create("t")
    with pytest.raises(BadSettings, match="messages of topic 't' are in Kafka"):
        Log(tmp_path / "kafka")
    assert any("in Kafka" in note for note in check_log(tmp_path / "kafka").notes)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadSettings, match=r"retention\.bytes"):
        Settings(last=Kafka("x:1"), retention=Retention(bytes=1))
    with pytest.raises(BadSettings, match="a prefix 'a/b'"):
        Kafka("x:1", prefix="a/b")
    with pytest.raises(BadSettings, match="give servers"):
        Kafka("")
