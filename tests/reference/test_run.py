"""The reference: where every message ends, and the path it took."""

from __future__ import annotations

import pytest

from penstock import App, Json, Memory, Route, Text, Void, body
from penstock.errors import PenstockError
from penstock.reference.run import run

ORDERS = App(
    "orders",
    Route("intake", Memory((), Json("id BIGINT, tags ARRAY<STRING>")))
    .filter(body.id > 0)
    .split(body.tags, into="tag", head=["id"])
    .choice({"a": body.tag == "a"}, otherwise="rest"),
    sinks={"a": Void(), "rest": Void()},
)


def test_every_message_ends_somewhere() -> None:
    outcome = run(ORDERS.plan, [{"id": 1, "tags": ["a", "b"]}, {"id": 0}, {"id": 2}, "broken"])
    assert {name: [message.raw for message in messages] for name, messages in outcome.channels.items()} == {
        "a": [b'{"id":1,"tag":"a"}'], "rest": [b'{"id":1,"tag":"b"}'],
    }  # fmt: skip
    assert outcome.filtered == {"intake.filter": 1, "intake.split": 1}
    assert [(letter.step, letter.error) for letter in outcome.dead] == [("decode", "MalformedBody")]
    assert (outcome.received, outcome.copied) == (4, 1)
    assert outcome.summary("orders").conserved


def test_a_dead_letter_has_the_bytes_that_arrived() -> None:
    route = Route("r", Memory((), Json("id BIGINT"))).enrich({"id": body.id + 1}).filter(body.id > 0, missing="dead")
    (letter,) = run(App("a", route.to("x", Void())).plan, [b'{ "id" : null }']).dead
    assert letter.message.raw == b'{ "id" : null }'


def test_a_body_that_nobody_reads_is_not_looked_at() -> None:
    route = Route("r", Memory((), Json("id BIGINT"))).to("x", Void())
    assert len(run(App("a", route).plan, [b"\xff not json"]).channels["x"]) == 1


def test_a_trace_shows_what_each_step_asked_and_got() -> None:
    assert str(ORDERS.trace({"id": 1, "tags": ["a"]})) == (
        "intake.filter  (message filter)  on\n"
        "    id > 0 = true\n"
        "intake.split  (splitter)  on\n"
        '    tags = ["a"]\n'
        "intake.choice  (content-based router)  -> a\n"
        "    tag = 'a' = true"
    )
    assert (
        str(ORDERS.trace("broken"))
        == "intake.decode  (json)  dead letter: MalformedBody: not JSON: unexpected text at byte 0"
    )


def test_messages_for_a_route_without_a_source_are_refused() -> None:
    with pytest.raises(PenstockError, match="no route named 'intak' has a source"):
        run(ORDERS.plan, {"intak": []})
    both = App("two", Route("a", Memory((), Text())).to("x", Void()), Route("b", Memory((), Text())).to("x"))
    with pytest.raises(PenstockError, match="app 'two' has 2 sources: a, b"):
        run(both.plan, ["x"])


def test_a_trace_tells_which_parts_were_stopped_and_why() -> None:
    route = Route("in", Memory((), Json("tags ARRAY<STRING>"))).split(body.tags, error_budget=0)
    app = App("a", route.filter(body.value != "", missing="dead").to("x", Void()))
    steps = [(step.step, step.outcome) for step in app.trace({"tags": [None, "b"]}).steps]
    missing = "MissingField: the condition reads value, and a value is missing"
    assert steps == [
        ("split", "on as part 1 of 2, on as part 2 of 2"),
        ("filter", f"dead letter: {missing}"),
        ("split", f"dead letter: Stopped: part 1 of 2 failed first ({missing.replace(':', ' at in.filter:', 1)}), "
                  "and more failed than the error budget of in.split allows: 0"),
    ]  # fmt: skip
