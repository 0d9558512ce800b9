"""YFilter's NITF documents and queries: every XPath as a condition on every document."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from penstock.expr.nodes import XPath
from penstock.expr.xpath import xpath
from penstock.formats.base import Malformed
from penstock.formats.xml import XPaths, parse
from penstock.schema import BOOLEAN
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
