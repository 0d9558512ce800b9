"""The SQL-like front end: `OTOTALPRICE < 100000 AND header.region = 'EU'` is an expression.

A bare name is a field of the body; `header.name` is a header, `item` is what `any` and `select` look at. Text
stands in single or double quotes (doubled inside), odd names in backticks, and array indexes count from 0.
Keywords and function names may be written in any case; field names are case-sensitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.errors import BadExpression, PenstockError, did_you_mean
from penstock.expr import nodes
from penstock.expr.functions import FUNCTIONS
from penstock.expr.literals import TYPED
from penstock.expr.nodes import Expr
from penstock.expr.printer import INFIX, RESERVED, ROOTS, to_text
from penstock.expr.special import SPECIAL, special
from penstock.expr.tokens import Token, place, tokenize
from penstock.schema import Path

__all__ = ["parse", "to_text"]

_COMPARISONS = {"=": "==", "==": "==", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS: dict[str, nodes.Value] = {"TRUE": True, "FALSE": False, "NULL": None}
_OPERATORS = {symbol: name for name, symbol in INFIX.items()}
_MOST_DIGITS = 1000
_MOST_NESTED = 40
_LONGEST_CHAIN = 200
"""Operators one after the other make a deep tree too, and whoever walks a tree calls itself."""
_DEEP = "name a part of it in a field of its own, with enrich"


def parse(text: str) -> Expr:
    """The tree of an expression written as text.

    >>> to_text(parse("lower(status) in ('p', 'f') and total > 10"))
    "lower(status) IN ('p', 'f') AND total > 10"
    """
    return _Reader(text).whole()


class _Reader:
    """A recursive-descent reader: one method per level of binding strength, weakest first.

    sqlglot reads schemas but not this: its tree keeps neither the names of functions nor positions for errors.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.index]

    def error(self, what: str, at: Token | None = None, fix: str | None = None) -> BadExpression:
        return BadExpression(what, place(self.text, (at or self.next).position), fix)

    def expected(self, what: str) -> BadExpression:
        reserved = self.next.word in RESERVED
        fix = f"a field of that name is written `{self.next.text}`" if reserved else None
        return self.error(f"expected {what}, found {self.next.text or 'the end'}", fix=fix)

    def word(self, *words: str) -> bool:
        """Whether these keywords come next; if so, they are read."""
        if [token.word for token in self.tokens[self.index : self.index + len(words)]] != list(words):
            return False
        self.index += len(words)
        return True

    def ahead(self, *symbols: str) -> bool:
        return self.next.kind == "symbol" and self.next.text in symbols

    def symbol(self, *symbols: str) -> str:
        """The symbol, read if it is one of these; otherwise empty."""
        if not self.ahead(*symbols):
            return ""
        self.index += 1
        return self.tokens[self.index - 1].text

    def need(self, text: str) -> None:
        if not (self.symbol(text) or self.word(text)):
            raise self.expected(text)

    def whole(self) -> Expr:
        expression = self.disjunction()
        if self.next.kind != "end":
            raise self.expected("an operator or the end")
        if _depth(expression) > _LONGEST_CHAIN:
            raise self.error(f"this is a chain of more than {_LONGEST_CHAIN} operators", self.tokens[0], _DEEP)
        return expression

    def deeper(self, read: Callable[[], Expr]) -> Expr:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise self.error(f"this is nested more than {_MOST_NESTED} deep", fix=_DEEP)
        found = read()
        self.depth -= 1
        return found

    def disjunction(self) -> Expr:
        terms = [self.deeper(self.conjunction)]
        while self.word("OR"):
            terms.append(self.deeper(self.conjunction))
        return nodes.Or(tuple(terms)) if len(terms) > 1 else terms[0]

    def conjunction(self) -> Expr:
        terms = [self.negation()]
        while self.word("AND"):
            terms.append(self.negation())
        return nodes.And(tuple(terms)) if len(terms) > 1 else terms[0]

    def negation(self) -> Expr:
        return nodes.Not(self.deeper(self.negation)) if self.word("NOT") else self.comparison()

    def comparison(self) -> Expr:
        left = self.sum()
        if operator := self.symbol(*_COMPARISONS):
            result: Expr = nodes.Compare(_COMPARISONS[operator], left, self.sum())
            if self.ahead(*_COMPARISONS):
                raise self.error("comparisons do not chain", fix="join two comparisons with AND")
            return result
        if self.word("IS", "NOT", "NULL"):
            return nodes.Present(left)
        if self.word("IS", "NULL"):
            return nodes.Not(nodes.Present(left))
        negated = self.word("NOT")
        if self.word("IN"):
            result = nodes.In(left, tuple(self.literal() for _ in self.listed()))
        elif self.word("BETWEEN"):
            low = self.sum()
            self.need("AND")
            result = nodes.And((nodes.Compare(">=", left, low), nodes.Compare("<=", left, self.sum())))
        elif self.word("LIKE"):
            result = self.like(left)
        elif negated:
            raise self.expected("IN, BETWEEN or LIKE after NOT")
        else:
            return left
        return nodes.Not(result) if negated else result

    def like(self, value: Expr) -> Expr:
        at = self.next
        pattern = self.literal()
        if not isinstance(pattern, str):
            raise self.error("LIKE needs a text", at)
        part = pattern.removeprefix("%").removesuffix("%")
        if any(wildcard in part for wildcard in "%_\\"):
            raise self.error(f"LIKE {pattern!r} is not one of 'x%', '%x', '%x%' and 'x'", at,
                             "write it as a regular expression: matches(field, '...')")  # fmt: skip
        if pattern == part:
            return nodes.Compare("==", value, nodes.Literal(part))
        if not part:
            return nodes.Present(value)
        starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
        name = "starts_with" if starts else "ends_with" if ends else "contains"
        return nodes.Call(name, (value, nodes.Literal(part)))

    def sum(self) -> Expr:
        return self.operators(self.product, "+", "-")

    def product(self) -> Expr:
        return self.operators(self.signed, "*", "/", "%")

    def operators(self, operand: Callable[[], Expr], *symbols: str) -> Expr:
        left = operand()
        while symbol := self.symbol(*symbols):
            left = nodes.Call(_OPERATORS[symbol], (left, operand()))
        return left

    def signed(self) -> Expr:
        if self.ahead("-") and self.tokens[self.index + 1].kind == "number":
            return nodes.Literal(self.literal())
        if self.symbol("-"):
            return nodes.Call("subtract", (nodes.Literal(0), self.deeper(self.signed)))
        return self.primary()

    def primary(self) -> Expr:
        token = self.next
        if self.symbol("("):
            inner = self.disjunction()
            self.need(")")
            return inner
        if self.word("CASE"):
            return self.case()
        if token.kind in ("number", "text") or token.word in _CONSTANTS or self.typed():
            return nodes.Literal(self.literal())
        if token.kind not in ("name", "quoted") or token.word in RESERVED:
            raise self.expected("a value")
        self.index += 1
        if token.kind == "name" and self.ahead("("):
            return self.call(token)
        if token.kind == "name" and token.text in ROOTS:
            return nodes.Field(self.path(), token.text)
        return nodes.Field((token.unquoted, *self.path()))

    def literal(self) -> nodes.Value:
        minus, token = self.symbol("-"), self.next
        if token.kind == "number":
            self.index += 1
            return self.number(minus + token.text.replace("_", ""), token)
        if not minus and (token.kind == "text" or token.word in _CONSTANTS):
            self.index += 1
            return _CONSTANTS[token.word] if token.word else token.unquoted
        if not minus and self.typed():
            self.index += 2
            return self.typed_literal(token, self.tokens[self.index - 1])
        raise self.expected("a number" if minus else "a number, a text, TRUE, FALSE or NULL")

    def typed(self) -> bool:
        """Whether a word and a text come next that mean a date, an instant, an exact number or bytes."""
        return self.next.word in TYPED and self.tokens[self.index + 1].kind == "text"

    def typed_literal(self, word: Token, text: Token) -> nodes.Value:
        read, looks = TYPED[word.word]
        value = read(text.unquoted)
        if value is None:
            raise self.error(f"{text.text} is no {word.word}", text, f"write {word.word} '{looks}'")
        return value

    def number(self, digits: str, token: Token) -> int | float:
        if digits.lstrip("-").isdigit():
            if len(digits) > _MOST_DIGITS:
                raise self.error(f"a number of {len(digits.lstrip('-')):,} digits", token)
            return int(digits)
        return float(digits)

    def case(self) -> Expr:
        subject = None if self.next.word == "WHEN" else self.disjunction()
        branches: list[tuple[Expr, Expr]] = []
        while self.word("WHEN"):
            test = self.disjunction()
            self.need("THEN")
            branches.append((nodes.Compare("==", subject, test) if subject else test, self.disjunction()))
        if not branches:
            raise self.expected("WHEN")
        otherwise = self.disjunction() if self.word("ELSE") else nodes.Literal(None)
        self.need("END")
        return nodes.Case(tuple(branches), otherwise)

    def path(self) -> Path:
        parts: list[str | int] = []
        while symbol := self.symbol(".", "["):
            token = self.next
            if symbol == "[":
                part = self.literal()
                if isinstance(part, bool) or not isinstance(part, (str, int)):
                    raise self.error("an index is a whole number or a name in quotes", token)
                parts.append(part)
                self.need("]")
            elif token.kind in ("name", "quoted"):
                self.index += 1
                parts.append(token.unquoted)
            else:
                raise self.expected("a field name")
        return tuple(parts)

    def listed(self) -> Iterator[None]:
        """Stop before every item of `(item, item, ...)`, so that the caller can read it."""
        self.need("(")
        while not self.ahead(")"):
            yield
            if not self.symbol(","):
                break
        self.need(")")

    def call(self, token: Token) -> Expr:
        name = token.text.lower()
        if name not in FUNCTIONS and name not in SPECIAL:
            raise self.error(f"there is no function {token.text!r}", token,
                             did_you_mean(name, [*FUNCTIONS, *SPECIAL]))  # fmt: skip
        arguments = tuple(self.disjunction() for _ in self.listed())
        try:
            return nodes.Call(name, arguments) if name in FUNCTIONS else special(name, arguments)
        except PenstockError as problem:
            raise self.error(problem.what, token, problem.fix) from None


def _depth(tree: Expr) -> int:
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in node.children()], depth + 1
    return depth
