"""Schemas as people write them: read, or refused with what to do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.errors import BadSchema
from penstock.schema import schema


@pytest.mark.parametrize(
    "text", ["a STRUCT<STRING>", "a ARRAY<STRUCT<STRING>>", "a " + "ARRAY<" * 3000 + "INT" + ">" * 3000]
)
def test_a_text_that_is_no_schema_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadSchema) as caught:
        schema(text)
    assert "BIGINT" in str(caught.value)


def test_a_json_schema_that_refers_to_itself_is_refused() -> None:
    with pytest.raises(BadSchema, match="nested too deep"):
        schema({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}})


@pytest.mark.parametrize(
    ("properties", "what"),
    [({"a": 1}, "1 is no JSON Schema"), ({"a": {"properties": {"b": []}}}, "is no JSON Schema"), ({1: {}}, "is 1")],
)
def test_a_json_schema_with_something_else_inside_is_refused(properties: dict[str, object], what: str) -> None:
    with pytest.raises(BadSchema, match=what):
        schema({"type": "object", "properties": properties})


def test_a_json_schema_that_takes_anything_is_a_variant() -> None:
    assert schema({"type": "object", "properties": {"a": True}}) == schema("a VARIANT")


@dataclass
class Nothing: ...


@dataclass
class Body:
    a: list[Nothing]


def test_an_object_without_known_fields_is_any_value_inside_a_body() -> None:
    nothing = {"type": "object", "properties": {}}
    inside = schema({"type": "object", "properties": {"a": {"type": "array", "items": nothing}}})
    assert inside == schema(Body) == schema("a ARRAY<VARIANT>")
    assert schema(nothing) == schema("")
