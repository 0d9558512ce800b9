"""Choose dead letters by a condition over their record."""

from __future__ import annotations

from collections.abc import Callable

from penstock.dead.letter import Letter
from penstock.errors import BadExpression, UnknownField
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.text import parse
from penstock.expr.types import require_boolean
from penstock.expr.variant import bind
from penstock.schema import schema

RECORD = schema(
    "letter STRING, route STRING, step STRING, error STRING, reason STRING, attempt BIGINT, replays BIGINT, "
    "time STRING, id STRING, topic STRING, partition BIGINT, offset BIGINT, parent STRING, index BIGINT, "
    "count BIGINT, fields STRING, text STRING, encoding STRING"
)
"""What a condition can read: the record of a letter, where the body is called `text`; `body` would be all of it."""


def chooser(where: str | None) -> Callable[[Letter], bool]:
    """A test of letters from a condition like `error = 'ScriptFailed' AND step = 'price'`; `header.x` is a header."""
    if where is None:
        return lambda letter: True
    condition = parse(where)
    for part in condition.walk():
        if isinstance(part, (nodes.XPath, nodes.JsonPath)):
            raise BadExpression("a condition over dead letters cannot follow paths into their bodies",
                                fix="look at text, which is the body as text: contains(text, '...')")  # fmt: skip
    try:
        require_boolean(condition, RECORD)
    except UnknownField as error:
        raise UnknownField(error.what.replace("the body has", "a dead letter has"), None, error.fix) from None
    bound = bind(condition, RECORD)

    def chosen(letter: Letter) -> bool:
        record = letter.record()
        about = {name: record[name] for name in ("id", "parent", "index", "count")}
        return evaluate(bound, Scope({**record, "text": record["body"]}, record["headers"], meta=about)) is True

    return chosen
