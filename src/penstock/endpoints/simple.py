"""Small endpoints: a DataFrame, a generator at a steady rate, the console, and Void, which drops messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.endpoints.base import Sink, Source
from penstock.errors import BadEndpoint
from penstock.formats import Format, Json, Text


@dataclass(frozen=True, slots=True)
class Frame(Source):
    """A Spark DataFrame, batch or streaming, with raw bodies in one column.

    Columns named id, headers, topic, partition, offset and time are used when they are there. `replays` says that a
    streaming DataFrame gives the same rows again after a crash, as that of a Kafka topic does.
    """

    dataframe: Any = field(compare=False, repr=False)
    format: Format
    column: str = "value"
    replays: bool = False

    kind: ClassVar[str] = "dataframe"
    ordered: ClassVar[bool] = False

    @property
    def replayable(self) -> bool:
        return self.replays

    @property
    def body_format(self) -> Format:
        return self.format


def _counter(index: int) -> bytes:
    return b'{"value": %d}' % index


@dataclass(frozen=True, slots=True)
class Rate(Source):
    """Messages made by a function of their number: so many a second on a stream, `count` of them in a batch."""

    per_second: int = 10
    count: int = 100
    message: Callable[[int], bytes] = field(default=_counter, repr=False)
    format: Format | None = None

    kind: ClassVar[str] = "rate"

    def __post_init__(self) -> None:
        if self.per_second < 1 or self.count < 0:
            raise BadEndpoint(f"rate of {self.per_second} a second, {self.count} in all: both must be positive")

    @property
    def body_format(self) -> Format:
        if self.format is None:
            return Json("value BIGINT") if self.message is _counter else Text()
        return self.format

    def __str__(self) -> str:
        return f"rate {self.per_second}/s"


@dataclass(frozen=True, slots=True)
class Void(Sink):
    """Count the messages and forget them."""

    kind: ClassVar[str] = "void"
    guarantee: ClassVar[str] = "nothing is kept"


@dataclass(frozen=True, slots=True)
class Console(Sink):
    """Print the first messages of each batch."""

    rows: int = 20

    kind: ClassVar[str] = "console"
    guarantee: ClassVar[str] = "the batch that a crash interrupts may not be printed"
