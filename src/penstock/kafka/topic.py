"""Find a topic in Kafka, its partitions and their ends; or make it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from penstock.confluent import CHOOSING, GONE, KafkaError, KafkaException, NewTopic, TopicPartition
from penstock.endpoints.kafka import EARLIEST, LATEST, Offsets
from penstock.errors import BadEndpoint, did_you_mean
from penstock.kafka.client import ANSWER_SECONDS, Place, Trouble, admin
from penstock.log.records import Ends

_PAUSE = 0.1
_T = TypeVar("_T")


def partitions(client: Any, place: Place, trouble: Trouble) -> int | None:
    """How many partitions the topic has; None if it is not there."""
    found = patiently(lambda seconds: client.list_topics(place.topic, seconds), place, "tell its topics", trouble)
    known = found.topics[place.topic]
    if known.error is not None and known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return None
    if known.error is not None:
        raise place.failed(f"show topic {place.topic!r}", known.error)
    return len(known.partitions)


def ends(consumer: Any, place: Place, trouble: Trouble) -> dict[int, Ends]:
    """The first offset of every partition, and the one after the last committed message."""
    count = partitions(consumer, place, trouble)
    if count is None:
        there = sorted(name for name in consumer.list_topics(timeout=ANSWER_SECONDS).topics if name[:2] != "__")
        raise BadEndpoint(f"Kafka at {place.servers} has no topic {place.topic!r}",
                          fix=did_you_mean(place.topic, there))  # fmt: skip
    found = {}
    for number in range(count):
        at = TopicPartition(place.topic, number)
        first, stop = patiently(lambda seconds, at=at: consumer.get_watermark_offsets(at, seconds),  # type: ignore[misc]
                                place, f"tell the offsets of topic {place.topic!r}", trouble)  # fmt: skip
        found[number] = Ends(first, stop, stop)
    return found


def offsets(asked: Offsets, ends: Mapping[int, Ends], usual: str, place: Place) -> dict[int, int]:
    """Where `start` or `end` is in every partition; partitions that are not named are read from or to the `usual`."""
    given = {} if isinstance(asked, str) else dict(asked)
    word = asked if isinstance(asked, str) else usual
    for number, offset in given.items():
        if number not in ends:
            raise BadEndpoint(f"topic {place.topic!r} has no partition {number}",
                              fix=f"it has {len(ends)}, counted from 0")  # fmt: skip
        if not ends[number].first <= offset <= ends[number].next:
            raise BadEndpoint(f"partition {number} of topic {place.topic!r} has no offset {offset}",
                              fix=f"it has those from {ends[number].first} to before {ends[number].next}")  # fmt: skip
    return {number: given.get(number, one.first if word == EARLIEST else one.next) for number, one in ends.items()}


def range_of(start: Offsets, end: Offsets, known: Mapping[int, Ends], place: Place) -> dict[int, tuple[int, int]]:
    """What a batch reads."""
    first, stop = offsets(start, known, EARLIEST, place), offsets(end, known, LATEST, place)
    for number in known:
        if stop[number] < first[number]:
            raise BadEndpoint(f"partition {number} of topic {place.topic!r} is read from {first[number]} to"
                              f" {stop[number]}", fix="the end comes after the start")  # fmt: skip
    return {number: (first[number], stop[number]) for number in known}


def prepare(place: Place, wanted: int | None) -> None:
    """Make the topic if it is not there; one with another number of partitions than was asked for is refused."""
    trouble = Trouble()
    client = admin(place, trouble)
    count = partitions(client, place, trouble)
    if count is None:
        _create(client, place, wanted or 1, trouble)
    elif wanted not in (None, count):
        raise BadEndpoint(f"topic {place.topic!r} has {count} partitions, not {wanted}",
                          fix=f"write partitions={count}, or leave it out")  # fmt: skip


def _create(client: Any, place: Place, count: int, trouble: Trouble) -> None:
    made = client.create_topics([NewTopic(place.topic, count, -1)], request_timeout=ANSWER_SECONDS)
    try:
        made[place.topic].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise place.failed(f"make topic {place.topic!r}", error) from None
    deadline = time.monotonic() + ANSWER_SECONDS
    while partitions(client, place, trouble) is None:  # it is known a little later
        if time.monotonic() > deadline:
            raise place.failed(f"show topic {place.topic!r}, which was just made", trouble.last)
        time.sleep(_PAUSE)


def patiently(ask: Callable[[float], _T], place: Place, doing: str, trouble: Trouble) -> _T:
    """Ask again while Kafka is busy or has just begun, for as long as an answer is waited for."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return ask(max(deadline - time.monotonic(), _PAUSE))
        except KafkaException as error:
            what = error.args[0]
            if not _passes(what) or time.monotonic() + _PAUSE > deadline:
                raise place.failed(doing, trouble.last if what.code() in GONE else error) from None
        time.sleep(_PAUSE)


_STARTING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    *CHOOSING,
)


def _passes(what: Any) -> bool:
    with suppress(AttributeError):
        return bool(what.code() in _STARTING or what.retriable())
    return False
