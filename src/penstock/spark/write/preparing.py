"""Make the tables and topics that sinks need before a run, or say why that is not possible."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spark.write import kafka, logs, postgres
from penstock.spark.write.outlets import Target


def prepared(targets: Mapping[int, Target]) -> dict[int, Target]:
    """Make what is missing; returns the targets with the number of partitions of their topics."""
    postgres.prepare(targets.values())
    kafka.prepare(targets)
    return logs.prepared(targets)
