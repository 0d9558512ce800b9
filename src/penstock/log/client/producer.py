"""Producer and AsyncProducer: send messages to the log in batches, and have each stored once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from penstock.log.client.address import LOCAL, Address
from penstock.log.client.batching import Sent
from penstock.log.client.engine import Engine, Sending
from penstock.log.closing import Closing
from penstock.log.wire.errors import TooMany

_Result = TypeVar("_Result")


class Producer(Closing):
    """Sends messages from any number of threads.

    `send` returns at once; it waits only while `buffer_bytes` of messages have no answer yet. After a lost connection
    everything without an answer is sent again, and stored once. `with` closes it, which waits for all answers.

    with Producer(create=1) as producer:
        producer.send("orders", {"id": 1}, key="1").result()
    """

    def __init__(self, server: str | Address = LOCAL, *, token: str = "", tls: bool = False,
                 authority: str | None = None, **sending: Any) -> None:  # fmt: skip
        address = Address.of(server, token, tls, authority)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock-producer", daemon=True)
        self._thread.start()
        self._is_closed = False
        try:
            self._engine: Engine = self._run(_made(address, Sending(**sending)))
            self._run(self._engine.start())
        except BaseException:
            self._end_loop()
            raise

    def send(self, topic: str, value: Any, *, key: bytes | str | None = None, headers: Mapping[str, str] | None = None,
             partition: int | None = None, time_micros: int | None = None) -> Sent:  # fmt: skip
        """One message. Messages of one key go to one partition, in order; without a key the partitions take turns."""
        engine = self._ready(topic)
        return engine.add(topic, value, key, headers, partition, time_micros)

    def send_many(self, topic: str, values: Sequence[Any] | pa.Array, *, partition: int | None = None) -> Sent:
        """Many messages as one batch: an Arrow array is not touched message by message."""
        engine = self._ready(topic)
        return engine.add_many(topic, values, partition)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent so far has an answer; raises the first failure."""
        waiting = self._engine.unanswered()
        done, late = concurrent.futures.wait(waiting, timeout)
        if late:
            raise TimeoutError(f"{len(late)} batches have no answer after {timeout} seconds")
        for future in done:
            future.result()

    def close(self, timeout: float | None = None) -> None:
        """Wait for all answers, then end. Messages that failed say so in their own results."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            concurrent.futures.wait(self._engine.unanswered(), timeout)
        finally:
            self._run(self._engine.close())
            self._end_loop()

    def _ready(self, topic: str) -> Engine:
        engine = self._engine
        if topic not in engine.partitions:
            self._run(engine.topic(topic))
        if engine.is_full:
            with engine.lock:
                if not engine.lock.wait_for(lambda: not engine.is_full, engine.sending.retry_for):
                    raise TooMany(f"{engine.buffered:,} bytes of messages have no answer", None,
                                  "send more slowly, or give a larger buffer_bytes")  # fmt: skip
        return engine

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(address: Address, sending: Sending) -> Engine:
    return Engine(address, sending, asyncio.get_running_loop())


class AsyncProducer:
    """The same in an event loop: `await send(...)` waits for room, `await` of what it returns for the answer.

    async with AsyncProducer(create=1) as producer:
        sent = await producer.send("orders", {"id": 1})
        placed = await sent
    """

    def __init__(self, server: str | Address = LOCAL, *, token: str = "", tls: bool = False,
                 authority: str | None = None, **sending: Any) -> None:  # fmt: skip
        self._address = Address.of(server, token, tls, authority)
        self._sending = Sending(**sending)
        self._engine: Engine | None = None

    async def send(self, topic: str, value: Any, *, key: bytes | str | None = None,
                   headers: Mapping[str, str] | None = None, partition: int | None = None,
                   time_micros: int | None = None) -> Sent:  # fmt: skip
        engine = await self._ready(topic)
        return engine.add(topic, value, key, headers, partition, time_micros)

    async def send_many(self, topic: str, values: Sequence[Any] | pa.Array, *, partition: int | None = None) -> Sent:
        engine = await self._ready(topic)
        return engine.add_many(topic, values, partition)

    async def flush(self) -> None:
        engine = await self._started()
        results = await asyncio.gather(*map(asyncio.wrap_future, engine.unanswered()), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        if self._engine is not None:
            waiting = map(asyncio.wrap_future, self._engine.unanswered())
            await asyncio.gather(*waiting, return_exceptions=True)
            await self._engine.close()

    async def _started(self) -> Engine:
        if self._engine is None:
            engine = Engine(self._address, self._sending, asyncio.get_running_loop())
            await engine.start()
            self._engine = engine
        return self._engine

    async def _ready(self, topic: str) -> Engine:
        engine = await self._started()
        if topic not in engine.partitions:
            await engine.topic(topic)
        while engine.is_full and engine.failed is None:
            engine.has_room.clear()
            await engine.has_room.wait()
        return engine

    async def __aenter__(self) -> AsyncProducer:
        await self._started()
        return self

    async def __aexit__(self, *failed: object) -> None:
        await self.close()
