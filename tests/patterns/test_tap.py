from __future__ import annotations

from penstock import body
from tests.patterns.apps import start, through


def test_a_tap_sees_the_message_as_it_is_there() -> None:
    route = start().tap("first").enrich({"name": "later"}).filter(body.id > 1).tap("second").to("end")
    result = through(route, [{"id": 1}, {"id": 2}])
    assert result.bodies("first") == [{"id": 1}, {"id": 2}]
    assert result.bodies("second") == result.bodies("end") == [{"id": 2, "name": "later"}]
    assert result.summary.copied == 3
    assert result.filtered == {"r.filter": 1}


def test_a_tap_gets_what_later_dies() -> None:
    result = through(start().tap("seen").filter(body.id > 0, missing="dead").to("end"), [{}])
    assert (len(result.messages("seen")), len(result.dead)) == (1, 1)
