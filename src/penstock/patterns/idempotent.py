"""Idempotent receiver: of messages with one key, the first goes on; the others are counted, or sent to a channel.

A key whose message failed in the batch that let it through is forgotten, so that the next one gets its chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.expr.nodes import Expr
from penstock.patterns.drawing import letters
from penstock.patterns.duration import duration_text, optional_seconds
from penstock.patterns.key import check_invalid, check_key, check_number, key_tuple, keys_text
from penstock.patterns.node import DEAD, PREDICATE, Node, check_channel
from penstock.patterns.settings import read_key, read_settings, write_key, write_settings
from penstock.patterns.verb import Verb
from penstock.schema import Struct
from penstock.yaml.writing import given

if TYPE_CHECKING:
    from penstock.yaml.item import Item

_SETTINGS = ("key", "keep", "keep_last", "duplicates", "remember_failed", "invalid")


@dataclass(frozen=True, slots=True)
class Idempotent(Node):
    """`key` is empty when the message's id is the key. Without `keep` and `keep_last` keys are kept for ever."""

    key: tuple[Expr, ...] = ()
    keep: float | None = None
    keep_last: int | None = None
    duplicates: str | None = None
    remember_failed: bool = False
    invalid: str = DEAD

    verb: ClassVar[str] = "idempotent"
    pattern: ClassVar[str] = "idempotent receiver"
    template: ClassVar[str] = PREDICATE
    icon: ClassVar[str] = '<circle cx="32" cy="22" r="13"/>' + letters("1")
    messages: ClassVar[str] = "1:0|1"
    stateful: ClassVar[bool] = True

    @property
    def may_fail(self) -> bool:
        return self.calls or self.invalid == DEAD

    def expressions(self) -> tuple[Expr, ...]:
        return self.key

    def sends_to(self) -> tuple[str, ...]:
        return (self.duplicates,) if self.duplicates else ()

    def output(self, body: Struct) -> Struct:
        check_key(self.key, body)
        return body

    def detail(self) -> str:
        marks = [f"by {keys_text(self.key) or 'the id'}"]
        if self.keep is not None:
            marks.append(f"keys kept for {duration_text(self.keep)}")
        if self.keep_last is not None:
            marks.append(f"at least the last {self.keep_last:,} keys kept")
        if self.remember_failed:
            marks.append("also of messages that failed")
        if self.duplicates:
            marks.append(f"duplicates -> {self.duplicates}")
        return "; ".join(marks)

    @classmethod
    def read(cls, item: Item) -> Node:
        """The key alone, or a mapping; `true` is the message's id."""
        if not item.is_mapping and not item.is_list:
            return idempotent() if item.value() is True else idempotent(item.expression())
        return idempotent(**read_settings(item.keys((), _SETTINGS))) if item.is_mapping else idempotent(read_key(item))

    def write(self) -> object:
        key = write_key(self.key)
        rest = write_settings(self, Idempotent(), _SETTINGS[1:])
        if rest or key is True:
            return given(key=key) | rest
        return True if key is None else key


def idempotent(
    key: object = None,
    keep: object = None,
    keep_last: int | None = None,
    duplicates: str | None = None,
    remember_failed: bool = False,
    invalid: str = DEAD,
) -> Idempotent:
    return Idempotent(
        key_tuple(key), optional_seconds(keep, "keep"),
        None if keep_last is None else check_number("keep_last", keep_last, 1),
        None if duplicates is None else check_channel(duplicates), remember_failed, check_invalid(invalid),
    )  # fmt: skip


class IdempotentVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Idempotent,)

    def idempotent(
        self, key: object = None, *, keep: object = None, keep_last: int | None = None, duplicates: str | None = None,
        remember_failed: bool = False, invalid: str = DEAD, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Idempotent receiver: the first message of each key; later ones are counted, or go to `duplicates`."""
        return self.then(lambda: idempotent(key, keep, keep_last, duplicates, remember_failed, invalid), name)
