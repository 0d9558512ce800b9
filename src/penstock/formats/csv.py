"""CSV bodies: one record per message, fields by position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.errors import BadSchema
from penstock.formats.arrow import one_by_one
from penstock.formats.base import (
    Decoded,
    DecodedBatch,
    Malformed,
    WrongValue,
    XPathColumns,
    malformed_body,
    read_text,
    refuse_xpaths,
)
from penstock.formats.scalars import is_missing, parse_scalar, write_scalar
from penstock.schema import VARIANT, Scalar, SchemaLike, Struct
from penstock.schema import schema as read_schema


@dataclass(frozen=True, slots=True, init=False)
class Csv:
    """A body that is one CSV record; it may hold line ends inside quotes.

    Nothing between two delimiters is a missing field, a pair of quotes is the empty string. `header` says
    whether files of such records begin with a line of names; a single message never does.
    """

    schema: Struct
    delimiter: str
    quote: str
    header: bool

    def __init__(self, schema: SchemaLike, delimiter: str = ",", quote: str = '"', header: bool = True) -> None:
        fields = read_schema(schema)
        for name, kind in fields.fields:
            if not isinstance(kind, Scalar) or kind == VARIANT:
                raise BadSchema(f"CSV cannot carry field {name!r}, which is {kind}",
                                fix="declare single values, such as STRING, BIGINT or DATE")  # fmt: skip
        if len(delimiter) != 1 or len(quote) != 1 or delimiter == quote or {delimiter, quote} & set("\r\n"):
            raise BadSchema(f"delimiter {delimiter!r} and quote {quote!r} must be two single characters")
        object.__setattr__(self, "schema", fields)
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "quote", quote)
        object.__setattr__(self, "header", header)

    @property
    def name(self) -> str:
        return "csv"

    def decode(self, raw: bytes, wanted: Struct, *, xpaths: XPathColumns = ()) -> Decoded:
        refuse_xpaths(self.name, xpaths)
        text = read_text(raw)
        cells = text if isinstance(text, Malformed) else split(text, self.delimiter, self.quote)
        if isinstance(cells, Malformed):
            return cells
        if len(cells) != len(self.schema.fields):
            return malformed_body(f"the record has {len(cells)} fields, the schema {len(self.schema.fields)}")
        by_name = dict(zip(self.schema.names, cells, strict=True))
        try:
            return {name: _value(by_name[name], kind, name) for name, kind in wanted.fields}
        except WrongValue as error:
            return error.malformed

    def decode_batch(self, bodies: pa.Array, wanted: Struct, *, xpaths: XPathColumns = ()) -> DecodedBatch:
        refuse_xpaths(self.name, xpaths)
        return one_by_one(bodies, lambda raw: self.decode(raw, wanted), wanted)

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        """One record without a line end."""
        unknown = [name for name in fields if name not in self.schema.names]
        if unknown:
            raise BadSchema(f"field {unknown[0]!r} is not in the CSV schema",
                            fix=f"declared: {', '.join(self.schema.names)}")  # fmt: skip
        cells = (self._cell(fields.get(name)) for name in self.schema.names)
        return self.delimiter.join(cells).encode("utf-8")

    def _cell(self, value: Any) -> str:
        if is_missing(value):
            return ""
        text = write_scalar(value)
        if text and not set(text) & {self.delimiter, self.quote, "\r", "\n"}:
            return text
        return self.quote + text.replace(self.quote, self.quote * 2) + self.quote


def split(text: str, delimiter: str, quote: str) -> list[str | None] | Malformed:
    """The cells of one record; None is an empty one. Python's csv cannot tell it from a pair of quotes."""
    line = text.removesuffix("\n").removesuffix("\r")
    pattern = _pattern(delimiter, quote)
    cells: list[str | None] = []
    at = 0
    while True:
        cell = pattern.match(line, at)
        if cell is None:
            return malformed_body(f"a quote is opened and not closed in field {len(cells) + 1}")
        quoted, bare = cell["quoted"], cell["bare"]
        cells.append(bare or None if quoted is None else quoted.replace(quote * 2, quote))
        at = cell.end()
        if at == len(line):
            return cells
        if line[at] != delimiter:
            if line[at] in "\r\n":
                return malformed_body("more than one record")
            return malformed_body(f"text after the quotes of field {len(cells)}")
        at += 1


@lru_cache(maxsize=64)
def _pattern(delimiter: str, quote: str) -> re.Pattern[str]:
    q, d = re.escape(quote), re.escape(delimiter)
    return re.compile(rf"{q}(?P<quoted>(?:[^{q}]|{q}{q})*+){q}|(?!{q})(?P<bare>[^{d}\r\n]*)")


def _value(cell: str | None, kind: Any, name: str) -> Any:
    return None if cell is None else parse_scalar(cell, kind, name)
