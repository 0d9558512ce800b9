"""The words of SQL-like text, and where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import BadExpression

_TOKEN = re.compile(
    r"""\s+
    | (?P<number>(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<symbol><=|>=|<>|!=|==|[-+*/%()\[\],.=<>])""",
    re.VERBOSE,
)
_FOREIGN = {
    "&": "AND", "|": "OR", "!": "NOT", "~": "NOT", "$": "jsonpath('$...')", "@": "jsonpath('@...')"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, name, quoted (a name in backticks), text, symbol or end."""

    kind: str
    text: str
    position: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "name" else ""

    @property
    def unquoted(self) -> str:
        if self.kind not in ("quoted", "text"):
            return self.text
        return self.text[1:-1].replace(self.text[0] * 2, self.text[0])


def tokenize(text: str) -> list[Token]:
    tokens, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        if found.lastgroup is not None:
            tokens.append(Token(found.lastgroup, found.group(), position))
        position = found.end()
    return [*tokens, Token("end", "", position)]


def _unreadable(text: str, position: int) -> BadExpression:
    character = text[position]
    if character in "'\"`":
        return BadExpression("this quote is not closed", place(text, position), f"end it with {character}")
    fix = f"write {_FOREIGN[character]}" if character in _FOREIGN else None
    return BadExpression(f"{character!r} has no meaning here", place(text, position), fix)


def place(text: str, position: int) -> str:
    """Line and column of a position, with the line itself and a caret under it."""
    before = text[:position]
    line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
    shown = text.split("\n")[line - 1]
    return f"line {line}, column {column}\n       {shown}\n       {' ' * (column - 1)}^"
