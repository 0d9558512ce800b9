"""Compute the expressions of a step for all messages of a block at once.

Most are computed column by column (`expr/vectorized.py`). Whatever else an expression reads becomes a column beside the
fields of the body first: headers, the id of a message, values of XPath and JSONPath that the decoder found, and results
of the user's functions, which are called once for every message. Expressions that look into a VARIANT are evaluated row
by row by the reference's `evaluate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import pyarrow as pa

from penstock import clock
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, conformed, evaluate, expression_key
from penstock.expr.nodes import Expr, Field, Function
from penstock.expr.types import NULL, type_of
from penstock.expr.variant import bind, rebuild
from penstock.expr.variant_nodes import VariantField
from penstock.expr.vectorized import evaluate_batch, is_vectorized
from penstock.failures import said
from penstock.formats.arrow import arrow_type
from penstock.kernel.block import Block, Numbers
from penstock.kernel.plain import as_stored, to_arrow, to_python
from penstock.plan.plan import Stage
from penstock.plan.used import used_expressions
from penstock.schema import BOOLEAN, INTEGER, STRING, TIMESTAMP, Map, Struct, Type

_HEADERS = "\0headers"
_META = {"id": STRING, "parent": STRING, "index": INTEGER, "count": INTEGER, nodes.NOW: TIMESTAMP}


@dataclass(frozen=True)
class Prepared:
    """An expression that reads only columns of the extended bodies, its type, and whether it is computed by columns."""

    expression: Expr
    kind: Type
    is_vectorized: bool


class Questions:
    """The expressions of a step, prepared once and pickled to the workers."""

    def __init__(self, stage: Stage, strict: bool = False) -> None:
        self.stage, self.strict = stage, strict
        self.schema, self.added = stage.scope.schema, dict[str, Expr]()
        self.functions: dict[Function, str] = {}
        self.prepared: dict[Expr, Prepared] = {}
        for expression in used_expressions(stage):
            kind = type_of(expression, self.schema)
            made = self._placed(bind(expression, self.schema))
            if isinstance(made, VariantField) and not made.path and made.column.root == nodes.BODY:
                self.prepared[expression] = Prepared(made.column, kind, True)  # goes on as the text that it is
            else:
                self.prepared[expression] = Prepared(made, kind, is_vectorized(made, self.body))

    @property
    def body(self) -> Struct:
        """The schema of the body with the added columns."""
        return Struct((*self.schema.fields, *((name, self._kind(part)) for name, part in self.added.items())))

    def _kind(self, part: Expr) -> Type:
        match part:
            case Function(returns=returns):
                return returns
            case nodes.XPath(kind=kind):
                return kind
            case nodes.Meta(name):
                return _META[name]
            case Field():
                return Map(STRING)
        return type_of(part, self.schema)

    def _placed(self, part: Expr) -> Expr:
        """The expression with a column in place of every part that is not a field of the body."""
        match part:
            case nodes.XPath() | nodes.JsonPath():
                return self._column(expression_key(part), part)
            case nodes.Meta(name):
                return self._column(f"\0{name}", part)
            case Field(path, nodes.HEADER):
                self._column(_HEADERS, Field((), nodes.HEADER))
                return Field((_HEADERS, *path))
            case nodes.AnyOf(collection, predicate) | nodes.Select(collection, predicate) if any(
                isinstance(inner, Function) for inner in predicate.walk()
            ):
                return type(part)(self._placed(collection), predicate)  # called for elements, row by row
            case Function(function, returns, arguments, name):
                placed = Function(function, returns, tuple(map(self._placed, arguments)), name)
                if placed not in self.functions:
                    self.functions[placed] = f"\0function {len(self.functions)}"
                return self._column(self.functions[placed], placed)
        return rebuild(part, self._placed)

    def _column(self, name: str, part: Expr) -> Field:
        self.added[name] = part
        return Field((name,))

    def about(self, block: Block) -> Answers:
        return Answers(self, block)


@dataclass
class Answers:
    """The values of a step's expressions for the messages of one block.

    `failures` says why a function of the user's failed, by the position of the message.
    """

    questions: Questions
    block: Block
    known: pa.StructArray | None = None
    failures: dict[int, str | Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.questions.functions and self.known is None:
            _ = self.extended  # functions are called for every message that comes to the step

    @property
    def stage(self) -> Stage:
        return self.questions.stage

    def only(self, rows: Numbers) -> Answers:
        """The answers for the messages at these positions; no function is called again."""
        return Answers(self.questions, self.block.take(rows), self.extended.take(pa.array(rows)))

    @cached_property
    def extended(self) -> pa.StructArray:
        """The bodies with the added columns; a function of the user's is called after those whose results it needs."""
        if self.known is not None:
            return self.known
        table = self.block.fields
        for name, part in self.questions.added.items():
            if table.type.get_field_index(name) >= 0:
                continue  # the decoder left it there
            table = _with(table, name, self._called(part, table) if isinstance(part, Function) else self._known(part))
        return table

    def _known(self, part: Expr) -> pa.Array:
        block = self.block
        if not isinstance(part, nodes.Meta):
            return block.known_headers
        if part.name == nodes.NOW:
            return pa.repeat(pa.scalar(clock.now(), arrow_type(TIMESTAMP)), len(block))
        if part.name in ("id", "parent"):
            return block.ids if part.name == "id" else block.parents
        if block.parts is None:
            return pa.nulls(len(block), pa.int64())
        numbers = block.parts.index if part.name == "index" else block.parts.count
        return pa.array(numbers, pa.int64(), mask=numbers < 0)

    def _called(self, function: Function, table: pa.StructArray) -> pa.Array:
        arguments = [self._argument(argument, table) for argument in function.arguments]
        call, returns, failures = function.function, function.returns, self.failures
        is_boolean = returns == BOOLEAN
        made: list[Any] = [None] * len(table)
        for row, given in enumerate(zip(*arguments, strict=True) if arguments else [()] * len(table)):
            if row not in failures:
                try:
                    value = call(*given)
                    is_plain = is_boolean and (value is True or value is False)
                    made[row] = value if is_plain else as_stored(conformed(value, returns), returns)
                except Exception as error:
                    failures[row] = error.with_traceback(None)
        return pa.array(made, arrow_type(returns))

    def _argument(self, expression: Expr, table: pa.StructArray) -> Iterable[Any]:
        """The value that a function gets as this argument, for every message."""
        if isinstance(expression, nodes.Literal):
            return repeat(expression.value, len(table))
        if expression == Field(()):
            return to_python(table, _narrow(self.questions.schema, table.type))
        kind = type_of(expression, self.questions.body)
        if not is_vectorized(expression, self.questions.body):
            return list(self._one_by_one(expression, table))
        wanted = pa.null() if kind == NULL else arrow_type(kind)
        return to_python(evaluate_batch(expression, table, wanted, self.questions.strict), kind)

    def value(self, expression: Expr) -> pa.Array:
        """The value of an expression for every message, null where it is missing."""
        asked = self.questions.prepared[expression]
        if asked.is_vectorized:
            wanted = pa.null() if asked.kind == NULL else arrow_type(asked.kind)
            return evaluate_batch(asked.expression, self.extended, wanted, self.questions.strict)
        return to_arrow(list(self._one_by_one(asked.expression, self.extended)), asked.kind)

    def _one_by_one(self, expression: Expr, table: pa.StructArray) -> Iterator[Any]:
        rows = to_python(table, self._present(table))
        for row, body in enumerate(rows):
            try:
                yield evaluate(expression, Scope(body or {}, strict=self.questions.strict))
            except Exception as error:
                self.failures.setdefault(row, said(error))
                yield None

    def _present(self, table: pa.StructArray) -> Struct:
        """The fields of the body and the added columns that the table has."""
        return _narrow(self.questions.body, table.type)


def _narrow(kind: Struct, found: pa.StructType) -> Struct:
    fields: list[tuple[str, Type]] = []
    for name, inner in kind.fields:
        index = found.get_field_index(name)
        if index >= 0:
            below = found.field(index).type
            fields.append((name, _narrow(inner, below) if isinstance(inner, Struct) else inner))
    return Struct(tuple(fields))


def _with(table: pa.StructArray, name: str, column: pa.Array) -> pa.StructArray:
    """A table of bodies, none of which is null, with one more column."""
    fields = [table.type.field(index) for index in range(table.type.num_fields)]
    columns = [table.field(index) for index in range(len(fields))]
    return pa.StructArray.from_arrays([*columns, column], fields=[*fields, pa.field(name, column.type)])
