"""JSON text as a tree that remembers where every value was written (RFC 8259, strictly).

This is the definition of what a JSON body says; `jsonbatch` must agree with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from penstock.formats.limits import MAX_DEPTH

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        (?P<mark>[{}\[\],:])
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>true|false|null)
      | (?P<end>\Z))""",
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\n\r]*")
_CLOSING = {"object": "}", "array": "]"}


@dataclass(slots=True)
class Node:
    """`kind` is object, array, string, number, true, false or null; `text` is the value as it was written.

    `string` is a string without quotes and escapes. `members` are the keys and values of an object, in the
    order and as often as they were written, or the elements of an array, under empty keys.
    """

    kind: str
    start: int
    text: str
    string: str
    members: list[tuple[str, Node]]


class NotJson(Exception):
    def __init__(self, why: str, at: int) -> None:
        super().__init__(why, at)
        self.why = why
        self.at = at


class _Reader:
    """Tokens one after the other: the current one is `kind`, `written`, `start`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.next()

    def next(self) -> None:
        found = _TOKEN.match(self.text, self.end)
        if found is None:
            raise NotJson("unexpected text", _SPACE.match(self.text, self.end).end())  # type: ignore[union-attr]
        self.kind = str(found.lastgroup)
        self.written = found[self.kind]
        self.end = found.end()
        self.start = self.end - len(self.written)

    def refuse(self, why: str) -> NotJson:
        return NotJson("the text ends too early" if self.kind == "end" else why, self.start)

    def mark(self, expected: str) -> str:
        """The current token, which must be one of these marks; moves on."""
        written = self.written
        if self.kind != "mark" or written not in expected:
            raise self.refuse(f"expected {' or '.join(expected)}")
        self.next()
        return written

    def string(self) -> str:
        if "\\" not in self.written:
            return self.written[1:-1]
        string: str = json.loads(self.written)
        try:
            string.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson("half of a surrogate pair", self.start) from None
        return string


def parse(text: str) -> Node:
    """The one value that `text` holds. Not recursive: depth must not depend on the caller's stack."""
    reader = _Reader(text)
    outer: list[tuple[Node, str]] = []
    while True:
        node = _begin(reader)
        if node.kind in _CLOSING:
            if len(outer) == MAX_DEPTH:
                raise NotJson(f"nested deeper than {MAX_DEPTH}", node.start)
            if reader.written != _CLOSING[node.kind]:
                outer.append((node, _key(reader, node)))
                continue
            _close(reader, node)
        while outer:
            parent, key = outer.pop()
            parent.members.append((key, node))
            closing = _CLOSING[parent.kind]
            if reader.written != closing:
                reader.mark("," + closing)
                outer.append((parent, _key(reader, parent)))
                break
            _close(reader, parent)
            node = parent
        else:
            if reader.kind != "end":
                raise reader.refuse("more text after the value")
            return node


def _begin(reader: _Reader) -> Node:
    """A whole scalar, or an object or array of which only the first mark is read."""
    kind, written, start = reader.kind, reader.written, reader.start
    string = reader.string() if kind == "string" else ""
    if kind == "word":
        kind = written
    elif kind == "mark" and written in "{[":
        kind, written = "object" if written == "{" else "array", ""
    elif kind in ("mark", "end"):
        raise reader.refuse("expected a value")
    reader.next()
    return Node(kind, start, written, string, [])


def _close(reader: _Reader, node: Node) -> None:
    node.text = reader.text[node.start : reader.end]
    reader.next()


def _key(reader: _Reader, parent: Node) -> str:
    if parent.kind == "array":
        return ""
    if reader.kind != "string":
        raise reader.refuse("a key must be a string")
    key = reader.string()
    reader.next()
    reader.mark(":")
    return key
