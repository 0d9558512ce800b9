"""What every format can do: bytes to fields, many bodies to an Arrow column, fields to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from penstock.errors import BadSchema
from penstock.formats.limits import MAX_BODY_BYTES, MAX_SHOWN
from penstock.schema import Struct, Type

BODY_TOO_LARGE = "BodyTooLarge"
Namespaces: TypeAlias = tuple[tuple[str, str], ...]
XPathColumns: TypeAlias = tuple[tuple[str, Type] | tuple[str, Type, Namespaces], ...]
"""XPath text, the type of its result, and its prefixes. The results are extra fields `xpath_0`, `xpath_1`, ..."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Why a body has no fields: a value, because one bad message must not end its batch."""

    error: str
    reason: str


Decoded: TypeAlias = dict[str, Any] | Malformed
DecodedBatch: TypeAlias = tuple[pa.StructArray, list[tuple[int, Malformed]]]


class Format(Protocol):
    """Bytes <-> table.

    `wanted` is the part of `schema` that the route reads. `decode` is the definition, `decode_batch` must
    agree with it: a row that fails is a null struct and is listed with its index and reason.
    """

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Struct: ...

    def decode(self, raw: bytes, wanted: Struct, *, xpaths: XPathColumns = ()) -> Decoded: ...

    def decode_batch(self, bodies: pa.Array, wanted: Struct, *, xpaths: XPathColumns = ()) -> DecodedBatch: ...

    def encode(self, fields: Mapping[str, Any]) -> bytes: ...


class WrongValue(Exception):
    """Inside one decode only: a value that is not of its declared type."""

    def __init__(self, path: str, shown: str, kind: Type) -> None:
        super().__init__(path, shown, kind)
        self.malformed = Malformed("WrongType", f"field '{path}' is {shorten(shown)}, expected {kind}")


class TooLarge(WrongValue):
    """Inside one decode only: a value that an engine could not hold."""

    def __init__(self, reason: str) -> None:
        Exception.__init__(self, reason)
        self.malformed = Malformed(BODY_TOO_LARGE, reason)


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 3] + "..."


def malformed_body(reason: str) -> Malformed:
    return Malformed("MalformedBody", reason)


def too_large(size: int) -> Malformed | None:
    if size <= MAX_BODY_BYTES:
        return None
    return Malformed(BODY_TOO_LARGE, f"the body has {size:,} bytes, the limit is {MAX_BODY_BYTES:,}")


def read_text(raw: bytes) -> str | Malformed:
    refused = too_large(len(raw))
    if refused:
        return refused
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return malformed_body(f"not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}")


def refuse_xpaths(name: str, xpaths: XPathColumns) -> None:
    if xpaths:
        raise BadSchema(f"a {name} body has no XPath columns", fix="use Xml(...), or read fields")
