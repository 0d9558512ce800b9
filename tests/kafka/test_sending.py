"""Batches are in a topic once and whole, whatever interrupts who sends them. No Spark here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import KafkaTopic
from penstock.delivery import AT_LEAST_ONCE, EXACTLY_ONCE, IN_ORDER
from penstock.errors import BadEndpoint
from penstock.formats import Json
from penstock.kafka import client, topic
from penstock.kafka.client import Place
from penstock.kafka.sending import Outgoing, Sender
from penstock.spark.write import kafka as sink
from penstock.spark.write.outlets import FRAMES, Target
from tests.broker import Broker
from tests.kafka.topics import bodies, messages, new_topic
from tests.log.spark.test_appending import BODIES, staged


def outgoing(start: int, stop: int) -> list[Outgoing]:
    return [Outgoing(b"%d" % number) for number in range(start, stop)]


def texts(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


def target(end: KafkaTopic, delivery: str = EXACTLY_ONCE) -> Target:
    made = Target(0, "paid", FRAMES, None, Json("id BIGINT, car STRING"), delivery=delivery, topic=end)
    sink.prepare({0: made})
    return made


def test_a_batch_is_there_whole_or_not_at_all(kafka: Broker) -> None:
    place = Place(new_topic(kafka.address), kafka.address)

    def breaking() -> Iterator[Outgoing]:
        yield from outgoing(10, 15)
        raise InterruptedError

    first = Sender(place, f"penstock-{place.topic}")
    first.publish(outgoing(0, 10), 0, "batch 0")
    with pytest.raises(InterruptedError):
        first.publish(breaking(), 1, "batch 1")
    first.producer.flush(10)  # what a crash leaves in Kafka, without an end

    second = Sender(place, f"penstock-{place.topic}")
    assert second.next == 1
    second.publish(outgoing(0, 10), 0, "batch 0 again")
    second.publish(outgoing(10, 20), 1, "batch 1")
    assert bodies(kafka.address, place.topic) == [texts(0, 20)]
    assert bodies(kafka.address, place.topic, "read_uncommitted") == [[*texts(0, 15), *texts(10, 20)]]
    with pytest.raises(BadEndpoint, match=r"batch 0 is older .* batch 1 is the newest"):
        second.publish(outgoing(0, 10), 0, "batch 0")
    third = Sender(place, f"penstock-{place.topic}")
    with pytest.raises(BadEndpoint, match="another process writes the batches of this stream"):
        second.publish(outgoing(20, 30), 2, "batch 2")
    assert third.next == 2
    for sender in (first, second, third):
        sender.close()


@pytest.mark.parametrize("delivery", [EXACTLY_ONCE, AT_LEAST_ONCE])
def test_staged_files_are_sent(kafka: Broker, tmp_path: Path, delivery: str) -> None:
    end = KafkaTopic(new_topic(kafka.address, 2), servers=kafka.address, key="car")
    to = target(end, delivery)
    files = [staged(tmp_path, to, BODIES[:50], 0), staged(tmp_path, to, BODIES[50:], 1)]
    for _ in range(2):
        sink.send(files, to, "shop-12345678-000000000")
    found = bodies(kafka.address, end.topic)
    times = 1 if delivery == EXACTLY_ONCE else 2
    assert sorted(body for part in found for body in part) == sorted(BODIES * times)
    for car in (b'"A"', b'"B"', b'"C"'):
        assert [part for part in ([body for body in part if car in body] for part in found) if part] == [
            [body for body in BODIES if car in body] * times
        ]


def test_order_is_kept_where_it_is_promised(kafka: Broker, tmp_path: Path) -> None:
    end = KafkaTopic(new_topic(kafka.address, 3), servers=kafka.address)
    to = target(end, IN_ORDER)
    files = [staged(tmp_path, to, BODIES[:50], 0), staged(tmp_path, to, BODIES[50:], 1)]
    sink.send(files, to, "shop-12345678-000000000")
    assert bodies(kafka.address, end.topic) == [BODIES, [], []]


def test_files_that_are_gone_were_published_or_are_missed(kafka: Broker, tmp_path: Path) -> None:
    end = KafkaTopic(new_topic(kafka.address), servers=kafka.address)
    to = target(end)
    file = staged(tmp_path, to, BODIES)
    sink.send([file], to, "shop-12345678-000000007")
    Path(file.path).unlink()
    sink.send([file], to, "shop-12345678-000000007")
    assert bodies(kafka.address, end.topic) == [BODIES]
    with pytest.raises(BadEndpoint, match=r"batch shop-12345678-8 was computed .* is gone"):
        sink.send([file], to, "shop-12345678-000000008")


def test_keys_go_where_other_producers_send_them(kafka: Broker) -> None:
    place = Place(new_topic(kafka.address, 5), kafka.address)
    sender = Sender(place)
    sender.send([Outgoing(b"x", b"key-%d" % number, [("from", b"here")]) for number in range(40)])
    found = messages(kafka.address, place.topic)
    # What Kafka's own client for Java computes: murmur2 of the key, without its sign, modulo the partitions.
    assert {message.key(): number for number, part in enumerate(found) for message in part} == {
        b"key-%d" % number: (murmur2(b"key-%d" % number) & 0x7FFFFFFF) % 5 for number in range(40)
    }
    assert found[0][0].headers() == [("from", b"here")]


def murmur2(data: bytes) -> int:
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * factor & mask
        value = (value * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def test_topics_are_made_and_checked(kafka: Broker) -> None:
    name = f"{new_topic(kafka.address)}-made"
    topic.prepare(Place(name, kafka.address), 3)
    topic.prepare(Place(name, kafka.address), None)
    with pytest.raises(BadEndpoint, match=rf"channel 'paid' writes to kafka {name} .* has 3 partitions, not 2"):
        target(KafkaTopic(name, servers=kafka.address, partitions=2))


def test_a_kafka_that_does_not_answer_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(topic, "ANSWER_SECONDS", 1.0)
    with pytest.raises(BadEndpoint, match=r"Kafka at 127.0.0.1:1 does not tell its topics: .*refused") as caught:
        target(KafkaTopic("orders", servers="127.0.0.1:1"))
    assert "see whether it runs" in str(caught.value)
    with pytest.raises(BadEndpoint, match=r"the Kafka client refuses the settings of topic 'orders': .*no.such.thing"):
        target(KafkaTopic("orders", options={"no.such.thing": "1"}))
