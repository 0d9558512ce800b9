"""Topics of Kafka as sinks: tasks stage frames, and the driver sends a batch in one transaction with its number.

The transactions have the name of the stream and the channel, so that one process at a time writes there. For less than
exactly once there are no transactions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.delivery import EXACTLY_ONCE, IN_ORDER, includes
from penstock.endpoints.kafka import KafkaTopic
from penstock.errors import BadEndpoint, PenstockError
from penstock.log.headers import read_headers
from penstock.spark.write.connections import connection
from penstock.spark.write.frames import staged_frames
from penstock.spark.write.intent import BatchKey, StagedFile
from penstock.spark.write.outlets import Target

if TYPE_CHECKING:
    from penstock.kafka.client import Place
    from penstock.kafka.sending import Outgoing, Sender

_FIRST, _ANY = 0, -1


def prepare(targets: Mapping[int, Target]) -> None:
    """Make the topics that are not there, before anything runs."""
    for target in targets.values():
        if isinstance(target.topic, KafkaTopic):
            _prepare(target, target.topic)


def _prepare(target: Target, end: KafkaTopic) -> None:
    try:
        from penstock.kafka import topic
        from penstock.kafka.client import Place

        topic.prepare(Place.of(end), end.partitions)
    except PenstockError as error:
        raise BadEndpoint(f"{target.called} writes to {end}: {error.what}", fix=error.fix) from None


def send(files: list[StagedFile], target: Target, key: str) -> None:
    """The messages of a batch, in the order of its tasks; nothing if they are there already."""
    if not files:
        return
    from penstock.kafka.client import Place

    end, batch = target.topic, BatchKey.of(key)
    assert isinstance(end, KafkaTopic)
    place = Place.of(end)
    name = f"penstock-{batch.stream}-{target.name}" if includes(target.delivery, EXACTLY_ONCE) else None
    try:
        with connection((place, name), partial(_sender, place, name)) as sender:
            if name is None:
                sender.send(_outgoing(files, target))
                return
            missing = next((file.path for file in files if not os.path.exists(file.path)), None)
            if missing is not None and batch.number != sender.next - 1:
                # They are removed when all is published: so it must be there.
                raise BadEndpoint(f"batch {batch.stream}-{batch.number} was computed for {end}, but {missing} is gone",
                                  fix="restore it, or start with a new checkpoint")  # fmt: skip
            sender.publish(_outgoing(files, target), batch.number, key)
    except PenstockError as error:
        fix = f"{error.fix}; then start again: what was computed is not lost" if error.fix else None
        raise BadEndpoint(f"{target.called} cannot write to {end}: {error.what}", fix=fix) from None


def _sender(place: Place, name: str | None) -> Sender:
    from penstock.kafka.sending import Sender

    return Sender(place, name)


def _outgoing(files: Iterable[StagedFile], target: Target) -> Iterator[Outgoing]:
    """The staged messages. Where order is promised, all that have no key go to one partition."""
    from penstock.kafka.sending import Outgoing

    anywhere = _FIRST if target.delivery == IN_ORDER else _ANY
    for file in files:
        for frame in staged_frames(file.path):
            keys = frame.keys.to_pylist()
            headers = frame.headers.to_pylist()
            for value, key, raw in zip(frame.values.to_pylist(), keys, headers, strict=True):
                texts = [(name, text.encode()) for name, text in read_headers(raw).items()] if raw else None
                yield Outgoing(value, key, texts, anywhere if key is None else _ANY)
