"""How messages come into a partition: they get offsets, go into the levels, and wait for their acknowledgement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from penstock.log.durable_level import Last
from penstock.log.errors import BadFrame, LogClosed, LogError, NotAcknowledged
from penstock.log.frame import NOBODY, OFFSETS, SEVERAL, Frame, Run
from penstock.log.levels.shared import SharedMemory
from penstock.log.levels.stack import Stack
from penstock.log.partition.committing import CommittedPartition
from penstock.log.producers import Producers
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Settings
from penstock.log.store.commit import Committer
from penstock.log.store.disk import Disk
from penstock.log.store.finding import Finding
from penstock.log.store.opening import open_store
from penstock.log.waiting import Answer, Waiter

OpenLast = Callable[[int, Producers], tuple[Last, list[Finding]]]


class Partition(CommittedPartition):
    """A partition, for any number of threads; the committer writes what waits, or a thread that finds no room."""

    def __init__(self, topic: str, number: int, directory: Path, settings: Settings, disk: Disk, committer: Committer,
                 epoch_of: Callable[[int], int], open_last: OpenLast | None = None,
                 shared: SharedMemory | None = None, identity: str = "") -> None:  # fmt: skip
        producers = Producers(settings.producers, epoch_of)
        store: Last
        if open_last is None:
            store, self.findings = open_store(disk, directory, settings, producers)
        else:
            store, self.findings = open_last(number, producers)
        super().__init__(topic, number, identity, store, Stack(settings, directory, shared), producers)
        self.opened, self.bytes_in = time.monotonic(), 0
        self._committer, self._is_due = committer, False
        store.tell(lambda: committer.ask(self))

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
        if mode is Acknowledge.FSYNCED and self.store.unsynced is not None:
            why, fix = self.store.unsynced
            raise NotAcknowledged(f"nothing can be acknowledged as fsynced: {why}", self._place(), fix)
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
                mode is not Acknowledge.FSYNCED or self.store.unsynced is None
            )  # fmt: skip
            if not is_usual or not self.stack.fits(*[frame.header for frame in frames]):
                return False
            self.stack.build(self.next)  # what can fail does so before anything is known of a producer
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
        """Take the frames that can be taken; returns those that are refused."""
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
                    self._is_due |= self._repeat(repeated, 1, mode, answer)
                    continue
                self.producers.add((run,), self.next + len(taken))
            taken.append(frame)
            owed.append(answer)
        if taken:
            try:
                self._put_singles(taken, mode, owed)
            except BaseException:
                self.producers.undo(self.next)
                raise
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
            return self._repeat(repeated, frame.count, mode, future)
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

    def _repeat(self, first: int, count: int, mode: Acknowledge, future: Answer) -> bool:
        """Answer a push that is there already as if it were new: not before it is as durable as this one asks."""
        receipt, end = Receipt(self.topic, self.number, first, count, mode, duplicate=True), first + count
        if not self._is_done(end, mode):
            self._waiting.repeat(Waiter(end, mode, receipt, future))
            return True
        if mode is not Acknowledge.FSYNCED:
            self._promised = max(self._promised, end)
        future.set_result(receipt)
        return False

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
        """Wait until messages that were handed over are written; fail if nothing was written for too long."""
        with self._room:
            while self.broken is None and not self._closing and not self.stack.fits(frame.header):
                if self.store.stalled > self.store.stall or time.monotonic() > deadline:
                    what = f"the levels are full: {self.stack.unstored} bytes wait for {self.store.name}, which has"
                    raise self.store.unavailable(f"{what} taken nothing for {self.store.stalled:.1f} s", self._place(),
                                                 "push again later; what the levels hold can be read")  # fmt: skip
                self._room.wait(0.05)

    def numbered(self, producer: int) -> tuple[int, int] | None:
        with self._lock:
            return self.producers.last(producer)
