"""Read the messages of a range of offsets, some thousand at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from penstock.confluent import OUT_OF_RANGE, KafkaError, TopicPartition
from penstock.errors import BadEndpoint
from penstock.kafka import topic
from penstock.kafka.client import ANSWER_SECONDS, Place, Trouble, consumer
from penstock.log.records import Ends

_WAIT = 0.1


class Reader:
    """Reads one range at a time."""

    def __init__(self, place: Place) -> None:
        self.place, self.trouble = place, Trouble()
        self.consumer = consumer(place, self.trouble)

    def ends(self) -> dict[int, Ends]:
        return topic.ends(self.consumer, self.place, self.trouble)

    def read(self, partition: int, first: int, stop: int, most: int) -> Iterator[list[Any]]:
        """The messages that are there from offset `first` to before `stop`.

        Not every offset has one: those of transactions, and of what was compacted away, have none. So the end is
        known by a message behind it, or by the end of the partition.
        """
        if first >= stop:
            return
        self.consumer.assign([TopicPartition(self.place.topic, partition, first)])
        try:
            deadline, reached = time.monotonic() + ANSWER_SECONDS, False
            while not reached:
                found = []
                # It waits for as many as it is asked for: not for more than there can be.
                for message in self.consumer.consume(min(most, stop - first), _WAIT):
                    if message.error() is not None:
                        self._check(message.error(), partition)
                        reached = reached or message.offset() >= stop
                    elif message.offset() >= stop:
                        reached = True
                    else:
                        found.append(message)
                        reached = reached or message.offset() == stop - 1
                if found:
                    deadline, first = time.monotonic() + ANSWER_SECONDS, min(found[-1].offset() + 1, stop - 1)
                    yield found
                elif not reached and time.monotonic() > deadline:
                    doing = f"give partition {partition} of topic {self.place.topic!r} up to {stop}"
                    raise self.place.failed(f"{doing} within {ANSWER_SECONDS:g} s", self.trouble.last)
        finally:
            self.consumer.unassign()

    def _check(self, error: Any, partition: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF or error.retriable():
            return
        if error.code() in OUT_OF_RANGE:
            raise removed(self.place, partition)
        raise self.place.failed("answer a reader", error)

    def close(self) -> None:
        self.consumer.close()


def removed(place: Place, partition: int) -> BadEndpoint:
    return BadEndpoint(f"messages of partition {partition} of topic {place.topic!r} were removed before they were read",
                       fix="let Kafka keep them longer, and start with a new checkpoint")  # fmt: skip


@cache
def kept(place: Place) -> Reader:
    """The reader of a process that reads again and again: it is connected."""
    return Reader(place)
