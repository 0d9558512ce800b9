"""AsyncConsumer: messages from the log in an event loop."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from penstock.log.client.address import LOCAL, Address
from penstock.log.client.aioconnection import AioConnection, Answer
from penstock.log.client.catalogue import named
from penstock.log.client.cursors import FIRST, NEXT, Cursor, Message, Messages, Place, Reading, chosen
from penstock.log.records import Topic
from penstock.log.wire import requests
from penstock.log.wire.errors import RETRIED, NoServer, TooMany, error_of

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class AsyncConsumer:
    """As `Consumer`, in an event loop.

    async with AsyncConsumer("orders", group="billing") as consumer:
        async for message in consumer:
            await consumer.commit()
    """

    def __init__(self, *topics: str, server: str | Address = LOCAL, group: str | None = None,
                 partitions: Mapping[str, list[int]] | list[int] | None = None, start: Place = FIRST, token: str = "",
                 tls: bool = False, authority: str | None = None, **reading: Any) -> None:  # fmt: skip
        self._address = Address.of(server, token, tls, authority)
        self._topics, self._group, self._partitions, self._start = topics, group, partitions, start
        self._reading = Reading(**reading)
        self._connection: AioConnection | None = None
        self._asked: dict[Answer, Cursor] = {}
        self._waiting: deque[Messages] = deque()
        self.cursors: dict[tuple[str, int], Cursor] = {}

    async def open(self) -> None:
        self._connection = connection = await AioConnection.open(self._address)
        for name in self._topics:
            topic = named((await connection.ask(requests.Topics(name)))[0], name)
            for number in chosen(topic, self._partitions):
                self.cursors[name, number] = await self._cursor(connection, topic, number)

    async def _cursor(self, connection: AioConnection, topic: Topic, partition: int) -> Cursor:
        place = topic.name, partition, topic.identity
        committed = None
        if self._group is not None:
            reply, _ = await connection.ask(requests.AskCommitted(self._group, *place))
            assert isinstance(reply, requests.OffsetIs)
            committed = reply.offset
        if committed is None and isinstance(self._start, str):
            ends, _ = await connection.ask(requests.AskEnds(*place))
            assert isinstance(ends, requests.EndsAre)
            offset = ends.next if self._start == NEXT else ends.first
        else:
            offset = committed if committed is not None else int(self._start)
        return Cursor(topic.name, partition, offset, offset, committed, topic.identity)

    # ---- reading

    async def batches(self, timeout: float | None = None) -> AsyncIterator[Messages]:
        """Batches as they arrive; ends when none does for `timeout` seconds."""
        while (batch := await self._next(timeout)) is not None:
            self.cursors[batch.topic, batch.partition].finish(batch)
            yield batch

    async def messages(self, timeout: float | None = None) -> AsyncIterator[Message]:
        """Messages one by one; ends when none arrives for `timeout` seconds. Whoever stops can go on later."""
        while (batch := await self._next(timeout)) is not None:
            # What is handed out is taken from the front at once: a generator that is left in the middle may not be
            # closed before the next one begins.
            self._waiting.appendleft(batch)
            for count, message in enumerate(batch, 1):
                cursor = self.cursors[batch.topic, batch.partition]
                self._waiting.popleft()
                if count < len(batch):
                    self._waiting.appendleft(batch.after(count))
                    cursor.handed = message.offset + 1
                else:
                    cursor.finish(batch)
                yield message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self.messages()

    async def _next(self, timeout: float | None) -> Messages | None:
        end = None if timeout is None else time.monotonic() + timeout
        while not self._waiting:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            connection = await self._connected()
            self._ask(connection)
            done, _ = await asyncio.wait(self._asked, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done and left == 0.0:
                return None
            for answer in done:
                await self._take(answer)
        return self._waiting.popleft()

    async def _take(self, answer: Answer) -> None:
        cursor = self._asked.pop(answer, None)
        try:
            reply, bulk = answer.result()
        except NoServer:
            return
        if isinstance(reply, requests.Refused):
            if reply.number not in RETRIED:
                raise error_of(reply.number, reply.what, reply.fix)
            if self._connection is not None:
                self._connection.close()
        elif cursor is not None and isinstance(reply, requests.Pulled):
            self._waiting.extend(cursor.take(reply, bulk))
            if self._connection is not None and self._connection.is_open:
                self._ask(self._connection)

    def _ask(self, connection: AioConnection) -> None:
        asked = {id(cursor) for cursor in self._asked.values()}
        for cursor in self.cursors.values():
            if id(cursor) not in asked:
                self._asked[connection.send(cursor.pull(self._reading))] = cursor

    async def _connected(self) -> AioConnection:
        if self._connection is None:
            await self.open()
        assert self._connection is not None
        if self._connection.is_open:
            return self._connection
        end, pause = time.monotonic() + self._reading.retry_for, _FIRST_PAUSE
        self._asked.clear()
        while True:
            try:
                self._connection = await AioConnection.open(self._address)
                return self._connection
            except (NoServer, TooMany):
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, _LONGEST_PAUSE)

    # ---- positions

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        return {place: cursor.position for place, cursor in self.cursors.items()}

    async def commit(self) -> None:
        """Note for the group how far it is: everything that was handed out so far is done."""
        if self._group is None:
            raise ValueError("only a consumer of a group commits")
        connection = await self._connected()
        for cursor in self.cursors.values():
            position = cursor.position
            if position != cursor.committed:
                place = cursor.topic, cursor.partition, position, cursor.identity
                await connection.ask(requests.Commit(self._group, *place))
                cursor.committed = position

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.end()

    async def __aenter__(self) -> AsyncConsumer:
        await self.open()
        return self

    async def __aexit__(self, *failed: object) -> None:
        await self.close()
