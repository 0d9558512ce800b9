"""Catalogue: finds, lists, makes and deletes the topics of a server, and reads its statistics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.errors import did_you_mean
from penstock.log.client.address import LOCAL, Address
from penstock.log.client.connection import Connection
from penstock.log.closing import Closing
from penstock.log.errors import UnknownTopic
from penstock.log.records import Ends, Topic
from penstock.log.wire import requests
from penstock.log.wire.errors import error_of
from penstock.log.wire.requests import TopicList

_AT_ONCE = 256


def listed(reply: object) -> list[Topic]:
    """The topics of an answer."""
    assert isinstance(reply, TopicList)
    identities = reply.identities or [""] * len(reply.topics)  # servers of earlier versions know none
    return [Topic(name, count, one) for (name, count), one in zip(reply.topics.items(), identities, strict=True)]


def named(reply: object, name: str) -> Topic:
    """The topic with this name in an answer to the question for it."""
    found = {topic.name: topic for topic in listed(reply)}
    if name not in found:
        fix = did_you_mean(name, found) if found else "create it first; there are none yet"
        raise UnknownTopic(f"no topic {name!r}", None, fix)
    return found[name]


class Catalogue(Closing):
    """Not for several threads at once.

    with Catalogue() as catalogue:
        catalogue.create("orders", partitions=4)
        for topic in catalogue.topics():
            print(topic.name, topic.partitions)
        catalogue.delete("orders")
    """

    def __init__(self, server: str | Address = LOCAL, *, token: str = "", tls: bool = False,
                 authority: str | None = None) -> None:  # fmt: skip
        self._connection = Connection(Address.of(server, token, tls, authority))

    def topics(self, after: str = "", most: int | None = None) -> Iterator[Topic]:
        """All topics in the order of their names, or at most `most` of those after a name."""
        while most is None or most > 0:
            reply = self._connection.ask(requests.Topics(after=after, most=most or 0))[0]
            page = listed(reply)
            yield from page
            assert isinstance(reply, TopicList)
            if not page or not reply.more:
                return
            after, most = page[-1].name, None if most is None else most - len(page)

    def topic(self, name: str) -> Topic:
        return named(self._connection.ask(requests.Topics(name))[0], name)

    def create(self, name: str, partitions: int = 1) -> Topic:
        """The topic with this name, made if it is not there."""
        self._connection.ask(requests.Create(name, partitions))
        return self.topic(name)

    def delete(self, topic: str | Topic) -> None:
        """Remove a topic and all its messages, for good. A `Topic` is not mistaken for a new one of its name."""
        name, identity = (topic.name, topic.identity) if isinstance(topic, Topic) else (topic, "")
        self._connection.ask(requests.Delete(name, identity))

    def ends(self, places: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int, Ends]]:
        """Where partitions begin and end, asked for many at a time."""
        waiting: deque[tuple[int, str, int]] = deque()
        for topic, partition in places:
            waiting.append((self._connection.send(requests.AskEnds(topic, partition)), topic, partition))
            if len(waiting) >= _AT_ONCE:
                yield from self._answers(waiting)
        yield from self._answers(waiting)

    def _answers(self, waiting: deque[tuple[int, str, int]]) -> Sequence[tuple[str, int, Ends]]:
        answers: dict[int, Any] = {}
        while len(answers) < len(waiting):
            received = self._connection.receive()
            assert received is not None
            answers[received[0]] = received[1]
        found = []
        for number, topic, partition in waiting:
            reply = answers[number]
            if isinstance(reply, requests.Refused):
                raise error_of(reply.number, reply.what, reply.fix)
            found.append((topic, partition, Ends(reply.first, reply.next, reply.durable)))
        waiting.clear()
        return found

    def statistics(self, after: tuple[str, int] | None = None, most: int | None = None) -> dict[str, Any]:
        """All numbers of the server and of every partition, or of so many behind one."""
        values: dict[str, Any] = {}
        partitions: list[Any] = []
        while True:
            left = 0 if most is None else most - len(partitions)
            reply = self._connection.ask(requests.AskStatistics(after, left))[0]
            assert isinstance(reply, requests.StatisticsAre)
            values, after = values or reply.values, reply.next
            partitions += reply.values["partitions"]
            if after is None or (most is not None and len(partitions) >= most):
                return values | {"partitions": partitions}

    def close(self) -> None:
        self._connection.close()
