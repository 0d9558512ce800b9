"""The meaning of the resequencer: messages that wait for those before them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.message import Message
from penstock.patterns.key import DISCARD, HOLD, INVALID_KEY, NO_VALUE
from penstock.patterns.resequence import (
    DUPLICATE_SEQUENCE,
    LATE_MESSAGE,
    NO_NUMBER,
    PASS,
    Resequence,
    duplicate_reason,
    late_reason,
)
from penstock.plan.plan import Stage
from penstock.reference.effects import Continue, Effect, Filtered, Held
from penstock.reference.state import Key, State, refused
from penstock.reference.steps import value_of


@dataclass
class Sequence:
    """One sequence: the number that comes next (unknown at first, unused with `size`), and who waits for it."""

    last: float
    expected: int | None
    waiting: dict[int, Message] = field(default_factory=dict)

    def taken(self) -> list[Message]:
        """All that wait, in order; numbers that are not there are skipped."""
        numbers = sorted(self.waiting)
        if self.expected is not None and numbers:
            self.expected = numbers[-1] + 1
        return [self.waiting.pop(number) for number in numbers]

    def consecutive(self) -> list[Message]:
        """Those that wait for nobody any more."""
        found = []
        while self.expected is not None and self.expected in self.waiting:
            found.append(self.waiting.pop(self.expected))
            self.expected += 1
        return found


class Sequences(State):
    """The resequencer acts at the end of a batch, on all that came in it."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        assert isinstance(stage.node, Resequence)
        self.node = stage.node
        self.sequences: dict[Key, Sequence] = {}
        self.arrived: dict[Key, list[tuple[int, Message]]] = {}

    @property
    def held(self) -> int:
        waiting = sum(len(sequence.waiting) for sequence in self.sequences.values())
        return waiting + sum(map(len, self.arrived.values()))

    def due(self, now: float) -> list[Effect]:
        timeout, keep = self.node.timeout, self.node.keep
        late = [one for one in self.sequences.values() if timeout is not None and now >= one.last + timeout]
        effects = self._released(late, self.node.on_timeout == DISCARD)
        if keep is not None:
            self.sequences = {key: one for key, one in self.sequences.items() if one.waiting or now < one.last + keep}
        return effects

    def _accept(self, message: Message, now: float) -> list[Effect]:
        key, number = self._key(self.node.by, message), value_of(self.stage, self.node.sequence, message)
        if None in key or number is None:
            reason = NO_VALUE if None in key else NO_NUMBER
            return refused(self.node.invalid, INVALID_KEY, reason, message)
        self.arrived.setdefault(key, []).append((number, message))
        return [Held(f"number {number}")]

    def end(self, now: float) -> list[Effect]:
        arrived, self.arrived = self.arrived, {}
        return [effect for key, messages in arrived.items() for effect in self._arrange(key, messages, now)]

    def _arrange(self, key: Key, arrived: list[tuple[int, Message]], now: float) -> list[Effect]:
        sequence = self.sequences.setdefault(key, Sequence(now, self.node.first))
        sequence.last = now
        effects: list[Effect] = []
        limit = sequence.expected
        for number, message in arrived:
            if limit is not None and number < limit:
                effects += self._late(number, limit, message)
            elif number in sequence.waiting:
                reason = duplicate_reason(number)
                effects += refused(self.node.duplicate, DUPLICATE_SEQUENCE, reason, message)
            else:
                sequence.waiting[number] = message
                if len(sequence.waiting) == self.node.size:
                    effects += in_order(sequence.taken())
        if self.node.window is not None:
            effects += in_order(self._through(sequence, self.node.window))
        return effects

    def _late(self, number: int, expected: int, message: Message) -> list[Effect]:
        if self.node.late == PASS:
            return [Continue(message)]
        return refused(self.node.late, LATE_MESSAGE, late_reason(number, expected), message)

    @staticmethod
    def _through(sequence: Sequence, window: int) -> list[Message]:
        if sequence.expected is None:
            sequence.expected = min(sequence.waiting)
        passed = sequence.consecutive()
        while len(sequence.waiting) > window:
            sequence.expected = min(sequence.waiting)
            passed += sequence.consecutive()
        return passed

    def stop(self, policy: str, now: float) -> list[Effect]:
        policy = self.node.on_stop or policy
        return [] if policy == HOLD else self._released(list(self.sequences.values()), policy == DISCARD)

    @staticmethod
    def _released(sequences: list[Sequence], discarded: bool) -> list[Effect]:
        runs = [sequence.taken() for sequence in sequences]
        if discarded:
            return [Filtered() for run in runs for _ in run]
        return [effect for run in runs for effect in in_order(run)]


def in_order(messages: list[Message]) -> list[Effect]:
    """Messages that go on one after the other: together they take the place of the one that came first."""
    if not messages:
        return []
    place = min(message.journey.order for message in messages)
    return [
        Continue(replace(message, journey=replace(message.journey, order=(*place, number))))
        for number, message in enumerate(messages)
    ]
