"""JSON text as a tree that remembers where every value was written (RFC 8259, strictly).

This is the definition of what a JSON body says; `jsonbatch` must agree with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from penstock.formats.limits import MAX_DEPTH

_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>true|false|null)""",
    re.VERBOSE,
)
_CLOSING = {"object": "}", "array": "]"}


@dataclass(slots=True)
class Node:
    """`kind` is object, array, string, number, true, false or null; `text` is the value as it was written."""

    kind: str
    start: int
    text: str = ""
    string: str = ""
    members: list[tuple[str, Node]] = field(default_factory=list)
    elements: list[Node] = field(default_factory=list)


class NotJson(Exception):
    def __init__(self, why: str, at: int) -> None:
        super().__init__(why, at)
        self.why = why
        self.at = at


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def token(self) -> tuple[str, str]:
        """The kind and text of the next token; `at` moves behind it."""
        start = self._skip_space()
        found = _TOKEN.match(self.text, start)
        if found is None:
            raise NotJson("the text ends too early" if start == len(self.text) else "unexpected text", start)
        self.at = found.end()
        return str(found.lastgroup), found[0]

    def peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self._skip_space())

    def string(self) -> str:
        """The next token, which must be a string, without quotes and escapes."""
        start = self._skip_space()
        kind, written = self.token()
        if kind != "string":
            raise NotJson("a key must be a string", start)
        return unescape(written, start)

    def mark(self, expected: str) -> str:
        start = self._skip_space()
        kind, written = self.token()
        if kind != "mark" or written not in expected:
            raise NotJson(f"expected {' or '.join(expected)}", start)
        return written

    def end(self) -> None:
        if self._skip_space() != len(self.text):
            raise NotJson("more text after the value", self.at)

    def _skip_space(self) -> int:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at


def unescape(written: str, at: int) -> str:
    string: str = json.loads(written)
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        raise NotJson("half of a surrogate pair", at) from None
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
            if not reader.peek(_CLOSING[node.kind]):
                outer.append((node, _key(reader, node)))
                continue
            reader.mark(_CLOSING[node.kind])
            node.text = text[node.start : reader.at]
        while outer:
            parent, key = outer.pop()
            if parent.kind == "object":
                parent.members.append((key, node))
            else:
                parent.elements.append(node)
            if reader.mark("," + _CLOSING[parent.kind]) == ",":
                outer.append((parent, _key(reader, parent)))
                break
            parent.text = text[parent.start : reader.at]
            node = parent
        else:
            reader.end()
            return node


def _begin(reader: _Reader) -> Node:
    """A whole scalar, or an object or array of which only the first mark is read."""
    kind, written = reader.token()
    start = reader.at - len(written)
    if kind == "string":
        return Node("string", start, written, string=unescape(written, start))
    if kind == "number":
        return Node("number", start, written)
    if kind == "word":
        return Node(written, start, written)
    if written not in "{[":
        raise NotJson("expected a value", start)
    return Node("object" if written == "{" else "array", start)


def _key(reader: _Reader, parent: Node) -> str:
    if parent.kind == "array":
        return ""
    key = reader.string()
    reader.mark(":")
    return key
