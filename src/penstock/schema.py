"""The types of message bodies, and functions over them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.errors import BadSchema, UnknownField, did_you_mean


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value that every format can carry, or VARIANT: any JSON value."""

    name: str

    def __str__(self) -> str:
        return self.name


STRING = Scalar("STRING")
BOOLEAN = Scalar("BOOLEAN")
INTEGER = Scalar("BIGINT")
DOUBLE = Scalar("DOUBLE")
DATE = Scalar("DATE")
TIMESTAMP = Scalar("TIMESTAMP")
BINARY = Scalar("BINARY")
VARIANT = Scalar("VARIANT")


@dataclass(frozen=True, slots=True, init=False)
class DecimalType(Scalar):
    """An exact number of at most `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int

    def __init__(self, precision: int, scale: int) -> None:
        if not 0 <= scale <= precision or not 1 <= precision <= 38:
            raise BadSchema(f"DECIMAL({precision}, {scale}) is not a type",
                            fix="write DECIMAL(p, s) with 1 to 38 digits, s of them behind the point")  # fmt: skip
        object.__setattr__(self, "name", f"DECIMAL({precision}, {scale})")
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "scale", scale)

    def __str__(self) -> str:
        return self.name


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

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote_name(name: str) -> str:
    """The name as DDL has it: in backticks unless it is plain and no word of SQL."""
    from sqlglot.tokens import Tokenizer  # takes as long to import as all the rest; a task needs none of it

    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in Tokenizer.KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def schema(of: SchemaLike) -> Struct:
    """Read a schema from DDL text, a dataclass or a JSON Schema.

    >>> schema("id BIGINT, tags ARRAY<STRING>").names
    ('id', 'tags')
    """
    if isinstance(of, Struct):
        return of
    from penstock.schemas import from_dataclass, from_ddl, from_json_schema

    try:
        if isinstance(of, str):
            return from_ddl(of)
        if isinstance(of, type) and dataclasses.is_dataclass(of):
            return from_dataclass(of)
        if isinstance(of, Mapping):
            return from_json_schema(of)
    except RecursionError:
        raise BadSchema("the schema is nested too deep, or refers to itself",
                        fix="declare as VARIANT, not as STRUCT or BIGINT, what may be as deep as it likes") from None
    raise BadSchema(f"a schema cannot be read from {type(of).__name__}",
                    fix="give DDL text, a dataclass, or a JSON Schema as a dict")  # fmt: skip


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


def inside(kind: Type | None, path: tuple[str, ...]) -> Type | None:
    """The type of a field of a struct, if it is there."""
    for name in path:
        kind = kind.get(name) if isinstance(kind, Struct) else None
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


def holds(kind: Type, test: Callable[[Type], bool]) -> bool:
    """Whether the type, or one inside it, passes the test."""
    match kind:
        case Struct(fields):
            return test(kind) or any(holds(inner, test) for _, inner in fields)
        case Array(inner) | Map(inner):
            return test(kind) or holds(inner, test)
    return test(kind)


def has_variant(kind: Type) -> bool:
    return holds(kind, lambda inner: inner == VARIANT)


_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: no text that could be written."""


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
    if kind == STRING:
        return isinstance(value, str) and (value.isascii() or not _HALF.search(value))
    if isinstance(kind, DecimalType):
        return isinstance(value, decimal.Decimal) and _has_digits(value, kind)
    if kind == TIMESTAMP:
        return isinstance(value, datetime.datetime) and value.tzinfo is not None
    if kind == DATE:
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return isinstance(value, {BOOLEAN: bool, DOUBLE: float, BINARY: bytes}[kind])


def _has_digits(value: decimal.Decimal, kind: DecimalType) -> bool:
    exponent = value.as_tuple().exponent
    return exponent == -kind.scale and (not value or value.adjusted() < kind.precision - kind.scale)
