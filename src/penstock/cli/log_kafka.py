"""Kafka as the last level of a log that is served: its settings on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import BadEndpoint

if TYPE_CHECKING:
    from penstock.log.settings import Kafka


def last_level(servers: str, prefix: str, options: Sequence[str], fsync: bool) -> Kafka | None:
    """The Kafka that holds the messages; None for files."""
    from penstock.log.settings import Kafka

    if not servers:
        if prefix or options or not fsync:
            raise BadEndpoint("settings of Kafka, and no Kafka", None, "say where it is: --kafka host:9092")
        return None
    return Kafka(servers, prefix=prefix, fsync=fsync, options=tuple(map(_pair, options)))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadEndpoint(f"{name!r} is not a setting with its value", None,
                          "write --kafka-option name=value, with a name of librdkafka")  # fmt: skip
    return name, value
