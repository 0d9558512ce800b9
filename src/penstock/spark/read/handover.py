"""What Spark has planned for a batch of a source, and how many messages that were: small files beside the checkpoint.

Spark asks a source what a batch reads in a process of its own, before the batch begins; the messages are counted when
it has run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import msgspec

from penstock.durable import write_whole


class Planned(msgspec.Struct, frozen=True):
    """A batch has what is behind `start`, up to `end`."""

    start: dict[str, Any]
    end: dict[str, Any]


class Handover:
    """Of one source of a stream, by its number. What an earlier process left there is forgotten, and need not last."""

    def __init__(self, directory: str, number: int) -> None:
        self.planned, self.count = (os.path.join(directory, f"{number}.{kind}") for kind in ("planned", "count"))
        self.reached: dict[str, Any] | None = None
        os.makedirs(directory, exist_ok=True)
        for path in (self.planned, self.count):
            with suppress(FileNotFoundError):
                os.remove(path)

    def plan(self, start: dict[str, Any], end: dict[str, Any]) -> None:
        write_whole(self.planned, msgspec.json.encode(Planned(start, end)), lasting=False)

    def take(self) -> Planned | None:
        """What the batch that begins now has; None if there is nothing new for it, and Spark has not asked."""
        try:
            with open(self.planned, "rb") as file:
                planned = msgspec.json.decode(file.read(), type=Planned)
        except FileNotFoundError:
            return None
        os.remove(self.planned)
        assert self.reached in (None, planned.start), "a batch begins where the one before ended"
        self.reached = planned.end
        return planned

    def counted(self, messages: int) -> None:
        write_whole(self.count, str(messages).encode(), lasting=False)

    def messages(self) -> int:
        """How many the batch had, as far as they are counted."""
        with suppress(FileNotFoundError), open(self.count, encoding="utf-8") as file:
            return int(file.read())
        return 0
