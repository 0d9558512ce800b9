"""Hypothesis strategies for expression trees."""

from __future__ import annotations

import os.path
from datetime import UTC

from hypothesis import strategies as st

from penstock.expr import nodes
from penstock.expr.functions import FUNCTIONS
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array

words = st.sampled_from([
    "a", "total", "body", "header", "item", "end", "NOT", "upper", "x-y", "a b", "", "`", "'", '"', "ü", "1"
])  # fmt: skip
names = words | st.text(max_size=4)
parts = names | st.integers(-3, 3)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_decimals = st.decimals(-1000, 1000, places=3) | st.decimals(-1000, 1000, places=0)
_times = st.dates() | st.datetimes(timezones=st.just(UTC)) | _decimals.map(lambda number: number or abs(number))
values = st.none() | st.booleans() | st.integers() | _finite | st.text(max_size=6) | _times | st.binary(max_size=4)
fields = st.builds(
    nodes.Field, st.lists(parts, max_size=3).map(tuple), st.sampled_from([nodes.BODY, nodes.HEADER, nodes.ITEM])
)
literals = st.builds(nodes.Literal, values)
xpaths = st.builds(
    nodes.XPath,
    st.sampled_from(["/a/b", "//a[@b = 'x']", '//a[@b = "it\'s"]']),
    st.sampled_from([BOOLEAN, STRING, DOUBLE, Array(STRING)]),
)
json_paths = st.sampled_from([nodes.JsonPath("$..a"), nodes.JsonPath("length(@.a) > 'b'")])
metas = st.sampled_from(nodes.META).map(nodes.Meta)


def _several(inner: st.SearchStrategy[nodes.Expr], least: int, most: int) -> st.SearchStrategy[tuple[nodes.Expr, ...]]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


def _larger(inner: st.SearchStrategy[nodes.Expr]) -> st.SearchStrategy[nodes.Expr]:
    return st.one_of(
        st.builds(nodes.Compare, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(nodes.And, _several(inner, 2, 3)),
        st.builds(nodes.Or, _several(inner, 2, 3)),
        st.builds(nodes.Not, inner),
        st.builds(nodes.In, inner, st.lists(values, max_size=3).map(tuple)),
        st.builds(nodes.Present, inner),
        st.builds(nodes.AnyOf, inner, inner),
        st.builds(nodes.Select, inner, inner),
        st.builds(nodes.Call, st.sampled_from(sorted(FUNCTIONS)), _several(inner, 0, 3)),
        st.builds(nodes.Case, st.lists(st.tuples(inner, inner), min_size=1, max_size=2).map(tuple), inner),
        st.builds(nodes.Lookup, inner, st.lists(st.tuples(values, values), min_size=1, max_size=2).map(tuple), inner),
        st.builds(
            lambda arguments: nodes.Function(os.path.join, STRING, arguments, "posixpath:join"), _several(inner, 0, 2)
        ),
    )


trees = st.recursive(fields | literals | xpaths | json_paths | metas, _larger, max_leaves=12)

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0.5, 1.0, -2.0, 0.1, 1e300, 1.5e-7]),
    st.sampled_from(["", "a", "ab", "b", "1", "true", "null", "ü", "𝄞", "a\nb"]),
)
_members = st.sampled_from(["a", "b", "c", "x'\"", "x.y"])
json_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_members, inner, max_size=3),
    max_leaves=8,
)
