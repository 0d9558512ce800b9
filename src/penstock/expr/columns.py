"""The Python front end: `body.OTOTALPRICE < 100_000` is an expression.

from penstock import body, header, item, when

body.lines.any(item.price > 100) & (header["region"] == "EU")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import BadExpression, caller, did_you_mean
from penstock.expr import nodes
from penstock.expr.literals import constant, is_constant
from penstock.expr.nodes import Expr, Value
from penstock.schema import Type
from penstock.schemas import from_ddl


class Column:
    """An expression with Python's operators. Compare with `==`, combine with `&`, `|` and `~`."""

    __slots__ = ("_expression",)
    _expression: Expr
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: Expr) -> None:
        object.__setattr__(self, "_expression", expression)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, part: str | int) -> Column:
        field = self._expression
        if not isinstance(field, nodes.Field):
            raise BadExpression(f"{part!r} is read from a computed value", fix="read fields from body, header or item")
        return Column(nodes.Field((*field.path, part), field.root))

    def __bool__(self) -> bool:
        raise BadExpression(
            "a condition on messages has no truth value in Python",
            caller(),
            "instead of and, or, not, in and a < b < c: (a < b) & (b < c), | and ~, and is_in(...)",
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise BadExpression(f"cannot assign to {name!r}: messages are changed by translate and enrich")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        if other is None:
            return ~self.is_present()
        return Column(nodes.Compare("==", self._expression, expression(other)))

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        if other is None:
            return self.is_present()
        return Column(nodes.Compare("!=", self._expression, expression(other)))

    def __lt__(self, other: object) -> Column:
        return Column(nodes.Compare("<", self._expression, expression(other)))

    def __le__(self, other: object) -> Column:
        return Column(nodes.Compare("<=", self._expression, expression(other)))

    def __gt__(self, other: object) -> Column:
        return Column(nodes.Compare(">", self._expression, expression(other)))

    def __ge__(self, other: object) -> Column:
        return Column(nodes.Compare(">=", self._expression, expression(other)))

    def __and__(self, other: object) -> Column:
        left = self._expression
        terms = left.terms if isinstance(left, nodes.And) else (left,)
        return Column(nodes.And((*terms, expression(other))))

    def __or__(self, other: object) -> Column:
        left = self._expression
        terms = left.terms if isinstance(left, nodes.Or) else (left,)
        return Column(nodes.Or((*terms, expression(other))))

    def __rand__(self, other: object) -> Column:
        raise _without_parentheses(other)

    def __ror__(self, other: object) -> Column:
        raise _without_parentheses(other)

    def __invert__(self) -> Column:
        return Column(nodes.Not(self._expression))

    def __add__(self, other: object) -> Column:
        return call("add", self, other)

    def __radd__(self, other: object) -> Column:
        return call("add", other, self)

    def __sub__(self, other: object) -> Column:
        return call("subtract", self, other)

    def __rsub__(self, other: object) -> Column:
        return call("subtract", other, self)

    def __mul__(self, other: object) -> Column:
        return call("multiply", self, other)

    def __rmul__(self, other: object) -> Column:
        return call("multiply", other, self)

    def __mod__(self, other: object) -> Column:
        return call("modulo", self, other)

    def __truediv__(self, other: object) -> Column:
        return call("divide", self, other)

    def __rtruediv__(self, other: object) -> Column:
        return call("divide", other, self)

    def is_present(self) -> Column:
        """Neither missing nor null."""
        return Column(nodes.Present(self._expression))

    def is_in(self, *options: Value) -> Column:
        return Column(nodes.In(self._expression, tuple(map(constant, options))))

    def any(self, predicate: object) -> Column:
        """Some element satisfies the predicate, which calls it `item`."""
        return Column(nodes.AnyOf(self._expression, expression(predicate)))

    def select(self, predicate: object) -> Column:
        """The elements that satisfy the predicate, which calls each `item`."""
        return Column(nodes.Select(self._expression, expression(predicate)))

    def __repr__(self) -> str:
        from penstock.expr.text import to_text

        return to_text(self._expression)


def _without_parentheses(other: object) -> BadExpression:
    return BadExpression(f"& and | bind tighter than comparisons: {other!r} is on their left",
                         fix="put each comparison in parentheses: (body.a > 1) & (body.b == 2)")  # fmt: skip


body = Column(nodes.Field((), nodes.BODY))
header = Column(nodes.Field((), nodes.HEADER))
item = Column(nodes.Field((), nodes.ITEM))


def expression(value: object) -> Expr:
    """The tree behind a column; a plain value is a literal."""
    if isinstance(value, Column):
        return value._expression
    if isinstance(value, Expr):
        return value
    if is_constant(value):
        return nodes.Literal(constant(value))  # type: ignore[arg-type]
    raise BadExpression(
        f"{value!r} is not an expression", fix="use body.field, a number, text, a boolean, a date, or when(...)"
    )


def meta(name: str) -> Column:
    """What is known about the message: its `id`, and the `parent`, `index` and `count` of a part of a split one."""
    if name not in nodes.META:
        raise BadExpression(f"nothing is known as meta {name!r}", fix=did_you_mean(str(name), nodes.META))
    return Column(nodes.Meta(name))


def now() -> Column:
    """When the batch of the message is computed: one instant for all messages of the batch."""
    return Column(nodes.Meta(nodes.NOW))


def condition(value: object) -> Expr:
    """A predicate: a column, SQL-like text, or a Python function of the decoded body."""
    if isinstance(value, str):
        from penstock.expr.text import parse

        return parse(value)
    if callable(value) and not isinstance(value, Column):
        from penstock.schema import BOOLEAN

        return nodes.Function(value, BOOLEAN, (nodes.Field(()),), _name_of(value))
    return expression(value)


def call(name: str, *arguments: object) -> Column:
    """A built-in function by name: `call("upper", body.name)`; `expr/functions.py` lists them."""
    from penstock.expr.functions import FUNCTIONS

    if name not in FUNCTIONS:
        raise BadExpression(f"there is no function {name!r}", fix=did_you_mean(name, FUNCTIONS))
    return Column(nodes.Call(name, tuple(expression(argument) for argument in arguments)))


class When(Column):
    """`when(condition, value).when(...).otherwise(value)`"""

    __slots__ = ()

    def when(self, test: object, value: object) -> When:
        case = self._expression
        assert isinstance(case, nodes.Case)
        return When(nodes.Case((*case.branches, (condition(test), expression(value))), case.otherwise))

    def otherwise(self, value: object) -> Column:
        case = self._expression
        assert isinstance(case, nodes.Case)
        return Column(nodes.Case(case.branches, expression(value)))


def when(test: object, value: object) -> When:
    """The value where the condition is true; continue with `.when` and `.otherwise`."""
    return When(nodes.Case(((condition(test), expression(value)),)))


def default(value: object, fallback: object) -> Column:
    """The value, or the fallback where it is missing."""
    return call("coalesce", value, fallback)


def lookup(value: object, entries: Mapping[Any, Any], otherwise: object = None) -> Column:
    """A value mapping: `lookup(body.status, {"P": "pending", "F": "final"})`."""
    pairs = tuple((constant(key), constant(entry)) for key, entry in entries.items())
    return Column(nodes.Lookup(expression(value), pairs, expression(otherwise)))


def function(of: Callable[..., Any], *arguments: object, returns: str | Type = "STRING") -> Column:
    """A Python function of some columns. It runs over Arrow, outside Spark's own plan: use it last."""
    kind = from_ddl(f"value {returns}").fields[0][1] if isinstance(returns, str) else returns
    return Column(nodes.Function(of, kind, tuple(expression(a) for a in arguments), _name_of(of)))


def _name_of(of: Callable[..., Any]) -> str:
    """Objects that can be called, and methods of Python's own types, have not all of these names."""
    module = getattr(of, "__module__", None) or "builtins"
    return f"{module}:{getattr(of, '__qualname__', type(of).__qualname__)}"
