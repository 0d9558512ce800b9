"""Consumer: messages from the log, in order within each partition."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.log.client.address import LOCAL, Address
from penstock.log.client.catalogue import named
from penstock.log.client.connection import Connection
from penstock.log.client.cursors import FIRST, NEXT, Cursor, Message, Messages, Place, Reading, chosen
from penstock.log.closing import Closing
from penstock.log.records import Topic
from penstock.log.wire import requests
from penstock.log.wire.errors import RETRIED, NoServer, TooMany, error_of
from penstock.log.wire.requests import Refused

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class Consumer(Closing):
    """Reads partitions of topics from a place on, and goes on as messages arrive.

    With a `group`, it begins where that group has committed, else at `start`. Which consumer of a group reads which
    partitions is for you to say, with `partitions`. Not for several threads at once.

    with Consumer("orders", group="billing") as consumer:
        for message in consumer:
            consumer.commit()
    """

    def __init__(self, *topics: str, server: str | Address = LOCAL, group: str | None = None,
                 partitions: Mapping[str, list[int]] | list[int] | None = None, start: Place = FIRST, token: str = "",
                 tls: bool = False, authority: str | None = None, **reading: Any) -> None:  # fmt: skip
        self._address = Address.of(server, token, tls, authority)
        self._group = group
        self._reading = Reading(**reading)
        self._connection = Connection(self._address)
        self._asked: dict[int, Cursor] = {}
        self._waiting: deque[Messages] = deque()
        try:
            self.cursors: dict[tuple[str, int], Cursor] = {}
            for name in topics:
                topic = named(self._connection.ask(requests.Topics(name))[0], name)
                for number in chosen(topic, partitions):
                    self.cursors[name, number] = self._cursor(topic, number, start)
        except BaseException:
            self.close()
            raise

    def _cursor(self, topic: Topic, partition: int, start: Place) -> Cursor:
        place = topic.name, partition, topic.identity
        committed = None
        if self._group is not None:
            reply = self._connection.ask(requests.AskCommitted(self._group, *place))[0]
            assert isinstance(reply, requests.OffsetIs)
            committed = reply.offset
        if committed is None and isinstance(start, str):
            ends = self._connection.ask(requests.AskEnds(*place))[0]
            assert isinstance(ends, requests.EndsAre)
            offset = ends.next if start == NEXT else ends.first
        else:
            offset = committed if committed is not None else int(start)
        return Cursor(topic.name, partition, offset, offset, committed, topic.identity)

    # ---- reading

    def poll(self, timeout: float | None = None) -> list[Messages]:
        """The batches of the next answer: empty if nothing arrives in time."""
        found = self._next(timeout)
        for batch in found:
            self._finish(batch)
        return found

    def batches(self, timeout: float | None = None) -> Iterator[Messages]:
        """Batches as they arrive; ends when none does for `timeout` seconds."""
        while found := self._next(timeout):
            self._waiting.extendleft(reversed(found[1:]))
            self._finish(found[0])
            yield found[0]

    def messages(self, timeout: float | None = None) -> Iterator[Message]:
        """Messages one by one; ends when none arrives for `timeout` seconds. Whoever stops can go on later."""
        while found := self._next(timeout):
            self._waiting.extendleft(reversed(found[1:]))
            batch, count = found[0], 0
            cursor = self.cursors.get((batch.topic, batch.partition))
            try:
                for message in batch:
                    count += 1
                    if count == len(batch):
                        self._finish(batch)
                    elif cursor is not None:
                        cursor.handed = message.offset + 1
                    yield message
            finally:
                if count < len(batch):
                    self._waiting.appendleft(batch.after(count))

    def __iter__(self) -> Iterator[Message]:
        return self.messages()

    def _finish(self, batch: Messages) -> None:
        cursor = self.cursors.get((batch.topic, batch.partition))
        if cursor is not None:
            cursor.finish(batch)

    def _next(self, timeout: float | None) -> list[Messages]:
        if self._waiting:
            return [self._waiting.popleft()]
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            try:
                self._ask()
                received = self._connection.receive(min(left, 1.0) if left is not None else 1.0)
            except NoServer as error:
                self._reconnect(error)
                continue
            if received is None:
                if left == 0.0:
                    return []
                continue
            found = self._taken(*received)
            if found:
                return found

    def _taken(self, number: int, reply: requests.Reply, bulk: memoryview) -> list[Messages]:
        cursor = self._asked.pop(number, None)
        if isinstance(reply, Refused):
            error = error_of(reply.number, reply.what, reply.fix)
            if reply.number in RETRIED:
                self._reconnect(NoServer(error.what, None, error.fix))
                return []
            raise error
        if cursor is None or not isinstance(reply, requests.Pulled):
            return []
        found = cursor.take(reply, bulk)
        if found:
            self._pull(cursor)  # the next batch is on its way while this one is worked on
        return found

    def _ask(self) -> None:
        """Keep one unanswered pull for every partition."""
        if len(self._asked) < len(self.cursors):
            asked = {id(cursor) for cursor in self._asked.values()}
            for cursor in self.cursors.values():
                if id(cursor) not in asked:
                    self._pull(cursor)

    def _pull(self, cursor: Cursor) -> None:
        self._asked[self._connection.send(cursor.pull(self._reading))] = cursor

    def _reconnect(self, error: NoServer | TooMany) -> None:
        end, pause = time.monotonic() + self._reading.retry_for, _FIRST_PAUSE
        self._connection.close()
        self._asked.clear()
        while True:
            if time.monotonic() > end:
                raise error
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                self._connection = Connection(self._address)
                return
            except (NoServer, TooMany) as again:
                error = again

    # ---- positions

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        """The offset after the last message that was handed out, for every partition."""
        return {place: cursor.position for place, cursor in self.cursors.items()}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on from there."""
        cursor = self.cursors[topic, partition]
        cursor.seek(offset)
        self._waiting = deque(batch for batch in self._waiting if (batch.topic, batch.partition) != (topic, partition))
        self._asked = {number: asked for number, asked in self._asked.items() if asked is not cursor}

    def first(self, topic: str, partition: int) -> int:
        """The first offset that is there."""
        return self._ends(topic, partition).first

    def end(self, topic: str, partition: int) -> int:
        """The offset after the last message that is there."""
        return self._ends(topic, partition).next

    def _ends(self, topic: str, partition: int) -> requests.EndsAre:
        reply = self._tell(requests.AskEnds(topic, partition))
        assert isinstance(reply, requests.EndsAre)
        return reply

    def stop(self, topic: str, partition: int) -> None:
        """Read no more of a partition. What has arrived of it is still handed out."""
        cursor = self.cursors.pop((topic, partition))
        self._asked = {number: asked for number, asked in self._asked.items() if asked is not cursor}

    def left(self) -> list[Messages]:
        """Batches that have arrived and were not handed out yet."""
        found, self._waiting = list(self._waiting), deque()
        return found

    def commit(self) -> None:
        """Note for the group how far it is: everything that was handed out so far is done."""
        if self._group is None:
            raise ValueError("only a consumer of a group commits")
        for cursor in self.cursors.values():
            position = cursor.position
            if position != cursor.committed:
                self._tell(requests.Commit(self._group, cursor.topic, cursor.partition, position, cursor.identity))
                cursor.committed = position

    def _tell(self, request: requests.Commit | requests.AskEnds) -> requests.Reply:
        """Send a request and wait for its answer; pulls that are answered meanwhile are kept."""
        while True:
            try:
                number = self._connection.send(request)
                while True:
                    received = self._connection.receive()
                    assert received is not None
                    if received[0] == number:
                        break
                    self._waiting.extend(self._taken(*received))
                break
            except NoServer as error:
                self._reconnect(error)
        if isinstance(received[1], Refused):
            raise error_of(received[1].number, received[1].what, received[1].fix)
        return received[1]

    def close(self) -> None:
        self._connection.close()
