from __future__ import annotations

from typing import Any

import pytest

from penstock import Message, Route, body, collect, header, join, latest, meta, union
from penstock.errors import PenstockError
from penstock.expr.nodes import Literal
from penstock.message import Lineage, Position
from penstock.patterns.aggregate import PARTS
from penstock.reference.run import trace
from tests.patterns.apps import app, arrived, headers, start, through, why


def of(*numbers: int, name: str = "a") -> list[dict[str, Any]]:
    return [{"id": number, "name": name} for number in numbers]


def ids(result: Any) -> list[list[int]]:
    return [[member["id"] for member in found["all"]] for found in arrived(result)]


def test_groups_complete_by_size_and_say_so() -> None:
    route = start().aggregate(collect("all"), by=body.name, size=2).to("x")
    result = through(route, [*of(1), *of(2, name="b"), *of(3), *of(4, 5, name="b")])
    assert ids(result) == [[1, 3], [2, 4], [5]]
    assert headers(result, "completed-by") == ["size", "size", "stop"]
    assert headers(result, "correlation") == ["a", "b", "b"]
    assert headers(result, "group-size") == ["2", "2", "1"]
    assert (result.summary.copied, result.summary.held) == (-2, 0)


def test_an_aggregate_has_id_headers_and_position_of_its_first_member() -> None:
    first, second = Message("m", b'{"id": 1}', headers={"h": "1"}), Message("n", b'{"id": 2}', headers={"h": "2"})
    (found,) = through(start().aggregate(latest(), by=True, size=2).to("x"), [first, second]).channels["x"]
    assert (found.id, found.position, found.lineage) == ("m+1", Position("r", 0, 0), None)
    assert found.headers == {"h": "1", "correlation": "true", "completed-by": "size", "group-size": "2"}
    assert found.raw == b'{"id":2}'


def test_parts_are_put_together_again_when_all_are_there() -> None:
    route = start().split(body.lines, into="line", head=["id"], tail=["name"])
    route = route.aggregate(collect("lines", of="line", head=["id"], tail=["name"]), size=PARTS).to("x")
    orders = [{"id": n, "name": "n", "lines": [{"sku": s, "n": n} for s in "abc"[:n]]} for n in (1, 2, 3)]
    result = through(route, orders)
    assert arrived(result) == [{"id": o["id"], "lines": o["lines"], "name": "n"} for o in orders]
    assert [message.id for message in result.channels["x"]] == ["r/0/0", "r/0/1", "r/0/2"]
    assert headers(result, "correlation") == ["r/0/0", "r/0/1", "r/0/2"]
    assert result.summary.copied == 0


def test_a_collection_of_messages_splits_and_aggregates_to_itself() -> None:
    route = start().split(body.lines).aggregate(collect("lines"), size=PARTS).to("x")
    assert arrived(through(route, [{"lines": [{"sku": "a", "n": 1}, {"n": 2}]}])) == [
        {"lines": [{"sku": "a", "n": 1}, {"n": 2}]}
    ]


def test_fields_that_were_split_are_united_again() -> None:
    route = start().keep("id", "price", "name", "ok").split_fields(head=["id"]).aggregate(union(), size=PARTS).to("x")
    order = {"id": 1, "price": 2.5, "name": "n", "ok": True}
    assert arrived(through(route, [order])) == [order]


def test_a_predicate_on_the_arriving_message_completes_its_group_with_it() -> None:
    route = start().aggregate(collect("all"), by=body.name, when=body.ok).to("x")
    result = through(route, [*of(1), {"id": 2, "name": "a", "ok": True}, *of(3)])
    assert ids(result) == [[1, 2], [3]]
    assert headers(result, "completed-by") == ["predicate", "stop"]


def test_size_is_named_before_the_predicate() -> None:
    route = start().aggregate(collect("all"), by=True, size=2, when="id = 2").to("x")
    assert headers(through(route, of(1, 2)), "completed-by") == ["size"]
    assert headers(through(route, of(2)), "completed-by") == ["predicate"]


def test_a_time_out_counts_from_the_last_message_and_an_interval_from_the_first() -> None:
    timed = start().aggregate(collect("all"), by=body.name, timeout="10 s").to("x")
    result = through(timed, of(1, 2, 3), batches=[1, 1, 1], clock=[0, 9, 19], stop=False)
    assert (ids(result), headers(result, "completed-by"), result.summary.held) == ([[1, 2]], ["timeout"], 1)
    interval = start().aggregate(collect("all"), by=body.name, interval=10).to("x")
    result = through(interval, of(1, 2, 3), batches=[1, 1, 1], clock=[0, 9, 10], stop=False)
    assert (ids(result), headers(result, "completed-by"), result.summary.held) == ([[1, 2]], ["interval"], 1)


def test_a_time_out_needs_no_arrival() -> None:
    route = start().aggregate(collect("all"), by=body.name, timeout=10, interval=60).to("x")
    result = through(route, of(1), batches=[1, 0, 0], clock=[0, 9.9, 10])
    assert headers(result, "completed-by") == ["timeout"]


