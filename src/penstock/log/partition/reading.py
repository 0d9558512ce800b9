"""What readers may see of a partition: messages from its levels, or from the store, up to the last acknowledged one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from penstock.log.durable_level import Last
from penstock.log.errors import LogClosed, OffsetOutOfRange, TopicDeleted
from penstock.log.levels.stack import STORE, Stack
from penstock.log.records import Ends, Reading
from penstock.log.store.store import gone

_LOOKED_AT = 1 << 20


class ReadPartition:
    """Any number of threads read; what is `visible` to them never becomes less. `next` is the next offset to give."""

    def __init__(self, topic: str, number: int, identity: str, store: Last, stack: Stack) -> None:
        self.topic, self.number, self.identity, self.is_deleted = topic, number, identity, False
        self.store, self.stack = store, stack
        self.next = self.visible = store.end
        self._closed = False
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], None]] = {}

    def read(self, offset: int, most_bytes: int, most_messages: int | None) -> Reading:
        with self._lock:
            self._check_open()
            if offset > self.visible or offset < 0:
                raise OffsetOutOfRange(f"offset {offset} is not there yet", self._place(), f"read from {self.visible}")
            if offset < self.store.first:
                raise gone(offset, self.store.first, self._place())
            if offset == self.visible:
                return Reading((), offset, offset, STORE)
            most = self.visible - offset
            most = most if most_messages is None else min(most, max(1, most_messages))
            found = self.stack.read(offset, most_bytes, most)
        try:
            frames, level = found if found is not None else (self.store.read(offset, most_bytes, most), STORE)
        except FileNotFoundError:
            self._check_open()  # deleted a moment ago
            raise
        return Reading(tuple(frames), frames[0].first, frames[-1].next, level)

    def ends(self) -> Ends:
        with self._lock:
            return Ends(self.store.first, self.visible, self.store.durable)

    def held(self) -> int:
        with self._lock:
            return min(self.stack.held(self.next), self.visible)

    def offset_at(self, time: int) -> int:
        place = self.store.offset_at(time)
        while self.store.end <= place < self.visible:  # not in the store, but in the levels
            for frame in self.read(place, _LOOKED_AT, None).frames:
                late = frame.times >= time
                if late.any():
                    return frame.first + int(np.argmax(late))
                place = frame.next
        return min(place, self.visible)

    def listen(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call whenever there is more to read; the result ends that."""
        key = object()
        self._listeners[key] = call
        return lambda: self._listeners.pop(key, None) and None

    def _tell(self) -> None:
        for call in list(self._listeners.values()):
            with suppress(Exception):  # the log goes on, whatever those who listen do
                call()

    def _see(self, offset: int) -> None:
        self.visible = max(self.visible, offset)
        self.stack.show(self.visible)

    def _check_open(self) -> None:
        if self.is_deleted:
            raise deleted(self.topic)
        if self._closed:
            raise LogClosed(f"the log of {self._place()} is closed", None, "open it again")

    def _place(self) -> str:
        return f"topic {self.topic!r} partition {self.number}"


def deleted(topic: str) -> TopicDeleted:
    return TopicDeleted(f"topic {topic!r} was deleted", None, "a new one of its name has other messages: begin anew")
