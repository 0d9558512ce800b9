"""The mean and the earliest time of the messages at a step or sink; with them latency is computed at publication."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """How many messages there were, and the mean and the earliest of their times, in seconds since 1970, if known."""

    messages: int = 0
    mean: float | None = None
    earliest: float | None = None

    @property
    def known(self) -> tuple[float, float] | None:
        """The mean and the earliest time; None if there is no message with a time."""
        if not self.messages or self.mean is None or self.earliest is None:
            return None
        return self.mean, self.earliest

    def __add__(self, other: Times) -> Times:
        messages, left, right = self.messages + other.messages, self.known, other.known
        if left is None or right is None:
            return Times(messages, *(left or right or ()))
        return Times(messages, left[0] + (right[0] - left[0]) * other.messages / messages, min(left[1], right[1]))
