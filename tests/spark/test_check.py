from __future__ import annotations

import pytest

from penstock import body, function, item
from penstock.errors import PenstockError
from penstock.spark.check import check
from tests.patterns.apps import app, start


def test_a_function_inside_any_is_refused_where_its_value_is_needed() -> None:
    called = body.lines.any(function(bool, item.n, returns="BOOLEAN"))
    with pytest.raises(PenstockError, match=r"Spark cannot call the Python function .* inside any\(...\)"):
        check(app(start().filter(called).to("x")).plan)


def test_a_function_whose_value_nobody_needs_is_no_matter() -> None:
    check(app(start().enrich({"n": function(abs, body.id, returns="BIGINT")}).keep("name").to("x")).plan)
