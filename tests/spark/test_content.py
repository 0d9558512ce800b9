"""Bodies on their way through several steps: Spark keeps of a struct what is read, and agrees with the reference."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock import App, Csv, Json, Memory, Route, Text, body, lookup_table
from penstock.testing import REFERENCE, SPARK, run

SCHEMA = (
    "id BIGINT, r STRING, owner STRUCT<name: STRING, age: BIGINT>, lines ARRAY<STRUCT<sku: STRING, quantity: BIGINT>>"
)
CITIES = lookup_table([{"key": "a", "city": "Rome"}], key="key")
MESSAGES = [
    {"id": 1, "r": "a", "owner": {"name": "N", "age": 5}, "lines": [{"sku": "s", "quantity": 1}, None]},
    {"id": 2, "r": "0a, b"},
    {"id": 3, "r": "a, b", "lines": [{}], "owner": None},
    {"id": 4, "r": "b", "owner": {"age": 6, "undeclared": 1}},
]


def start() -> Route:
    return Route("start", Memory((), Json(SCHEMA)))


ROUTES = {
    "a translated struct": start().translate({"o": body.owner}).translate({"n": body.o.name}).to("out", Memory()),
    "an enriched struct": start().enrich({"o": body.owner}).translate({"n": body.o.name}).to("out", Memory()),
    "a field inside a struct": start()
    .enrich({"owner.rank": body.id, "owner.home.city": "Rome", "new.x": 1})
    .to("out", Memory()),
    "a field inside a struct that nobody reads": start()
    .enrich({"owner.rank": body.id})
    .keep("id", "owner.name")
    .to("out", Memory()),
    "a field in place of another inside a struct": start()
    .enrich({"owner.name": body.owner.age})
    .enrich({"owner.age": body.owner.name * 2})
    .to("out", Memory()),
    "a struct of which every field is replaced": start()
    .enrich({"owner.name": 1, "owner.age": body.id})
    .to("out", Memory()),
    "a struct beside a looked-up field": start()
    .filter(body.owner.age > 1)
    .enrich_from(CITIES, on=body.r)
    .translate({"n": body.owner.name, "c": body.city})
    .to("out", Memory()),
    "a struct around a part": start()
    .split(body.lines, into="line", head=["owner"])
    .translate({"s": body.line.sku, "n": body.owner.name})
    .to("out", Memory()),
    "text": start().translate({"value": body.r}).to("out", Memory(format=Text())),
    "columns in another order": start().keep("id", "r").to("out", Memory(format=Csv("r STRING, id BIGINT"))),
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_body_goes_on_as_the_reference_says(spark: SparkSession, name: str) -> None:
    app = App("content", ROUTES[name])
    found, expected = run(app, MESSAGES, SPARK), run(app, MESSAGES, REFERENCE)
    assert [message.raw for message in found.messages("out")] == [message.raw for message in expected.messages("out")]


def test_recipients_may_have_blanks_around_them_and_digits_in_them(spark: SparkSession) -> None:
    route = start().recipients(body.r, known=["a", "b"])
    result = run(App("recipients", route, sinks={"a": Memory(), "b": Memory()}), MESSAGES, SPARK)
    assert [order["id"] for order in result.bodies("a")] == [1, 3]
    assert [order["id"] for order in result.bodies("b")] == [2, 3, 4]
    assert [letter.reason for letter in result.dead] == ["no channel is known as '0a'"]
