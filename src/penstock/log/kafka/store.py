"""KafkaStore: a partition of a Kafka topic as the durable last level of a partition."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock.confluent import SILENT
from penstock.log.errors import ForeignWriter, KafkaUnavailable, NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.kafka.connection import Connection
from penstock.log.kafka.note import Note
from penstock.log.kafka.readers import OutOfRange
from penstock.log.kafka.records import frame_of
from penstock.log.store.disk import Disk
from penstock.log.store.store import gone

NOTE_EVERY = 500_000
"""Messages from one note of the producers to the next: so many are read at most when a log is opened."""
_FRAME = 4 << 20


class KafkaStore:
    """`write` only hands messages over; the connection's thread hears that Kafka has them, and moves `end`."""

    name, remedy = "Kafka", "see whether Kafka runs; what is stored can still be read"
    unavailable: type[NotAcknowledged] = KafkaUnavailable
    suspect = False
    size = pieces = 0
    """Kafka knows."""

    def __init__(self, connection: Connection, topic: str, number: int, first: int, next: int, noted: int,
                 disk: Disk, note: Path, producers: Callable[[int], bytes]) -> None:  # fmt: skip
        self.topic, self.number, self._connection = topic, number, connection
        self.timeout: float | None = connection.kafka.timeout
        self.stall = connection.kafka.stall
        unflushed = ("Kafka(fsync=False)", "ask for written, or let Kafka flush")
        self.unsynced: tuple[str, str] | None = None if connection.kafka.fsync else unflushed
        self.first, self.end, self.taken = first, next, next
        self.writes = self.syncs = 0
        self.refused: NotAcknowledged | None = None
        """Why nothing can be written any more."""
        self._ends: deque[int] = deque()
        """Where the batches end that were handed over and not answered."""
        self._incomplete = False
        self._progressed = time.monotonic()
        self._noted, self._disk, self._note, self._producers = noted, disk, note, producers
        self._tell: Callable[[], None] = lambda: None

    @property
    def durable(self) -> int:
        return self.end

    @property
    def waits(self) -> bool:
        """Whether something is on its way, or did not fit."""
        return self.taken > self.end or self._incomplete

    @property
    def stalled(self) -> float:
        return time.monotonic() - self._progressed if self.waits else 0.0

    @property
    def trouble(self) -> str:
        return f"Kafka: {self._connection.trouble}"

    def ask(self) -> None:
        self._tell()

    def tell(self, call: Callable[[], None]) -> None:
        self._tell = call

    # ---- writing

    def write(self, frames: Sequence[Frame]) -> None:
        """Hand over what is new in these frames, as much as the buffer takes; raises if that is no longer allowed."""
        if self.refused is not None:
            raise self.refused
        if not self.waits:
            self._progressed = time.monotonic()
        with self._connection.sending:
            self._incomplete = True
            for frame in frames:
                start = max(0, self.taken - frame.first)
                if start >= frame.count:
                    continue
                delivered = partial(self._delivered, frame.next - 1)
                sent = self._connection.send(self.topic, self.number, frame, start, delivered)
                self.taken += sent
                if start + sent < frame.count:
                    return
                self._ends.append(frame.next)
                self.writes += 1
            self._incomplete = False

    def sync(self) -> None:
        if self.end - self._noted >= NOTE_EVERY:
            self.write_note(clean=False)

    def undo_write(self) -> None:
        if self.refused is not None:
            raise self.refused

    def restart(self, upto: int) -> None:
        raise AssertionError("Kafka is never suspect")

    def retain(self) -> None:
        """Nothing to do: Kafka removes messages by its own settings."""

    def _delivered(self, offset: int, error: Any, message: Any) -> None:
        """In the connection's thread: the last message of a batch is in Kafka, or is not."""
        if error is not None:
            self._connection.lose(error.str())
        elif message.offset() < 0:  # sent twice and known, but no longer where it is
            self._connection.lose("it does not say where messages are")
        elif message.offset() != offset:
            self.refuse(self._foreign(f"message {offset} is at {message.offset()} there"))
        elif self.refused is None:
            self._advance(offset + 1)
        self.ask()

    def _advance(self, upto: int) -> None:
        """Note that everything before `upto` is in Kafka. `end` moves by whole batches: levels release whole frames."""
        while self._ends and self._ends[0] <= upto:
            self.end = self._ends.popleft()
        self._progressed = time.monotonic()
        self._connection.trouble = SILENT

    # ---- what Kafka has, and whose it is

    def look(self, first: int, next: int) -> None:
        """Compare with the offsets that Kafka has: it must not have more messages than were sent."""
        self.first = max(self.first, min(first, self.end))
        with self._connection.sending:
            taken = self.taken
        if next > taken:
            self.refuse(self._foreign(f"it has {next} messages, and {taken} were sent"))

    def resume(self, next: int) -> None:
        """After a producer was lost: Kafka has messages up to `next`, and needs those behind it again."""
        if next > self.taken:
            self.refuse(self._foreign(f"it has {next} messages, and {self.taken} were sent"))
        elif next < self.end:
            self.refuse(self.missing(next, self.end))
        place = self.end
        while place < next and self.refused is None:
            place = self._checked(place, next)
        if self.refused is None:
            with self._connection.sending:
                self._advance(next)
                self._ends.clear()
                self.taken, self._incomplete = next, True
        self.ask()

    def refuse(self, error: NotAcknowledged) -> None:
        if self.refused is None:
            self.refused = error
            self.ask()

    def _checked(self, place: int, upto: int) -> int:
        """Read back what a lost producer left. A stranger's record ends it."""
        try:
            frames = self.read(place, _FRAME, upto - place)
        except ForeignWriter as error:
            self.refuse(error)
            return place
        return frames[-1].next

    def missing(self, next: int, known: int) -> ForeignWriter:
        return ForeignWriter(f"Kafka topic {self.topic!r} partition {self.number} has only {next} of {known} messages"
                             " that it had", None, "see what removed them; go on in another topic")  # fmt: skip

    def _foreign(self, what: str) -> ForeignWriter:
        return ForeignWriter(f"something else writes to Kafka topic {self.topic!r} partition {self.number}: {what}",
                             None, "stop it, and go on in another topic; what was before it can be read")  # fmt: skip

    # ---- reading

    def read(self, offset: int, most_bytes: int, most_messages: int | None) -> list[Frame]:
        most = self.taken - offset if most_messages is None else most_messages
        try:
            found = self._connection.readers.read(self.topic, self.number, offset, min(most_bytes, _FRAME), most)
        except OutOfRange:
            first = self._connection.ends(self.topic, [self.number])[0][0]
            self.first = max(self.first, first)
            raise gone(offset, self.first, f"Kafka topic {self.topic!r} partition {self.number}") from None
        frame = frame_of(found) if found and found[0].offset == offset else None
        if frame is None:
            raise self._foreign(f"offset {offset} is not a message of this log")
        return [frame]

    def offset_at(self, time: int) -> int:
        milliseconds = time // 1000
        place = self._connection.offset_at(self.topic, self.number, milliseconds)
        if place is None or place >= self.end:
            return self.end
        # Kafka's times are of milliseconds: among those of the same one, look.
        limit = self._connection.offset_at(self.topic, self.number, milliseconds + 1)
        limit = self.end if limit is None else min(limit, self.end)
        while place < limit:
            for frame in self.read(place, _FRAME, limit - place):
                late = frame.times >= time
                if late.any():
                    return frame.first + int(np.argmax(late))
                place = frame.next
        return limit

    # ---- ending

    def close(self) -> None:
        self.write_note(clean=self.taken == self.end)

    def release(self) -> None:
        self._tell = lambda: None

    def write_note(self, *, clean: bool) -> None:
        self._disk.replace(self._note, Note(self.end, clean, self._producers(self.end)).pack())
        self._noted = self.end
