"""What a partition and its levels have done so far, and what they should do by equation (1) and Table II."""

from __future__ import annotations

import time
from dataclasses import replace

from penstock.log.levels.level import Ring
from penstock.log.partition import Partition
from penstock.log.records import LevelStatistics, PartitionStatistics
from penstock.log.settings import Violation


def partition_statistics(partition: Partition) -> PartitionStatistics:
    throughput = partition.bytes_in / max(time.monotonic() - partition.opened, 1e-6)
    store = partition.store
    return PartitionStatistics(
        topic=partition.topic,
        partition=partition.number,
        ends=partition.ends(),
        levels=tuple(_level_statistics(level, throughput) for level in partition.stack.levels),
        throughput=throughput,
        stored_bytes=store.size,
        segments=store.pieces,
        writes=store.writes,
        syncs=store.syncs,
        broken=partition.broken or partition.trouble,
    )


def _level_statistics(level: Ring, throughput: float) -> LevelStatistics:
    counters, settings = level.counters, level.settings
    return LevelStatistics(
        level=level.number,
        kind=settings.kind.value,
        capacity=settings.capacity,
        first=level.first,
        next=level.next,
        hits=counters.hits,
        misses=counters.misses,
        frames_written=counters.frames_written,
        bytes_written=counters.bytes_written,
        bytes_read=counters.bytes_read,
        batches=counters.batches,
        mean_batch=counters.batch_bytes / max(counters.batches, 1),
        largest_batch=counters.largest_batch,
        available=counters.available,
        available_computed=settings.available_time(throughput) if throughput else None,
        latency=counters.latency,
        violation=_violation(level, throughput),
    )


def _violation(level: Ring, throughput: float) -> str | None:
    """How the measured numbers violate equation (1), as text; None if they do not."""
    latency = level.counters.latency
    if not throughput or latency is None or latency < level.settings.acceptable_latency(throughput):
        return None
    measured = replace(level.settings, latency=latency)
    capacity = measured.capacity_for(throughput)
    return f"{Violation(level.number, measured, throughput, capacity)}; capacity={capacity} would do"
