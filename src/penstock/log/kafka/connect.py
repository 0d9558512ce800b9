"""Connect a log to Kafka; the Kafka client is loaded only if Kafka is set as the last level."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.log.records import Topic
from penstock.log.settings import Kafka
from penstock.log.store.disk import Disk

if TYPE_CHECKING:
    from penstock.log.kafka.connection import Connection
    from penstock.log.partition import OpenLast


class Connected:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, disk: Disk, topic: Topic, directory: Path, places: list[Path]) -> OpenLast:
        """Make or check the Kafka topic of a topic; returns what opens its partitions."""
        from penstock.log.kafka.opening import Opening

        return Opening(self._connection, disk, self._connection.prepare(disk, topic, directory), places).open

    def close(self) -> None:
        self._connection.close()


def connect(kafka: Kafka) -> Connected:
    importlib.import_module("penstock.log.kafka.client")  # says what is missing
    from penstock.log.kafka.connection import Connection

    return Connected(Connection(kafka))
