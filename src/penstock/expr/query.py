"""RFC 9535 text as a tree: the query itself, not yet fitted to any schema.

The library decides what is valid. Reading the valid text again takes little, and ties nothing here to the
library's own tree, which differs between its versions.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import jsonpath_rfc9535

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.nodes import BODY, ITEM, Expr
from penstock.expr.tokens import place
from penstock.expr.variant_nodes import (
    Every,
    Segment,
    Selector,
    Slice,
    VariantCall,
    VariantCompare,
    VariantField,
    VariantNodes,
    VariantPresent,
    Where,
)

_SPACE = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(r"[A-Za-z_\u0080-\U0010FFFF][0-9A-Za-z_\u0080-\U0010FFFF]*")
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_CONSTANT = re.compile(r"(true|false|null)\b")
_CONSTANTS = {"true": True, "false": False, "null": None}


@functools.cache
def read_query(text: str) -> VariantNodes:
    """A whole query, `$...`, over a body that is one JSON value."""
    if error := _mistake(text):
        raise _refused(text, error, _position(error))
    return _Reader(text).nodelist()


@functools.cache
def read_condition(text: str) -> Expr:
    """A query that has to find something, or a bare filter, where both `@` and `$` are the body."""
    as_query = _mistake(text)
    if as_query is None:
        return VariantPresent(_shorter(_Reader(text).nodelist()))
    as_filter = _mistake(f"$[?{text}]")
    if as_filter is None:
        return _Reader(text).condition()
    # Whichever reading went further says what is wrong.
    query, condition = _position(as_query), _position(as_filter) - len("$[?")
    raise _refused(text, as_query, query) if query >= condition else _refused(text, as_filter, condition)


def _mistake(query: str) -> Exception | None:
    try:
        jsonpath_rfc9535.compile(query)
    except jsonpath_rfc9535.JSONPathError as error:
        return error
    except RecursionError:
        return ValueError("it is nested too deeply")
    return None


def _refused(text: str, error: Exception, position: int) -> BadExpression:
    what = str(error.args[0]).splitlines()[0]
    return BadExpression(f"{text!r} is not a JSONPath: {what}", place(text, min(max(position, 0), len(text))),
                         "write a query like $.lines[?@.price > 5] or a condition like @.price > 5")  # fmt: skip


def _position(error: Exception) -> int:
    token: Any = getattr(error, "token", None)
    if token is None:
        return 0
    return int(token[1] if isinstance(token, tuple) else token.index)


class _Reader:
    """Reads text that is known to be valid, so it never looks for mistakes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.current = BODY

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def take(self, *texts: str) -> str:
        """The first of these texts that comes next, after space; otherwise empty."""
        self.skip()
        for text in texts:
            if self.text.startswith(text, self.position):
                self.position += len(text)
                return text
        return ""

    def match(self, pattern: re.Pattern[str]) -> str:
        self.skip()
        found = pattern.match(self.text, self.position)
        if found is None:
            return ""
        self.position = found.end()
        return found.group()

    def nodelist(self) -> VariantNodes:
        root = BODY if self.take("$", "@") == "$" else self.current
        path: list[str | int] = []
        segments: list[Segment] = []
        while start := self.take("..", ".", "["):
            descendants = start == ".."
            selectors = self.selectors() if start == "[" or (descendants and self.take("[")) else self.shorthand()
            only = selectors[0]
            if len(selectors) == 1 and not (segments or descendants) and isinstance(only, (str, int)):
                path.append(only)
            else:
                segments.append(Segment(selectors, descendants))
        return VariantNodes(VariantField(nodes.Field((), root), tuple(path)), tuple(segments))

    def shorthand(self) -> tuple[Selector, ...]:
        return (Every(),) if self.take("*") else (self.match(_NAME),)

    def selectors(self) -> tuple[Selector, ...]:
        found = [self.selector()]
        while self.take(","):
            found.append(self.selector())
        self.take("]")
        return tuple(found)

    def selector(self) -> Selector:
        if self.take("*"):
            return Every()
        if self.take("?"):
            outer, self.current = self.current, ITEM
            predicate = self.condition()
            self.current = outer
            return Where(predicate)
        if text := self.match(_TEXT):
            return _decoded(text)
        bounds: list[int | None] = [self.integer()]
        while self.take(":"):
            bounds.append(self.integer())
        if len(bounds) == 1:
            assert bounds[0] is not None
            return bounds[0]
        return Slice(*bounds, *[None] * (3 - len(bounds)))

    def integer(self) -> int | None:
        digits = self.match(_NUMBER)
        return int(digits) if digits else None

    def condition(self) -> Expr:
        terms = [self.conjunction()]
        while self.take("||"):
            terms.append(self.conjunction())
        return nodes.Or(tuple(terms)) if len(terms) > 1 else terms[0]

    def conjunction(self) -> Expr:
        terms = [self.test()]
        while self.take("&&"):
            terms.append(self.test())
        return nodes.And(tuple(terms)) if len(terms) > 1 else terms[0]

    def test(self) -> Expr:
        if self.take("!"):
            return nodes.Not(self.test())
        if self.take("("):
            inner = self.condition()
            self.take(")")
            return inner
        left = self.operand()
        if operator := self.match(_COMPARISON):
            return VariantCompare(operator, _value(left), _value(self.operand()), total=True)
        return VariantPresent(_shorter(left)) if isinstance(left, VariantNodes) else left

    def operand(self) -> Expr:
        self.skip()
        if self.text.startswith(("$", "@"), self.position):
            return self.nodelist()
        if text := self.match(_TEXT):
            return nodes.Literal(_decoded(text))
        if constant := self.match(_CONSTANT):
            return nodes.Literal(_CONSTANTS[constant])
        if number := self.match(_NUMBER):
            return nodes.Literal(int(number) if number.lstrip("-").isdigit() else float(number))
        name = self.match(_NAME)
        self.take("(")
        arguments = [self.operand()]
        while self.take(","):
            arguments.append(self.operand())
        self.take(")")
        of_nodes = name in ("count", "value")
        return VariantCall(name, tuple(arguments if of_nodes else map(_value, arguments)))


def _value(operand: Expr) -> Expr:
    return operand.start if isinstance(operand, VariantNodes) else operand


def _shorter(found: VariantNodes) -> VariantField | VariantNodes:
    return found if found.segments else found.start


def _decoded(text: str) -> str:
    def as_json(part: re.Match[str]) -> str:
        return {'"': '\\"', "\\'": "'"}.get(part.group(), part.group())

    inner = re.sub(r'\\.|"', as_json, text[1:-1], flags=re.DOTALL)
    return str(json.loads(f'"{inner}"', strict=False))
