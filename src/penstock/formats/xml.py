"""XML bodies: the children of the root are the fields, and XPath reaches the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lxml import etree

from penstock.formats.arrow import one_by_one, with_xpaths
from penstock.formats.base import (
    Decoded,
    DecodedBatch,
    Malformed,
    WrongValue,
    XPathColumns,
    malformed_body,
    too_large,
)
from penstock.formats.xmlfields import check, read_fields, write_fields
from penstock.formats.xpaths import XPaths, compiled
from penstock.schema import EMPTY, SchemaLike, Struct
from penstock.schema import schema as read_schema

__all__ = ["XPaths", "Xml", "parse"]


@dataclass(frozen=True, slots=True, init=False)
class Xml:
    """A body that is one XML document.

    An attribute is the field `_name`, the text of an element that also has attributes or children is
    `_VALUE`, a repeated element is an ARRAY; names are local names. Without a schema only XPath reads it.
    """

    schema: Struct
    root: str

    def __init__(self, schema: SchemaLike | None = None, root: str = "message") -> None:
        fields = EMPTY if schema is None else read_schema(schema)
        check(fields)
        object.__setattr__(self, "schema", fields)
        object.__setattr__(self, "root", root)

    @property
    def name(self) -> str:
        return "xml"

    def decode(self, raw: bytes, wanted: Struct, *, xpaths: XPathColumns = ()) -> Decoded:
        root = parse(raw)
        if isinstance(root, Malformed):
            return root
        try:
            fields = read_fields(root, wanted)
            values = compiled(xpaths).evaluate(root)
        except WrongValue as error:
            return error.malformed
        except Exception as error:  # whatever one document does to libxml2, the others of its batch go on
            return Malformed("WrongType", f"XPath cannot be evaluated: {error}")
        return fields | {f"xpath_{index}": value for index, value in enumerate(values)}

    def decode_batch(self, bodies: pa.Array, wanted: Struct, *, xpaths: XPathColumns = ()) -> DecodedBatch:
        columns = with_xpaths(wanted, xpaths)
        return one_by_one(bodies, lambda raw: self.decode(raw, wanted, xpaths=xpaths), columns)

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        return etree.tostring(write_fields(self.root, fields), encoding="utf-8")


def parse(raw: bytes) -> etree._Element | Malformed:
    """The root element. Nothing is fetched or expanded; libxml2's limits on depth and text stay on."""
    refused = too_large(len(raw))
    if refused:
        return refused
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        return malformed_body(f"not XML: {error.msg}")
    dtd: Any = root.getroottree().docinfo.internalDTD
    if dtd is not None and next(iter(dtd.iterentities()), None) is not None:
        return malformed_body("the document defines entities")
    for entry in parser.error_log:
        if entry.type_name == "WAR_UNDECLARED_ENTITY":
            return malformed_body(f"not XML: {entry.message}")
    return root
