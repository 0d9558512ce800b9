"""JSONPath, which finds what the library of the RFC's authors' test suite finds, and XPath."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonpath_rfc9535

from penstock.errors import PenstockError
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.jsonpath import find, holds, predicate
from penstock.expr.types import type_of
from penstock.expr.variant import bind
from penstock.expr.xpath import checked
from penstock.formats import Xml
from penstock.schema import BOOLEAN, DOUBLE, EMPTY, STRING, Array, schema
from tests.fuzz.parser import Parser, text_of

# For the library `$[?@]` does not find what is false, although it exists: so nothing is.
DOCUMENT: Any = {
    "a": 1, "b": "text", "c": [1, 2.5, None, True, "x", [6], {"a": 1, "b": 2}], "d": {"e": {"f": "g"}, "a": [7, 8, 9]},
    "é": "\U0001f600", "o'c": {"\"": 1}, "n": None, "t": True, "lines": [{"sku": "a", "price": 5}, {"sku": "b"}],
}  # fmt: skip
BODY = schema(
    "a BIGINT, b STRING, d STRUCT<a: ARRAY<BIGINT>>, t BOOLEAN, lines ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"
)
XML_BODY = b"""<order xml:lang="en" kind="a"><id>7</id><!-- c --><?p i?><lines><line no="1">x<b>y</b></line>
<line no="2"/></lines><n:e xmlns:n="u">1.5</n:e></order>"""


def queries_find_what_the_library_finds(data: bytes) -> None:
    text = text_of(data)
    if text is None:
        return
    try:
        found = find(text, DOCUMENT)
    except PenstockError:
        return
    try:
        expected = jsonpath_rfc9535.find(text, DOCUMENT).values()
    except (TypeError, jsonpath_rfc9535.JSONPathError):  # it fails with `count(@)`, and takes no late letters in names
        return
    assert _in_any_order(found) == _in_any_order(expected)


def _in_any_order(values: Iterable[Any]) -> list[str]:
    """The members of an object have none."""
    return sorted(json.dumps(value, sort_keys=True) for value in values)


def conditions_hold_or_not(data: bytes) -> None:
    text = text_of(data)
    if text is None:
        return
    try:
        held = holds(text, DOCUMENT)
        condition = predicate(text)
    except PenstockError:
        return
    assert held in (True, False)
    try:
        assert type_of(condition, BODY) == BOOLEAN
        bound = bind(condition, BODY)
    except PenstockError:
        return
    row = {name: DOCUMENT[name] for name in BODY.names}
    assert evaluate(bound, Scope(row)) in (True, False, None)


def xpaths(data: bytes) -> None:
    text = text_of(data)
    if text is None:
        return
    try:
        checked(text)
    except PenstockError:
        return
    kinds = (BOOLEAN, STRING, DOUBLE, Array(STRING))
    Xml().decode(XML_BODY, EMPTY, xpaths=tuple((text, kind) for kind in kinds))


_QUERIES = [
    "$", "$.a", "$['b']", "$.c[0]", "$.c[-1]", "$.c[1:5:2]", "$.c[::-1]", "$..a", "$.*", "$..*", "$.c[0,1,-1]",
    "$.lines[?@.price > 4 && @.sku == 'a']", "$.c[?!@.a]", "$[?length(@) > 3 || count(@.*) == 2]",
    "$.lines[?match(@.sku, '[ab]')]", "$.lines[?search(@.sku, 'a.*')]", "$[?value(@.a) == 1]", '$["\\u00e9"]',
    "$.c[?@ == null || @ == true || @ == 2.5e0]", "$.d[?$.a == 1]", "$.lines[?@.sku < 'b' && (@.price <= 5)]",
]  # fmt: skip
_CONDITIONS = ["@.a == 1", "$.a < 2 && !@.missing", "@.lines[?@.price > 5]", "@.b != 'x' || @.t", "length(@.b) >= 4"]
_XPATHS = [
    "//line", "/order/@kind = 'a'", "count(//*) > 3 and not(//x)", "//line[last()]/@no", "string(//id) + 1 * 2 div 3",
    "//*[local-name() = 'e']", "following-sibling::*[position() < 2] | ancestor::order", "//comment()",
    "processing-instruction('p')", "substring(concat('a', //id), 2, 1)", "lang('en')", "namespace::*", "id('x')",
    "translate(normalize-space(//line), 'xy', 'ab')", "sum(//@no) mod 2 = 1", "//line/..//b/text()",
]  # fmt: skip
PARSERS = [
    Parser(queries_find_what_the_library_finds, [text.encode() for text in _QUERIES]),
    Parser(conditions_hold_or_not, [text.encode() for text in (*_QUERIES, *_CONDITIONS)]),
    Parser(xpaths, [text.encode() for text in _XPATHS]),
]
