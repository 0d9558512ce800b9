"""Column: the values, keys or headers of a frame, as the buffers of an Arrow binary array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.log.errors import BadFrame


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """`offsets` begin at 0; without `validity` all are there."""

    offsets: npt.NDArray[np.int32]
    data: memoryview
    validity: memoryview | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_arrow(self) -> pa.Array:
        validity = None if self.validity is None else pa.py_buffer(self.validity)
        buffers = [validity, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self), buffers)

    def slice(self, start: int, stop: int) -> Column:
        begin, end = int(self.offsets[start]), int(self.offsets[stop])
        validity = None if self.validity is None else _packed(self.bits()[start:stop])
        return Column(self.offsets[start : stop + 1] - begin, self.data[begin:end], validity)

    def take(self, mask: npt.NDArray[np.bool_]) -> Column:
        return column_of(self.to_arrow().filter(pa.array(mask)), "value")

    def bits(self) -> npt.NDArray[np.uint8]:
        if self.validity is None:
            return np.ones(len(self), np.uint8)
        return np.unpackbits(np.frombuffer(self.validity, np.uint8), count=len(self), bitorder="little")

    def bitmap(self) -> bytes:
        return bytes(_packed(self.bits()) if self.validity is None else self.validity)

    def is_sound(self) -> bool:
        offsets = self.offsets
        return offsets[0] == 0 and offsets[-1] == len(self.data) and bool((offsets[1:] >= offsets[:-1]).all())


def column_of(values: Sequence[Any] | pa.Array, name: str) -> Column:
    """A column of bytes, of Arrow binary or of strings."""
    try:
        array = values if isinstance(values, pa.Array) else pa.array(values, pa.binary())
        if array.type != pa.binary():
            array = array.cast(pa.binary())
    except (pa.ArrowException, TypeError) as error:
        raise BadFrame(f"a {name} that is not bytes: {error}", None, "encode it first") from None
    if not isinstance(array, pa.Array):
        raise BadFrame("more than 2 GB of messages", None, "make several frames of them")
    validity = None
    if array.null_count:
        validity = _packed(array.is_valid().to_numpy(zero_copy_only=False))
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, np.int32)[array.offset : array.offset + len(array) + 1]
    begin, end = int(offsets[0]), int(offsets[-1])
    content = memoryview(b"") if data is None else memoryview(data)[begin:end]
    return Column(offsets - begin if begin else offsets, content, validity)


def joined_columns(columns: Sequence[Column | None], counts: Sequence[int]) -> Column | None:
    """One column after the other; None if all are missing, nulls where only some are."""
    if all(column is None for column in columns):
        return None
    offsets: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
    place = 0
    for column, count in zip(columns, counts, strict=True):
        if column is None:
            offsets.append(np.full(count, place, np.int64))
        else:
            offsets.append(column.offsets[1:].astype(np.int64) + place)
            place += len(column.data)
    data = b"".join([column.data for column in columns if column is not None])
    validity = None
    if any(column is None or column.validity is not None for column in columns):
        bits = [np.zeros(count, np.uint8) if column is None else column.bits()
                for column, count in zip(columns, counts, strict=True)]  # fmt: skip
        validity = _packed(np.concatenate(bits))
    if place >= 1 << 31:
        raise BadFrame("more than 2 GB of messages", None, "make several frames of them")
    return Column(np.concatenate(offsets).astype(np.int32), memoryview(data), validity)


def _packed(bits: npt.NDArray[Any]) -> memoryview:
    return memoryview(np.packbits(bits, bitorder="little").tobytes())
