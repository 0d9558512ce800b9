"""Read whole numbers that people write."""

from __future__ import annotations

_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """A number without sign and fraction that fits into 64 bits; None if the text is something else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
