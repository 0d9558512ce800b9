"""Before a run: tables and topics that sinks need are there, or an error says why not."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spark.write import kafka, logs, postgres
from penstock.spark.write.outlets import Target


def prepared(targets: Mapping[int, Target]) -> dict[int, Target]:
    """The targets, with what is known of them now."""
    postgres.prepare(targets.values())
    kafka.prepare(targets)
    return logs.prepared(targets)
