"""The pulls of one connection: they read now, or wait until there is something, and filter it on the server."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import BadExpression
from penstock.log.errors import LogClosed, LogError
from penstock.log.frame import Frame
from penstock.log.levels.stack import STORE
from penstock.log.output import OutputFunction, output_function
from penstock.log.records import Reading
from penstock.log.wire.requests import Output, Pull, Pulled, Said

if TYPE_CHECKING:
    from penstock.log.server.service import Service

Answer: TypeAlias = Callable[[Said | BaseException, list[memoryview]], None]
_EXAMINED_BYTES = 1 << 20
"""A filter looks at so much at least: what it keeps may be little."""
_WHILE = 0.5
"""After so many seconds a filter lets others have their turn, and goes on later."""
_STEPS_AT_ONCE = 20_000_000
_MOST_STEPS = 1_000_000_000
"""For one message, because nothing ends the look at it: about ten seconds."""
_LONGEST_WAIT = 300.0
_DURABLE_SOON = 0.01
_READ_AT_ONCE = 2
STOPPING = LogClosed("the server is stopping", None, "send it again when it is back")


@dataclass(frozen=True, slots=True)
class Found:
    frames: list[Frame]
    next: int
    end: int
    level: int
    examined: int


def function_of(output: Output | None) -> OutputFunction | None:
    if output is None or not (output.where or output.select):
        return None
    return output_function(output.where, output.select, output.schema)


def look(service: Service, request: Pull, offset: int) -> Found:
    """Read once and filter; `next` is behind all messages that were looked at, even if none of them passed."""
    function = function_of(request.output)
    most_bytes = max(1, min(request.most_bytes, service.listening.largest_pull))
    most_messages = request.most_messages if request.most_messages > 0 else None
    ends = service.log.ends(request.topic, request.partition, request.identity)
    end = ends.next
    if request.durable:
        end = min(ends.durable, end)
        if end <= offset <= ends.next:
            return Found([], offset, end, STORE, 0)
        most_messages = min(most_messages or end - offset, end - offset)
    if function is not None:
        most_bytes = max(most_bytes, _EXAMINED_BYTES)
    reading = service.log.read(
        request.topic, request.partition, offset, most_bytes=most_bytes, most_messages=most_messages,
        identity=request.identity,
    )  # fmt: skip
    end = max(end, reading.next)
    if function is not None:
        with service.filtering:
            return filtered(reading, function, end)
    return Found(list(reading.frames), reading.next, end, reading.level, sum(frame.count for frame in reading.frames))


def filtered(reading: Reading, function: OutputFunction, end: int) -> Found:
    """The messages that pass, of as many as can be looked at within half a second."""
    kept: list[Frame] = []
    stop, examined = time.thread_time() + _WHILE, 0
    for frame in reading.frames:
        offset = frame.first
        while offset < frame.next:
            part = frame.within(offset, max(1, _STEPS_AT_ONCE // function.cost))
            if part.bytes * function.cost > _MOST_STEPS and part.count == 1:
                raise too_costly(part)
            if (left := passed(part, function)) is not None:
                kept.append(left)
            examined += part.count
            offset = part.next
            if time.thread_time() > stop:
                return Found(kept, offset, end, reading.level, examined)
    return Found(kept, reading.next, end, reading.level, examined)


def too_costly(frame: Frame) -> BadExpression:
    return BadExpression(f"the patterns of the filter are too large for the message at offset {frame.first}, "
                         f"which has {frame.bytes:,} bytes", None, "repeat less often in them")  # fmt: skip


def passed(frame: Frame, function: OutputFunction) -> Frame | None:
    """The messages of a frame that pass the output function, with their new values."""
    headers = frame.headers if frame.header_column is not None else None
    outcome = function.apply(frame.values, headers)
    mask = np.zeros(frame.count, np.bool_)
    mask[outcome.kept] = True
    if outcome.values is None or not len(outcome.kept):
        return frame.take(mask)
    places = np.full(frame.count, -1, np.int64)
    places[outcome.kept] = np.arange(len(outcome.kept))
    values = outcome.values.take(pa.array(places, mask=places < 0)).fill_null(b"")
    keys = frame.keys if frame.key_column is not None else None
    made = Frame.pack(values, keys=keys, headers=headers, times=frame.times, base=frame.first)
    return made.take(mask)


class Puller:
    """The pulls of one connection. Few of them read at a time, and none while the client does not take its answers."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.polls: set[Poll] = set()
        self.is_blocked = self._is_going = False
        self._parked: deque[Poll] = deque()
        self._reading = 0

    def is_near(self, request: Pull, offset: int) -> bool:
        """Whether a read should not wait for the disk: what is asked for is in memory, or is yet to come.

        It may be wrong, if much is pushed before it is read; then the event loop waits for one read.
        """
        return offset >= self.service.log.held(request.topic, request.partition, request.identity)

    def begin(self, request: Pull, answer: Answer) -> None:
        poll = Poll(self, request, answer)
        self.polls.add(poll)
        poll.step()

    def may_read(self, poll: Poll) -> bool:
        """If not, the poll is asked to go on later."""
        if not self.is_blocked and self._reading < _READ_AT_ONCE:
            self._reading += 1
            return True
        self._parked.append(poll)
        return False

    def has_read(self) -> None:
        self._reading -= 1
        self.go_on()

    def go_on(self) -> None:
        if self._is_going:  # a read in the event loop ends here before it returns
            return
        self._is_going = True
        try:
            while self._parked and not self.is_blocked and self._reading < _READ_AT_ONCE:
                self._parked.popleft().step()
        finally:
            self._is_going = False

    def cancel(self) -> None:
        self._parked.clear()
        for poll in list(self.polls):
            poll.end()

    def stop_waiting(self) -> None:
        for poll in list(self.polls):
            poll.time_out()


