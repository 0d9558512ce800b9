from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock import (
    body,
    collect,
    combine,
    count_of,
    first_of,
    fold,
    last_of,
    latest,
    max_of,
    mean_of,
    min_of,
    sum_of,
    union,
)
from penstock.errors import PenstockError
from penstock.patterns.strategy import Strategy
from penstock.schema import schema
from tests.patterns.apps import SCHEMA, app, arrived, start, through, why

LARGEST = 2**63 - 1


def merged(strategy: Strategy, *members: dict[str, Any]) -> Any:
    result = through(start().aggregate(strategy, by=True, size=len(members)).to("x"), members)
    return why(result) if result.dead else arrived(result)[0]


def test_collect_lists_the_bodies() -> None:
    assert merged(collect("all"), {"id": 1}, {"name": "b"}) == {"all": [{"id": 1}, {"name": "b"}]}


def test_collect_lists_one_field_between_those_of_the_first_and_the_last() -> None:
    strategy = collect("prices", of="price", head=["id"], tail=["name"])
    two = {"id": 1, "price": 1.5, "name": "a"}, {"id": 2, "name": "b"}
    assert merged(strategy, *two) == {"id": 1, "prices": [1.5, None], "name": "b"}
    assert list(merged(strategy, *two)) == ["id", "prices", "name"]


def test_union_takes_the_last_value_that_is_there() -> None:
    two = {"id": 1, "name": "a", "who": {"name": "x"}}, {"id": 2, "name": None, "who": {"home": {"zip": 1}}}
    assert merged(union(), *two) == {"id": 2, "name": "a", "who": {"home": {"zip": 1}}}


def test_latest_takes_the_last_body() -> None:
    assert merged(latest(), {"id": 1, "name": "a"}, {"id": 2}) == {"id": 2}


def test_folds_ignore_what_is_missing() -> None:
    strategy = fold(
        total=sum_of(body.id), least=min_of(body.id), most=max_of(body.id), mean=mean_of(body.id),
        all=count_of(), there=count_of(body.id), names=max_of(body.name),
    )  # fmt: skip
    assert merged(strategy, {"id": 1, "name": "é"}, {}, {"id": 4, "name": "z"}) == {
        "total": 5, "least": 1, "most": 4, "mean": 2.5, "all": 3, "there": 2, "names": "é",
    }  # fmt: skip
    assert merged(strategy, {}, {}) == {"all": 2, "there": 0}


def test_first_and_last_do_not_ignore_what_is_missing() -> None:
    strategy = fold(a=first_of(body.id), z=last_of(body.id), n=count_of())
    assert merged(strategy, {}, {"id": 2}) == {"z": 2, "n": 2}
    assert merged(strategy, {"id": 1}, {"id": 2}, {}) == {"a": 1, "n": 3}


def test_folds_take_expressions() -> None:
    assert merged(fold(total=sum_of(body.price * 2), n=sum_of("id % 2")), {"id": 3, "price": 1.5}, {"price": 2}) == {
        "total": 7.0, "n": 1,
    }  # fmt: skip


def test_a_sum_of_integers_is_exact_and_may_not_be_too_large() -> None:
    total = fold(total=sum_of(body.id))
    assert merged(total, {"id": LARGEST}, {"id": 1}, {"id": -1}) == {"total": LARGEST}
    failed = ("aggregate", "FoldFailed", "total is larger than its type can hold")
    assert merged(total, {"id": LARGEST}, {"id": 1}) == [failed] * 2


def test_doubles_are_added_from_left_to_right() -> None:
    assert merged(fold(total=sum_of(body.price)), {"price": 1e16}, {"price": 1.0}, {"price": -1e16}) == {"total": 0.0}
    failed = ("aggregate", "FoldFailed", "total is larger than its type can hold")
    assert merged(fold(total=mean_of(body.price)), {"price": 1.7e308}, {"price": 1.7e308}) == [failed] * 2


def widest(table: Any) -> Any:
    row = pc.index(table["price"], pc.max(table["price"])).as_py()
    return table.select(["id"]).slice(row, 1).append_column("of", pa.array([table.num_rows], pa.int64()))


def test_a_function_gets_the_members_as_an_arrow_table() -> None:
    members = {"id": 1, "price": 1.0}, {"id": 2, "price": 9.0}, {"id": 3, "price": 2.0}
    assert merged(combine(widest, "id BIGINT, of BIGINT"), *members) == {"id": 2, "of": 3}


def test_a_function_that_fails_makes_every_member_a_dead_letter() -> None:
    def broken(table: Any) -> Any:
        raise RuntimeError("no")

    assert merged(combine(broken, "id BIGINT"), {"id": 1}, {"id": 2}) == [
        ("aggregate", "AggregateFailed", "RuntimeError: no")
    ] * 2  # fmt: skip
    assert merged(combine(lambda table: table, "id BIGINT"), {"id": 1}, {"id": 2})[0] == (
        "aggregate", "AggregateFailed", "ValueError: an aggregate is one row, and 2 came out",
    )  # fmt: skip
    assert merged(combine(lambda table: table, "other BIGINT"), {"id": 1})[0][:2] == ("aggregate", "AggregateFailed")


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (collect("all", of="nothing"), "the body has no field 'nothing'"),
        (collect("all", head=["nothing"]), "the body has no field 'nothing'"),
        (fold(n=sum_of(body.name)), "sum takes a number, but name is STRING"),
        (fold(n=mean_of(body.ok)), "mean takes a number, but ok is BOOLEAN"),
        (fold(n=min_of(body.ok)), "min takes a number, text, date or time, but ok is BOOLEAN"),
        (fold(n=max_of(body.tags)), "max takes a number, text, date or time, but tags is"),
        (fold(n=count_of(body.nothing)), "the body has no field 'nothing'"),
    ],
)
def test_strategies_that_do_not_fit_the_body_are_refused(strategy: Strategy, said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        _ = app(start().aggregate(strategy, by=body.id, size=2).to("x")).plan


def test_strategies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PenstockError, match="an aggregate would have a field twice"):
        collect("id", head=["id"])
    with pytest.raises(PenstockError, match="collect needs names of fields"):
        collect("")
    with pytest.raises(PenstockError, match="fold needs at least one field"):
        fold()
    with pytest.raises(PenstockError, match="fold: 'total' is 5"):
        fold(total=5)  # type: ignore[arg-type]
    with pytest.raises(PenstockError, match="is not a function"):
        combine("f", "id BIGINT")  # type: ignore[arg-type]


def test_what_a_strategy_needs_of_its_members() -> None:
    fields = schema(SCHEMA)
    wanted = frozenset({("all",), ("who", "name")})
    assert collect("all", of="id", head=["who"]).requires(wanted, fields) == {("id",), ("who", "name")}
    assert collect("all", of="id", head=["who"]).requires(frozenset({("who",)}), fields) == {("who",)}
    assert collect("all").requires(wanted, fields) == {()}
    assert union().requires(wanted, fields) == latest().requires(wanted, fields) == wanted
    assert fold(n=sum_of(body.id), m=max_of(body.price)).requires(frozenset({("n",)}), fields) == {("id",), ("price",)}
