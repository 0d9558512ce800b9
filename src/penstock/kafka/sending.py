"""Send the messages of a batch in one transaction, with the number of the batch as the offset of a group.

The name of the transactions is also the name of the group. Whoever begins with a name ends the transaction that another
process has begun, so the number that is read after that is the last word: the batch is there whole, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from penstock.confluent import KafkaError, KafkaException, TopicPartition, said
from penstock.errors import BadEndpoint
from penstock.kafka.client import ANSWER_SECONDS, SEND_SECONDS, Place, Trouble, consumer, producer
from penstock.kafka.topic import patiently

_POLL_EVERY = 1000
_ANY = -1
Headers = list[tuple[str, bytes]]


class Outgoing(NamedTuple):
    value: bytes
    key: bytes | None = None
    headers: Headers | None = None
    partition: int = _ANY


class Sender:
    """Without a name there are no transactions: what was sent before a failure stays, and is sent again."""

    def __init__(self, place: Place, name: str | None = None) -> None:
        self.place, self.trouble = place, Trouble()
        self.producer = producer(place, self.trouble, name)
        self.failed: Any = None
        self.group = consumer(place, Trouble(), name) if name is not None else None
        if self.group is not None:
            patiently(self.producer.init_transactions, place, "begin transactions", self.trouble)
            self.next = self._committed()

    def send(self, messages: Iterable[Outgoing]) -> None:
        """They are all there when this ends."""
        self._produce(messages)
        left = self.producer.flush(SEND_SECONDS + ANSWER_SECONDS)
        if left or self.failed is not None:
            raise self.place.failed(f"take messages for topic {self.place.topic!r}", self.failed or self.trouble.last)

    def publish(self, messages: Iterable[Outgoing], number: int, note: str) -> None:
        """All messages of batch `number`, or none; nothing is done if they are there."""
        if number == self.next - 1:
            return
        if number < self.next:
            raise BadEndpoint(f"batch {number} is older than what topic {self.place.topic!r} has: batch {self.next - 1}"
                              " is the newest", fix="is the checkpoint a copy, or used by two processes?")  # fmt: skip
        try:
            self.producer.begin_transaction()
            self._produce(messages)
            assert self.group is not None
            done = TopicPartition(self.place.topic, 0, number + 1, note)
            self.producer.send_offsets_to_transaction([done], self.group.consumer_group_metadata(), ANSWER_SECONDS)
            self._commit()
        except KafkaException as error:
            raise self._refused(error) from None
        self.next = number + 1

    def _committed(self) -> int:
        """The number of the next batch; 0 if Kafka knows none."""
        group, at = self.group, [TopicPartition(self.place.topic, 0)]
        assert group is not None
        known = patiently(lambda seconds: group.committed(at, seconds), self.place,
                          "tell which batch it has", self.trouble)  # fmt: skip
        return max(int(known[0].offset), 0)

    def _produce(self, messages: Iterable[Outgoing]) -> None:
        topic, produce, heard = self.place.topic, self.producer.produce, self._heard
        for number, one in enumerate(messages):
            while True:
                try:
                    produce(topic, one.value, one.key, one.partition, headers=one.headers, on_delivery=heard)
                    break
                except BufferError:
                    self.producer.poll(0.1)
                except KafkaException as error:
                    raise self._refused(error) from None
            if number % _POLL_EVERY == 0:
                self.producer.poll(0)
            if self.failed is not None:
                return

    def _heard(self, error: Any, _: Any) -> None:
        if error is not None and self.failed is None:
            self.failed = error

    def _commit(self) -> None:
        deadline = time.monotonic() + SEND_SECONDS + ANSWER_SECONDS
        while True:
            try:
                self.producer.commit_transaction(max(deadline - time.monotonic(), 0.1))
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def _refused(self, error: KafkaException) -> BadEndpoint:
        what = error.args[0]
        if what.code() == KafkaError._FENCED:
            return BadEndpoint(f"another process writes the batches of this stream to topic {self.place.topic!r}",
                               fix="run it once: two processes must not use one checkpoint")  # fmt: skip
        if what.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            fix = "options={'message.max.bytes': ...}, and max.message.bytes of the topic"
            return BadEndpoint(f"a message is larger than the client sends: {said(what)}", fix=fix)
        why = self.failed or (self.trouble.last if what.code() == KafkaError._TIMED_OUT else what)
        return self.place.failed(f"take messages for topic {self.place.topic!r}", why)

    def close(self) -> None:
        """What was begun and not committed is given up."""
        with suppress(KafkaException):
            self.producer.purge()
            self.producer.flush(0)
        if self.group is not None:
            with suppress(KafkaException):
                self.producer.abort_transaction(1.0)
            self.group.close()
