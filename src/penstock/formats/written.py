"""What a decoder writes of the fields it has decoded: one new JSON body, or a body for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.jsonobjects import write_each, write_elements, write_objects

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewBody:
    """An object of fields, and where the decoder finds their values."""

    fields: tuple[tuple[str, Path], ...]

    parted: ClassVar[bool] = False

    def paths(self) -> frozenset[Path]:
        return frozenset(path for _, path in self.fields)

    def write(self, bodies: pa.StructArray) -> pa.Array:
        return write_objects({name: pc.struct_field(bodies, list(path)) for name, path in self.fields})


@dataclass(frozen=True, slots=True)
class Elements:
    """An object for each element of an array."""

    collection: Path
    names: tuple[str, ...]

    parted: ClassVar[bool] = True

    def paths(self) -> frozenset[Path]:
        return frozenset({self.collection})

    def write(self, bodies: pa.StructArray) -> pa.Array:
        return write_elements(pc.struct_field(bodies, list(self.collection)), self.names)


@dataclass(frozen=True, slots=True)
class EachField:
    """An object for each field, between those of head and tail."""

    head: tuple[str, ...]
    each: tuple[str, ...]
    tail: tuple[str, ...]

    parted: ClassVar[bool] = True

    def paths(self) -> frozenset[Path]:
        return frozenset((name,) for name in (*self.head, *self.each, *self.tail))

    def write(self, bodies: pa.StructArray) -> pa.Array:
        columns = {name: pc.struct_field(bodies, [name]) for (name,) in self.paths()}
        return write_each(columns, self.head, self.each, self.tail)


Written: TypeAlias = NewBody | Elements | EachField
