"""Parse JSONPath (RFC 9535) into a tree that is not yet fitted to any schema.

The library decides what is valid. Reading the valid text again takes little, and ties nothing here to the library's own
tree, which differs between its versions.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import jsonpath_rfc9535

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.nodes import BODY, ITEM, Expr
from penstock.expr.patterns import excess
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
_LATER, _STAND_IN = re.compile("[\u1100-\ud7ff\ue000-\U0010ffff]"), "\u00e9"
"""The library takes no characters beyond U+10FF inside names; for it, one that it takes stands in their place."""
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_CONSTANT = re.compile(r"(true|false|null)\b")
_Found = TypeVar("_Found")
_CONSTANTS = {"true": True, "false": False, "null": None}


@functools.cache
def read_query(text: str) -> VariantNodes:
    """A whole query, `$...`, over a body that is one JSON value."""
    if error := _mistake(text):
        raise _refused(text, error, _position(error))
    return _read(text, _Reader.nodelist)


@functools.cache
def read_condition(text: str) -> Expr:
    """A query that has to find something, or a bare filter, where both `@` and `$` are the body."""
    as_query = _mistake(text)
    if as_query is None:
        return VariantPresent(_shorter(_read(text, _Reader.nodelist)))
    as_filter = _mistake(f"$[?{text}]")
    if as_filter is None:
        return _read(text, _Reader.condition)
    # Whichever reading went further says what is wrong.
    query, condition = _position(as_query), _position(as_filter) - len("$[?")
    raise _refused(text, as_query, query) if query >= condition else _refused(text, as_filter, condition)


def _read(text: str, read: Callable[[_Reader], _Found]) -> _Found:
    """The library takes a little more than the RFC: what is left unread, or cannot be read, has no meaning."""
    reader = _Reader(text)
    try:
        found = read(reader)
    except (ValueError, RecursionError) as error:
        raise _refused(text, error, reader.position) from None
    reader.skip()
    if reader.position < len(text):
        raise _refused(text, ValueError("expected the end"), reader.position)
    return found


def _mistake(query: str) -> Exception | None:
    try:
        jsonpath_rfc9535.compile(_LATER.sub(_STAND_IN, query))
    except jsonpath_rfc9535.JSONPathError as error:
        return error
    except RecursionError:
        return ValueError("it is nested too deeply")
    except (ValueError, OverflowError):
        return ValueError("it has a number that nothing can hold")
    return None


def _refused(text: str, error: Exception, position: int) -> BadExpression:
    what = str(error.args[0]).splitlines()[0]
    if 0 <= position < len(text) and _LATER.match(text[position]):
        what = what.replace(_STAND_IN, text[position])
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

    def test(self, negated: bool = False) -> Expr:
        if not negated and self.take("!"):
            return nodes.Not(self.test(negated=True))
        if self.take("("):
            inner = self.condition()
            self.take(")")
            return inner
        left = self.operand()
        if operator := self.match(_COMPARISON):
            if negated:
                raise ValueError("! before a comparison, which needs parentheses")
            return VariantCompare(operator, _value(left), _value(self.operand()), total=True)
        match left:
            case VariantNodes():
                return VariantPresent(_shorter(left))
            case VariantCall("match" | "search"):
                return left
        raise ValueError("a value must be compared")

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
        if not name:
            raise ValueError("expected a value")
        self.take("(")
        arguments = [self.operand()]
        while self.take(","):
            arguments.append(self.operand())
        self.take(")")
        of_nodes = name in ("count", "value")
        if name in ("match", "search"):
            self.check_pattern(arguments[1])
        return VariantCall(name, tuple(arguments if of_nodes else map(_value, arguments)))

    def check_pattern(self, pattern: Expr) -> None:
        """What is no regular expression matches nothing, says the RFC; one that is too large is a mistake."""
        if isinstance(pattern, nodes.Literal) and isinstance(pattern.value, str) and (wrong := excess(pattern.value)):
            raise BadExpression(wrong.what, place(self.text, self.position), wrong.fix)


def _value(operand: Expr) -> Expr:
    return operand.start if isinstance(operand, VariantNodes) else operand


def _shorter(found: VariantNodes) -> VariantField | VariantNodes:
    return found if found.segments else found.start


def _decoded(text: str) -> str:
    def as_json(part: re.Match[str]) -> str:
        return {'"': '\\"', "\\'": "'"}.get(part.group(), part.group())

    inner = re.sub(r'\\.|"', as_json, text[1:-1], flags=re.DOTALL)
    return str(json.loads(f'"{inner}"', strict=False))
