"""A finding: damage in a file of the log, and what was done about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a file that is not as it was written, and what was done about it."""

    path: str
    position: int
    first: int
    next: int | None
    what: str
    done: str

    def __str__(self) -> str:
        upto = "" if self.next is None else f" to {self.next - 1}"
        return f"{self.path} byte {self.position}, offset {self.first}{upto}: {self.what}; {self.done}"
