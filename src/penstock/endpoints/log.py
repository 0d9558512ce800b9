"""Topics of the message log, as a source and as a sink."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.delivery import IN_ORDER
from penstock.endpoints.base import Sink, Source
from penstock.endpoints.variables import VARIABLE, filled
from penstock.errors import BadEndpoint
from penstock.formats import Format, Text

LOCAL = "127.0.0.1:19997"
KEY_HEADER = "key"
"""The header that a message's key becomes, and that becomes the key where headers are kept."""

_ADDRESS = re.compile(r"[^/\s]+:\d+")


@dataclass(frozen=True, slots=True)
class Log(Source, Sink):
    """A topic of a message log.

    `at` is the directory of the log, or `host:port` of its server. Messages are read from the files of a directory
    whoever writes there; written to they can be only while no server has it open. As a sink, `format` None keeps
    bodies that nothing rewrote as they are and writes the others as JSON. Messages with the same value of the field
    `key` are in one partition of the topic, which is made with `partitions` if it is not there. `headers` keeps the
    headers of messages too. `token` may name an environment variable, as in `${NAME}`.
    """

    topic: str
    format: Format | None = None
    at: str = LOCAL
    key: str | None = None
    partitions: int | None = None
    headers: bool = False
    token: str = field(default="", repr=False)
    tls: bool = False
    authority: str | None = None

    kind: ClassVar[str] = "log"
    guarantee: ClassVar[str] = "messages are numbered by batch, and a number is stored once"
    delivery: ClassVar[str] = IN_ORDER

    def __post_init__(self) -> None:
        from penstock.log.topics import check_name

        check_name(self.topic)
        object.__setattr__(self, "at", os.fspath(self.at))
        if not self.at:
            raise BadEndpoint(f"topic {self.topic!r} is nowhere", fix=f"write at='directory' or at='{LOCAL}'")
        if self.partitions is not None and self.partitions < 1:
            raise BadEndpoint(f"partitions={self.partitions}: at least 1 is needed")

    @property
    def is_served(self) -> bool:
        """The log is reached through its server."""
        return bool(_ADDRESS.fullmatch(self.at)) and not os.path.isdir(self.at)

    @property
    def has_secret(self) -> bool:
        """A token is written out, not named as a variable."""
        return bool(VARIABLE.sub("", self.token))

    def full_token(self) -> str:
        """The token itself: never shown."""
        return filled(self.token, f"the token of topic {self.topic!r} names")

    @property
    def body_format(self) -> Format:
        return self.format or Text()

    def __str__(self) -> str:
        return f"log {self.topic} at {self.at}"
