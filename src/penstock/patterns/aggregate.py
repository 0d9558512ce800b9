"""Aggregator: messages that belong together wait until their group is complete, and go on as one.

Which messages belong together, when a group is complete and how its bodies become one are three independent
settings. Completions combine: the first that holds fires, and the header `completed-by` says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute
from penstock.expr import nodes
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import require_boolean
from penstock.patterns.drawing import arrow, square
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
from penstock.patterns.node import DEAD, EXPRESSION, Node, Paths, read_paths
from penstock.patterns.settings import read_settings, write_key, write_settings
from penstock.patterns.strategy import Strategy, read_strategy
from penstock.patterns.verb import Verb
from penstock.schema import Struct
from penstock.yaml.writing import given

if TYPE_CHECKING:
    from penstock.yaml.item import Item

_SETTINGS = ("by", "size", "timeout", "interval", "when", "batch_end", "new_group", "on_timeout", "on_stop", "invalid",
             "closed", "closed_for")  # fmt: skip
PARTS = "parts"
REOPEN = "reopen"
CLOSED_GROUP = "ClosedGroup"
CORRELATION, COMPLETED_BY, GROUP_SIZE = "correlation", "completed-by", "group-size"
BY_SIZE, BY_PREDICATE, BY_TIMEOUT, BY_INTERVAL = "size", "predicate", "timeout", "interval"
BY_BATCH, BY_NEW_GROUP, BY_STOP = "batch", "new-group", "stop"


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """`by` is empty when parts are put together by their parent. Times are seconds.

    `timeout` counts from the last message of a group, `interval` from its first; `when` looks at the arriving
    message, which still belongs to the group that it completes. With `new_group` there is one open group at a time.
    `closed` is the fate of a message whose group was completed less than `closed_for` ago.
    """

    by: tuple[Expr, ...]
    strategy: Strategy
    size: int | str | None = None
    timeout: float | None = None
    interval: float | None = None
    when: Expr | None = None
    batch_end: bool = False
    new_group: bool = False
    on_timeout: str = FLUSH
    on_stop: str | None = None
    invalid: str = DEAD
    closed: str = REOPEN
    closed_for: float | None = None

    verb: ClassVar[str] = "aggregate"
    pattern: ClassVar[str] = "aggregator"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = (
        "".join(square(10, y, 8) for y in (5, 18, 31)) + arrow((23, 22), (35, 22)) + square(40, 15, 14, filled=True)
    )
    messages: ClassVar[str] = "n:1"
    rewrites: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    @property
    def needs_parts(self) -> bool:
        """Only messages that come from a splitter can be put together."""
        return not self.by or self.size == PARTS

    @property
    def may_fail(self) -> bool:
        return self.calls or DEAD in (self.invalid, self.closed) or self.strategy.may_fail

    def expressions(self) -> tuple[Expr, ...]:
        when = (self.when,) if self.when is not None else ()
        return (*self.by, *when, *self.strategy.expressions())

    def output(self, body: Struct) -> Struct:
        check_key(self.by, body)
        if self.when is not None:
            require_boolean(self.when, body)
        return self.strategy.output(body)

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return self.strategy.requires(wanted, body) | read_paths(self.expressions())

    def detail(self) -> str:
        marks = [f"by {keys_text(self.by) or 'the parent of the parts'}", self.strategy.detail()]
        marks.append(f"complete {' or '.join(self._completions())}")
        if self.on_timeout == DISCARD:
            marks.append("discarded on time-out")
        if self.on_stop is not None:
            marks.append(f"{self.on_stop} on stop")
        if self.closed_for is not None:
            fate = "a dead letter" if self.closed == DEAD else "filtered"
            marks.append(f"late for a completed group within {duration_text(self.closed_for)}: {fate}")
        return "; ".join(marks)

    def _completions(self) -> list[str]:
        found = []
        if self.size is not None:
            found.append("with all parts" if self.size == PARTS else f"at {self.size}")
        if self.when is not None:
            found.append(f"when {to_text(self.when)}")
        if self.timeout is not None:
            found.append(f"{duration_text(self.timeout)} after the last")
        if self.interval is not None:
            found.append(f"{duration_text(self.interval)} after the first")
        if self.batch_end:
            found.append("at the end of the batch")
        if self.new_group:
            found.append("when another group begins")
        return found

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("strategy",), _SETTINGS)
        strategy = read_strategy(found.pop("strategy"))
        size = found.pop("size", None)
        counted = None if size is None else PARTS if size.value() == PARTS else size.integer()
        return aggregate(strategy, size=counted, **read_settings(found))

    def write(self) -> object:
        usual = Aggregate((), self.strategy)
        made = given(by=write_key(self.by), strategy=self.strategy.write())
        return made | write_settings(self, usual, _SETTINGS[1:])


def closed_reason(key: str) -> str:
    return f"the group {key} was completed before"


def aggregate(
    strategy: Strategy,
    by: object = None,
    size: int | str | None = None,
    timeout: object = None,
    interval: object = None,
    when: object = None,
    batch_end: bool = False,
    new_group: bool = False,
    on_timeout: str = FLUSH,
    on_stop: str | None = None,
    invalid: str = DEAD,
    closed: str = REOPEN,
    closed_for: object = None,
) -> Aggregate:
    if not isinstance(strategy, Strategy):
        raise BadRoute(f"{strategy!r} is not a way to aggregate",
                       fix="use collect, union, latest, fold or combine")  # fmt: skip
    test = None if when is None else condition(when)
    if isinstance(test, nodes.Literal) and test.value is not True:
        raise BadRoute(f"when={to_text(test)} never completes a group", fix="write a condition on the message")
    made = Aggregate(
        key_tuple(by), strategy, size if size in (None, PARTS) else check_number("size", size, 1),
        optional_seconds(timeout, "timeout"), optional_seconds(interval, "interval"), test, batch_end, new_group,
        check_option("on_timeout", on_timeout, FLUSH, DISCARD), check_stop(on_stop), check_invalid(invalid),
        check_option("closed", closed, REOPEN, DEAD, FILTER), optional_seconds(closed_for, "closed_for"),
    )  # fmt: skip
    _check_together(made)
    return made


def _check_together(node: Aggregate) -> None:
    timed = node.timeout is not None or node.interval is not None
    if not (node.size or timed or node.when is not None or node.batch_end or node.new_group):
        raise BadRoute("no group would ever be complete",
                       fix="give size, timeout, interval, when, batch_end or new_group")  # fmt: skip
    if node.on_timeout == DISCARD and not timed:
        raise BadRoute("on_timeout='discard' without a time-out", fix="give timeout or interval")
    if node.new_group and node.closed != REOPEN:
        raise BadRoute("new_group ends a group when another begins, and closed would refuse those that come back to it",
                       fix="leave out one of them")  # fmt: skip
    if (node.closed == REOPEN) != (node.closed_for is None):
        raise BadRoute("closed and closed_for go together: what happens to late messages, and for how long",
                       fix="write closed='dead', closed_for='1 hour'")  # fmt: skip


class AggregateVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Aggregate,)

    def aggregate(
        self, strategy: Strategy, by: object = None, *, size: int | str | None = None, timeout: object = None,
        interval: object = None, when: object = None, batch_end: bool = False, new_group: bool = False,
        on_timeout: str = FLUSH, on_stop: str | None = None, invalid: str = DEAD, closed: str = REOPEN,
        closed_for: object = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Aggregator: one message of all that have the key `by`; without it, of the parts of one split message."""
        return self.then(
            lambda: aggregate(strategy, by, size, timeout, interval, when, batch_end, new_group, on_timeout, on_stop,
                              invalid, closed, closed_for),
            name,
        )  # fmt: skip
