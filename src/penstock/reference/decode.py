"""The fields of a message, read from its bytes."""

from __future__ import annotations

import json
from typing import Any

from penstock.expr import jsonpath, nodes
from penstock.expr.evaluate import expression_key
from penstock.expr.xpath import column_of
from penstock.formats import Malformed, Xml
from penstock.plan.plan import Entry


def decode(entry: Entry, raw: bytes) -> dict[str, Any] | Malformed:
    """The fields that the plan reads, and the values of the paths that only the decoder can follow."""
    xpaths = tuple(path for path in entry.paths if isinstance(path, nodes.XPath))
    queries = tuple(path for path in entry.paths if isinstance(path, nodes.JsonPath))
    wanted = entry.scope.wanted
    if not wanted.fields and not entry.paths:
        return {}
    if isinstance(entry.format, Xml):
        fields = entry.format.decode(raw, wanted, xpaths=tuple(map(column_of, xpaths)))
        if isinstance(fields, Malformed):
            return fields
        for index, path in enumerate(xpaths):
            fields[expression_key(path)] = fields.pop(f"xpath_{index}")
        return fields
    fields = entry.format.decode(raw, wanted)
    if isinstance(fields, dict) and queries:
        try:
            document = json.loads(raw)
            return fields | {expression_key(query): jsonpath.holds(query.query, document) for query in queries}
        except Exception as error:  # one message must not end the run
            return Malformed("WrongType", f"JSONPath cannot be evaluated: {error}")
    return fields
