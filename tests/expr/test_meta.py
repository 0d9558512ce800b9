"""What is known about a message beside its body."""

from __future__ import annotations

import pytest

from penstock import Message, body, meta, now
from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.columns import expression
from penstock.expr.text import parse, to_text
from penstock.expr.types import type_of
from penstock.schema import EMPTY, INTEGER, STRING, TIMESTAMP
from tests.patterns.apps import start, through


def test_columns_and_text_make_one_tree() -> None:
    compared = nodes.Compare("==", nodes.Meta("id"), nodes.Literal("m"))
    assert expression(meta("id") == "m") == parse("meta('id') = 'm'") == compared
    assert expression(now()) == parse("now()") == nodes.Meta(nodes.NOW)
    assert (to_text(nodes.Meta(nodes.NOW)), type_of(nodes.Meta(nodes.NOW), EMPTY)) == ("now()", TIMESTAMP)
    assert [type_of(nodes.Meta(name), EMPTY) for name in nodes.META] == [STRING, STRING, INTEGER, INTEGER]


def test_a_message_has_an_id_and_a_part_has_a_parent() -> None:
    seen = {name: meta(name) for name in nodes.META}
    messages = [Message("m", b'{"lines": [{}, {}]}')]
    assert through(start().translate(seen).to("x"), messages).bodies("x") == [{"id": "m"}]
    assert through(start().split(body.lines).translate(seen).to("x"), messages).bodies("x") == [
        {"id": "m.0", "parent": "m", "index": 0, "count": 2}, {"id": "m.1", "parent": "m", "index": 1, "count": 2},
    ]  # fmt: skip


def test_nothing_else_is_known() -> None:
    with pytest.raises(BadExpression, match="nothing is known as meta 'ix'"):
        meta("ix")
    with pytest.raises(BadExpression, match="nothing is known as meta 'ix'"):
        parse("meta('ix')")
    with pytest.raises(BadExpression, match="meta takes one text in quotes"):
        parse("meta(id)")
