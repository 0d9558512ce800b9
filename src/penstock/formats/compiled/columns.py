"""Decode JSON bodies in Arrow into fields in Arrow, by machine code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.formats.arrow import arrow_type
from penstock.formats.compiled import layout
from penstock.formats.compiled.converting import WRITTEN_AS_TEXT, NotConverted, converted
from penstock.formats.compiled.machinecode import SWITCH, MachineCode
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Array, DecimalType, Struct, Type

FEWEST_ROWS, FEWEST_BYTES = 512, 128 * 1024
"""Below both, msgspec is done before the tables are filled."""

_BATCHES_WITHOUT = 31
"""After a batch that was mostly refused, so many are not tried: their bodies are probably like those."""

KINDS: dict[Type, int] = {
    STRING: layout.STRING,
    INTEGER: layout.INTEGER,
    DOUBLE: layout.DOUBLE,
    BOOLEAN: layout.BOOLEAN,
    **dict.fromkeys(WRITTEN_AS_TEXT, layout.STRING),
}
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


def read(bodies: pa.Array, wanted: Struct) -> tuple[pa.StructArray, _Words] | None:
    """The fields, and the rows that were refused and still have to be decoded.

    None if it is not worth trying, or if a date, an instant, an exact number or bytes are not what they should be.
    """
    plan = plan_of(wanted)
    if plan is None or bodies.type not in (pa.binary(), pa.string()):
        return None
    if len(bodies) < FEWEST_ROWS and bodies.nbytes < FEWEST_BYTES:
        return None
    code = SWITCH.after(bodies.nbytes)
    if code is None or not plan.is_to_be_tried():
        return None
    try:
        column, refused = read_with(code, bodies, plan)
    except NotConverted:
        return None
    if 2 * len(refused) <= len(bodies):
        return column, refused
    plan.batches_without = _BATCHES_WITHOUT
    return None


def read_with(code: MachineCode, bodies: pa.Array, plan: Plan) -> tuple[pa.StructArray, _Words]:
    batch = _Batch(code, bodies, plan)
    return batch.column(plan.wanted, iter(range(len(plan.nodes)))), np.flatnonzero(batch.valid[0] == 0)


@dataclass(slots=True)
class Plan:
    """The table of nodes of a wanted schema, the whole before its parts.

    A node's links are indexes here, or -1; its name is an offset. Each batch turns them into addresses.
    """

    wanted: Struct
    nodes: _Words
    names: _Bytes
    batches_without: int = 0

    @property
    def strings(self) -> list[int]:
        return np.flatnonzero(np.isin(self.nodes[:, layout.KIND], (layout.STRING, layout.DIGITS))).tolist()

    def is_to_be_tried(self) -> bool:
        self.batches_without -= self.batches_without > 0
        return self.batches_without == 0


@lru_cache(maxsize=256)
def plan_of(wanted: Struct) -> Plan | None:
    """None if a wanted field has a type that is not compiled."""
    if not _is_compiled(wanted):
        return None
    nodes: list[list[int]] = []
    names = bytearray()
    _add_node(wanted, "", -1, -1, nodes, names)
    return Plan(wanted, np.array(nodes, np.int64), np.frombuffer(names + bytes(layout.PADDING), np.uint8))


def _is_compiled(kind: Type) -> bool:
    is_whole = isinstance(kind, (Struct, Array))
    return all(_is_compiled(inner) for _, inner in _parts(kind)) if is_whole else _code(kind) != layout.STRUCT


def _code(kind: Type) -> int:
    return layout.DIGITS if isinstance(kind, DecimalType) else KINDS.get(kind, layout.STRUCT)


def _parts(kind: Type) -> tuple[tuple[str, Type], ...]:
    match kind:
        case Struct(fields):
            return fields
        case Array(element):
            return (("", element),)
    return ()


def _add_node(
    kind: Type, name: str, parent: int, inside: int, nodes: list[list[int]], names: bytearray
) -> int:
    written = name.encode("utf-8", "surrogatepass")
    index, last = len(nodes), -1
    is_array = isinstance(kind, Array)
    node = [-1] * layout.LINKS + [0] * (layout.NODE_WORDS - layout.LINKS)
    node[layout.PARENT], node[layout.INSIDE], node[layout.SEEN] = parent, inside, layout.EMPTY
    node[layout.KIND] = layout.ARRAY if is_array else _code(kind)
    node[layout.NAME], node[layout.NAME_LENGTH] = len(names), len(written)
    nodes.append(node)
    names += written
    for inner_name, inner in _parts(kind):
        child = _add_node(inner, inner_name, index, index if is_array else inside, nodes, names)
        if last < 0:
            node[layout.FIRST_CHILD] = child
        else:
            nodes[last][layout.NEXT_SIBLING] = child
        last = child
    node[layout.AFTER] = len(nodes)
    return index


class _Batch:
    """One column of bodies: read when made. A row is refused if its root is not valid."""

    def __init__(self, code: MachineCode, bodies: pa.Array, plan: Plan) -> None:
        if bodies.null_count:
            bodies = bodies.fill_null(pa.scalar("", bodies.type))  # which is refused
        _, offsets, data = bodies.buffers()
        self.code = code
        self.rows = len(bodies)
        self.data = np.frombuffer(data if data is not None else b"", np.uint8)
        self.offsets = np.frombuffer(offsets, np.int32, self.rows + 1, 4 * bodies.offset)
        self.bytes = int(self.offsets[-1]) - int(self.offsets[0])
        self.inside = plan.nodes[:, layout.INSIDE].tolist()
        self.values = self._room(np.int64)
        self.valid = self._room(np.uint8)
        self.texts = {index: self._text() for index in plan.strings}
        self.elements = self._read(plan)

    def _room(self, kind: Any) -> list[np.ndarray[Any, Any]]:
        """A column for each node: zeros for the bodies, or room for as many elements as may be.

        An element and what follows it take two bytes or more. Memory that is not written to is not taken.
        """
        zeros = iter(np.zeros((self.inside.count(-1), self.rows), kind))
        return [next(zeros) if array < 0 else np.empty(self.bytes // 2 + 2, kind) for array in self.inside]

    def _read(self, plan: Plan) -> list[int]:
        """How many elements each array has, after reading."""
        nodes, slots = self._nodes(plan), _slots()
        tail, tail_start, tail_row = tail_of(self.data, self.offsets)
        self.code.read_bodies(
            self.data.ctypes.data, tail.ctypes.data - tail_start, tail_row, self.offsets.ctypes.data, self.rows,
            nodes.ctypes.data, len(nodes), slots.ctypes.data, numbers().ctypes.data,
        )  # fmt: skip
        return nodes[:, layout.ELEMENTS].tolist()

    def _nodes(self, plan: Plan) -> _Words:
        nodes = plan.nodes.copy()
        links = nodes[:, : layout.LINKS]
        nodes[:, : layout.LINKS] = np.where(links < 0, 0, nodes.ctypes.data + nodes.strides[0] * links)
        nodes[:, layout.NAME] += plan.names.ctypes.data
        nodes[:, layout.VALUES] = [column.ctypes.data for column in self.values]
        nodes[:, layout.VALID] = [column.ctypes.data for column in self.valid]
        for index, text in self.texts.items():
            nodes[index, layout.TEXT_END] = text.ctypes.data
        return nodes

    def _text(self) -> _Bytes:
        """Room for all strings of a field. Memory that is not written to is not taken."""
        return np.empty(self.bytes + 2 * layout.PADDING, np.uint8)

    def column(self, kind: Type, indexes: Iterator[int]) -> pa.Array:
        """The column of the next node; it takes the indexes of the nodes inside it, too."""
        index = next(indexes)
        rows = self.rows if self.inside[index] < 0 else self.elements[self.inside[index]]
        values, valid = self.values[index][:rows], self.valid[index][:rows]
        missing = rows - int(np.count_nonzero(valid))
        buffers = [bitmap(valid) if missing else None]
        if index in self.texts:
            offsets = offsets_of(self.code, values)
            buffers += [pa.py_buffer(offsets), pa.py_buffer(self.texts[index][: offsets[-1]])]
        elif isinstance(kind, Array):
            buffers.append(pa.py_buffer(offsets_of(self.code, values)))
        elif not isinstance(kind, Struct):
            buffers.append(bitmap(values) if kind == BOOLEAN else pa.py_buffer(values))
        if index in self.texts and kind != STRING:
            return converted(pa.Array.from_buffers(pa.string(), rows, buffers, missing), kind)
        children = [self.column(inner, indexes) for _, inner in _parts(kind)]
        return pa.Array.from_buffers(arrow_type(kind), rows, buffers, missing, children=children)


def tail_of(data: _Bytes, offsets: np.ndarray[Any, np.dtype[np.int32]]) -> tuple[_Bytes, int, int]:
    """The last bodies once more, because what is behind them may not be readable; where they start, and the first."""
    row = int(np.searchsorted(offsets[1:], len(data) - layout.PADDING, "right"))
    start = int(offsets[row])
    return np.concatenate([data[start : offsets[-1]], np.zeros(layout.PADDING, np.uint8)]), start, row


def offsets_of(code: MachineCode, lengths: _Words) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.empty(len(lengths) + 1, np.int32)
    offsets[0] = 0
    code.add_lengths(lengths.ctypes.data, len(lengths), offsets.ctypes.data + 4)
    return offsets


def bitmap(flags: np.ndarray[Any, Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags != 0, bitorder="little"))


def _slots() -> _Words:
    slots = np.full((1 << layout.SLOT_BITS, layout.SLOT_WORDS), layout.EMPTY, np.int64)
    slots[:, layout.NEXT] = slots.ctypes.data
    return slots


@lru_cache(maxsize=1)
def numbers() -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Powers of ten, then the first 128 bits of each power of five; rounded up where its inverse fits a word."""
    words = [10**power for power in range(layout.TENS)]
    for power in range(layout.SMALLEST_POWER, layout.LARGEST_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:
            bits = (1 << (five.bit_length() + 127)) // five + (power >= -27)
        else:
            bits = (five << 128) >> five.bit_length()
        words += [bits >> 64, bits & 0xFFFF_FFFF_FFFF_FFFF]
    return np.array(words, np.uint64)
