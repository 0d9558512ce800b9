"""The meaning of the idempotent receiver: of messages with one key, only the first goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from penstock.message import Message
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import INVALID_KEY, NO_VALUE
from penstock.plan.plan import Stage
from penstock.reference.effects import Continue, Effect, Filtered, Held, Send
from penstock.reference.state import Key, State, refused


class Seen(State):
    """The idempotent receiver's keys: when each was first seen, and in which batch."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        assert isinstance(stage.node, Idempotent)
        self.node = stage.node
        self.keys: dict[Key, tuple[float, int]] = {}
        self.batch = 0
        self.waiting: list[Message] = []

    @property
    def held(self) -> int:
        return len(self.waiting)

    @property
    def undecided(self) -> bool:
        return bool(self.waiting)

    def due(self, now: float) -> list[Effect]:
        self.batch += 1
        if self.node.keep is not None:
            self.keys = {key: seen for key, seen in self.keys.items() if now < seen[0] + self.node.keep}
        if self.node.keep_last is not None:
            self._forget_oldest(self.node.keep_last)
        return []

    def again(self) -> list[Message]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def _forget_oldest(self, least: int) -> None:
        sizes = Counter(batch for _, batch in self.keys.values())
        younger = len(self.keys)
        for batch in sorted(sizes):
            younger -= sizes[batch]
            if younger < least:
                return
            self.keys = {key: seen for key, seen in self.keys.items() if seen[1] != batch}

    def _accept(self, message: Message, now: float) -> list[Effect]:
        key = self._key(self.node.key, message) if self.node.key else (message.id,)
        if None in key:
            return refused(self.node.invalid, INVALID_KEY, NO_VALUE, message)
        return self._decide(key, message, now)

    def _decide(self, key: Key, message: Message, now: float) -> list[Effect]:
        if key not in self.keys:
            self.keys[key] = now, self.batch
            admitted = (*message.journey.admitted, (self.stage.title, key, self.batch))
            return [Continue(replace(message, journey=replace(message.journey, admitted=admitted)))]
        if self.keys[key][1] == self.batch and not self.node.remember_failed:
            # The first one may still fail in this batch.
            self.waiting.append(message)
            return [Held("until the first of its key is through")]
        return [Send(self.node.duplicates, message) if self.node.duplicates else Filtered()]

    def forget_failed(self, failed: set[tuple[Key, int]]) -> None:
        for key, batch in failed:
            if not self.node.remember_failed and batch == self.batch:
                self.keys.pop(key, None)
