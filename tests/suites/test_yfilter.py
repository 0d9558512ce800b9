"""YFilter's NITF documents and queries: every XPath as a condition on every document."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Memory, Route, Xml
from penstock.expr.evaluate import expression_key
from penstock.expr.nodes import XPath
from penstock.expr.xpath import xpath
from penstock.formats.base import Malformed
from penstock.formats.xml import XPaths, parse
from penstock.kernel.block import Arrived
from penstock.kernel.reading import Decoder
from penstock.plan.plan import Entry, Scope
from penstock.schema import BOOLEAN, Struct
from penstock.testing import SPARK, run
from tests.suites import suite

FOLDER = suite("yfilter")


def documents() -> dict[str, bytes]:
    found = {}
    with tarfile.open(FOLDER / "docs-100.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                found[Path(member.name).name] = content.read()
    return found


@pytest.mark.parametrize(("queries", "count"), [("simple_paths", 200), ("simple_predicates", 1000)])
def test_the_queries_match_the_documents_that_the_suite_expects(queries: str, count: int) -> None:
    lines = (FOLDER / f"{queries}.queries.txt").read_text().splitlines()
    expected = json.loads((FOLDER / f"{queries}.expected.json").read_text())
    conditions = [xpath(line)._expression for line in lines]
    assert len(conditions) == count
    paths = XPaths(tuple((node.path, BOOLEAN) for node in conditions if isinstance(node, XPath)))

    matched = {}
    for name, raw in documents().items():
        root = parse(raw)
        assert not isinstance(root, Malformed)
        matched[name] = [number for number, found in enumerate(paths.evaluate(root), 1) if found]
    assert matched == expected


def test_a_batch_finds_the_documents_that_the_suite_expects() -> None:
    """Both sets of queries as the columns of one decode."""
    sets = ("simple_paths", "simple_predicates")
    lines = {name: (FOLDER / f"{name}.queries.txt").read_text().splitlines() for name in sets}
    queries = {name: [xpath(line)._expression for line in lines[name]] for name in sets}
    paths = tuple(dict.fromkeys(query for name in sets for query in queries[name]))
    nothing = Struct(())
    entry = Entry("nitf", Memory(), Xml(), Scope(0, nothing, nothing, True), paths)
    given = documents()
    arrived = Arrived(pa.array(given.values(), pa.binary()), "nitf", 0, np.arange(len(given)))
    block, failures = Decoder(entry)(arrived)
    assert failures == []
    answers = zip(*(block.column(expression_key(path)).to_pylist() for path in paths), strict=True)
    found = {name: dict(zip(paths, row, strict=True)) for name, row in zip(given, answers, strict=True)}
    for name in sets:
        expected = json.loads((FOLDER / f"{name}.expected.json").read_text())
        matched = {
            document: [number for number, query in enumerate(queries[name], 1) if values[query]]
            for document, values in found.items()
        }
        assert matched == expected


def test_queries_route_documents_as_the_suite_expects(spark: SparkSession) -> None:
    """Some of the queries as the cases of a router, through a whole app."""
    lines = (FOLDER / "simple_predicates.queries.txt").read_text().splitlines()[:40]
    expected = json.loads((FOLDER / "simple_predicates.expected.json").read_text())
    names, given = zip(*documents().items(), strict=True)
    cases = [(f"query {number}", xpath(line)) for number, line in enumerate(lines, 1)]
    sinks = {name: Memory() for name in ["none", *(name for name, _ in cases)]}
    app = App("nitf", Route("r", Memory((), Xml())).choice(cases, otherwise="none"), sinks=sinks)
    result = run(app, given, SPARK)
    for document, matched in zip(range(len(names)), (expected[name] for name in names), strict=True):
        first = next((f"query {number}" for number in matched if number <= len(lines)), "none")
        assert f"r/0/{document}" in {message.id for message in result.channels[first]}
    assert result.summary.conserved
