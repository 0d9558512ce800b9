"""The XPath front end: XPath 1.0 on XML bodies.

All of XPath 1.0 that looks at the tree: every axis (child, descendant, parent, attribute, following, ...), name
and node tests, predicates with positions, comparisons, `and`, `or`, arithmetic, unions and the core function
library. Prefixes are declared with the path: `xpath("//o:order", {"o": "urn:orders"})`; without one,
`local-name() = 'order'` finds an element in any namespace. Not variables, not functions of XSLT or of extensions.

Everything is checked when the expression is written. A path that finds nothing is false, or missing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from itertools import pairwise

from lxml import etree

from penstock.errors import BadExpression, did_you_mean
from penstock.expr import nodes
from penstock.expr.columns import Column
from penstock.expr.nodes import Namespaces
from penstock.expr.tokens import place
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Type

_MANY = 1000
_FUNCTIONS = {
    "last": (0, 0), "position": (0, 0), "count": (1, 1), "id": (1, 1), "local-name": (0, 1),
    "namespace-uri": (0, 1), "name": (0, 1), "string": (0, 1), "concat": (2, _MANY), "starts-with": (2, 2),
    "contains": (2, 2), "substring-before": (2, 2), "substring-after": (2, 2), "substring": (2, 3),
    "string-length": (0, 1), "normalize-space": (0, 1), "translate": (3, 3), "boolean": (1, 1), "not": (1, 1),
    "true": (0, 0), "false": (0, 0), "lang": (1, 1), "number": (0, 1), "sum": (1, 1), "floor": (1, 1),
    "ceiling": (1, 1), "round": (1, 1),
}  # fmt: skip
_NODE_TESTS = ("comment", "text", "processing-instruction", "node")
_OPERATOR_NAMES = ("and", "or", "div", "mod")
_TOKEN = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*')
    | (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    | (?P<name>[^\W\d][\w.\-]*)
    | (?P<symbol>::|//|!=|<=|>=|\.\.|\S)""",
    re.VERBOSE,
)
_PREFIX = re.compile(r"[^\W\d][\w.\-]*")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BEFORE_OPERAND = {"@", "::", "(", "[", ",", "/", "//", "|", "+", "-", "=", "!=", "<", "<=", ">", ">=", ":", "$"}


def xpath(text: str, namespaces: Mapping[str, str] | None = None) -> Column:
    """A condition: XPath's boolean(), so a path is true when it finds something."""
    return Column(node(text, BOOLEAN, namespaces or {}))


def xpath_string(text: str, namespaces: Mapping[str, str] | None = None) -> Column:
    """The text of the first node that the path finds."""
    return Column(node(text, STRING, namespaces or {}))


def xpath_number(text: str, namespaces: Mapping[str, str] | None = None) -> Column:
    """The number in the first node that the path finds; missing where that is not a number."""
    return Column(node(text, DOUBLE, namespaces or {}))


def xpath_strings(text: str, namespaces: Mapping[str, str] | None = None) -> Column:
    """The texts of all nodes that the path finds, in document order."""
    return Column(node(text, Array(STRING), namespaces or {}))


def node(text: str, kind: Type, namespaces: Mapping[str, str]) -> nodes.XPath:
    """A path that was checked, with the prefixes that it uses."""
    if not isinstance(namespaces, Mapping):
        raise BadExpression("namespaces are prefixes and what they stand for", fix='namespaces={"o": "urn:orders"}')
    declared = tuple(sorted(namespaces.items()))
    checked(text, declared)
    words = [found.group() for found in _TOKEN.finditer(text)]
    used = {prefix for prefix, following in pairwise(words) if following == ":"}
    return nodes.XPath(text, kind, tuple((prefix, name) for prefix, name in declared if prefix in used))


def column_of(path: nodes.XPath) -> tuple[str, Type, Namespaces]:
    """What a decoder evaluates."""
    return _evaluable(path.path), path.kind, path.namespaces


def _evaluable(text: str) -> str:
    """The path as libxml2 takes it: it knows no position outside predicates, where there is one node, so it is 1."""
    tokens = list(_TOKEN.finditer(text))
    made, end, depth = "", 0, 0
    for word, opened, closed in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (word.group() == "[") - (word.group() == "]")
        if depth == 0 and word.group() in ("position", "last") and opened.group() + closed.group() == "()":
            made += text[end : word.start()] + "1"
            end = closed.end()
    return made + text[end:]


@functools.cache
def checked(text: str, namespaces: Namespaces = ()) -> str:
    """The same text, or BadExpression if it is not in the subset."""
    _check_namespaces(namespaces)
    try:
        compiled = etree.XPath(_evaluable(text), namespaces=dict(namespaces), smart_strings=False, regexp=False)
    except etree.XPathSyntaxError as error:
        column = min((entry.column for entry in error.error_log), default=0)
        raise _refused(text, str(error).lower(), column) from None
    except ValueError as error:
        raise BadExpression(f"{text!r} is not an XPath: {error}") from None
    _check_names(text, {prefix for prefix, _ in namespaces})
    try:
        compiled(etree.fromstring("<message/>"))
    except etree.XPathError as error:
        raise _refused(text, str(error).lower(), 0) from None
    return text


def _check_namespaces(namespaces: Namespaces) -> None:
    for prefix, name in namespaces:
        if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)) or prefix.lower() in ("xml", "xmlns"):
            raise BadExpression(f"{prefix!r} is not a prefix that can be declared", fix="write a name, like 'o'")
        if not isinstance(name, str) or not name or _NOT_XML.search(name):
            raise BadExpression(f"prefix {prefix!r} stands for {name!r}, which is no name of a namespace",
                                fix='write it as in the documents: namespaces={"o": "urn:orders"}')  # fmt: skip


def _refused(text: str, what: str, position: int, fix: str | None = None) -> BadExpression:
    return BadExpression(f"{text!r} is not an XPath: {what}", place(text, min(position, len(text))), fix)


def _check_names(text: str, prefixes: set[str]) -> None:
    tokens = [(found.lastgroup, found.group(), found.start()) for found in _TOKEN.finditer(text)]
    tokens += [("end", "", len(text))] * 2
    operand_next = True
    for index, (kind, word, position) in enumerate(tokens[:-2]):
        following = tokens[index + 1][1]
        is_operator = not operand_next and (word in _OPERATOR_NAMES or word == "*")
        if word == "$":
            raise _refused(text, "it has a variable", position, "write the value itself, in quotes or as a number")
        if kind == "name" and not is_operator:
            if following == ":" and word != "xml" and word not in prefixes:
                raise _refused(text, f"the namespace prefix {word!r} is not declared", position,
                               f'declare it: namespaces={{"{word}": "..."}}')  # fmt: skip
            if following == "(" and word not in _NODE_TESTS:
                _check_call(text, word, position, [token[1] for token in tokens[index + 1 :]])
        operand_next = is_operator or word in _BEFORE_OPERAND


def _check_call(text: str, name: str, position: int, rest: list[str]) -> None:
    if name not in _FUNCTIONS:
        raise _refused(text, f"there is no function {name}()", position, did_you_mean(name, _FUNCTIONS))
    least, most = _FUNCTIONS[name]
    depth, arguments = 0, 0 if rest[1] == ")" else 1
    for word in rest:
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0:
            break
        arguments += depth == 1 and word == ","
    if not least <= arguments <= most:
        wanted = str(least) if least == most else f"{least} or more" if most == _MANY else f"{least} to {most}"
        raise _refused(text, f"{name}() takes {wanted} arguments, not {arguments}", position)
