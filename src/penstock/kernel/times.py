"""When messages were made: what a batch knows of those that came to one place, so that their age is known later."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """How many messages, the mean of their times and the earliest of them, in seconds since 1970, if known."""

    messages: int = 0
    mean: float | None = None
    earliest: float | None = None

    @property
    def known(self) -> tuple[float, float] | None:
        """Mean and earliest, if there are messages."""
        if not self.messages or self.mean is None or self.earliest is None:
            return None
        return self.mean, self.earliest

    def __add__(self, other: Times) -> Times:
        messages, left, right = self.messages + other.messages, self.known, other.known
        if left is None or right is None:
            return Times(messages, *(left or right or ()))
        return Times(messages, left[0] + (right[0] - left[0]) * other.messages / messages, min(left[1], right[1]))
