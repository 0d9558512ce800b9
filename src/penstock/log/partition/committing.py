"""How messages of a partition become durable and are acknowledged: the calls of `Committer`, failures, and closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.log.durable_level import Last
from penstock.log.errors import LogError, NotAcknowledged
from penstock.log.levels.stack import Stack
from penstock.log.partition.reading import ReadPartition, deleted
from penstock.log.producers import Producers
from penstock.log.settings import Acknowledge
from penstock.log.waiting import Waiting

_HEAL_EVERY = 1.0


class CommittedPartition(ReadPartition):
    """One thread writes at a time: the committer's, or one that finds no room for its push."""

    def __init__(
        self, topic: str, number: int, identity: str, store: Last, stack: Stack, producers: Producers
    ) -> None:
        super().__init__(topic, number, identity, store, stack)
        self.producers = producers
        self.producers.durable = store.durable
        self.broken: str | None = store.refused.what if store.refused else None
        """Why nothing can be written, if so."""
        self.trouble: str | None = None
        """What else is wrong."""
        self.lags_since: float | None = None
        self._promised = store.end
        self._healed = 0.0
        self._failure, self._failures = "", 0
        self._refusal = type(store.refused) if store.refused else NotAcknowledged
        self._closing = False
        self._room = threading.Condition(self._lock)
        self._commit = threading.RLock()
        self._waiting = Waiting()

    def write_pending(self) -> int:
        with self._commit:
            if self._closed:
                return 0
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
        """Acknowledge the pushes whose messages are safe enough now."""
        with self._lock:
            self.producers.durable = self.store.durable
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
        """Fail pushes that have waited too long; their messages keep their offsets, as they may still be written."""
        with self._lock:
            late = self._waiting.overdue(time.monotonic() - timeout)
        for waiter in late:
            assert waiter.future is not None
            what = f"messages {waiter.receipt.first} to {waiter.end - 1} are not {waiter.mode} after {timeout:g} s:"
            what = f"{what} {self.store.trouble}"
            fix = f"they may yet be stored; {self.store.remedy}"
            waiter.future.set_exception(self.store.unavailable(what, self._place(), fix))

    def offset_at(self, time: int) -> int:
        self.write_pending()
        return super().offset_at(time)

    # ---- failing

    def _fail(self, doing: str, error: Exception) -> None:
        """Fail the pushes that wait, and take back messages that nobody was promised, with their offsets."""
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

    # ---- ending

    def close(self, until: float = 0.0) -> None:
        """Write and fsync all there is; `until` is when to give up on a store that answers later."""
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
            why = self.broken or f"{self.store.name} does not answer"
            raise NotAcknowledged(f"messages {self.store.end} to {self._promised - 1} are lost: {why}",
                                  self._place(), "they were acknowledged in memory only: push them again")  # fmt: skip

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Hold off all writing while this block runs."""
        with self._commit:
            yield

    def delete(self) -> None:
        """Tell everybody who waits here that the topic is deleted."""
        with self._commit, self._room:
            self.is_deleted = self._closing = self._closed = True
            self.lags_since = None
            left = [waiter for waiter in self._waiting if waiter.future is not None]
            self.stack.close()
            self.store.release()
            self._room.notify_all()
        for waiter in left:
            assert waiter.future is not None
            waiter.future.set_exception(deleted(self.topic))
        self._tell()
