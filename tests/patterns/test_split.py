from __future__ import annotations

import pytest

from penstock import body, item
from penstock.errors import PenstockError
from penstock.message import Lineage
from tests.patterns.apps import app, start, through


def test_a_part_knows_its_parent_its_index_and_their_number() -> None:
    result = through(start().split(body.lines).to("x"), [{"lines": [{"sku": "a"}, {"sku": "b", "n": 2}]}])
    assert result.bodies("x") == [{"sku": "a"}, {"sku": "b", "n": 2}]
    parts = result.messages("x")
    assert [part.id for part in parts] == ["r/0/0.0", "r/0/0.1"]
    assert [part.lineage for part in parts] == [Lineage("r/0/0", 0, 2), Lineage("r/0/0", 1, 2)]
    assert result.summary.copied == 1


def test_a_message_without_parts_counts_as_filtered() -> None:
    result = through(start().split(body.lines).to("x"), [{"lines": []}, {}, {"lines": None}])
    assert result.messages("x") == []
    assert result.filtered == {"r.split": 3}


def test_elements_that_are_no_objects_become_values() -> None:
    result = through(start().split(body.tags).to("x"), [{"tags": ["a", None]}])
    assert result.bodies("x") == [{"value": "a"}, {}]


def test_a_null_element_is_a_part_without_fields() -> None:
    result = through(start().split(body.lines).to("x"), [{"lines": [None, {"n": 1}]}])
    assert result.bodies("x") == [{}, {"n": 1}]


def test_head_and_tail_go_around_every_element() -> None:
    route = start().split(body.lines, into="line", head=["id"], tail=["name"]).to("x")
    result = through(route, [{"id": 1, "name": "n", "lines": [{"n": 1}, {"n": 2}]}])
    assert [list(part) for part in result.bodies("x")] == [["id", "line", "name"]] * 2
    assert [part["line"] for part in result.bodies("x")] == [{"n": 1}, {"n": 2}]


def test_a_selection_of_elements_can_be_split() -> None:
    result = through(start().split(body.lines.select(item.n > 1)).to("x"), [{"lines": [{"n": 1}, {"n": 2}, {"n": 3}]}])
    assert result.bodies("x") == [{"n": 2}, {"n": 3}]


def test_splitting_twice_keeps_the_whole_lineage_in_the_id() -> None:
    route = start().split(body.lines, into="line", head=["tags"]).split(body.tags).to("x")
    result = through(route, [{"tags": ["a", "b"], "lines": [{"n": 1}, {"n": 2}]}])
    assert [part.id for part in result.messages("x")] == [f"r/0/0.{n}" for n in ("0.0", "0.1", "1.0", "1.1")]
    assert result.messages("x")[3].lineage == Lineage("r/0/0.1", 1, 2)
    assert result.summary.copied == 3


def test_fields_become_messages_between_head_and_tail() -> None:
    route = start().keep("id", "price", "name", "ok").split_fields(head=["id"], tail=["ok"]).to("x")
    result = through(route, [{"id": 1, "price": 2.5, "name": "n", "ok": True}, {"id": 2, "name": "m"}, {"id": 3}])
    assert result.bodies("x") == [
        {"id": 1, "price": 2.5, "ok": True}, {"id": 1, "name": "n", "ok": True}, {"id": 2, "name": "m"},
    ]  # fmt: skip
    assert result.filtered == {"r.split_fields": 1}


def test_splits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PenstockError, match="head and tail need a name for the element between them"):
        start().split(body.lines, head=["id"])
    with pytest.raises(PenstockError, match="a part would have a field twice"):
        start().split(body.lines, into="id", head=["id"])
    with pytest.raises(PenstockError, match=r"\['id'\] cannot be in both head and tail"):
        start().split_fields(head=["id"], tail=["id"])
    with pytest.raises(PenstockError, match="head and tail leave no field to split"):
        _ = app(start().keep("id").split_fields(head=["id"]).to("x")).plan
    with pytest.raises(PenstockError, match="BIGINT is not a collection"):
        _ = app(start().split(body.id).to("x")).plan
