"""XPath on Spark gives what it gives in the reference, and no document ends a batch."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock import App, Memory, Route, Xml
from penstock.expr.xpath import xpath, xpath_number, xpath_string, xpath_strings
from penstock.testing import REFERENCE, SPARK, run

NAMES = {"o": "urn:orders", "m": "urn:money"}
DOCUMENTS = [
    "<order xmlns='urn:orders'><!--gift--><?print twice?><total xmlns='urn:money'>12.5</total>text</order>",
    "<order><!--none--></order>",
    "<order/>",
    "<order",
    "",
]


def test_all_kinds_of_nodes_and_prefixes(spark: SparkSession) -> None:
    values = {
        "comment": xpath_string("//comment()"),
        "nodes": xpath_strings("/*/node()"),
        "whole": xpath_string("/"),
        "third": xpath_string("1 div 3"),
        "total": xpath_number("/o:order/m:total", NAMES),
        "other": xpath_number("/o:order/m:total", {"o": "urn:orders", "m": "urn:other"}),
        "alone": xpath("position() = last() and /"),
    }
    app = App("xml", Route("in", Memory(format=Xml())).translate(values).to("out", Memory()))
    results = [run(app, DOCUMENTS, engine) for engine in (REFERENCE, SPARK)]
    assert [result.bodies("out") for result in results[1:]] == [results[0].bodies("out")]
    assert results[0].bodies("out")[0] == {
        "comment": "gift", "nodes": ["gift", "twice", "12.5", "text"], "whole": "12.5text",
        "third": "0.3333333333333333", "total": 12.5, "alone": True,
    }  # fmt: skip
    dead = [[(letter.error, letter.reason) for letter in result.dead] for result in results]
    assert dead[0] == dead[1]
    assert len(dead[0]) == 2
