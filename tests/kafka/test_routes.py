"""Routes that read and write topics of Kafka, on Spark."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App, Json, KafkaTopic, Memory, Route, Void, body, header
from penstock.errors import BadEndpoint
from penstock.reference.run import run
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from tests.broker import Broker
from tests.kafka.topics import bodies, fill, messages, new_topic

ORDER = Json("id BIGINT, total DOUBLE")


def orders(first: int, stop: int) -> list[bytes]:
    return [json.dumps({"id": number, "total": number * 10.0}).encode() for number in range(first, stop)]


def routed(source: KafkaTopic, **sinks: Any) -> App:
    route = Route("in", source).choice({"large": body.total >= 50}, otherwise="small")
    return App("shop", route, sinks=sinks, dead_letters=Memory())


def flat(found: Sequence[Sequence[bytes]]) -> list[bytes]:
    return sorted(one for part in found for one in part)


def test_batch_and_stream_give_what_the_reference_gives(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka.address, 2)
    moment = int(time.time()) - 60  # not long ago: Kafka removes what is older than a week
    fill(kafka.address, topic, orders(0, 8), timestamp=1000 * moment)
    fill(kafka.address, topic, [b"not JSON"], 1)
    fill(kafka.address, topic, orders(8, 9), 1, key=b"A", headers=[("from", b"x"), ("from", b"y"), ("odd", b"\xff")])
    fill(kafka.address, topic, orders(9, 13), 1)
    source = KafkaTopic(topic, ORDER, servers=kafka.address)
    app = routed(source, large=Memory(), small=Memory())
    right = run(app.plan, [*orders(0, 8), b"not JSON", *orders(8, 13)])
    batch = run_batch(app, spark)
    stream = run_stream(app, str(tmp_path / "position"), once=True, spark=spark, rows_per_batch=5)
    for result in (batch, stream):
        assert result.summary.received == 14
        assert result.summary.conserved
        for channel in ("large", "small"):
            found = sorted(message.raw for message in result.channels[channel])
            assert found == sorted(message.raw for message in right.channels[channel])
        assert [letter.message.id for letter in result.dead] == [f"{topic}/1/0"]
    assert stream.summary.batches == 3
    known = {message.id: message for message in batch.channels["large"]}
    assert known[f"{topic}/0/5"].time == datetime.fromtimestamp(moment, UTC)
    assert known[f"{topic}/1/1"].headers == {"from": "y", "odd": "\ufffd", "key": "A"}
    assert known[f"{topic}/1/2"].headers == {}


def test_a_part_of_a_topic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka.address, 2)
    fill(kafka.address, topic, orders(0, 10))
    fill(kafka.address, topic, orders(10, 15), 1)

    def read(stream: bool = False, **where: Any) -> list[bytes]:
        app = App("look", Route("in", KafkaTopic(topic, servers=kafka.address, **where)).to("out", Memory()),
                  dead_letters=Void())  # fmt: skip
        place = str(tmp_path / "position")
        result = run_stream(app, place, once=True, spark=spark) if stream else run_batch(app, spark)
        return sorted(message.raw for message in result.channels["out"])

    assert read(start={0: 3}, end={0: 7, 1: 1}) == sorted(orders(3, 7) + orders(10, 11))
    assert read(start="latest") == []
    assert read(stream=True, start={0: 8, 1: 5}) == orders(8, 10)
    fill(kafka.address, topic, orders(15, 17), 1)
    assert read(stream=True, start="earliest") == orders(15, 17)  # the checkpoint says where


def test_another_start_counts_until_the_first_batch(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka.address, 1)
    fill(kafka.address, topic, orders(0, 3))

    def read(start: str) -> list[bytes]:
        app = App("look", Route("in", KafkaTopic(topic, servers=kafka.address, start=start)).to("out", Memory()),
                  dead_letters=Void())  # fmt: skip
        found = run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
        return sorted(message.raw for message in found.channels["out"])

    assert read("latest") == []
    for made in ("offsets", "commits", "penstock-batches"):  # as if it had been killed before its first batch
        shutil.rmtree(tmp_path / "position" / made, ignore_errors=True)
    assert read("earliest") == orders(0, 3)
    assert read("latest") == []
    fill(kafka.address, topic, orders(3, 5))
    assert read("latest") == orders(3, 5)  # it has begun: it goes on where it is


def test_from_kafka_to_kafka_everything_is_there_once(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka.address, 2)
    large, small = f"{topic}-large", f"{topic}-small"
    fill(kafka.address, topic, orders(0, 10))
    fill(kafka.address, topic, orders(10, 20), 1)
    app = routed(KafkaTopic(topic, ORDER, servers=kafka.address),
                 large=KafkaTopic(large, servers=kafka.address, key="id", partitions=2),
                 small=KafkaTopic(small, servers=kafka.address))  # fmt: skip
    checkpoint = tmp_path / "position"

    def go() -> tuple[list[bytes], list[bytes]]:
        run_stream(app, str(checkpoint), once=True, spark=spark, rows_per_batch=8)
        return flat(bodies(kafka.address, large)), flat(bodies(kafka.address, small))

    assert go() == (sorted(orders(5, 20)), orders(0, 5))
    fill(kafka.address, topic, orders(1, 3), 1)
    again = sorted(orders(5, 20)), sorted([*orders(0, 5), *orders(1, 3)])
    assert go() == again
    newest = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    (checkpoint / "commits" / str(newest)).unlink()  # as if the process had died before Spark noted the last batch
    assert go() == again
    # What a stream has written is read by the next one, over the gaps between transactions.
    last = App("look", Route("in", KafkaTopic(large, servers=kafka.address)).to("out", Memory()), dead_letters=Void())
    assert sorted(message.raw for message in run_batch(last, spark).channels["out"]) == sorted(orders(5, 20))


def test_headers_and_keys_go_along(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka.address)
    fill(kafka.address, topic, orders(0, 2), key=b"A", headers=[("from", b"x")])
    fill(kafka.address, topic, orders(2, 3))
    sink = KafkaTopic(f"{topic}-out", servers=kafka.address, headers=True)
    route = Route("in", KafkaTopic(topic, ORDER, servers=kafka.address)).filter(
        ~header.key.is_present() | (body.id > 0)
    )
    app = App("shop", route.to("out", sink), dead_letters=KafkaTopic(f"{topic}-dead", servers=kafka.address))
    fill(kafka.address, topic, [b"not JSON"])
    assert run_batch(app, spark).summary.delivered == {"out": 2}
    found = [(message.key(), message.headers()) for message in messages(kafka.address, sink.topic)[0]]
    assert found == [(b"A", [("from", b"x")]), (None, None)]
    (letter,) = map(json.loads, bodies(kafka.address, f"{topic}-dead")[0])
    assert (letter["id"], letter["body"]) == (f"{topic}/0/3", "not JSON")


def test_what_cannot_be_read_is_said_before_spark_starts(kafka: Broker) -> None:
    def reading(topic: str, **options: Any) -> None:
        source = KafkaTopic(topic, servers=kafka.address, **options)
        run_batch(App("shop", Route("in", source).to("out", Void()), dead_letters=Void()), spark=None)

    topic = new_topic(kafka.address)
    with pytest.raises(BadEndpoint, match=rf"route 'in' reads kafka {topic}x at .* has no topic '{topic}x'") as caught:
        reading(f"{topic}x")
    assert f"did you mean '{topic}'" in str(caught.value)
    with pytest.raises(BadEndpoint, match=r"partition 0 of topic .* has no offset 5"):
        reading(topic, start={0: 5})
    source = KafkaTopic(topic, servers=kafka.address)
    circle = App("shop", Route("in", source).to("out", source), dead_letters=Void())
    with pytest.raises(BadEndpoint, match=rf"route 'in' reads kafka {topic} .* and channel 'out' writes to it too"):
        run_batch(circle)


def test_a_topic_may_get_more_partitions(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = new_topic(kafka.address)
    app = App("look", Route("in", KafkaTopic(topic, servers=kafka.address)).to("out", Memory()), dead_letters=Void())

    def read() -> list[bytes]:
        found = run_stream(app, str(tmp_path / "position"), once=True, spark=spark).channels["out"]
        return sorted(message.raw for message in found)

    fill(kafka.address, topic, [b"1", b"2"])
    assert read() == [b"1", b"2"]
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    fill(kafka.address, topic, [b"3"], 1)
    fill(kafka.address, topic, [b"4"])
    assert read() == [b"3", b"4"]