class Poll:
    """One pull, until it is answered."""

    def __init__(self, puller: Puller, request: Pull, answer: Answer) -> None:
        self.puller, self.service = puller, puller.service
        self.request, self.answer = request, answer
        self.offset = request.offset
        self.examined = 0
        wait = min(max(request.wait, 0.0), _LONGEST_WAIT)
        self.timer = self.service.loop.call_later(wait, self.time_out) if wait > 0 else None
        self.is_late = wait <= 0
        self.is_reading = self.is_over = False
        self.cancel_watch: Callable[[], None] = lambda: None

    def step(self) -> None:
        if self.is_over or self.is_reading or not self.puller.may_read(self):
            return
        self.is_reading = True
        request = self.request
        has_output = request.output is not None and bool(request.output.where or request.output.select)
        try:
            if has_output or not self.puller.is_near(request, self.offset):
                run = self.service.in_filter if has_output else self.service.in_thread
                run(lambda: look(self.service, request, self.offset)).add_done_callback(self.looked)
                return
            found: Found | BaseException = look(self.service, request, self.offset)
        except Exception as error:
            found = error
        self.has_looked(found)

    def looked(self, answer: asyncio.Future[Found]) -> None:
        if answer.cancelled():
            self.has_looked(STOPPING)
        else:
            error = answer.exception()
            self.has_looked(answer.result() if error is None else error)

    def has_looked(self, found: Found | BaseException) -> None:
        self.is_reading = False
        try:
            if not self.is_over:
                if isinstance(found, Found):
                    self.found(found)
                else:
                    self.finish(found, [])
        except Exception as error:
            if not self.is_over:
                self.finish(error, [])
        finally:
            self.puller.has_read()

    def found(self, found: Found) -> None:
        self.examined += found.examined
        self.offset = found.next
        if found.frames or self.is_late or self.service.is_stopping.is_set():
            self.reply(found)
        elif found.examined:
            self.service.loop.call_soon(self.step)
        else:
            try:
                self.wait()
            except LogError as error:  # the topic was deleted
                self.finish(error, [])

    def wait(self) -> None:
        request = self.request
        self.service.log.ends(request.topic, request.partition, request.identity)  # says if the topic was deleted
        self.cancel_watch = self.service.watch(request.topic, request.partition, self.step)
        ends = self.service.log.ends(request.topic, request.partition, request.identity)
        if request.durable and ends.next > self.offset:
            self.service.loop.call_later(_DURABLE_SOON, self.step)
        elif not request.durable and ends.next > self.offset:  # appended before we watched
            self.cancel_watch()
            self.service.loop.call_soon(self.step)

    def time_out(self) -> None:
        self.is_late = True
        if not self.is_reading and not self.is_over:
            self.cancel_watch()
            self.step()

    def reply(self, found: Found) -> None:
        counters = self.service.counters
        bulk = [frame.data for frame in found.frames]
        counters.pulled_messages += sum(frame.count for frame in found.frames)
        counters.pulled_bytes += sum(map(len, bulk))
        sizes = tuple(map(len, bulk))
        self.finish(Pulled(found.next, found.end, sizes, found.level, self.examined), bulk)

    def finish(self, reply: Said | BaseException, bulk: list[memoryview]) -> None:
        self.end()
        self.answer(reply, bulk)

    def end(self) -> None:
        self.is_over = True
        self.cancel_watch()
        if self.timer is not None:
            self.timer.cancel()
        self.puller.polls.discard(self)
