"""What became of the messages of a run, and the path of one of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from penstock.message import DeadLetter, Message
from penstock.summary import Step, Summary


@dataclass
class Outcome:
    """Where every message ended: received + copied = delivered + filtered + dead + held.

    `held` is how many more messages wait than before. `batches` has the same numbers for each batch.
    `steps` has the numbers of `summary.Step` for every "route.step".
    """

    received: int = 0
    copied: int = 0
    channels: dict[str, list[Message]] = field(default_factory=dict)
    filtered: Counter[str] = field(default_factory=Counter)
    dead: list[DeadLetter] = field(default_factory=list)
    held: int = 0
    batches: list[Outcome] = field(default_factory=list)
    steps: dict[str, Counter[str]] = field(default_factory=dict)

    def summary(self, app: str) -> Summary:
        delivered = {channel: len(messages) for channel, messages in self.channels.items()}
        batches = len(self.batches) or 1
        steps = {title: Step(**numbers) for title, numbers in self.steps.items()}
        return Summary(
            app, batches, self.received, self.copied, delivered, self.filtered, len(self.dead), self.held, steps=steps
        )

    def add(self, other: Outcome) -> None:
        self.received += other.received
        self.copied += other.copied
        for channel, messages in other.channels.items():
            self.channels.setdefault(channel, []).extend(messages)
        self.filtered.update(other.filtered)
        self.dead.extend(other.dead)
        self.held += other.held
        for title, numbers in other.steps.items():
            self.steps.setdefault(title, Counter()).update(numbers)


@dataclass(frozen=True)
class TraceStep:
    """One step of one message: what it asked, what it got, what became of it."""

    route: str
    step: str
    pattern: str
    values: tuple[tuple[str, Any], ...]
    outcome: str


@dataclass(frozen=True)
class Trace:
    steps: tuple[TraceStep, ...]
    outcome: Outcome

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            lines.append(f"{step.route}.{step.step}  ({step.pattern})  {step.outcome}")
            lines.extend(
                f"    {text} = {json.dumps(value, ensure_ascii=False, default=str)}" for text, value in step.values
            )
        return "\n".join(lines)
