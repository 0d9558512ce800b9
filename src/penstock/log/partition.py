"""Partition: gives messages their offsets, puts them into the levels, and acknowledges them when it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import numpy as np

from penstock.log.errors import BadFrame, KafkaUnavailable, LogClosed, LogError, NotAcknowledged, OffsetOutOfRange
from penstock.log.frame import NOBODY, OFFSETS, SEVERAL, Frame, Run
from penstock.log.last import Last
from penstock.log.levels.stack import STORE, Stack
from penstock.log.producers import Batch, Producers
from penstock.log.records import Ends, Reading, Receipt
from penstock.log.settings import Acknowledge, Settings
from penstock.log.store.commit import Committer
from penstock.log.store.disk import Disk
from penstock.log.store.finding import Finding
from penstock.log.store.opening import open_store
from penstock.log.store.store import gone
from penstock.log.waiting import Answer, Waiter, Waiting

_HEAL_EVERY = 1.0
_LOOKED_AT = 1 << 20


OpenLast = Callable[[int, Producers], tuple[Last, list[Finding]]]


class Partition:
    """Any number of threads append and read. What waits is written by the committer, or by who finds no room."""

    def __init__(self, topic: str, number: int, directory: Path, settings: Settings, disk: Disk, committer: Committer,
                 epoch_of: Callable[[int], int], open_last: OpenLast | None = None) -> None:  # fmt: skip
        self.topic, self.number, self._settings, self._committer = topic, number, settings, committer
        self.producers = Producers(settings.producers, epoch_of)
        self.store: Last
        if open_last is None:
            self.store, self.findings = open_store(disk, directory, settings, self.producers)
        else:
            self.store, self.findings = open_last(number, self.producers)
        self.stack = Stack(settings, self.store, directory)
        self.next = self.visible = self._promised = self.store.end
        self.broken: str | None = self.store.refused.what if self.store.refused else None
        """Why nothing can be written, if so."""
        self.trouble: str | None = None
        """What else is wrong."""
        self.lags_since: float | None = None
        self.opened, self.bytes_in = time.monotonic(), 0
        self._healed = 0.0
        self._failure, self._failures = "", 0
        self._refusal = type(self.store.refused) if self.store.refused else NotAcknowledged
        self._closing = self._closed = self._is_due = False
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._commit = threading.RLock()
        self._waiting = Waiting()
        self._listeners: dict[object, Callable[[], None]] = {}
        self.store.tell(lambda: committer.ask(self))

    # ---- appending

    def append(self, frame: Frame, mode: Acknowledge, *, ask: bool = True) -> Future[Receipt]:
        """Take a frame, after a wait for room if there is none.

        Without `ask` it may not be acknowledged before `ask` is called, or somebody else's push is.
        """
        since = time.monotonic()
        while (future := self.try_append(frame, mode, ask=ask)) is None:
            self._make_room()
            if self.store.timeout is not None:
                self._wait_for_room(frame, since + self.store.timeout)
        return future

    def try_append(self, frame: Frame, mode: Acknowledge, *, ask: bool = True) -> Future[Receipt] | None:
        """Take a frame if there is room for it now; None if that has to be waited for, or cannot be."""
        future: Future[Receipt] = Future()
        future.set_running_or_notify_cancel()
        if frame.header.columns & OFFSETS or frame.header.producer == SEVERAL:
            raise BadFrame("a frame of a filtered or joined reading cannot be appended", None, "pack its messages anew")
        if mode is Acknowledge.FSYNCED and not self.store.fsyncs:
            raise NotAcknowledged("nothing can be acknowledged as fsynced: Kafka(fsync=False)", self._place(),
                                  "ask for written, or let Kafka flush")  # fmt: skip
        with self._lock:
            self._check_open()
            if self._closing:
                raise LogClosed(f"the log of {self._place()} is being closed", None, "open it again")
            if self.broken is not None or not self.stack.fits(frame.header):
                return None
            visible = self.visible
            is_due = self._take(frame, mode, future)
            told = self.visible > visible
        if not is_due:
            self._committer.later(self)
        elif ask:
            self._committer.ask(self)
        else:
            self._is_due = True
        if told:
            self._tell()
        return future

    def ask(self) -> None:
        """Have what was appended without asking written, if somebody waits for that or there is enough of it."""
        if self._is_due:
            self._is_due = False
            self._committer.ask(self)

    def append_singles(self, frames: Sequence[Frame], mode: Acknowledge, answers: Sequence[Answer]) -> bool:
        """Frames of one message each, of whomever, which are put into the levels as one; without asking.

        False if nothing was done, because there is no room now or something is wrong: append them one by one. What that
        would raise for one of them is the exception of its answer.
        """
        with self._lock:
            is_usual = not (self._closed or self._closing) and self.broken is None and (
                mode is not Acknowledge.FSYNCED or self.store.fsyncs
            )  # fmt: skip
            if not is_usual or not self.stack.fits(*[frame.header for frame in frames]):
                return False
            visible = self.visible
            failed = self._take_singles(frames, mode, answers)
            told = self.visible > visible
            is_later = not self._is_due and self.lags_since is not None
        for answer, error in failed:
            answer.set_exception(error)
        if is_later:
            self._committer.later(self)
        if told:
            self._tell()
        return True

    def _take_singles(
        self, frames: Sequence[Frame], mode: Acknowledge, answers: Sequence[Answer]
    ) -> list[tuple[Answer, LogError]]:
        """Those that are refused."""
        failed: list[tuple[Answer, LogError]] = []
        taken: list[Frame] = []
        owed: list[Answer] = []
        for frame, answer in zip(frames, answers, strict=True):
            header = frame.header
            if header.producer != NOBODY:
                run = Run(header.producer, header.sequence, header.epoch, 1)
                try:
                    repeated = self.producers.duplicate(run)
                except LogError as error:
                    failed.append((answer, error))
                    continue
                if repeated is not None:
                    self._is_due |= self._repeat(repeated, mode, answer)
                    continue
                self.producers.add((run,), self.next + len(taken))
            taken.append(frame)
            owed.append(answer)
        if taken:
            self._put_singles(taken, mode, owed)
        return failed

    def _put_singles(self, frames: Sequence[Frame], mode: Acknowledge, answers: Sequence[Answer]) -> None:
        first = self.next
        joined = Frame.of_singles(frames, first, self.store.durable)
        held = self.stack.write(joined)
        self.next = first + len(frames)
        if mode is Acknowledge.MEMORY and not held:
            mode = Acknowledge.WRITTEN
        self.bytes_in += joined.bytes
        if self.lags_since is None:
            self.lags_since = time.monotonic()
        receipts = [Receipt(self.topic, self.number, offset, 1, mode) for offset in range(first, self.next)]
        if mode is not Acknowledge.MEMORY:
            self._is_due = True
            for receipt, answer in zip(receipts, answers, strict=True):
                self._waiting.add(Waiter(receipt.first + 1, mode, receipt, answer))
            return
        self._promised = self.next
        self._is_due |= self.stack.wants_storing
        if self._waiting:
            self._waiting.add(Waiter(self.next, mode, receipts[-1]))
        else:
            self._see(self.next)
        for receipt, answer in zip(receipts, answers, strict=True):
            answer.set_result(receipt)

    def _take(self, frame: Frame, mode: Acknowledge, future: Future[Receipt]) -> bool:
        """Put a frame into the first level; whether the committer should come at once."""
        run = frame.runs[0]
        repeated = None if run.producer == NOBODY else self.producers.duplicate(run)
        if repeated is not None:
            return self._repeat(repeated, mode, future)
        first = self.next
        held = self.stack.write(frame.at(first, self.store.durable))
        self.next = first + frame.count
        if mode is Acknowledge.MEMORY and not held:
            mode = Acknowledge.WRITTEN
        if run.producer != NOBODY:
            self.producers.add((run,), first)
        self.bytes_in += frame.bytes
        if self.lags_since is None:
            self.lags_since = time.monotonic()
        receipt = Receipt(self.topic, self.number, first, frame.count, mode)
        if mode is not Acknowledge.MEMORY:
            self._waiting.add(Waiter(self.next, mode, receipt, future))
            return True
        self._promised = self.next
        if self._waiting:
            self._waiting.add(Waiter(self.next, mode, receipt))
        else:
            self._see(self.next)
        future.set_result(receipt)
        return self.stack.wants_storing

    def _repeat(self, batch: Batch, mode: Acknowledge, future: Answer) -> bool:
        """Answer a push that is there already as if it were new: not before it is as durable as this one asks."""
        receipt = Receipt(self.topic, self.number, batch.offset, batch.messages, mode, duplicate=True)
        end = 0 if batch.offset < 0 else batch.offset + batch.messages
        if mode is Acknowledge.MEMORY or self._is_done(end, mode):
            future.set_result(receipt)
            return False
        self._waiting.repeat(Waiter(end, mode, receipt, future))
        return True

    def _make_room(self) -> None:
        """Write what waits, or say why that cannot be."""
        with self._commit:
            failures = self._failures
            if self.broken is None or self._heal():
                self.write_pending()
                if self._failures == failures:
                    return
            raise self._refusal(f"nothing can be written: {self.broken or self._failure}", self._place(),
                                self.store.remedy)  # fmt: skip

    def _wait_for_room(self, frame: Frame, deadline: float) -> None:
        """Until what was handed over is written. Who has heard nothing for long does not let others wait, too."""
        with self._room:
            while self.broken is None and not self._closing and not self.stack.fits(frame.header):
                if self.store.stalled > self.store.stall or time.monotonic() > deadline:
                    raise KafkaUnavailable(f"the levels are full: {self.stack.unstored} bytes wait for Kafka, which has"
                                           f" taken nothing for {self.store.stalled:.1f} s", self._place(),
                                           "push again later; what the levels hold can be read")  # fmt: skip
                self._room.wait(0.05)

    # ---- committing: what `Committer` calls

    def write_pending(self) -> int:
        with self._commit:
            if self.broken is not None and not self._heal():
                self.lags_since = time.monotonic()
                return 0
            with self._lock:
                if self._closed:
                    return 0
                batches = self.stack.pending(self.store.taken)
            if batches or self.store.timeout is not None:
                try:
                    self.store.write(batches)
                except Exception as error:
                    self._fail("writing", error)
                    return 0
                with self._room:
                    self.stack.stored(self.store.end, batches)
                    self._room.notify_all()
            del batches
            return self._complete()

    def sync_pending(self, *, due: bool) -> int:
        with self._commit:
            with self._lock:
                if self._closed or self.broken is not None or not (due or self._waiting.wants_sync()):
                    return 0
            try:
                self.store.sync()
            except Exception as error:
                self._fail("fsync", error)
                return 0
            with self._lock:
                if self.store.durable == self.next:
                    self.lags_since = None
                elif self.lags_since is not None:
                    self.lags_since = time.monotonic()
            done = self._complete()
            self.retain()
            return done

    def retain(self) -> None:
        with self._commit:
            if self._closed or self.broken is not None:
                return
            try:
                self.store.retain()
                self.trouble = None
            except OSError as error:
                self.trouble = f"old segments cannot be removed: {error}"
                if self.store.suspect:
                    self._fail("fsync", error)

    def _is_done(self, end: int, mode: Acknowledge) -> bool:
        return mode is Acknowledge.MEMORY or end <= (
            self.store.durable if mode is Acknowledge.FSYNCED else self.store.end
        )

    def _complete(self) -> int:
        """Acknowledge what may be."""
        with self._lock:
            visible = self.visible
            done, readable = self._waiting.served(self._is_done)
            promises = [waiter.end for waiter in done if waiter.mode is not Acknowledge.FSYNCED]
            self._promised = max([self._promised, *promises])
            self._see(readable)
            told = self.visible > visible
        for waiter in done:
            assert waiter.future is not None
            waiter.future.set_result(waiter.receipt)
        if told:
            self._tell()
        if self.store.timeout is not None:
            self._expire(self.store.timeout)
        return len(done)

    def _expire(self, timeout: float) -> None:
        """Who has waited too long is told. The messages keep their offsets: they may be written at any moment."""
        with self._lock:
            late = self._waiting.overdue(time.monotonic() - timeout)
        for waiter in late:
            assert waiter.future is not None
            what = f"messages {waiter.receipt.first} to {waiter.end - 1} are not {waiter.mode} after {timeout:g} s:"
            what = f"{what} {self.store.trouble}"
            fix = f"they may yet be stored; {self.store.remedy}"
            waiter.future.set_exception(KafkaUnavailable(what, self._place(), fix))

    def _see(self, offset: int) -> None:
        self.visible = max(self.visible, offset)
        self.stack.show(self.visible)

    # ---- failing

    def _fail(self, doing: str, error: Exception) -> None:
        """What waits for this is not acknowledged. What nobody was promised is taken back, offsets and all."""
        with self._lock:
            said = error.what if isinstance(error, LogError) else str(error)
            self.broken = self._failure = f"{doing} failed: {said}"
            self._refusal = type(error) if isinstance(error, NotAcknowledged) else NotAcknowledged
            self._failures += 1
            self.lags_since = time.monotonic()
            kept = self.store.durable if self.store.suspect else self.store.end
            cut = max(kept, self._promised)
            self.stack.truncate(cut)
            self.producers.undo(cut)
            self.next = cut
            failed = self._waiting.failed(kept, cut)
            if not self._waiting:
                self._see(cut)
        self._heal(at_once=True)
        for waiter in failed:
            assert waiter.future is not None
            first, last = waiter.receipt.first, waiter.end - 1
            there = "they are not stored" if waiter.end > max(cut, self.store.taken) else "they may yet be stored"
            what = f"messages {first} to {last} are not {waiter.mode}: {self._failure}"
            waiter.future.set_exception(self._refusal(what, self._place(), f"{there}; {self.store.remedy}"))

    def _heal(self, *, at_once: bool = False) -> bool:
        """Make the partition writable again, if that is possible now."""
        now = time.monotonic()
        if not at_once and now - self._healed < _HEAL_EVERY:
            return False
        self._healed = now
        try:
            if self.store.suspect:
                self.store.restart(self._promised)
            else:
                self.store.undo_write()
        except (OSError, LogError) as error:
            if error is not self.store.refused:
                self.broken = f"{(self.broken or '').partition('; then')[0]}; then {error}"
            return False
        with self._lock:
            self.broken = None
        return True

    # ---- reading

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
        frames, level = found if found is not None else (self.store.read(offset, most_bytes, most), STORE)
        return Reading(tuple(frames), frames[0].first, frames[-1].next, level)

    def ends(self) -> Ends:
        with self._lock:
            return Ends(self.store.first, self.visible, self.store.durable)

    def held(self) -> int:
        with self._lock:
            return min(self.stack.held(self.next), self.visible)

    def numbered(self, producer: int) -> tuple[int, int] | None:
        with self._lock:
            return self.producers.last(producer)

    def offset_at(self, time: int) -> int:
        self.write_pending()
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

    # ---- ending

    def close(self, until: float = 0.0) -> None:
        """Write and fsync all there is; `until` is when to give up on Kafka."""
        with self._lock:
            self._closing = True
        self.write_pending()
        while self.broken is None and self.store.end < self.next and time.monotonic() < until:
            with self._room:
                self._room.wait(0.05)
            self.write_pending()
        self.sync_pending(due=True)
        with self._commit, self._lock:
            if self._closed:
                return
            self._closed = True
            left = [waiter for waiter in self._waiting if waiter.future is not None]
            self.stack.close()
            try:
                if self.broken is None:
                    self.store.close()
            finally:
                self.store.release()
        for waiter in left:
            assert waiter.future is not None
            waiter.future.set_exception(NotAcknowledged("the log was closed before", self._place(), "push them again"))
        if self._promised > self.store.end:
            why = self.broken or "Kafka does not answer"
            raise NotAcknowledged(f"messages {self.store.end} to {self._promised - 1} are lost: {why}",
                                  self._place(), "they were acknowledged in memory only: push them again")  # fmt: skip

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(f"the log of {self._place()} is closed", None, "open it again")

    def _place(self) -> str:
        return f"topic {self.topic!r} partition {self.number}"

