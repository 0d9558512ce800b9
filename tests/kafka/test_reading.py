"""Ranges of offsets are read whole, over the gaps that transactions leave. No Spark here."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.endpoints.kafka import EARLIEST, LATEST
from penstock.errors import BadEndpoint
from penstock.kafka.client import Place
from penstock.kafka.reading import Reader
from penstock.kafka.sending import Outgoing, Sender
from penstock.kafka.topic import offsets, range_of
from penstock.log.records import Ends
from tests.broker import Broker
from tests.kafka.topics import fill, new_topic


def test_every_range_is_read_whole(kafka: Broker) -> None:
    place = Place(new_topic(kafka.address), kafka.address)
    sender = Sender(place, f"penstock-{place.topic}")
    for batch in range(3):  # each ends with a mark of Kafka's own, which has an offset and is no message
        sender.publish([Outgoing(b"%d %d" % (batch, number)) for number in range(3)], batch, "")
    sender.close()
    fill(kafka.address, place.topic, [b"last"])
    there = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12]
    reader = Reader(place)
    assert reader.ends() == {0: Ends(0, 13, 13)}
    for first in range(0, 14, 3):
        for stop in range(first, 14):
            found = [message.offset() for some in reader.read(0, first, stop, 2) for message in some]
            assert found == [offset for offset in there if first <= offset < stop]
    reader.close()


def test_messages_that_were_removed_are_an_error(kafka: Broker) -> None:
    place = Place(new_topic(kafka.address), kafka.address)
    fill(kafka.address, place.topic, [b"1", b"2", b"3"])
    admin = AdminClient({"bootstrap.servers": kafka.address})
    next(iter(admin.delete_records([TopicPartition(place.topic, 0, 2)]).values())).result()
    reader = Reader(place)
    assert reader.ends() == {0: Ends(2, 3, 3)}
    with pytest.raises(BadEndpoint, match=r"partition 0 .* were removed before they were read"):
        list(reader.read(0, 0, 3, 10))
    assert [message.value() for some in reader.read(0, 2, 3, 10) for message in some] == [b"3"]
    reader.close()


def test_where_a_batch_begins_and_ends() -> None:
    place, known = Place("orders", "nowhere"), {0: Ends(5, 20, 20), 1: Ends(0, 10, 10)}
    assert range_of(EARLIEST, LATEST, known, place) == {0: (5, 20), 1: (0, 10)}
    assert range_of(((0, 7),), ((1, 3),), known, place) == {0: (7, 20), 1: (0, 3)}
    assert offsets(LATEST, known, EARLIEST, place) == {0: 20, 1: 10}
    with pytest.raises(BadEndpoint, match="has no partition 2"):
        offsets(((2, 0),), known, EARLIEST, place)
    with pytest.raises(BadEndpoint, match="partition 0 of topic 'orders' has no offset 4"):
        offsets(((0, 4),), known, EARLIEST, place)
    with pytest.raises(BadEndpoint, match="is read from 8 to 3"):
        range_of(((1, 8),), ((1, 3),), known, place)
