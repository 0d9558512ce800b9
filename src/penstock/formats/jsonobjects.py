"""Write columns as JSON objects, one per row, without a Python object per value."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.compiled.machinecode import SWITCH
from penstock.formats.compiled.texts import write
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING
from penstock.valuetexts import value_texts

WRITTEN = (STRING, INTEGER, DOUBLE, BOOLEAN)
"""The types that `write_objects` takes."""

_ESCAPED = np.zeros(256, np.bool_)
_ESCAPED[:32] = _ESCAPED[[ord('"'), ord("\\")]] = True
_SMALL, _LARGE = 1e-3, 1e10


def write_objects(columns: Mapping[str, pa.Array]) -> pa.Array:
    """A JSON object for every row, with the bytes that the reference writes: what is null is left out.

    Columns of bytes are JSON already.
    """
    made = _by_machine_code(columns)
    return _by_arrow(columns) if made is None else made


def _by_machine_code(columns: Mapping[str, pa.Array]) -> pa.Array | None:
    """Arrow writes the few rows that machine code does not. None if they are many."""
    if SWITCH.code is None or not columns:
        return None
    made, odd = write(SWITCH.code, columns)
    if not len(odd):
        return made
    if 4 * len(odd) > len(made):
        return None
    rest = _by_arrow({name: column.take(pa.array(odd)) for name, column in columns.items()})
    order = np.arange(len(made))
    order[odd] = len(made) + np.arange(len(odd))
    return pa.concat_arrays([made, rest]).take(pa.array(order))


def _by_arrow(columns: Mapping[str, pa.Array]) -> pa.Array:
    texts = {_name(name): (column.cast(pa.string()), "") if column.type == pa.binary() else _texts(column)
             for name, column in columns.items()}  # fmt: skip
    if any(text.null_count for text, _ in texts.values()):
        members = [joined(f",{name}:{quote}", text, quote).fill_null("") for name, (text, quote) in texts.items()]
        inside = pc.utf8_slice_codeunits(joined("", *members), 1)
        return joined("{", inside, "}").cast(pa.binary())
    pieces: list[str | pa.Array] = []
    between = "{"
    for name, (text, quote) in texts.items():
        pieces += [f"{between}{name}:{quote}", text]
        between = f"{quote},"
    return joined(*pieces, f"{between[:-1]}}}").cast(pa.binary())


def scalar_texts(column: pa.Array) -> pa.Array:
    """A JSON text for every value of a plain column, null where it is."""
    text, quote = _texts(column)
    return joined(quote, text, quote) if quote else text


def _name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def joined(*pieces: str | bytes | pa.Array) -> pa.Array:
    """Texts of each row, one behind the other; null where one of them is."""
    is_text = all(isinstance(piece, str) or getattr(piece, "type", None) == pa.string() for piece in pieces)
    return pc.binary_join_element_wise(*pieces, "" if is_text else b"")


def _texts(column: pa.Array) -> tuple[pa.Array, str]:
    """The values as text, and the quotation mark that still has to go around them."""
    if pa.types.is_string(column.type):
        return (_encoded(column), "") if _has_escaped(column) else (column, '"')
    if pa.types.is_floating(column.type):
        return _decimals(column), ""
    is_number = pa.types.is_integer(column.type) or pa.types.is_decimal(column.type)
    return value_texts(column), "" if is_number or pa.types.is_boolean(column.type) else '"'


def _has_escaped(column: pa.Array) -> bool:
    _, offsets, data = column.buffers()
    if data is None:
        return False
    first, last = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    return bool(_ESCAPED[np.frombuffer(data, np.uint8)[first:last]].any())


def _decimals(column: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(column)).as_py():
        column = pc.if_else(pc.is_finite(column), column, None)
    values = column.to_numpy(zero_copy_only=False)
    sizes = np.abs(values)
    # Arrow and the reference write other numbers differently.
    if ((sizes >= _LARGE) | ((sizes < _SMALL) & (sizes > 0))).any():
        return _encoded(column)
    texts, whole = column.cast(pa.string()), np.floor(values) == values
    return pc.if_else(pa.array(whole), joined(texts, ".0"), texts) if whole.any() else texts


def _encoded(column: pa.Array) -> pa.Array:
    encode = msgspec.json.encode
    return pa.array([None if value is None else encode(value).decode() for value in column.to_pylist()], pa.string())
