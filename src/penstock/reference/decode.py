"""The fields of a message, read from its bytes."""

from __future__ import annotations

import json
from typing import Any

from penstock.expr import jsonpath, nodes
from penstock.expr.evaluate import expression_key
from penstock.formats import Malformed, Xml
from penstock.plan.plan import Entry

DECODE = "decode"


def decode(entry: Entry, raw: bytes) -> dict[str, Any] | Malformed:
    """The fields that the plan reads, and the values of the paths that only the decoder can follow."""
    xpaths = tuple(path for path in entry.paths if isinstance(path, nodes.XPath))
    queries = tuple(path for path in entry.paths if isinstance(path, nodes.JsonPath))
    if not entry.parsed.fields and not entry.paths:
        return {}
    if isinstance(entry.format, Xml):
        fields = entry.format.decode(raw, entry.parsed, xpaths=tuple((path.path, path.kind) for path in xpaths))
        if isinstance(fields, Malformed):
            return fields
        for index, path in enumerate(xpaths):
            fields[expression_key(path)] = fields.pop(f"xpath_{index}")
        return fields
    fields = entry.format.decode(raw, entry.parsed)
    if isinstance(fields, dict):
        for query in queries:
            fields[expression_key(query)] = jsonpath.holds(query.query, json.loads(raw))
    return fields
