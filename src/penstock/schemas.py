"""Schemas as people write them: DDL text, dataclasses, JSON Schema. `schema.schema` reads all of them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Iterable, Mapping

from penstock.errors import BadSchema
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EMPTY,
    INTEGER,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    DecimalType,
    Map,
    Struct,
    Type,
)

_DDL_SCALARS = {
    "CHAR": STRING, "NCHAR": STRING, "TEXT": STRING, "VARCHAR": STRING,
    "BOOLEAN": BOOLEAN,
    "TINYINT": INTEGER, "SMALLINT": INTEGER, "INT": INTEGER, "BIGINT": INTEGER,
    "FLOAT": DOUBLE, "DOUBLE": DOUBLE,
    "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMPLTZ": TIMESTAMP,
    "BINARY": BINARY, "VARBINARY": BINARY,
    "VARIANT": VARIANT,
}  # fmt: skip
_KNOWN_TYPES = "use STRING, BOOLEAN, BIGINT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, BINARY or VARIANT"


def from_ddl(text: str) -> Struct:
    """Integers of all widths are 64-bit; FLOAT is DOUBLE."""
    import sqlglot
    from sqlglot import exp

    if not text.strip():
        return EMPTY
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t (\n{text}\n)", dialect="spark").this
    except sqlglot.errors.SqlglotError as error:
        raise BadSchema(f"cannot read the schema: {str(error).splitlines()[0]}",
                        fix='write it like "id BIGINT, name STRING, tags ARRAY<STRING>"') from None  # fmt: skip
    columns = table.expressions if isinstance(table, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) and column.kind for column in columns):
        raise BadSchema(f"cannot read the schema {text!r}",
                        fix='write it like "id BIGINT, name STRING, tags ARRAY<STRING>"')  # fmt: skip
    return _struct((column.name, _from_sqlglot(column.kind)) for column in columns)


def _from_sqlglot(kind: typing.Any) -> Type:
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    inner = kind.expressions
    if name == "ARRAY" and len(inner) == 1:
        return Array(_from_sqlglot(inner[0]))
    if name == "MAP" and len(inner) == 2:
        if _from_sqlglot(inner[0]) != STRING:
            raise BadSchema(f"a map's keys are text: {kind.sql('spark')}", fix="write MAP<STRING, ...>")
        return Map(_from_sqlglot(inner[1]))
    if name == "STRUCT" and inner and all(getattr(field, "kind", None) is not None for field in inner):
        return _struct((field.name, _from_sqlglot(field.kind)) for field in inner)
    if name in _DDL_SCALARS:
        return _DDL_SCALARS[name]
    if name == "DECIMAL" and len(inner) in (1, 2) and all(str(part).isdigit() for part in inner):
        precision, scale = (*(int(str(part)) for part in inner), 0)[:2]
        return DecimalType(precision, scale)
    examples = {"STRUCT": "STRUCT<id: BIGINT, name: STRING>", "DECIMAL": "DECIMAL(12, 2), of 12 digits, 2 decimals"}
    fix = f"write it like {examples[name]}" if name in examples else _KNOWN_TYPES
    raise BadSchema(f"{kind.sql()} is not a type of message bodies", fix=fix)


def from_dataclass(of: type) -> Struct:
    hints = typing.get_type_hints(of, include_extras=True)
    return _struct((field.name, _from_hint(hints[field.name])) for field in dataclasses.fields(of))


def _from_hint(hint: object) -> Type:
    simple: dict[object, Type] = {
        str: STRING, bool: BOOLEAN, int: INTEGER, float: DOUBLE, datetime.date: DATE, datetime.datetime: TIMESTAMP,
        bytes: BINARY, object: VARIANT, typing.Any: VARIANT,
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated and arguments[0] is decimal.Decimal and isinstance(arguments[1], DecimalType):
        return arguments[1]
    if hint is decimal.Decimal:
        raise BadSchema("decimal.Decimal does not say how many digits a value has",
                        fix="write Annotated[Decimal, DecimalType(12, 2)]")  # fmt: skip
    if origin in (typing.Union, types.UnionType):
        rest = [argument for argument in arguments if argument is not type(None)]
        if len(rest) == 1:
            return _from_hint(rest[0])
    if origin in (list, tuple) and arguments:
        return Array(_from_hint(arguments[0]))
    if origin is dict and arguments[0] is str:
        return Map(_from_hint(arguments[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _with_fields(from_dataclass(hint))
    raise BadSchema(f"{hint!r} is not a type of message bodies",
                    fix="use str, bool, int, float, date, datetime, bytes, list, dict or a dataclass")  # fmt: skip


def from_json_schema(document: Mapping[str, object]) -> Struct:
    """The object's properties, with dates, instants and bytes among the texts; other formats, ranges and `required` are
    not types and are not read."""
    if document.get("properties") == {}:
        return EMPTY
    kind = _from_json_schema(document, document)
    if not isinstance(kind, Struct):
        raise BadSchema('a body is a JSON object: the JSON Schema needs "type": "object" and "properties"')
    return kind


def _from_json_schema(node: object, root: Mapping[str, object]) -> Type:
    if node is True:
        return VARIANT
    if not isinstance(node, Mapping):
        raise BadSchema(f"{node!r} is no JSON Schema", fix='write it like {"type": "string"}')
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _from_json_schema(_follow(reference, root), root)
    kind = node.get("type")
    if isinstance(kind, list):
        rest = [name for name in kind if name != "null"]
        kind = rest[0] if len(rest) == 1 else None
    properties, items = node.get("properties"), node.get("items")
    if isinstance(properties, Mapping):
        return _with_fields(_struct((name, _from_json_schema(inner, root)) for name, inner in properties.items()))
    if kind == "array" and isinstance(items, Mapping):
        return Array(_from_json_schema(items, root))
    extra = node.get("additionalProperties")
    if kind == "object" and isinstance(extra, Mapping):
        return Map(_from_json_schema(extra, root))
    if kind == "string":
        formats = {"date": DATE, "date-time": TIMESTAMP}
        return BINARY if node.get("contentEncoding") == "base64" else formats.get(str(node.get("format")), STRING)
    return {"boolean": BOOLEAN, "integer": INTEGER, "number": DOUBLE}.get(str(kind), VARIANT)


def _follow(reference: str, root: Mapping[str, object]) -> Mapping[str, object]:
    node: object = root
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    if not reference.startswith("#/") or not isinstance(node, Mapping):
        raise BadSchema(f"cannot follow $ref {reference!r}", fix="only references inside the document are read")
    return node


def _with_fields(kind: Struct) -> Type:
    """An object of which no field is known is any value: DDL, Parquet and Spark have no structs without fields."""
    return kind if kind.fields else VARIANT


def _struct(fields: Iterable[tuple[str, Type]]) -> Struct:
    listed = tuple(fields)
    for index, (name, _) in enumerate(listed):
        if not isinstance(name, str):
            raise BadSchema(f"the name of a field is {name!r}", fix="names are texts")
        if name in (earlier for earlier, _ in listed[:index]):
            raise BadSchema(f"field {name!r} is declared twice")
    return Struct(listed)
