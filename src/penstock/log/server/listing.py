"""Lists that may be long, in pages that fit into an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.log.errors import UnknownTopic
from penstock.log.log import Log
from penstock.log.records import Topic
from penstock.log.wire.requests import TopicList, Topics

PAGE_BYTES = 48 << 10
"""Of the head of an answer over TCP, whose largest size includes what stands around a list."""
_BESIDE = 32
"""Bytes of a topic beside its name: its partitions and its identity."""


def topic_page(known: Mapping[str, Topic], asked: Topics) -> TopicList:
    if asked.name in known:
        topic = known[asked.name]
        return TopicList({topic.name: topic.partitions}, (topic.identity,))
    names = sorted(name for name in known if name > asked.after)
    most = len(names) if asked.most <= 0 else asked.most
    size, count = 0, 0
    for name in names[:most]:
        size += len(name) + _BESIDE
        if size > PAGE_BYTES:
            break
        count += 1
    page = [known[name] for name in names[:count]]
    partitions = {topic.name: topic.partitions for topic in page}
    return TopicList(partitions, tuple(topic.identity for topic in page), count < len(names))


def statistics_page(
    log: Log, after: tuple[str, int] | None, most: int = 0, most_bytes: int = PAGE_BYTES
) -> tuple[dict[str, Any], tuple[str, int] | None]:
    """The numbers of the log with those of some partitions, and the last of them if others are behind it."""
    places = [place for place in log.places() if after is None or place > after]
    found: list[Any] = []
    size = 0
    for place in places:
        if len(found) == most > 0:
            break
        try:
            numbers = log.partition_statistics(*place)
        except UnknownTopic:  # deleted a moment ago
            continue
        one: Any = msgspec.to_builtins(numbers, enc_hook=str, str_keys=True)
        size += len(msgspec.msgpack.encode(one))
        if found and size > most_bytes:
            break
        found.append(one)
    rounds, pushes = log.rounds
    last = (found[-1]["topic"], found[-1]["partition"]) if found else None
    next = last if last is not None and last < places[-1] else None
    return {"partitions": found, "rounds": rounds, "pushes": pushes}, next
