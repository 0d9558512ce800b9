"""Convert columns of texts, as machine code reads them, to dates, instants, exact numbers and bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.arrow import arrow_type
from penstock.schema import BINARY, DATE, TIMESTAMP, Type
from penstock.values import read_binary

WRITTEN_AS_TEXT = (DATE, TIMESTAMP, BINARY)
_SHAPES: dict[Type, str] = {
    DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$",
}
_BEYOND = r"^0000|^(0001|9999).*[+-][0-9]{2}:[0-9]{2}$"
"""Years that Arrow has and Python has not, or not for every offset."""


class NotConverted(Exception):
    """Some text is none of its type, or needs a closer look."""


def converted(texts: pa.Array, kind: Type) -> pa.Array:
    """What all these texts mean, or NotConverted. Arrow takes more shapes than we do, and fewer digits."""
    if kind == BINARY:
        found = [None if text is None else read_binary(text) for text in texts.to_pylist()]
        if sum(value is None for value in found) != texts.null_count:
            raise NotConverted
        return pa.array(found, pa.binary())
    shape = _SHAPES.get(kind)
    if shape is not None:
        fitting = pc.match_substring_regex(texts, shape)
        beyond = pc.match_substring_regex(texts, _BEYOND)
        if not pc.all(fitting, min_count=0).as_py() or pc.any(beyond, min_count=0).as_py():
            raise NotConverted
    try:
        return texts.cast(arrow_type(kind))
    except pa.ArrowInvalid:
        raise NotConverted from None
