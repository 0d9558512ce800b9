"""The types of message bodies, and how people write them: DDL text, dataclasses, JSON Schema."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot.tokens import Tokenizer

from penstock.errors import BadSchema, UnknownField, did_you_mean


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of the four values every format can carry, or VARIANT: any JSON value."""

    name: str

    def __str__(self) -> str:
        return self.name


STRING = Scalar("STRING")
BOOLEAN = Scalar("BOOLEAN")
INTEGER = Scalar("BIGINT")
DOUBLE = Scalar("DOUBLE")
VARIANT = Scalar("VARIANT")


@dataclass(frozen=True, slots=True)
class Array:
    element: Type

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """An object whose keys are data."""

    value: Type

    def __str__(self) -> str:
        return f"MAP<STRING, {self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields, in order. Field names are case-sensitive."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{quote_name(name)}: {kind}' for name, kind in self.fields)}>"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    def get(self, name: str) -> Type | None:
        return next((kind for field, kind in self.fields if field == name), None)

    def ddl(self) -> str:
        """The schema as `schema(...)` reads it."""
        return ", ".join(f"{quote_name(name)} {kind}" for name, kind in self.fields)


Type = Scalar | Array | Map | Struct
EMPTY = Struct(())
Path = tuple[str | int, ...]
SchemaLike = Struct | str | type | Mapping[str, object]

_DDL_SCALARS = {
    "CHAR": STRING, "NCHAR": STRING, "TEXT": STRING, "VARCHAR": STRING,
    "BOOLEAN": BOOLEAN,
    "TINYINT": INTEGER, "SMALLINT": INTEGER, "INT": INTEGER, "BIGINT": INTEGER,
    "FLOAT": DOUBLE, "DOUBLE": DOUBLE,
    "VARIANT": VARIANT,
}  # fmt: skip
_TEXT_TYPES = "JSON, XML and CSV carry it as text: declare STRING (ISO dates compare as text) or DOUBLE"


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote_name(name: str) -> str:
    """The name as DDL has it: in backticks unless it is plain and no word of SQL."""
    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in Tokenizer.KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def schema(of: SchemaLike) -> Struct:
    """Read a schema from DDL text, a dataclass or a JSON Schema.

    >>> schema("id BIGINT, tags ARRAY<STRING>").names
    ('id', 'tags')
    """
    if isinstance(of, Struct):
        return of
    if isinstance(of, str):
        return from_ddl(of)
    if isinstance(of, type) and dataclasses.is_dataclass(of):
        return from_dataclass(of)
    if isinstance(of, Mapping):
        return from_json_schema(of)
    raise BadSchema(
        f"a schema cannot be read from {type(of).__name__}",
        fix="give DDL text, a dataclass, or a JSON Schema as a dict",
    )


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
    if name == "STRUCT" and inner:
        return _struct((field.name, _from_sqlglot(field.kind)) for field in inner)
    if name in _DDL_SCALARS:
        return _DDL_SCALARS[name]
    raise BadSchema(f"{kind.sql('spark')} is not a type of message bodies", fix=_TEXT_TYPES)


def from_dataclass(of: type) -> Struct:
    hints = typing.get_type_hints(of)
    return _struct((field.name, _from_hint(hints[field.name])) for field in dataclasses.fields(of))


