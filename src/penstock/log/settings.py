"""The settings of a log: levels, acknowledgement, retention; and the paper's equation (1) and Table II for them."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.log.errors import BadSettings

MEGABYTE = 1 << 20
PACKET = 1500
"""The overlap that the paper chooses: what one Ethernet packet can ask for."""


class Acknowledge(enum.IntEnum):
    """What must have happened to a message before its push is answered."""

    MEMORY = 0
    WRITTEN = 1
    FSYNCED = 2

    def __str__(self) -> str:
        return self.name.lower()

    @staticmethod
    def of(text: str) -> Acknowledge:
        try:
            return Acknowledge[text.upper()]
        except KeyError:
            known = ", ".join(str(mode) for mode in Acknowledge)
            raise BadSettings(f"an acknowledgement {text!r}", None, f"one of {known}") from None


class Kind(enum.Enum):
    """Where a level keeps its bytes."""

    MEMORY = "memory"
    SHARED = "shared"
    MAPPED = "mapped"


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """A ring of `capacity` bytes. `latency` is how many seconds the next level may take to have what it is given."""

    kind: Kind
    capacity: int
    batch: int = 16 << 10
    overlap: int = PACKET
    latency: float = 0.001

    def acceptable_latency(self, throughput: float) -> float:
        """The right side of equation (1), in seconds."""
        return (self.capacity - (self.batch + self.overlap)) / throughput

    def capacity_for(self, throughput: float) -> int:
        """The smallest capacity that satisfies equation (1)."""
        return math.floor(self.latency * throughput) + self.batch + self.overlap + 1

    def available_time(self, throughput: float) -> float:
        """How long a message can be read here, in seconds: Table II."""
        return self.capacity / throughput


@dataclass(frozen=True, slots=True)
class Violation:
    """A level that violates equation (1), and the capacity that would not."""

    level: int
    settings: LevelSettings
    throughput: float
    capacity: int

    def __str__(self) -> str:
        acceptable = self.settings.acceptable_latency(self.throughput)
        return (
            f"level {self.level} ({self.settings.kind.value}) of {self.settings.capacity} bytes overwrites messages"
            f" before the next level has them: {self.settings.latency:g} s is not less than {acceptable:g} s"
            f" at {self.throughput:g} bytes/s"
        )


DEFAULT_LEVELS = (
    LevelSettings(Kind.MEMORY, 1 * MEGABYTE, batch=1472),
    LevelSettings(Kind.SHARED, 4 * MEGABYTE, batch=32 << 10, latency=0.02),
)


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept: the oldest segments go when there are more bytes, or when they are older (seconds)."""

    bytes: int | None = None
    age: float | None = None
    by_message_time: bool = False
    """Whether `age` is that of the times in the messages, which publishers give, and not the time since the append."""


@dataclass(frozen=True, slots=True)
class Kafka:
    """A Kafka that is the last level instead of files. Our topics are its topics, and our offsets are its offsets.

    This log must be the only one that writes to these topics.
    """

    servers: str
    """Like `host:9092,other:9092`."""
    prefix: str = ""
    """What the names of its topics begin with: a topic `cars` is then `<prefix>cars` there."""
    fsync: bool = True
    """Whether its topics flush every append, so that `fsynced` can be promised."""
    timeout: float = 10.0
    """Seconds after which a push that Kafka has not answered fails, and an answer to a reader too."""
    stall: float = 1.0
    """Seconds without a sign of Kafka after which a push that finds no room fails at once."""
    buffer: int = 64 * MEGABYTE
    """Bytes on their way to Kafka, of all partitions together, besides what the levels hold."""
    replicas: int | None = None
    """How many copies new topics have; otherwise as many as Kafka is set to."""
    compression: str = "lz4"
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Further settings of librdkafka, as for TLS and passwords."""

    def __post_init__(self) -> None:
        if not self.servers or min(self.timeout, self.stall) <= 0 or self.buffer < MEGABYTE:
            raise BadSettings(f"settings that cannot be: {self}", None,
                              f"give servers, seconds above zero and a buffer of {MEGABYTE} bytes or more")  # fmt: skip
        if not re.fullmatch(r"[A-Za-z0-9._-]{0,40}", self.prefix):
            raise BadSettings(f"a prefix {self.prefix!r}", None, "letters, digits, '.', '_' and '-', at most 40")


@dataclass(frozen=True, slots=True)
class Settings:
    levels: tuple[LevelSettings, ...] = DEFAULT_LEVELS
    throughput: float = 100e6
    """Bytes per second that are written into a partition: what equation (1) is computed for."""
    segment_bytes: int = 128 * MEGABYTE
    index_every: int = 4096
    """Bytes of a segment from one entry of its index to the next."""
    retention: Retention = field(default_factory=Retention)
    flush_after: float = 1.0
    """Seconds after which a message is fsynced although nobody waits for it."""
    producers: int = 100_000
    """How many numbered producers a partition remembers: those that wrote last."""
    last: Kafka | None = None
    """The durable level: files, or Kafka."""

    def __post_init__(self) -> None:
        for number, level in enumerate(self.levels, 1):
            if min(level.capacity, level.batch, level.overlap + 1) <= 0 or level.latency < 0:
                raise BadSettings(f"level {number} has sizes below zero: {level}", None, "give positive numbers")
        for number, (level, after) in enumerate(zip(self.levels, self.levels[1:], strict=False), 2):
            if after.capacity - after.overlap < level.capacity - level.overlap:
                raise BadSettings(f"level {number} holds less than the one before it", None,
                                  f"capacity={level.capacity - level.overlap + after.overlap} or more")  # fmt: skip
        found = self.violations()
        if found:
            fixes = "; ".join(f"capacity={one.capacity} for level {one.level}" for one in found)
            raise BadSettings("; ".join(map(str, found)), None, f"at least {fixes}, or a lower throughput")
        if self.throughput <= 0 or self.flush_after <= 0 or self.index_every <= 0 or self.segment_bytes < 4096:
            raise BadSettings(f"sizes that cannot be: {self}", None, "segments of 4096 bytes or more, no zeros")

        if self.last is not None and self.retention != Retention():
            raise BadSettings("a retention for messages that are in Kafka", None,
                              "set retention.bytes and retention.ms of the topic in Kafka")  # fmt: skip

    def violations(self) -> tuple[Violation, ...]:
        """The levels that violate equation (1)."""
        return tuple(
            Violation(number, level, self.throughput, level.capacity_for(self.throughput))
            for number, level in enumerate(self.levels, 1)
            if not level.latency < level.acceptable_latency(self.throughput)
        )


def available_times(settings: Settings, throughputs: Sequence[float] = (1e6, 100e6, 300e6)) -> list[tuple[float, ...]]:
    """Table II for these levels: for each, the seconds that a message stays at each of the throughputs."""
    return [tuple(level.available_time(throughput) for throughput in throughputs) for level in settings.levels]
