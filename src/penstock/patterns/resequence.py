"""Resequencer: messages go on in the order of their numbers.

Either in complete sequences of `size` messages, or as an endless sequence in which at most `window` messages wait for
a gap. Gaps, late numbers and numbers that come twice each have a declared fate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.drawing import square
from penstock.patterns.duration import duration_text, optional_seconds
from penstock.patterns.key import (
    DISCARD,
    FILTER,
    FLUSH,
    check_invalid,
    check_key,
    check_number,
    check_option,
    check_stop,
    key_tuple,
    keys_text,
)
from penstock.patterns.node import DEAD, EXPRESSION, Node
from penstock.patterns.settings import read_settings, write_key, write_settings
from penstock.patterns.verb import Verb
from penstock.schema import INTEGER, Struct
from penstock.yaml.writing import given, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item

PASS = "pass"
_SETTINGS = ("by", "size", "window", "first", "timeout", "late", "duplicate", "on_timeout", "on_stop", "invalid",
             "keep")  # fmt: skip
LATE_MESSAGE, DUPLICATE_SEQUENCE = "LateMessage", "DuplicateSequence"
NO_NUMBER = "the sequence number has no value"


@dataclass(frozen=True, slots=True)
class Resequence(Node):
    """Exactly one of `size` and `window`. `timeout` and `keep` are seconds since the key's last arrival.

    `first` is the number that a sequence starts with; None: the lowest of the key's first batch. An endless sequence
    in which nobody waits is forgotten after `keep`; without it, it is remembered for ever.
    """

    sequence: Expr
    by: tuple[Expr, ...] = ()
    size: int | None = None
    window: int | None = None
    first: int | None = None
    timeout: float | None = None
    late: str = DEAD
    duplicate: str = DEAD
    on_timeout: str = FLUSH
    on_stop: str | None = None
    invalid: str = DEAD
    keep: float | None = None

    verb: ClassVar[str] = "resequence"
    pattern: ClassVar[str] = "resequencer"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = "".join(square(x, 30 - size, size, filled=True) for x, size in ((12, 6), (22, 10), (36, 15)))
    stateful: ClassVar[bool] = True

    @property
    def may_fail(self) -> bool:
        return self.calls or DEAD in (self.invalid, self.late, self.duplicate)

    def expressions(self) -> tuple[Expr, ...]:
        return (*self.by, self.sequence)

    def output(self, body: Struct) -> Struct:
        check_key(self.by, body)
        if (kind := type_of(self.sequence, body)) != INTEGER:
            raise TypeMismatch(f"a sequence number is BIGINT, but {to_text(self.sequence)} is {kind}",
                               fix="convert it with to_integer(...)")  # fmt: skip
        return body

    def detail(self) -> str:
        by = f" by {keys_text(self.by)}" if self.by else ""
        start = f" from {self.first}" if self.first is not None else ""
        how = f"in sequences of {self.size}" if self.size else f"{self.window} may wait for a gap"
        marks = [f"{to_text(self.sequence)}{start}{by}", how]
        if self.timeout is not None:
            marks.append(f"{self.on_timeout} after {duration_text(self.timeout)}")
        if self.window is not None:
            marks.append(f"late: {self.late}")
        marks.append(f"twice: {self.duplicate}")
        if self.on_stop is not None:
            marks.append(f"{self.on_stop} on stop")
        if self.keep is not None:
            marks.append(f"forgotten {duration_text(self.keep)} after the last")
        return "; ".join(marks)

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("sequence",), _SETTINGS)
        sequence = found.pop("sequence").expression()
        return resequence(sequence, **read_settings(found))

    def write(self) -> object:
        made = given(sequence=write_expression(self.sequence), by=write_key(self.by))
        return made | write_settings(self, Resequence(self.sequence), _SETTINGS[1:])


def late_reason(number: int, expected: int) -> str:
    return f"number {number} comes when {expected} is expected"


def duplicate_reason(number: int) -> str:
    return f"number {number} is already waiting"


def resequence(
    sequence: object,
    by: object = None,
    size: int | None = None,
    window: int | None = None,
    first: int | None = None,
    timeout: object = None,
    late: str | None = None,
    duplicate: str = DEAD,
    on_timeout: str = FLUSH,
    on_stop: str | None = None,
    invalid: str = DEAD,
    keep: object = None,
) -> Resequence:
    if sequence is None:
        raise BadRoute("a resequencer needs the number of a message in its sequence",
                       fix="write resequence(body.number, size=10)")  # fmt: skip
    if (size is None) == (window is None):
        raise BadRoute("a resequencer needs either size or window",
                       fix="size=10 for complete sequences of ten, window=100 for a sequence without end")  # fmt: skip
    if size is not None and not (late is None and first is None and keep is None):
        raise BadRoute("late, first and keep are for an endless sequence", fix="give window instead of size")
    if first is not None and (not isinstance(first, int) or isinstance(first, bool)):
        raise BadRoute(f"first={first!r} is not a whole number")
    if on_timeout == DISCARD and timeout is None:
        raise BadRoute("on_timeout='discard' without a time-out", fix="give timeout")
    return Resequence(
        condition(sequence), key_tuple(by),
        None if size is None else check_number("size", size, 1),
        None if window is None else check_number("window", window, 1),
        first, optional_seconds(timeout, "timeout"),
        check_option("late", late or DEAD, DEAD, FILTER, PASS), check_option("duplicate", duplicate, DEAD, FILTER),
        check_option("on_timeout", on_timeout, FLUSH, DISCARD), check_stop(on_stop), check_invalid(invalid),
        optional_seconds(keep, "keep"),
    )  # fmt: skip


class ResequenceVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Resequence,)

    def resequence(
        self, sequence: object, by: object = None, *, size: int | None = None, window: int | None = None,
        first: int | None = None, timeout: object = None, late: str | None = None, duplicate: str = DEAD,
        on_timeout: str = FLUSH, on_stop: str | None = None, invalid: str = DEAD, keep: object = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Resequencer: in the order of their numbers; complete sequences of `size`, or `window` that may wait."""
        return self.then(
            lambda: resequence(sequence, by, size, window, first, timeout, late, duplicate, on_timeout, on_stop,
                               invalid, keep),
            name,
        )  # fmt: skip