def _from_hint(hint: object) -> Type:
    simple: dict[object, Type] = {
        str: STRING, bool: BOOLEAN, int: INTEGER, float: DOUBLE, object: VARIANT, typing.Any: VARIANT
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [argument for argument in arguments if argument is not type(None)]
        if len(rest) == 1:
            return _from_hint(rest[0])
    if origin in (list, tuple) and arguments:
        return Array(_from_hint(arguments[0]))
    if origin is dict and arguments[0] is str:
        return Map(_from_hint(arguments[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return from_dataclass(hint)
    raise BadSchema(f"{hint!r} is not a type of message bodies",
                    fix="use str, bool, int, float, list[...], dict[str, ...] or another dataclass")  # fmt: skip


def from_json_schema(document: Mapping[str, object]) -> Struct:
    """The object's properties; formats, ranges and `required` are not types and are not read."""
    kind = _from_json_schema(document, document)
    if not isinstance(kind, Struct):
        raise BadSchema('a body is a JSON object: the JSON Schema needs "type": "object" and "properties"')
    return kind


def _from_json_schema(node: Mapping[str, object], root: Mapping[str, object]) -> Type:
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _from_json_schema(_follow(reference, root), root)
    kind = node.get("type")
    if isinstance(kind, list):
        rest = [name for name in kind if name != "null"]
        kind = rest[0] if len(rest) == 1 else None
    properties, items = node.get("properties"), node.get("items")
    if isinstance(properties, Mapping):
        return _struct((name, _from_json_schema(inner, root)) for name, inner in properties.items())
    if kind == "array" and isinstance(items, Mapping):
        return Array(_from_json_schema(items, root))
    extra = node.get("additionalProperties")
    if kind == "object" and isinstance(extra, Mapping):
        return Map(_from_json_schema(extra, root))
    scalars = {"string": STRING, "boolean": BOOLEAN, "integer": INTEGER, "number": DOUBLE}
    return scalars.get(str(kind), VARIANT)


def _follow(reference: str, root: Mapping[str, object]) -> Mapping[str, object]:
    node: object = root
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    if not reference.startswith("#/") or not isinstance(node, Mapping):
        raise BadSchema(f"cannot follow $ref {reference!r}", fix="only references inside the document are read")
    return node


def _struct(fields: Iterable[tuple[str, Type]]) -> Struct:
    listed = tuple(fields)
    for index, (name, _) in enumerate(listed):
        if name in (earlier for earlier, _ in listed[:index]):
            raise BadSchema(f"field {name!r} is declared twice")
    return Struct(listed)


def resolve(kind: Type, path: Path, at: str = "the body") -> Type:
    """The type at `path`, or UnknownField naming the part that is not there."""
    for index, part in enumerate(path):
        if kind == VARIANT:
            return VARIANT
        where = ".".join(map(str, path[:index])) or at
        if isinstance(part, int):
            if not isinstance(kind, Array):
                raise UnknownField(f"{where} is {kind}, not an array: it has no element {part}")
            kind = kind.element
        elif isinstance(kind, Map):
            kind = kind.value
        elif isinstance(kind, Struct):
            inner = kind.get(part)
            if inner is None:
                raise UnknownField(f"{where} has no field {part!r}", fix=did_you_mean(part, kind.names))
            kind = inner
        else:
            raise UnknownField(f"{where} is {kind}: it has no field {part!r}")
    return kind


def project(kind: Struct, paths: Iterable[Path]) -> Struct:
    """The part of a schema that holds the given paths, in the schema's own order.

    What lies below an array element, a map or a VARIANT is kept whole under the longest path of names.
    """
    wanted: dict[str, list[Path]] = {}
    for path in paths:
        if path:
            wanted.setdefault(str(path[0]), []).append(path[1:])
    kept: list[tuple[str, Type]] = []
    for name, inner in kind.fields:
        if name in wanted:
            rest = wanted[name]
            whole = not isinstance(inner, Struct) or () in rest
            kept.append((name, inner if whole else project(inner, rest)))  # type: ignore[arg-type]
    return Struct(tuple(kept))


def merge(left: Struct, right: Struct) -> Struct:
    """All fields of both; a field of both must have one type."""
    fields = dict(left.fields)
    for name, kind in right.fields:
        known = fields.get(name)
        if isinstance(known, Struct) and isinstance(kind, Struct):
            fields[name] = merge(known, kind)
        elif known is not None and known != kind:
            raise BadSchema(f"field {name!r} is {known} on one side and {kind} on the other")
        else:
            fields[name] = kind
    return Struct(tuple(fields.items()))


def fits(value: object, kind: Type) -> bool:
    """A Python value is one of this type; None fits everywhere."""
    if value is None or kind == VARIANT:
        return True
    match kind:
        case Array(element):
            return isinstance(value, (list, tuple)) and all(fits(inner, element) for inner in value)
        case Map(inner_kind):
            return isinstance(value, Mapping) and all(
                isinstance(key, str) and fits(inner, inner_kind) for key, inner in value.items()
            )
        case Struct():
            return isinstance(value, Mapping) and all(fits(value.get(name), inner) for name, inner in kind.fields)
    if kind == INTEGER:
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return isinstance(value, {STRING: str, BOOLEAN: bool, DOUBLE: float}[kind])
