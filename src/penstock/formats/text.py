"""The whole body as one STRING."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.formats.arrow import one_by_one
from penstock.formats.base import Decoded, DecodedBatch, Malformed, XPathColumns, read_text, refuse_xpaths
from penstock.schema import STRING, Struct


@dataclass(frozen=True, slots=True)
class Text:
    """A body that is UTF-8 text, in the field `value`."""

    @property
    def name(self) -> str:
        return "text"

    @property
    def schema(self) -> Struct:
        return Struct((("value", STRING),))

    def decode(self, raw: bytes, wanted: Struct, *, xpaths: XPathColumns = ()) -> Decoded:
        refuse_xpaths(self.name, xpaths)
        text = read_text(raw)
        return text if isinstance(text, Malformed) else dict.fromkeys(wanted.names, text)

    def decode_batch(self, bodies: pa.Array, wanted: Struct, *, xpaths: XPathColumns = ()) -> DecodedBatch:
        refuse_xpaths(self.name, xpaths)
        return one_by_one(bodies, lambda raw: self.decode(raw, wanted), wanted)

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        value = fields.get("value")
        return b"" if value is None else str(value).encode("utf-8")
