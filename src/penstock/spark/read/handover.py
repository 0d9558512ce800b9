"""Hand over, in small files, the offsets that Spark has planned for a batch, and how many messages the batch had.

Spark asks a source for the offsets of a batch in a Python process of its own, and files beside the checkpoint bring
them to the driver. When the batch has run, the driver writes back how many messages it had, for Spark's statistics.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import msgspec

from penstock.durable import write_whole


class Planned(msgspec.Struct, frozen=True):
    """The offsets of a batch: it has everything behind `start`, up to `end`."""

    start: dict[str, Any]
    end: dict[str, Any]


class Handover:
    """The files of one source of a stream, by its number; those of an earlier process are removed."""

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
        """The offsets of the batch that begins now; None if the source has nothing new, so that Spark did not ask."""
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
        """How many messages the batch had; 0 before they are counted."""
        with suppress(FileNotFoundError), open(self.count, encoding="utf-8") as file:
            return int(file.read())
        return 0
