"""The results that a log returns: topics, receipts, messages that were read, ends and statistics."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.log.frame import Frame
from penstock.log.settings import Acknowledge


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    identity: str = ""
    """Which of the topics of this name it is, if others were deleted."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where messages are, and what was done for them. A duplicate was there already."""

    topic: str
    partition: int
    first: int
    count: int
    acknowledged: Acknowledge
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The messages from `first` to before `next`; `level` is where the first was found: 1, 2, ... or 0, the store."""

    frames: tuple[Frame, ...]
    first: int
    next: int
    level: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The first offset there is, the one after the last readable message, and the one after the last fsynced."""

    first: int
    next: int
    durable: int


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """One level of a partition. `available` is measured: how long the message overwritten last had been there."""

    level: int
    kind: str
    capacity: int
    first: int
    next: int
    hits: int
    misses: int
    frames_written: int
    bytes_written: int
    bytes_read: int
    batches: int
    mean_batch: float
    largest_batch: int
    available: float | None
    available_computed: float | None
    latency: float | None
    """Measured, in seconds: the longest time from a write here to its arrival in the next level."""
    violation: str | None
    """What equation (1) says with what was measured, if it is violated."""


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    topic: str
    partition: int
    ends: Ends
    levels: tuple[LevelStatistics, ...]
    throughput: float
    """Bytes per second, measured since the partition was opened."""
    stored_bytes: int
    segments: int
    writes: int
    syncs: int
    broken: str | None
    """Why nothing can be written to it, or removed from it, if so."""


@dataclass(frozen=True, slots=True)
class Statistics:
    partitions: tuple[PartitionStatistics, ...]
    rounds: int
    """Rounds of group commit."""
    pushes: int
    """Appends that those rounds acknowledged."""
