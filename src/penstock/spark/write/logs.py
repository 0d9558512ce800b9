"""Topics of the message log as sinks: tasks stage frames, and the driver appends them, each message at most once.

The producer of the numbers is the stream and the channel, its epoch the batch, and in every partition the messages of a
batch are counted from 0. A log stores a number once, so a batch that is published again changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from penstock.delivery import EXACTLY_ONCE, IN_ORDER, includes
from penstock.endpoints import log as endpoint
from penstock.errors import BadEndpoint, PenstockError
from penstock.log.client.address import Address
from penstock.log.client.catalogue import listed
from penstock.log.client.connection import Connection
from penstock.log.errors import StaleProducer
from penstock.log.frame import NOBODY, Frame
from penstock.log.log import Log
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests
from penstock.log.wire.errors import RETRIED, NoServer, TooMany, error_of
from penstock.spark.write.connections import connection
from penstock.spark.write.frames import UNKEYED, staged_frames
from penstock.spark.write.intent import BatchKey, StagedFile
from penstock.spark.write.outlets import Target

PATIENCE_SECONDS = 10.0
_PAUSE = 0.1

Placed = tuple[int, Frame]


class Appender(Protocol):
    """A log that takes messages."""

    def create(self, topic: str, partitions: int | None) -> int:
        """How many partitions the topic has; it is made if it is not there."""

    def push(self, topic: str, frames: Iterable[Placed], acknowledge: Acknowledge) -> None:
        """Append frames to their partitions; they are as safe as `acknowledge` says when this ends."""

    def numbered(self, topic: str, partition: int, producer: int) -> tuple[int, int] | None:
        """The epoch of a producer and its next number in a partition, if it is known there."""

    def close(self) -> None: ...


class DirectoryAppender:
    """A log in a directory, opened by this process: nobody else may have it open."""

    def __init__(self, directory: str) -> None:
        self.log = Log(Path(directory))

    def create(self, topic: str, partitions: int | None) -> int:
        known = self.log.topics().get(topic)
        if known is not None and partitions in (None, known.partitions):
            return known.partitions
        return self.log.create(topic, partitions or 1).partitions

    def push(self, topic: str, frames: Iterable[Placed], acknowledge: Acknowledge) -> None:
        waiting: list[Future[Receipt]] = []
        for partition, frame in frames:
            waiting.append(self.log.append(topic, partition, frame, acknowledge))
        for future in waiting:
            future.result()

    def numbered(self, topic: str, partition: int, producer: int) -> tuple[int, int] | None:
        return self.log.numbered(topic, partition, producer)

    def close(self) -> None:
        self.log.close()


class ServerAppender:
    """A log behind a server: many pushes are on the way at once."""

    def __init__(self, address: Address) -> None:
        self.connection = Connection(address)

    def create(self, topic: str, partitions: int | None) -> int:
        known = {one.name: one.partitions for one in listed(self.connection.ask(requests.Topics(topic))[0])}
        if topic in known and partitions in (None, known[topic]):
            return known[topic]
        self.connection.ask(requests.Create(topic, partitions or 1))
        return partitions or 1

    def push(self, topic: str, frames: Iterable[Placed], acknowledge: Acknowledge) -> None:
        waiting: dict[int, int] = {}
        for partition, frame in frames:
            while waiting and sum(waiting.values()) + frame.bytes > self.connection.welcome.credit:
                self._answered(waiting)
            number = self.connection.send(requests.Push(topic, partition, str(acknowledge)), frame.data)
            waiting[number] = frame.bytes
        while waiting:
            self._answered(waiting)

    def _answered(self, waiting: dict[int, int]) -> None:
        received = self.connection.receive()
        assert received is not None
        number, reply, _ = received
        if isinstance(reply, requests.Refused):
            if reply.number in RETRIED:
                raise NoServer(reply.what, None, reply.fix)
            raise error_of(reply.number, reply.what, reply.fix)
        waiting.pop(number, None)

    def numbered(self, topic: str, partition: int, producer: int) -> tuple[int, int] | None:
        found = self.connection.ask(requests.AskNumber(topic, partition, producer))[0]
        assert isinstance(found, requests.NumberIs)
        return None if found.epoch < 0 else (found.epoch, found.next)

    def close(self) -> None:
        self.connection.close()


@contextmanager
def _appender(end: endpoint.Log) -> Iterator[Appender]:
    """A log behind a server is opened anew after an error: answers may be on the way that nobody waits for."""
    if end.is_served:
        address = Address.of(end.at, end.full_token(), end.tls, end.authority)
        with connection(address, lambda: ServerAppender(address)) as served:
            yield served
    else:
        directory = os.path.realpath(end.at)
        with connection(directory, lambda: DirectoryAppender(directory), drop=False) as opened:
            yield opened


def prepared(targets: Mapping[int, Target]) -> dict[int, Target]:
    """Make the topics that are not there, and note how many partitions they have, before anything runs."""
    return {
        place: _prepared(target, target.topic) if isinstance(target.topic, endpoint.Log) else target
        for place, target in targets.items()
    }


def _prepared(target: Target, end: endpoint.Log) -> Target:
    try:
        with _appender(end) as appender:
            return replace(target, partitions=appender.create(end.topic, end.partitions))
    except PenstockError as error:
        raise BadEndpoint(f"{target.called} writes to {target.topic}: {error.what}", fix=error.fix) from None
    except OSError as error:
        raise BadEndpoint(f"{target.called} cannot write to {target.topic}: {error}") from None


def append(files: list[StagedFile], target: Target, key: str) -> None:
    """The messages of a batch, in the order of its tasks; those that are there already are not stored again."""
    if not files:
        return
    end, deadline = target.topic, time.monotonic() + PATIENCE_SECONDS
    assert isinstance(end, endpoint.Log)
    once, skip = includes(target.delivery, EXACTLY_ONCE), False
    while True:
        try:
            with _appender(end) as appender:
                _append(appender, end.topic, files, target, BatchKey.of(key), once, skip)
            return
        except (NoServer, TooMany) as error:
            if not once or time.monotonic() + _PAUSE > deadline:
                raise _refused(target, error) from None
        except StaleProducer as error:
            # Either another one writes, or frames are stored for so long that the log has forgotten where.
            if skip or not once:
                raise _refused(target, error) from None
            skip = True
        except PenstockError as error:
            raise _refused(target, error) from None
        time.sleep(_PAUSE)


def _refused(target: Target, error: PenstockError) -> PenstockError:
    if isinstance(error, BadEndpoint):
        return error
    return BadEndpoint(f"{target.called} cannot append to {target.topic}: {error.what}",
                       fix="mend the log or its server and start again: what was computed is not lost")  # fmt: skip


def _append(
    appender: Appender, topic: str, files: list[StagedFile], target: Target, batch: BatchKey, once: bool, skip: bool
) -> None:
    """With `skip`, what the log says it has is not pushed again."""
    producer = producer_of(batch, target)
    missing = [file.path for file in files if not os.path.exists(file.path)]
    if missing:
        # They are removed when all is published: so it must be there.
        _check_there(appender, topic, target, batch, sum(file.rows for file in files), missing[0])
        return
    frames = _numbered(files, target, producer if once else NOBODY, batch.number if once else 0)
    if skip:
        frames = _missing(frames, _next_numbers(appender, topic, target, batch))
    appender.push(topic, frames, Acknowledge.FSYNCED if target.lasts else Acknowledge.WRITTEN)


def producer_of(batch: BatchKey, target: Target) -> int:
    """The id of the producer for a channel of a stream, the same for all its batches."""
    name = f"{batch.stream}\0{target.name}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little") >> 2


def _next_numbers(appender: Appender, topic: str, target: Target, batch: BatchKey) -> list[int]:
    """How many messages of a batch every partition has."""
    producer = producer_of(batch, target)
    known = [appender.numbered(topic, number, producer) for number in range(target.partitions)]
    return [found[1] if found is not None and found[0] == batch.number else 0 for found in known]


def _missing(frames: Iterable[Placed], numbers: Sequence[int]) -> Iterator[Placed]:
    """Leave out what a partition has, but for the last of it: its answer says that all before it is as safe."""
    return (placed for placed in frames if placed[1].header.sequence + placed[1].count >= numbers[placed[0]])


def _check_there(
    appender: Appender, topic: str, target: Target, batch: BatchKey, rows: int, missing: str
) -> None:
    if sum(_next_numbers(appender, topic, target, batch)) != rows:
        raise BadEndpoint(f"batch {batch.stream}-{batch.number} was computed for {target.topic}, but {missing} is gone",
                          fix="restore it, or start with a new checkpoint")  # fmt: skip


def _numbered(files: Iterable[StagedFile], target: Target, producer: int, epoch: int) -> Iterator[Placed]:
    """The staged frames with their partitions and numbers: the same whenever this is done."""
    numbers: Counter[int] = Counter()
    for file in files:
        for frame in staged_frames(file.path):
            partition = _any_partition(file, target) if frame.first == UNKEYED else frame.first
            yield partition, frame.numbered(producer, epoch, numbers[partition])
            numbers[partition] += frame.count


def _any_partition(file: StagedFile, target: Target) -> int:
    """The partition for messages without a key: the first one where order is promised, else any."""
    return 0 if target.delivery == IN_ORDER else file.partition % target.partitions
