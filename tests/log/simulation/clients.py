"""Clients that number their messages and push what was not answered again, in the ways that ours do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from penstock.log.errors import ForgottenPush, LogClosed, LogError, WrongSequence
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.records import ProducerIdentity, Receipt
from penstock.log.settings import Acknowledge
from tests.log.simulation.history import History
from tests.log.simulation.network import Network, Outcome, Request

SIZES = (12, 12, 40, 300)
MANY = 100_000
"""Producers, of which a log forgets none."""


@dataclass(eq=False)
class Batch:
    values: list[bytes]
    frame: Frame
    is_sent: bool = False
    is_answered: bool = False


class Client:
    """Nobody numbers its messages, and what fails is not pushed again."""

    name = "nobody"
    is_exact = False

    def __init__(self, chance: random.Random, network: Network, history: History, partition: int, mode: Acknowledge,
                 number: int) -> None:  # fmt: skip
        self.chance, self.network, self.history, self.partition, self.mode = chance, network, history, partition, mode
        self.called, self.number = f"{self.name}-{number}", number
        self.made = 0
        self.batches: list[Batch] = []
        self.sent: dict[int, Batch] = {}
        self.numbers = 0
        self.connection = network.connect(self.session)
        self.most = chance.choice((1, 5, 12))

    def step(self, log: Log) -> None:
        """Take an answer that has arrived, or send something."""
        if self.connection.answers and self.chance.random() < 0.6:
            number, outcome = self.connection.answers.popleft()
            batch = self.sent.pop(number, None)
            if batch is not None:
                self.answered(batch, outcome, log)
        elif len(self.sent) < self.most:
            self.send(log)

    def send(self, log: Log) -> None:
        values = self.values()
        self.push(Batch(values, Frame.pack(values)))

    def answered(self, batch: Batch, outcome: Outcome, log: Log) -> None:
        if isinstance(outcome, Receipt):
            self.history.promise(batch.values, outcome)
            batch.is_answered = True
        else:
            assert isinstance(outcome, LogError), outcome
            self.refused(batch, outcome, log)

    def refused(self, batch: Batch, error: LogError, log: Log) -> None: ...

    @property
    def session(self) -> str:
        """What it says when it connects, if it wants the server to end its last connection."""
        return ""

    def disconnect(self) -> None:
        """The connection is lost, or given up."""
        self.network.cut(self.connection)
        self.connection = self.network.connect(self.session)
        self.sent.clear()

    def restart(self, log: Log) -> None:
        """The process ends, and another begins."""

    def push(self, batch: Batch) -> None:
        self.numbers += 1
        self.sent[self.numbers] = batch
        batch.is_sent = True
        request = Request(self.connection, self.numbers, self.partition, batch.frame, self.mode)
        self.connection.requests.append(request)

    def values(self, count: int = 0) -> list[bytes]:
        count = count or self.chance.choice((1, 1, 2, 5))
        size = self.chance.choice(SIZES)
        values = [f"{self.called} {self.made + place} ".encode().ljust(size, b".") for place in range(count)]
        self.made += count
        self.history.push(values)
        return values

    @property
    def is_done(self) -> bool:
        return not self.sent and all(batch.is_answered for batch in self.batches)


class Steady(Client):
    """As our client: several batches on the way, all without an answer are sent again, with their numbers.

    What the log does not store it gives up, as our client does, or pushes again.
    """

    name = "steady"
    is_exact = True
    identity: ProducerIdentity | None = None
    sequence = place = 0
    is_renumbering = False
    """Whether the numbers do not follow any more: new ones are given when all with old ones are answered."""

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self.gives_up = self.chance.random() < 0.5
        self.given_up: set[bytes] = set()

    @property
    def session(self) -> str:
        return self.called

    def send(self, log: Log, *, more: bool = True) -> None:
        if self.identity is None:
            self.identity = log.producer(None)
        self.forget_answered()
        if self.is_renumbering and not self.must_ask:
            return
        if self.place == len(self.batches):
            if not more:
                return
            self.batches.append(self.numbered(self.values()))
        self.push(self.batches[self.place])
        self.place += 1

    def numbered(self, values: list[bytes]) -> Batch:
        assert self.identity is not None
        frame = Frame.pack(values, producer=self.identity.id, epoch=self.identity.epoch, sequence=self.sequence)
        self.sequence += len(values)
        return Batch(values, frame)

    def forget_answered(self) -> None:
        while self.place and self.batches and self.batches[0].is_answered:
            self.batches.pop(0)
            self.place -= 1

    def answered(self, batch: Batch, outcome: Outcome, log: Log) -> None:
        super().answered(batch, outcome, log)
        if self.is_renumbering and not self.sent and not self.must_ask:
            self.renumber(log)

    @property
    def must_ask(self) -> bool:
        """Whether the next batch was sent over a lost connection: it may be stored, with the numbers that it has."""
        return self.place < len(self.batches) and self.batches[self.place].is_sent

    def refused(self, batch: Batch, error: LogError, log: Log) -> None:
        assert not isinstance(error, ForgottenPush), error
        if isinstance(error, WrongSequence):
            self.is_renumbering = True
        elif self.gives_up and not isinstance(error, LogClosed):
            batch.is_answered = self.is_renumbering = True
            self.given_up.update(batch.values)
        else:
            self.disconnect()

    def disconnect(self) -> None:
        super().disconnect()
        self.batches = [batch for batch in self.batches if not batch.is_answered]
        self.place, self.is_renumbering = 0, False

    def renumber(self, log: Log) -> None:
        """Go on as somebody new."""
        may_forget = self.gives_up or self.history.settings.producers < MANY
        assert may_forget or self.mode is not Acknowledge.FSYNCED, "the log forgot what was fsynced"
        self.identity, self.sequence = log.producer(None), 0
        self.batches = [self.numbered(batch.values) for batch in self.batches if not batch.is_answered]
        self.place, self.is_renumbering = 0, False
        self.connection.delivered.clear()  # TCP repeats nothing: who gives new numbers does not push the old ones again


class Streaming(Steady):
    """As Spark's sink: one producer for all times, an epoch per batch, and a batch begins again until all is there."""

    name = "streaming"
    epoch = -1
    skip = 0

    def send(self, log: Log, *, more: bool = True) -> None:
        if all(batch.is_answered for batch in self.batches) and not self.sent:
            if not more:
                return
            self.epoch, self.sequence, self.place, self.skip = self.epoch + 1, 0, 0, 0
            self.identity = ProducerIdentity(self.number, self.epoch)
            self.batches = [self.numbered(self.values()) for _ in range(self.chance.choice((1, 3, 20)))]
        while self.place < len(self.batches) and self.ends_at(self.place) < self.skip:
            self.batches[self.place].is_answered = True
            self.place += 1
        if self.place < len(self.batches):
            self.push(self.batches[self.place])
            self.place += 1

    def ends_at(self, place: int) -> int:
        frame = self.batches[place].frame
        return frame.header.sequence + frame.count

    @property
    def session(self) -> str:
        return ""

    def refused(self, batch: Batch, error: LogError, log: Log) -> None:
        self.disconnect()
        if isinstance(error, ForgottenPush):
            epoch, next = log.numbered("t", self.partition, self.number) or (0, 0)
            self.skip = next if epoch == self.epoch else 0

    def disconnect(self) -> None:
        Client.disconnect(self)
        self.place = self.skip = 0
        for batch in self.batches:
            batch.is_answered = False


class Named(Steady):
    """A program with a name, which is started anew: it ends the one before it, and does not know what that one did."""

    name = "named"
    is_exact = False

    def send(self, log: Log, *, more: bool = True) -> None:
        if self.identity is None:
            self.identity = log.producer(self.called)
        super().send(log, more=more)

    def renumber(self, log: Log) -> None:
        self.restart(log)

    def restart(self, log: Log) -> None:
        self.disconnect()
        self.batches, self.sequence, self.identity = [], 0, None
