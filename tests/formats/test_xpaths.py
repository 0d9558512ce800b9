"""XPath results against what libxml2 itself makes of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from penstock import App, Memory, Route, Xml
from penstock.errors import BadExpression
from penstock.expr.text import parse as parse_text
from penstock.expr.text import to_text
from penstock.expr.xpath import column_of, node, xpath, xpath_number, xpath_string, xpath_strings
from penstock.formats import xpaths
from penstock.formats.xml import XPaths
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Type
from penstock.testing import run

NAMESPACES = {"o": "urn:o", "p": "urn:p"}
DOCUMENT = "<?before it?><!--top--><a n='1'><!--c--><?p q?>t<b>2</b><o:b xmlns:o='urn:o'>3</o:b></a>"
STRINGS = Array(STRING)

_names = st.sampled_from(["a", "b", "o:a", "p:b"])
_leaves = st.sampled_from(["t", "1", " 2.5 ", "", "<!--c-->", "<!---->", "<?p q?>", "<?r?>", "é"])
_elements = st.recursive(
    _leaves,
    lambda inner: st.builds(
        lambda name, attribute, parts: f"<{name}{attribute}>{''.join(parts)}</{name}>",
        _names, st.sampled_from(["", " n='1'", " o:n='x'", " n='' p:m='2'"]), st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip
DOCUMENTS = st.lists(_elements, max_size=4).map(
    lambda parts: f"<!--before--><a xmlns:o='urn:o' xmlns:p='urn:p'>{''.join(parts)}</a><?after it?>"
)
_axes = ["", "@", "..", ".", "ancestor::", "descendant::", "following::", "preceding-sibling::", "self::", "parent::"]
_tests = ["*", "a", "b", "o:a", "p:*", "node()", "comment()", "text()", "processing-instruction()"]
_predicates = ["", "[1]", "[last()]", "[position() > 1]", "[. = '1']", "[@n]", "[not(*)]", "[count(../*) > 1]"]
_steps = st.builds(
    lambda axis, test, predicate: axis if axis in (".", "..") else axis + test + predicate,
    st.sampled_from(_axes), st.sampled_from(_tests), st.sampled_from(_predicates),
)  # fmt: skip
_paths = st.one_of(
    st.just("/"),
    st.builds(
        lambda start, steps, between: start + between.join(steps),
        st.sampled_from(["", "/", "//"]), st.lists(_steps, min_size=1, max_size=3), st.sampled_from(["/", "//"]),
    ),
)  # fmt: skip
NODE_SETS = st.one_of(_paths, st.builds(lambda one, other: f"{one} | {other}", _paths, _paths))
VALUES = st.one_of(
    NODE_SETS.map(lambda path: f"count({path})"),
    NODE_SETS.map(lambda path: f"count({path}) div 7"),
    NODE_SETS.map(lambda path: f"string({path})"),
    NODE_SETS.map(lambda path: f"not({path}) or position() = last()"),
)


def found(path: str, kind: Any, root: etree._Element) -> Any:
    return XPaths((column_of(node(path, kind, NAMESPACES)),)).evaluate(root)[0]


def expected(path: str, root: etree._Element) -> Any:
    return etree.XPath(path, namespaces=NAMESPACES, smart_strings=False)(root)


@settings(max_examples=400)
@given(NODE_SETS, DOCUMENTS)
def test_a_path_finds_what_libxml2_finds(path: str, document: str) -> None:
    root = etree.fromstring(document)
    count = int(expected(f"count({path})", root))
    assert found(path, BOOLEAN, root) == (count > 0)
    assert found(path, STRING, root) == (expected(f"string({path})", root) if count else None)
    number = expected(f"number({path})", root)
    assert found(path, DOUBLE, root) == (number if math.isfinite(number) else None)
    texts = [expected(f"string(({path})[{place}])", root) for place in range(1, count + 1)]
    assert found(path, STRINGS, root) == texts


@settings(max_examples=100)
@given(VALUES, DOCUMENTS)
def test_a_value_is_the_one_of_libxml2(value: str, document: str) -> None:
    root = etree.fromstring(document)
    known = expected(value.replace("position() = last()", "true()"), root)
    assert found(value, BOOLEAN, root) == bool(known)
    if isinstance(known, float):
        assert float(found(value, STRING, root)) == known


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("1 div 3", "0.3333333333333333"),
        ("0.0000001", "0.0000001"),
        ("-0.0000001", "-0.0000001"),
        ("1000000 * 1000000 * 1000000", "1000000000000000000"),
        ("-0", "0"),
        ("0 div 0", "NaN"),
        ("-1 div 0", "-Infinity"),
        ("1.5", "1.5"),
        ("100", "100"),
        ("//comment()", "top"),
        ("/a/processing-instruction()", "q"),
        ("/", "t23"),
        ("..", "t23"),
        ("//@n/..", "t23"),
        ("position()", "1"),
        ("last() + 1", "2"),
        ("//o:b", "3"),
    ],
)
def test_a_result_as_text(path: str, text: str) -> None:
    app = App("texts", Route("in", Memory(format=Xml()))
              .translate({"text": xpath_string(path, namespaces=NAMESPACES)}).to("out", Memory()))  # fmt: skip
    assert run(app, [DOCUMENT]).bodies("out") == [{"text": text}]


@pytest.mark.parametrize("path", ["/", "..", "position() = last()", "last() = 1 and //b", "/ | //zz", "//b[last()]"])
def test_a_condition_that_is_true(path: str) -> None:
    app = App("conditions", Route("in", Memory(format=Xml())).filter(xpath(path)).to("out", Memory()))
    assert len(run(app, [DOCUMENT]).messages("out")) == 1


@pytest.mark.parametrize(
    ("path", "kind", "times"),
    [
        ("//b/..", BOOLEAN, 1), ("..", BOOLEAN, 2), ("//zz/..", BOOLEAN, 2), ("count(..) = 1", BOOLEAN, 1),
        ("//b", BOOLEAN, 1), ("//b/..", STRING, 2), ("//b/..", STRINGS, 2),
    ],
)  # fmt: skip
def test_a_condition_is_evaluated_again_only_if_nothing_was_found(
    path: str, kind: Type, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    class Counted:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.evaluate = etree.XPath(*arguments, **options)

        def __call__(self, root: Any) -> Any:
            calls.append(root)
            return self.evaluate(root)

    monkeypatch.setattr(xpaths, "etree", SimpleNamespace(XPath=Counted, XPathSyntaxError=etree.XPathSyntaxError))
    xpaths._compile.cache_clear()
    found = XPaths(((path, kind),)).evaluate(etree.fromstring(DOCUMENT.encode()))
    xpaths._compile.cache_clear()
    assert len(calls) == times
    assert found[0] if path != "//zz/.." else found == [False]


def test_all_nodes_have_a_text() -> None:
    app = App("nodes", Route("in", Memory(format=Xml()))
              .translate({"all": xpath_strings("/node()"), "inner": xpath_strings("/a/node()")})
              .to("out", Memory()))  # fmt: skip
    assert run(app, [DOCUMENT]).bodies("out") == [{"all": ["it", "top", "t23"], "inner": ["c", "q", "t", "2", "3"]}]


def test_prefixes_are_declared_with_the_path() -> None:
    assert repr(xpath("//o:b", namespaces=NAMESPACES)) == "xpath('//o:b', 'o', 'urn:o')"
    tree = xpath_number("//o:b + //b", namespaces=NAMESPACES)._expression
    assert parse_text(to_text(tree)) == tree
    one, other = ({"o": name} for name in ("urn:o", "urn:other"))
    app = App("two", Route("in", Memory(format=Xml()))
              .translate({"one": xpath_number("//o:b", one), "other": xpath_number("//o:b", other)})
              .to("out", Memory()))  # fmt: skip
    assert run(app, [DOCUMENT]).bodies("out") == [{"one": 3.0}]


@pytest.mark.parametrize(
    ("path", "namespaces", "what"),
    [
        ("//q:b", NAMESPACES, "'//q:b' is not an XPath: the namespace prefix 'q' is not declared"),
        ("//o:b", {"o": ""}, "prefix 'o' stands for '', which is no name of a namespace"),
        ("//o:b", {"o": "a\0"}, "prefix 'o' stands for 'a\\x00', which is no name of a namespace"),
        ("//b", {"": "urn:o"}, "'' is not a prefix that can be declared"),
        ("//b", {"xml": "urn:o"}, "'xml' is not a prefix that can be declared"),
        ("re:test(., 'b')", {"re": "http://exslt.org/regular-expressions"}, "there is no function test()"),
    ],
)
def test_a_prefix_that_is_wrong_is_refused_when_the_path_is_written(
    path: str, namespaces: dict[str, str], what: str
) -> None:
    with pytest.raises(BadExpression) as caught:
        xpath(path, namespaces=namespaces)
    assert what in caught.value.what
