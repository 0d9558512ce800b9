from __future__ import annotations

import pytest

from penstock import Route, body, item
from penstock.errors import PenstockError
from penstock.message import Lineage
from penstock.summary import Step
from penstock.testing import replay
from tests.patterns.apps import app, start, through, why


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


def strict(budget: object) -> Route:
    """Parts without a number fail."""
    return start().split(body.lines, error_budget=budget).filter(body.n > 0, missing="dead").to("x")  # type: ignore[arg-type]


def parts(text: str) -> dict[str, object]:
    """A message with a part per letter: those that are x fail."""
    return {"lines": [{} if letter == "x" else {"n": 1} for letter in text]}


@pytest.mark.parametrize(
    ("budget", "text", "became"),
    [
        (0, "..x.x", "..x!!"),
        (1, "..x.x.", "..x.x!"),
        (1, "x", "x"),
        (0, "....x", "....x"),
        (9, "xxxx", "xxxx"),
        (0.0, ".x.", ".x!"),
        (0.4, "xx...", "xx..."),
        (0.39, "xx...", "xx!!!"),
        (1.0, "xxx", "xxx"),
        (None, "xx.", "xx."),
    ],
)
def test_the_parts_after_the_failure_that_is_too_many_are_stopped(budget: object, text: str, became: str) -> None:
    result = through(strict(budget), [parts(text)])
    shown = {letter.message.id: "!" if letter.error == "Stopped" else "x" for letter in result.dead}
    shown |= {message.id: "." for message in result.messages("x")}
    assert "".join(shown[f"r/0/0.{number}"] for number in range(len(text))) == became
    assert all(step.conserved for step in result.summary.steps.values())


def test_a_stopped_part_says_which_budget_was_exceeded_and_what_failed_first() -> None:
    result = through(strict(0.25), [parts(".xx..")])
    (letter, _) = [letter for letter in result.dead if letter.error == "Stopped"]
    assert (letter.route, letter.step, letter.message.lineage) == ("r", "split", Lineage("r/0/0", 3, 5))
    assert letter.message.fields == {"sku": None, "n": 1}
    assert letter.reason == (
        "part 2 of 5 failed first (MissingField at r.filter: the condition reads n, and a value is missing), "
        "and more failed than the error budget of r.split allows: 25%"
    )


def test_every_message_has_its_own_budget() -> None:
    result = through(strict(0), [parts("x."), parts("..")])
    assert [message.id for message in result.messages("x")] == ["r/0/1.0", "r/0/1.1"]


def test_a_part_fails_with_anything_that_is_made_of_it() -> None:
    routes = (
        start().split(body.lines, error_budget=0).tap("seen").to("on"),
        Route("on", "on").multicast("a", "b"),
        Route("a", "a").filter(body.n > 0, missing="dead").to("x"),
    )
    result = through(routes, [parts(".x..")])
    delivered = {name: [message.id[-1] for message in result.messages(name)] for name in ("seen", "b", "x")}
    assert delivered == {"seen": ["0", "1"], "b": ["0", "1"], "x": ["0"]}
    assert why(result)[1:] == [("split", "Stopped", why(result)[1][2])] * 2
    assert result.summary.steps["r.split"] == Step(received=1, sent=2, dead=2, copied=3)
    assert result.summary.steps["on.multicast"].received == 2


def test_an_inner_split_stops_only_its_own_parts() -> None:
    route = start().split(body.lines, into="line", head=["tags"], error_budget=1)
    route = route.split(body.tags, into="tag", head=["line"], error_budget=0).filter(body.line.n > 0, missing="dead")
    result = through(route.to("x"), [{"tags": ["a", "b"], **parts("x.x.")}])
    assert [message.id for message in result.messages("x")] == ["r/0/0.1.0", "r/0/0.1.1"]
    dead = [(letter.message.id.removeprefix("r/0/0."), letter.step, letter.error) for letter in result.dead]
    assert dead == [
        ("0.0", "filter", "MissingField"), ("0.1", "split-2", "Stopped"),
        ("2.0", "filter", "MissingField"), ("2.1", "split-2", "Stopped"), ("3", "split", "Stopped"),
    ]  # fmt: skip


def test_fields_that_are_split_have_a_budget_too() -> None:
    route = start().keep("id", "price", "name").split_fields(error_budget=0).filter(body.id > 0, missing="dead").to("x")
    result = through(route, [{"id": 1, "price": 2.0, "name": "n"}])
    assert result.bodies("x") == [{"id": 1}]
    assert [letter.error for letter in result.dead] == ["MissingField", "Stopped"]


def test_stopped_parts_go_on_behind_the_split_when_they_are_replayed() -> None:
    result = through(strict(0), [parts("x..")])
    again = replay(app(strict(0)), [letter for letter in result.dead if letter.error == "Stopped"])
    assert [message.id for message in again.messages("x")] == ["r/0/0.1", "r/0/0.2"]
    assert again.summary.conserved


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "10"])
def test_a_budget_is_a_number_or_a_share(wrong: object) -> None:
    with pytest.raises(PenstockError, match=r"route 'r': error_budget=.* is no budget"):
        strict(wrong)
    with pytest.raises(PenstockError, match=r"route 'r': error_budget=.* is no budget"):
        start().split_fields(error_budget=wrong)  # type: ignore[arg-type]
