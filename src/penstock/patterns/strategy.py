"""Strategies of the aggregator: how it makes one body of the bodies of a group, in the order of their source."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import BadFile, BadRoute, TypeMismatch, did_you_mean
from penstock.expr import exact
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.results import is_number
from penstock.expr.text import parse, to_text
from penstock.expr.types import NULL, type_of
from penstock.patterns.node import WHOLE, Paths, read_paths, top_level
from penstock.schema import (
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    DecimalType,
    SchemaLike,
    Struct,
    Type,
    quote_name,
    resolve,
    schema,
)
from penstock.yaml.writing import given, write_expression, write_function

if TYPE_CHECKING:
    from penstock.yaml.item import Item

SUM, COUNT, MIN, MAX, MEAN, FIRST, LAST = "sum", "count", "min", "max", "mean", "first", "last"
FUNCTIONS = (SUM, COUNT, MIN, MAX, MEAN, FIRST, LAST)
FOLD_FAILED, AGGREGATE_FAILED = "FoldFailed", "AggregateFailed"


@dataclass(frozen=True, slots=True)
class Strategy:
    """The base of all strategies: frozen data, like a step."""

    @property
    def may_fail(self) -> bool:
        """A whole group may become dead letters."""
        return False

    def expressions(self) -> tuple[Expr, ...]:
        """What is evaluated on every member."""
        return ()

    def output(self, body: Struct) -> Struct:
        """The schema of the aggregate, given that of the members; raises what the user got wrong."""
        return body

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        """The fields of the members that are needed when `wanted` of the aggregate is."""
        return wanted

    def detail(self) -> str:
        return ""

    def write(self) -> object:
        """As `read_strategy` reads it."""
        raise BadFile(f"a strategy {type(self).__name__} cannot be written as YAML")


@dataclass(frozen=True, slots=True)
class Collect(Strategy):
    """A list of the bodies, or of one field of each, between fields of the first and of the last member."""

    into: str
    of: str | None = None
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()

    def output(self, body: Struct) -> Struct:
        element = body if self.of is None else resolve(body, (self.of,))
        before = [(name, resolve(body, (name,))) for name in self.head]
        after = [(name, resolve(body, (name,))) for name in self.tail]
        return Struct((*before, (self.into, Array(element)), *after))

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        ends = top_level(wanted, (*self.head, *self.tail))
        if not top_level(wanted, (self.into,)):
            return ends
        return ends | (WHOLE if self.of is None else {(self.of,)})

    def detail(self) -> str:
        listed = f"[{quote_name(self.of) if self.of else 'each body'}] as {quote_name(self.into)}"
        return "collect " + " + ".join([*map(quote_name, self.head), listed, *map(quote_name, self.tail)])

    def write(self) -> object:
        ends = {"head": list(self.head) or None, "tail": list(self.tail) or None}
        more = given(of=self.of, **ends)
        return {"collect": {"into": self.into, **more} if more else self.into}


@dataclass(frozen=True, slots=True)
class Union(Strategy):
    """Per field, the last value that is there."""

    def detail(self) -> str:
        return "union of the fields"

    def write(self) -> object:
        return "union"


@dataclass(frozen=True, slots=True)
class Latest(Strategy):
    """The body of the last member."""

    def detail(self) -> str:
        return "the latest body"

    def write(self) -> object:
        return "latest"


@dataclass(frozen=True, slots=True)
class Fold(Strategy):
    """One number or value per field: (name, function, what it is computed from)."""

    folds: tuple[tuple[str, str, Expr | None], ...]

    @property
    def may_fail(self) -> bool:
        return any(function in (SUM, MEAN) for _, function, _ in self.folds)  # it may be too large

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(value for _, _, value in self.folds if value is not None)

    def output(self, body: Struct) -> Struct:
        return Struct(tuple((name, _folded(function, value, body)) for name, function, value in self.folds))

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        # All of them, wanted or not: a sum that does not fit is an error even if nobody reads it.
        return read_paths(self.expressions())

    def detail(self) -> str:
        return "fold " + ", ".join(f"{quote_name(name)} = {fold_text(how, value)}" for name, how, value in self.folds)

    def write(self) -> object:
        for value in self.expressions():
            write_expression(value)  # a lambda is refused
        return {"fold": {name: fold_text(function, value) for name, function, value in self.folds}}


@dataclass(frozen=True, slots=True)
class Custom(Strategy):
    """The user's function: an Arrow table of the members in, an Arrow table of one row out."""

    function: Callable[[Any], Any] = field(repr=False)
    returns: Struct

    @property
    def may_fail(self) -> bool:
        return True

    def output(self, body: Struct) -> Struct:
        if "VARIANT" in f"{body} {self.returns}":
            raise TypeMismatch("combine needs the types of all fields, and VARIANT has none",
                               fix="keep the typed fields before the aggregator, or declare their types")  # fmt: skip
        return self.returns

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return WHOLE

    def detail(self) -> str:
        return f"combine {self.function.__module__}:{self.function.__qualname__} -> {self.returns.ddl()}"

    def write(self) -> object:
        return {"combine": {"function": write_function(self.function), "returns": self.returns.ddl()}}


def overflow_reason(name: str) -> str:
    return f"{name} is larger than its type can hold"


def fold_text(function: str, value: Expr | None) -> str:
    return f"{function}({'' if value is None else to_text(value)})"


