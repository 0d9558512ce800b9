"""Pictures of plans: what is drawn, and that it can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from penstock import App, Files, Json, Memory, Route, Void, body
from penstock.plan.diagram import mermaid
from penstock.plan.graph import graph
from penstock.plan.layout import layout
from penstock.plan.svg import svg
from tests.plan import apps

COUNTS = {
    "received": 1000,
    "delivered": {"report": 1234, "audit": 10, "unknown": 0, "parked": 7},
    "filtered": {"faults.filter": 3},
    "dead": 2,
}


@pytest.fixture
def cars(tmp_path: Path) -> App:
    return apps.cars(apps.models(tmp_path))


def texts(picture: str) -> list[str]:
    root = etree.fromstring(picture.encode())
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_channel_is_an_arrow_and_everything_else_a_box(cars: App) -> None:
    drawn = graph(cars.plan)
    assert [box.key for box in drawn.boxes] == [
        "source intake", "intake.choice", "faults.filter", "faults.tap", "positions.moving", "combined.join",
        "combined.model", "combined.translate", "sink audit", "sink parked", "sink report", "sink unknown",
        "dead letters",
    ]  # fmt: skip
    arrows = [(edge.start, edge.end, edge.channel) for edge in drawn.edges]
    assert ("source intake", "intake.choice", "") in arrows
    assert ("positions.moving", "combined.join", "on-road") in arrows
    assert ("combined.translate", "sink report", "report") in arrows
    assert len(arrows) == 12


def test_an_arrow_passes_through_a_route_that_only_sends_on() -> None:
    app = App("relay", Route("a", Memory()).to("x"), Route("b", "x").to("y"), Route("c", "y").to("z", Void()))
    assert [(edge.start, edge.end) for edge in graph(app.plan).edges] == [("source a", "sink z")]


def test_mermaid_names_every_box_and_channel(cars: App) -> None:
    text = mermaid(cars.plan)
    assert text.startswith("flowchart LR\n  n0")
    assert 'n1{{"<b>content-based router</b><br/>intake.choice"}}:::step' in text
    assert 'n1 -->|"errors"| n2' in text
    assert "n0 --> n1" in text


def test_mermaid_escapes_what_users_type() -> None:
    app = App("odd", Route('a"b<c>#', Memory(format=Json("id BIGINT"))).to("x|y", Files('p"]')), sinks={})
    lines = mermaid(app.plan).splitlines()
    assert '  n0(["<b>memory</b><br/>a#quot;b#lt;c#gt;#35;"]):::source' in lines
    assert '  n1[("<b>files p#quot;]</b><br/>x|y")]:::sink' in lines


def test_counts_are_drawn_where_they_are_known(cars: App) -> None:
    text = mermaid(cars.plan, COUNTS)
    assert '|"report: 1,234"|' in text
    assert '|"unknown: 0"|' in text
    assert "faults.filter<br/>3 filtered" in text
    assert '|"errors"|' in text
    drawn = texts(svg(cars.plan, COUNTS))
    assert {"report · 1,234", "unknown · 0", "3 filtered", "1,000", "2", "errors"} <= set(drawn)


def test_a_channel_with_two_senders_counts_at_its_sink() -> None:
    two = [Route(name, Memory(format=Json("id BIGINT"))).filter(body.id > 0).to("out") for name in ("a", "b")]
    drawn = graph(App("two", *two, sinks={"out": Void()}).plan, {"received": 5, "delivered": {"out": 5}})
    assert {box.key: box.note for box in drawn.boxes if box.note} == {"sink out": "5"}
    assert not any(edge.note for edge in drawn.edges)


@pytest.mark.parametrize("make", [apps.every_step, apps.every_end])
def test_svg_is_xml_that_names_every_step(make) -> None:
    plan = make().plan
    drawn = set(texts(svg(plan)))
    assert {box.name for box in graph(plan).boxes if len(box.name) < 20} <= drawn


def test_svg_escapes_what_users_type() -> None:
    app = App("<script>&\x01", Route("a<b>", Memory()).to("c&d", Void()))
    drawn = texts(svg(app.plan))
    assert drawn[0] == "<script>& "
    assert "a<b>" in drawn
    assert "c&d" in drawn


def test_boxes_do_not_overlap(cars: App) -> None:
    for plan in (cars.plan, apps.every_step().plan):
        found = re.findall(r'<g transform="translate\((\d+),(\d+)\)">', svg(plan))
        places = [tuple(map(int, place)) for place in found]
        assert len(places) == len(graph(plan).boxes)
        for index, (x, y) in enumerate(places):
            assert not any(abs(x - other[0]) < 64 and abs(y - other[1]) < 90 for other in places[index + 1 :])


def test_layers_follow_the_arrows_and_long_arrows_keep_their_own_lane() -> None:
    placed = layout(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    assert [[key for key in layer if isinstance(key, str)] for layer in placed.layers] == [["a"], ["b"], ["c"], ["d"]]
    assert len(placed.layers[1]) == 2
    assert abs(placed.rows["b"] - placed.rows[(2, 1)]) >= 1


def test_layout_removes_crossings_that_can_be_removed() -> None:
    placed = layout(["a", "b", "c", "d"], [("a", "d"), ("b", "c")])
    first, second = placed.layers
    assert [first.index("a") < first.index("b")] == [second.index("d") < second.index("c")]


def test_redelivery_stands_apart_like_dead_letters() -> None:
    plan = apps.every_memory().plan
    boxes = {box.key: box for box in graph(plan).boxes}
    assert boxes["redelivery f"].detail == "5 more tries at once, from the start of the route"
    assert boxes["a.aggregate"].title == "aggregator"
    picture = svg(plan)
    assert picture.count("redelivery on exception") >= 3
    assert '["<b>redelivery on exception</b><br/>a"]:::step' in mermaid(plan)
    assert etree.fromstring(picture.encode()) is not None
