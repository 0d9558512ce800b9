"""The JSONPath Compliance Test Suite of RFC 9535: https://github.com/jsonpath-standard/jsonpath-compliance-test-suite"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.jsonpath import find, predicate
from tests.suites import suite

CASES: list[dict[str, Any]] = json.loads((suite("jsonpath") / "cts.json").read_text())["tests"]
VALID = [case for case in CASES if not case.get("invalid_selector")]
INVALID = [case for case in CASES if case.get("invalid_selector")]
VALUE = nodes.Field(("value",))

NOT_FOR_TYPED_FIELDS = {
    "slice selector": 62,
    "function search()": 29,
    "function match()": 21,
    "function length()": 16,
    "descendant segment ..": 14,
    "function count()": 11,
    "function value()": 2,
}


def is_expected(case: dict[str, Any], found: list[Any]) -> bool:
    expected = case["results"] if "results" in case else [case["result"]]
    return json.dumps(found, sort_keys=True) in (json.dumps(one, sort_keys=True) for one in expected)


def test_the_suite_is_the_one_we_know() -> None:
    assert (len(VALID), len(INVALID)) == (456, 247)


@pytest.mark.parametrize("case", VALID, ids=lambda case: case["name"])
def test_a_valid_selector_finds_what_the_suite_expects(case: dict[str, Any]) -> None:
    assert is_expected(case, find(case["selector"], case["document"]))


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["name"])
def test_an_invalid_selector_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(BadExpression):
        find(case["selector"], None)


def test_selectors_beyond_typed_fields_are_refused_by_the_name_of_the_feature() -> None:
    conditions = [predicate(case["selector"]) for case in VALID]
    refused = Counter(tree.unsupported for tree in conditions if isinstance(tree, nodes.JsonPath))
    assert refused == NOT_FOR_TYPED_FIELDS