def _folded(function: str, value: Expr | None, body: Struct) -> Type:
    if function == COUNT:
        if value is not None:
            type_of(value, body)
        return INTEGER
    assert value is not None
    kind = type_of(value, body)
    numbers = function in (SUM, MEAN)
    allowed = is_number(kind) or (not numbers and kind in (STRING, DATE, TIMESTAMP))
    if kind == NULL or (function not in (FIRST, LAST) and not allowed):
        takes = "a value" if function in (FIRST, LAST) else "a number" if numbers else "a number, text, date or time"
        raise TypeMismatch(f"{function} takes {takes}, but {to_text(value)} is {kind}")
    if numbers and isinstance(kind, DecimalType):
        total = exact.total_type(kind)
        return total if function == SUM else exact.quotient_type(total, exact.as_decimal(INTEGER))
    return DOUBLE if function == MEAN else kind


@dataclass(frozen=True, slots=True)
class Folding:
    """What `sum_of` and its like return: a function and what it is computed from."""

    function: str
    value: Expr | None = None


def sum_of(value: object) -> Folding:
    """The sum of the values that are there; missing if none is."""
    return Folding(SUM, condition(value))


def count_of(value: object = None) -> Folding:
    """How many members there are, or how many have this value."""
    return Folding(COUNT, None if value is None else condition(value))


def min_of(value: object) -> Folding:
    """The smallest value that is there."""
    return Folding(MIN, condition(value))


def max_of(value: object) -> Folding:
    """The largest value that is there."""
    return Folding(MAX, condition(value))


def mean_of(value: object) -> Folding:
    """The arithmetic mean of the values that are there: a DOUBLE, or of decimals a DECIMAL."""
    return Folding(MEAN, condition(value))


def first_of(value: object) -> Folding:
    """The value of the first member, be it there or not."""
    return Folding(FIRST, condition(value))


def last_of(value: object) -> Folding:
    """The value of the last member, be it there or not."""
    return Folding(LAST, condition(value))


def collect(
    into: str,
    of: str | None = None,
    head: list[str] | tuple[str, ...] = (),
    tail: list[str] | tuple[str, ...] = (),
) -> Collect:
    """The bodies as a list in the field `into`; `of` takes one field of each. The reverse of `split`."""
    names = [*head, into, *tail]
    if not all(isinstance(name, str) and name for name in names):
        raise BadRoute(f"collect needs names of fields, not {names!r}", fix='write collect("lines")')
    if len(set(names)) != len(names):
        raise BadRoute(f"an aggregate would have a field twice: {names}")
    return Collect(into, of, tuple(head), tuple(tail))


def union() -> Union:
    """Per field, the last value that is there. The reverse of `split_fields`."""
    return Union()


def latest() -> Latest:
    """The body of the last member."""
    return Latest()


def fold(**fields: Folding) -> Fold:
    """A body of computed fields: `fold(total=sum_of(body.price), n=count_of())`."""
    return fold_tuple(fields)


def fold_tuple(fields: dict[str, Folding]) -> Fold:
    if not fields:
        raise BadRoute("fold needs at least one field", fix="write fold(total=sum_of(body.price))")
    for name, folding in fields.items():
        if not isinstance(folding, Folding):
            raise BadRoute(f"fold: {name!r} is {folding!r}",
                           fix="use sum_of, count_of, min_of, max_of, mean_of, first_of or last_of")  # fmt: skip
        if folding.function not in FUNCTIONS:
            raise BadRoute(f"there is no fold {folding.function!r}", fix=did_you_mean(folding.function, FUNCTIONS))
        if folding.value is None and folding.function != COUNT:
            raise BadRoute(f"fold: {folding.function} needs a value", fix=f"write {folding.function}_of(body.price)")
    return Fold(tuple((name, folding.function, folding.value) for name, folding in fields.items()))


def combine(function: Callable[[Any], Any], returns: SchemaLike) -> Custom:
    """A Python function from the Arrow table of the members to an Arrow table of one row."""
    if not callable(function):
        raise BadRoute(f"{function!r} is not a function")
    return Custom(function, schema(returns))


_STRATEGIES = ("collect", "union", "latest", "fold", "combine")
_FOLD = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


def read_strategy(item: Item) -> Strategy:
    """A strategy as YAML describes it."""
    name = next(iter(item.entries()), "") if item.is_mapping else item.text()
    if name not in _STRATEGIES:
        raise BadFile(f"{item.what}: there is no strategy {name!r}", item.origin, did_you_mean(name, _STRATEGIES))
    if name in ("union", "latest"):
        return union() if name == "union" else latest()
    if not item.is_mapping:
        raise BadFile(f"{item.what}: {name!r} needs settings", item.origin, f"write strategy: {{{name}: ...}}")
    settings = item.keys((name,))[name]
    if name == "fold":
        return fold_tuple({field: _read_fold(value) for field, value in settings.entries().items()})
    if name == "combine":
        found = settings.keys(("function", "returns"))
        return combine(found["function"].function(), found["returns"].text())
    if not settings.is_mapping:
        return collect(settings.text())
    found = settings.keys(("into",), ("of", "head", "tail"))
    return collect(found["into"].text(), found.text("of"), found.texts("head"), found.texts("tail"))


def _read_fold(item: Item) -> Folding:
    found = _FOLD.fullmatch(item.text())
    if found is None:
        raise item.wrong("a fold", "write it like sum(price) or count()")
    with item.located():
        return Folding(found[1].lower(), parse(found[2]) if found[2].strip() else None)