def test_what_is_discarded_counts_as_filtered() -> None:
    route = start().aggregate(collect("all"), by=body.name, size=3, timeout=5, on_timeout="discard").to("x")
    result = through(route, of(1, 2), batches=[2, 0], clock=[0, 5])
    assert (arrived(result), result.filtered) == ([], {"r.aggregate": 2})
    stopped = through(start().aggregate(latest(), by=True, size=3, on_stop="discard").to("x"), of(1, 2))
    assert (arrived(stopped), stopped.filtered) == ([], {"r.aggregate": 2})


def test_what_is_held_at_the_stop_is_counted() -> None:
    result = through(start().aggregate(latest(), by=True, size=3, on_stop="hold").to("x"), of(1, 2))
    assert (arrived(result), result.summary.held) == ([], 2)
    assert str(result.summary).endswith("2 in = 0 out + 0 filtered + 0 dead + 2 held")


def test_the_end_of_a_batch_completes_all_groups() -> None:
    route = start().aggregate(collect("all"), by=body.name, batch_end=True).to("x")
    result = through(route, [*of(1), *of(2, name="b"), *of(3), *of(4)], batches=[3, 1])
    assert ids(result) == [[1, 3], [2], [4]]
    assert set(headers(result, "completed-by")) == {"batch"}


def test_a_new_group_completes_the_open_one() -> None:
    route = start().aggregate(collect("all"), by=body.name, new_group=True).to("x")
    result = through(route, [*of(1, 2), *of(3, name="b"), *of(4), *of(5)], batches=[4, 1])
    assert ids(result) == [[1, 2], [3], [4, 5]]
    assert headers(result, "completed-by") == ["new-group", "new-group", "stop"]


def test_a_key_without_a_value_is_a_dead_letter_or_filtered() -> None:
    messages = [{"id": 1}, {"id": 2, "name": "a"}]
    result = through(start().aggregate(latest(), by=[body.name, body.id], size=1).to("x"), messages)
    assert why(result) == [("aggregate", "InvalidKey", "the key has no value")]
    assert headers(result, "correlation") == ['["a",2]']
    result = through(start().aggregate(latest(), by=body.name, size=1, invalid="filter").to("x"), messages)
    assert (result.filtered, len(arrived(result))) == ({"r.aggregate": 1}, 1)


def test_a_message_that_is_no_part_is_a_dead_letter_where_parts_are_expected() -> None:
    whole, parts = start("whole").to("all"), start("parts").split(body.lines).to("all")
    gathered = Route("gather", "all").aggregate(latest(), size=PARTS).to("x")
    messages = {"whole": [{"id": 1}], "parts": [{"lines": [{"n": 1}, {"n": 2}]}]}
    result = through((whole, parts, gathered), messages)
    assert why(result) == [("aggregate", "InvalidKey", "the message is not a part of a split message")]
    assert arrived(result) == [{"n": 2}]


@pytest.mark.parametrize("fate", ["dead", "filter"])
def test_a_message_for_a_group_that_was_completed(fate: str) -> None:
    route = start().aggregate(collect("all"), by=body.name, size=2, closed=fate, closed_for="1 minute").to("x")
    result = through(route, of(1, 2, 3, 4), batches=[3, 0, 1], clock=[0, 59, 60])
    assert ids(result) == [[1, 2], [4]]
    if fate == "dead":
        assert why(result) == [("aggregate", "ClosedGroup", "the group a was completed before")]
    else:
        assert result.filtered == {"r.aggregate": 1}


def test_a_group_opens_again_unless_it_is_closed() -> None:
    assert ids(through(start().aggregate(collect("all"), by=body.name, size=2).to("x"), of(1, 2, 3, 4))) == [
        [1, 2],
        [3, 4],
    ]


def test_the_message_itself_can_be_the_key() -> None:
    route = start().aggregate(collect("all"), by=meta("id"), size=2).to("x")
    assert headers(through(route, [Message("m", b"{}"), Message("m", b"{}")]), "correlation") == ["m"]


def test_a_header_can_be_the_key() -> None:
    messages = [Message("", b'{"id": %d}' % n, headers={"g": "ab"[n % 2]}) for n in range(4)]
    assert ids(through(start().aggregate(collect("all"), by=header.g, size=2).to("x"), messages)) == [[0, 2], [1, 3]]


def test_members_are_in_the_order_of_their_source_whatever_way_they_took() -> None:
    routes = (
        start().choice({"odd": "id % 2 = 1"}, otherwise="even"),
        Route("o", "odd").filter("id > 0").filter("id > 0").to("odds"),
        Route("e", "even").to("evens"),
        Route("all", join("evens", "odds")).aggregate(collect("all"), by=True, size=6).to("x"),
    )
    assert ids(through(routes, of(1, 2, 3, 4, 5, 6))) == [[1, 2, 3, 4, 5, 6]]


