"""Redelivery on exception: a message that failed is tried again, alone, before it becomes a dead letter.

It is a property of a route, not a step. The message waits; the rest of its batch does not. Without a delay nobody
waits, where the step that failed can be tried again alone (`plan/retrying.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from penstock.errors import BadRoute, did_you_mean
from penstock.patterns.duration import duration_text, seconds
from penstock.patterns.key import check_number, check_option
from penstock.patterns.settings import write_settings
from penstock.patterns.strategy import AGGREGATE_FAILED

SETTINGS = ("attempts", "delay", "backoff", "cap", "jitter", "errors", "message")
CURRENT, ORIGINAL = "current", "original"
REDELIVERED = "redelivered"
SOONEST = 1e-6
"""Seconds: the shortest wait, if a message waits at all."""
# What another try may change; the fate of late, closed or unknown messages is decided.
ERRORS = ("FunctionFailed", "ScriptFailed", "MissingField", "NotInTable", AGGREGATE_FAILED)


@dataclass(frozen=True, slots=True)
class Redelivery:
    """`attempts` counts the tries after the first one. Times are seconds; no `errors` means all of `ERRORS`.

    The next try begins at the step that failed, with the body that came to it (`current`), or at the start of the
    route with the body that came there (`original`).
    """

    attempts: int = 5
    delay: float = 1.0
    backoff: float = 2.0
    cap: float = 60.0
    jitter: float = 0.0
    errors: tuple[str, ...] = ()
    message: str = CURRENT

    pattern: ClassVar[str] = "redelivery on exception"
    icon: ClassVar[str] = '<path d="M45,14 A15,15 0 1 0 47,25" marker-end="url(#small)"/>'

    @property
    def restarts(self) -> bool:
        return self.message == ORIGINAL

    def covers(self, error: str, attempt: int) -> bool:
        """Whether a message that fails with this error, the `attempt`th time, is tried again."""
        return error in (self.errors or ERRORS) and attempt <= self.attempts

    def wait(self, identity: str, attempt: int) -> float:
        """Seconds between the `attempt`th try and the next; the same for the same message on every replay."""
        try:
            full = min(self.delay * self.backoff ** (attempt - 1), self.cap)
        except OverflowError:
            full = self.cap
        digest = hashlib.sha256(f"{identity}/{attempt}".encode()).digest()
        return full * (1 - self.jitter * int.from_bytes(digest[:6], "big") / 2**48)

    def due(self, identity: str, attempt: int, now: float) -> float:
        """When the next try may begin, if the `attempt`th one failed at `now`: in a later batch, whatever the delay."""
        return now + max(self.wait(identity, attempt), SOONEST)

    def write(self) -> dict[str, object]:
        """The settings as YAML has them."""
        usual = Redelivery(cap=max(60.0, self.delay))
        return {"attempts": self.attempts} | write_settings(self, usual, SETTINGS[1:])

    def detail(self) -> str:
        more = "1 more try" if self.attempts == 1 else f"{self.attempts} more tries"
        marks = [f"{more} {f'after {duration_text(self.delay)}' if self.delay else 'at once'}"]
        if self.delay and self.backoff > 1 and self.attempts > 1:
            marks.append(f"then times {self.backoff:g} up to {duration_text(self.cap)}")
        if self.jitter:
            marks.append(f"up to {self.jitter:.0%} sooner")
        if self.errors:
            marks.append(f"for {', '.join(self.errors)}")
        if self.message == ORIGINAL:
            marks.append("from the start of the route")
        return ", ".join(marks)


def redelivery(
    attempts: int = 5,
    delay: object = "1 s",
    backoff: float = 2.0,
    cap: object = None,
    jitter: float = 0.0,
    errors: list[str] | tuple[str, ...] | None = None,
    message: str = CURRENT,
) -> Redelivery:
    """Without `cap`, waits grow to a minute, or stay at `delay` if that is longer."""
    first = seconds(delay, "delay", zero=True)
    longest = max(60.0, first) if cap is None else seconds(cap, "cap")
    if longest < first:
        raise BadRoute(f"cap={cap!r} is shorter than delay={delay!r}")
    if not _is_number(backoff) or not 1 <= backoff < 1e6:
        raise BadRoute(f"backoff={backoff!r} is not a factor from 1 up", fix="write backoff=2.0, or 1 for equal waits")
    if not _is_number(jitter) or not 0 <= jitter <= 1:
        raise BadRoute(f"jitter={jitter!r} is not a share between 0 and 1", fix="write jitter=0.2 for up to a fifth")
    for error in errors or ():
        if error not in ERRORS:
            raise BadRoute(f"another try changes nothing for {error!r}", fix=did_you_mean(str(error), ERRORS))
    if errors is not None and not errors:
        raise BadRoute("errors=[] would try nothing again", fix="leave it out for all errors")
    return Redelivery(
        check_number("attempts", attempts, 1), first, float(backoff), longest, float(jitter), tuple(errors or ()),
        check_option("message", message, CURRENT, ORIGINAL),
    )  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
