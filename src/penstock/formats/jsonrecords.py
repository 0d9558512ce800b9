"""The msgspec types that a schema needs, and Arrow columns made from their instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from penstock.formats.arrow import arrow_type
from penstock.formats.jsondecimals import exact_text, read_exact
from penstock.formats.jsonvariant import plain
from penstock.formats.scalars import LARGEST, SMALLEST
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    DecimalType,
    Map,
    Struct,
    Type,
    holds,
)
from penstock.values import text_of

_Reader = Callable[[list[Any]], list[Any]]
_NULL = b"null"
_SCALARS: dict[Type, Any] = {
    STRING: str | None,
    INTEGER: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)] | None,
    DOUBLE: float | None,
    BOOLEAN: bool | None,
    DATE: date | None,
    TIMESTAMP: Annotated[datetime, msgspec.Meta(tz=True)] | None,
    BINARY: bytes | None,
    VARIANT: msgspec.Raw,
}


class Records:
    """Decoders of one wanted schema.

    The fields are called f0, f1, ... because a JSON key need not be a Python name. In `lenient` a STRING is
    the slice of the body that holds the value, whatever it is.
    """

    def __init__(self, wanted: Struct) -> None:
        self.has_variant = holds(wanted, lambda kind: kind == VARIANT)
        self.has_instants = holds(wanted, lambda kind: kind == TIMESTAMP)
        self.has_odd_names = holds(wanted, lambda kind: isinstance(kind, Struct) and _is_odd(kind))
        self._classes: dict[Struct, type[msgspec.Struct]] = {}
        self.strict: Callable[[bytes], Any]
        self.lenient: Callable[[bytes], Any]
        self.strict = _decoder(self._class(wanted, _SCALARS, self._classes))
        raw_strings = {**_SCALARS, STRING: msgspec.Raw}
        self.lenient = _decoder(self._class(wanted, raw_strings, {}))

    def from_value(self, value: Any, kind: Type) -> Any:
        """What `strict` would have made, from what the definition made."""
        if value is None:
            return None
        match kind:
            case Struct(fields):
                return self._classes[kind](*(self.from_value(value[name], inner) for name, inner in fields))
            case Array(element):
                return [self.from_value(inner, element) for inner in value]
            case Map(inner_kind):
                return {name: self.from_value(inner, inner_kind) for name, inner in value.items()}
        if isinstance(kind, DecimalType):
            return text_of(value)
        return msgspec.Raw(msgspec.json.encode(value)) if kind == VARIANT else value

    def _class(
        self, kind: Struct, scalars: dict[Type, Any], known: dict[Struct, type[msgspec.Struct]]
    ) -> type[msgspec.Struct]:
        def annotation(inner: Type) -> Any:
            match inner:
                case Struct():
                    return self._class(inner, scalars, known) | None
                case Array(element):
                    return list[annotation(element)] | None  # type: ignore[misc]
                case Map(value):
                    return dict[str, annotation(value)] | None  # type: ignore[misc]
            return exact_text(inner) | None if isinstance(inner, DecimalType) else scalars[inner]

        if kind not in known:
            fields = [(f"f{index}", annotation(inner), None) for index, (_, inner) in enumerate(kind.fields)]
            odd = _is_odd(kind)
            names = {} if odd else {f"f{index}": name for index, name in enumerate(kind.names)}
            known[kind] = msgspec.defstruct("Record", fields, rename=names, gc=False)
        return known[kind]


def _decoder(kind: type[msgspec.Struct]) -> Callable[[bytes], Any]:
    """Exact numbers are read from the text that was written, never from a double."""
    return msgspec.json.Decoder(kind, dec_hook=read_exact, float_hook=str).decode


def _is_odd(kind: Struct) -> bool:
    """msgspec takes no quote, backslash or control character in a name: such bodies go the slow way."""
    return any(character in '"\\' or character < " " for name in kind.names for character in name)


def struct_column(kind: Struct, rows: list[Any], missing: list[bool] | None) -> pa.StructArray:
    """Rows as `strict` or `lenient` made them, as one Arrow array. `missing` is None when no row is."""
    if not kind.fields:
        return pa.array([None if row is None else {} for row in rows], pa.struct([]))
    columns = []
    for index, (_, inner) in enumerate(kind.fields):
        if missing is None:
            values = _reader(index)(rows)
        else:
            values = [None if row is None else getattr(row, f"f{index}") for row in rows]
        columns.append(_column(inner, values))
    mask = None if missing is None else pa.array(missing, pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(kind)), mask=mask)


def _column(kind: Type, values: list[Any]) -> pa.Array:
    match kind:
        case Struct():
            missing = [value is None for value in values]
            return struct_column(kind, values, missing if any(missing) else None)
        case Array(element):
            elements = _column(element, list(chain.from_iterable(_present(values))))
            return pa.ListArray.from_arrays(_offsets(values), elements, type=arrow_type(kind))
        case Map(inner):
            keys = pa.array(list(chain.from_iterable(_present(values))), pa.string())
            items = _column(inner, list(chain.from_iterable(value.values() for value in _present(values))))
            return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow_type(kind))
    if kind == VARIANT:
        return pa.array([_variant(value) for value in values], pa.string())
    if isinstance(kind, DecimalType):
        return pa.array(values, pa.string()).cast(arrow_type(kind))
    try:
        return pa.array(values, arrow_type(kind))
    except pa.ArrowTypeError:
        return pa.array([_string(value) for value in values], pa.string())


def _present(values: list[Any]) -> Iterator[Any]:
    return (value for value in values if value is not None)


def _offsets(values: list[Any]) -> pa.Array:
    """A null offset marks a null list."""
    lengths = [0 if value is None else len(value) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets, mask=np.array([*(value is None for value in values), False]))


_READERS: list[_Reader] = []


def _reader(index: int) -> _Reader:
    """An attribute named in the code is read twice as fast as one named by `getattr` or `attrgetter`."""
    while len(_READERS) <= index:
        _READERS.append(eval(f"lambda rows: [row.f{len(_READERS)} for row in rows]"))
    return _READERS[index]


def _written(value: msgspec.Raw | None) -> str | None:
    if value is None:
        return None
    raw = bytes(value)
    return None if raw == _NULL else raw.decode("utf-8")


def _variant(value: msgspec.Raw | None) -> str | None:
    if value is None:
        return None
    raw = bytes(value)
    return None if raw == _NULL else plain(raw).decode("utf-8")


def _string(value: str | msgspec.Raw | None) -> str | None:
    if isinstance(value, msgspec.Raw):
        raw = bytes(value)
        return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else _written(value)
    return value