def test_copies_of_one_message_are_in_the_order_of_their_channels() -> None:
    routes = (
        start().multicast("b", "a"),
        Route("a", "a").enrich({"name": "a"}).to("a2"),
        Route("b", "b").enrich({"name": "b"}).to("b2"),
        Route("all", join("a2", "b2")).aggregate(collect("all", of="name"), by=meta("id"), size=2).to("x"),
    )
    assert [found["all"] for found in arrived(through(routes, of(1, 2)))] == [["b", "a"], ["b", "a"]]


def test_aggregates_can_be_aggregated() -> None:
    route = start().aggregate(collect("all", of="id"), by=body.name, batch_end=True)
    route = route.aggregate(collect("groups"), by=True, batch_end=True).to("x")
    result = through(route, [*of(1), *of(2, name="b"), *of(3)])
    assert arrived(result) == [{"groups": [{"all": [1, 3]}, {"all": [2]}]}]
    assert result.summary.copied == -2


def test_a_trace_says_who_waits_and_what_completes() -> None:
    plan = app(start().split(body.tags).aggregate(collect("tags", of="value"), size=PARTS).to("x")).plan
    outcomes = [(step.step, step.outcome) for step in trace(plan, {"tags": ["a", "b"]}).steps]
    assert outcomes == [
        ("split", "on as part 1 of 2, on as part 2 of 2"),
        ("aggregate", "held (1 of 2)"),
        ("aggregate", "on, completed by size"),
        ("to", "-> x"),
    ]


def test_only_the_fields_that_a_strategy_needs_are_read() -> None:
    plan = app(start().aggregate(collect("all", of="id", head=["name"]), by=body.ok, size=2).to("x")).plan
    assert plan.entries[0].scope.wanted.names == ("id", "name", "ok")
    plan = app(start().aggregate(collect("all"), by=body.ok, size=2).to("x")).plan
    assert plan.entries[0].scope.wanted == plan.entries[0].scope.schema


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "no group would ever be complete"),
        ({"on_stop": "flush"}, "no group would ever be complete"),
        ({"size": 0}, "size=0 is not a whole number from 1 up"),
        ({"size": -3}, "size=-3 is not a whole number from 1 up"),
        ({"size": 2.5}, "size=2.5 is not a whole number"),
        ({"size": "all"}, "size='all' is not a whole number"),
        ({"timeout": -1}, "timeout=-1 is not a length of time above 0"),
        ({"interval": "soon"}, "interval='soon' is not a length of time"),
        ({"when": False}, "when=FALSE never completes a group"),
        ({"size": 2, "on_timeout": "discard"}, "on_timeout='discard' without a time-out"),
        ({"timeout": 2, "on_timeout": "hold"}, "on_timeout='hold' is not a policy"),
        ({"size": 2, "on_stop": "wait"}, "on_stop='wait' is not a policy"),
        ({"size": 2, "invalid": "pass"}, "invalid='pass' is not a policy"),
        ({"size": 2, "closed": "dead"}, "closed and closed_for go together"),
        ({"size": 2, "closed_for": 5}, "closed and closed_for go together"),
        ({"new_group": True, "closed": "dead", "closed_for": 5}, "new_group ends a group when another begins"),
        ({"size": 2, "closed": "pass", "closed_for": 5}, "closed='pass' is not a policy"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        start().aggregate(latest(), by=body.id, **settings)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (body.price, "a key is one value, and no DOUBLE, but price is DOUBLE"),
        (body.tags, "but tags is ARRAY<STRING>"),
        (body.who, "but who is STRUCT"),
        (body.nothing, "the body has no field 'nothing'"),
        ([body.id, body.price], "but price is DOUBLE"),
        (Literal(None), "but NULL is never there"),
    ],
)
def test_keys_that_cannot_be_compared_are_refused(key: object, said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        _ = app(start().aggregate(latest(), by=key, size=2).to("x")).plan


def test_parts_are_expected_only_after_a_splitter() -> None:
    with pytest.raises(PenstockError, match="no splitter comes before it"):
        _ = app(start().aggregate(latest(), size=2).to("x")).plan
    with pytest.raises(PenstockError, match="size='parts' puts the parts of a split message together"):
        _ = app(start().aggregate(latest(), by=body.id, size=PARTS).to("x")).plan
    route = start().split(body.lines).aggregate(collect("a"), size=PARTS).aggregate(collect("b"), size=PARTS)
    with pytest.raises(PenstockError, match="no splitter comes before it"):
        _ = app(route.to("x")).plan


def test_a_strategy_is_needed() -> None:
    with pytest.raises(PenstockError, match="is not a way to aggregate"):
        start().aggregate(body.id, by=body.id, size=2)  # type: ignore[arg-type]


def test_lineage_of_parts_is_kept_through_other_steps() -> None:
    route = start().split(body.lines).filter(body.n > 0).to("x")
    assert through(route, [{"lines": [{"n": 1}]}]).messages("x")[0].lineage == Lineage("r/0/0", 0, 1)
