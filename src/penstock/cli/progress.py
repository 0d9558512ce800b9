"""Show a live line on the terminal while a run is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.output import is_terminal
from penstock.summary import Summary

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """`with Progress("starting") as progress: ... progress.show(summary)`"""

    def __init__(self, text: str) -> None:
        self.text = text
        self.status: Status | None = None

    def __enter__(self) -> Progress:
        if is_terminal():
            from rich.console import Console

            self.status = Console(stderr=True).status(self.text)
            self.status.start()
        return self

    def __exit__(self, *failed: object) -> None:
        if self.status is not None:
            self.status.stop()

    def say(self, text: str) -> None:
        if self.status is not None:
            from rich.text import Text

            self.status.update(Text(text))

    def show(self, summary: Summary) -> None:
        batches = "1 batch" if summary.batches == 1 else f"{summary.batches:,} batches"
        self.say(f"{summary.received:,} messages, {summary.rate:,.0f}/s, {batches}, {summary.dead:,} dead")
