"""XML, CSV and text bodies: read without surprises, the same in batches, and again after they are written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import BadSchema
from penstock.formats import Csv, Format, Malformed, Text, Xml, infer_csv
from penstock.formats.arrow import with_xpaths
from penstock.formats.base import XPathColumns
from penstock.formats.csv import split
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Map, Struct, Type
from tests.fuzz.parser import Parser, pieces, text_of

XML = Xml(
    "id BIGINT, _kind STRING, _n DOUBLE, total DOUBLE, open BOOLEAN, tags ARRAY<STRING>, o STRUCT<x: BIGINT, _VALUE: "
    "STRING>, lines ARRAY<STRUCT<sku: STRING, _no: BIGINT>>, m MAP<STRING, STRING>"
)
XPATHS: XPathColumns = (
    ("//sku", Array(STRING)), ("count(//*) > 3", BOOLEAN), ("number(/*/id)", DOUBLE), ("/*", STRING)
)  # fmt: skip
CSVS = (Csv("id BIGINT, name STRING, total DOUBLE, open BOOLEAN"), Csv("a STRING, b STRING", delimiter=";", quote="'"))


def xml(data: bytes) -> None:
    rows = _batches_agree(XML, pieces(data), XPATHS)
    for row in rows:
        fields = {name: value for name, value in row.items() if not name.startswith("xpath_")}
        again = XML.decode(XML.encode(fields), XML.schema)
        assert not isinstance(again, Malformed), again


def csv(data: bytes) -> None:
    for form in CSVS:
        for row in _batches_agree(form, pieces(data)):
            assert repr(form.decode(form.encode(row), form.schema)) == repr(row)


def text(data: bytes) -> None:
    for row in _batches_agree(Text(), pieces(data)):
        assert Text().encode(row) in pieces(data)


def csv_headers(data: bytes) -> None:
    found = text_of(data)
    if found is None:
        return
    header, _, rest = found.partition("\n")
    rows = rest.splitlines()
    try:
        inferred = infer_csv(header, rows)
    except BadSchema:
        return
    form = Csv(inferred)
    for row in rows:
        cells = split(row, ",", '"')
        if not isinstance(cells, Malformed) and len(cells) == len(inferred.fields):
            decoded = form.decode(row.encode(), inferred)
            assert not isinstance(decoded, Malformed), decoded


def _batches_agree(form: Format, bodies: list[bytes], xpaths: XPathColumns = ()) -> list[dict[str, Any]]:
    """The rows that are there."""
    expected = [form.decode(raw, form.schema, xpaths=xpaths) for raw in bodies]
    column, errors = form.decode_batch(pa.array(bodies, pa.binary()), form.schema, xpaths=xpaths)
    column.validate(full=True)
    assert errors == [(row, found) for row, found in enumerate(expected) if isinstance(found, Malformed)]
    kinds = with_xpaths(form.schema, xpaths)
    for found, right in zip(column.to_pylist(), expected, strict=True):
        assert repr(_plain(found, kinds)) == repr(None if isinstance(right, Malformed) else right)
    return [row for row in expected if not isinstance(row, Malformed)]


def _plain(value: Any, kind: Type) -> Any:
    """Arrow has maps as pairs."""
    if value is None:
        return None
    match kind:
        case Struct(fields):
            return {name: _plain(value[name], inner) for name, inner in fields}
        case Array(element):
            return [_plain(inner, element) for inner in value]
        case Map(inner_kind):
            return {name: _plain(inner, inner_kind) for name, inner in value}
    return value


_XML = [
    b'<order kind="a" n="1.5"><id>7</id><total>1e3</total><open>true</open><tags>x</tags><tags/></order>',
    b"<order><o>text<x>5</x>tail</o><lines no='1'><sku>a</sku></lines><m><k>v</k><l/></m></order>",
    b'<?xml version="1.0" encoding="iso-8859-1"?><a:o xmlns:a="u" a:kind="\xe9"><a:id> 7 </a:id><!-- c --></a:o>',
    b'<!DOCTYPE o [<!ENTITY e "x">]><o><id>&e;</id></o>', b"<o><id><![CDATA[5]]></id><?p i?></o>", b"<o>&nope;</o>",
    b'<o xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><id xsi:nil="true"/></o>', b"\xff\xfe<\0o\0/\0>\0",
]  # fmt: skip
_CSV = [b'7,name,1.5,true', b'-1,"it""s, two\nlines",,false\r\n', b",,,", b'"",x;\'it\'\'s\'', b'a;b', b'"open,b,c,d',
        b"+007,x,.5e3,TRUE", b'1,"a"b,2,true']  # fmt: skip
PARSERS = [
    Parser(xml, [*_XML, b"\xfe".join(_XML)]),
    Parser(csv, [*_CSV, b"\xfe".join(_CSV)]),
    Parser(text, [b"text", "é\n".encode(), b"\xff", b""]),
    Parser(csv_headers, [b"id,name,total\n1,a,2.5\n2,,x\n", b'"a ""b""",,a\n1,2,3', b"a,a\n", b""]),
]
