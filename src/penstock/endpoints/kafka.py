"""A topic of Kafka, as a source and as a sink. `penstock.log` can have its messages in Kafka too; this is not that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.delivery import IN_ORDER
from penstock.endpoints.base import Sink, Source
from penstock.endpoints.variables import VARIABLE, filled
from penstock.errors import BadEndpoint
from penstock.formats import Format, Text

LOCAL = "127.0.0.1:9092"
EARLIEST, LATEST = "earliest", "latest"
Offsets = str | Mapping[int, int] | tuple[tuple[int, int], ...]

_SECRET = re.compile(r"password|secret|token|oauthbearer\.config|\.pem$")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OWN = {
    "bootstrap.servers": "servers=",
    "auto.offset.reset": "start=",
    "group.id": None,
    "transactional.id": None,
    "enable.idempotence": None,
    "enable.auto.commit": None,
    "enable.partition.eof": None,
}
"""Settings of the client that belong to Penstock, and what to write instead."""


@dataclass(frozen=True, slots=True)
class KafkaTopic(Source, Sink):
    """A topic of a Kafka cluster at `servers`, like `host:9092,other:9092`.

    As a source: `start` is `earliest`, `latest`, or offsets by partition, and is where a new stream or a batch begins;
    `end` is where a batch ends. As a sink: `key`, `partitions` and `headers` as with `Log`. `options` are further
    settings of the client librdkafka by their names, as for TLS and passwords; `${NAME}` in them is an environment
    variable.
    """

    topic: str
    format: Format | None = None
    servers: str = LOCAL
    start: Offsets = EARLIEST
    end: Offsets = LATEST
    key: str | None = None
    partitions: int | None = None
    headers: bool = False
    options: Mapping[str, str] | tuple[tuple[str, str], ...] = field(default=(), repr=False)

    kind: ClassVar[str] = "kafka"
    guarantee: ClassVar[str] = "messages and the number of the batch are one transaction"
    delivery: ClassVar[str] = IN_ORDER

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.topic) or self.topic in (".", ".."):
            raise BadEndpoint(f"{self.topic!r} is not the name of a Kafka topic",
                              fix="letters, digits, '.', '_' and '-', at most 249")  # fmt: skip
        if not self.servers:
            raise BadEndpoint(f"topic {self.topic!r} is nowhere", fix=f"write servers='{LOCAL}'")
        if self.partitions is not None and self.partitions < 1:
            raise BadEndpoint(f"partitions={self.partitions}: at least 1 is needed")
        object.__setattr__(self, "start", _offsets("start", self.start))
        object.__setattr__(self, "end", _offsets("end", self.end))
        object.__setattr__(self, "options", _pairs(self.options))

    @property
    def has_secret(self) -> bool:
        """A password is written out in the options, not named as a variable."""
        return any(_SECRET.search(name) and VARIABLE.sub("", value) for name, value in _pairs(self.options))

    def full_options(self) -> tuple[tuple[str, str], ...]:
        """The options with the variables' values: never shown."""
        naming = f"the options of Kafka topic {self.topic!r} name"
        return tuple((name, filled(value, naming)) for name, value in _pairs(self.options))

    @property
    def body_format(self) -> Format:
        return self.format or Text()

    def __str__(self) -> str:
        return f"kafka {self.topic} at {self.servers}"


def _offsets(name: str, given: Offsets) -> Offsets:
    fix = f"write {name}='{EARLIEST}', {name}='{LATEST}', or {name}={{0: 100, 1: 250}} for partitions 0 and 1"
    if isinstance(given, str):
        if given not in (EARLIEST, LATEST):
            raise BadEndpoint(f"{name}={given!r} is not a place in a topic", fix=fix)
        return given
    pairs = sorted(dict(given).items())
    if not all(isinstance(one, int) and one >= 0 for pair in pairs for one in pair):
        raise BadEndpoint(f"{name}={dict(pairs)!r} are not offsets by partition", fix=fix)
    return tuple(pairs)


def _pairs(given: Mapping[str, str] | tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    # YAML and Python have words for true and false that the client does not read.
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in dict(given).items()}
    pairs = tuple(sorted(texts.items()))
    for name, _ in pairs:
        if name.startswith("kafka."):
            raise BadEndpoint(f"option {name!r}: names are those of librdkafka", fix=f"write {name[6:]!r}")
        if name in _OWN:
            instead = f"write {_OWN[name]}... instead" if _OWN[name] else "leave it out"
            raise BadEndpoint(f"option {name!r} is set by Penstock itself", fix=instead)
    return pairs
