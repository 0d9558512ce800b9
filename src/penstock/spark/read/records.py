"""Records that are not lines: CSV with quoted line ends, JSON and XML documents, and the elements of either."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pyarrow as pa
from lxml import etree

from penstock.formats.csv import Csv
from penstock.formats.jsonfiles import ARRAY, document, elements
from penstock.formats.limits import MAX_BODY_BYTES
from penstock.formats.opening import open_file
from penstock.spark.read.lines import BLOCK_BYTES, Chunk

_RECORDS_AT_ONCE = 1000


def read_csv_records(chunk: Chunk, format: Csv) -> Iterator[pa.Array]:
    """Records end at a line end outside quotes: where the number of quotes so far is even."""
    rest, header = b"", format.header
    with open_file(chunk.path) as file:
        while block := file.read(BLOCK_BYTES):
            records = _split(rest + block, format.quote)
            rest = records.pop()
            if len(rest) > MAX_BODY_BYTES:
                records, rest = [*records, rest], b""
            if header and records:
                records, header = records[1:], False
            if records:
                yield pa.array([record for record in records if record], pa.binary())
    last = rest.rstrip(b"\r\n")
    if last and not header:
        yield pa.array([last], pa.binary())


def _split(data: bytes, quote: str) -> list[bytes]:
    text = numpy.frombuffer(data, numpy.uint8)
    even = numpy.cumsum(text == ord(quote)) % 2 == 0
    ends = numpy.flatnonzero((text == ord("\n")) & even)
    records, start = [], 0
    for end in ends.tolist():
        records.append(data[start:end].removesuffix(b"\r"))
        start = end + 1
    return [*records, data[start:]]


def read_json_records(chunk: Chunk) -> Iterator[pa.Array]:
    """The elements of an array, or one document; a file of white space has neither."""
    with open_file(chunk.path) as file:
        found = elements(file) if chunk.records == ARRAY else iter([[document(file)]])
        for bodies in found:
            if chunk.records == ARRAY or bodies[0]:
                yield pa.array(bodies, pa.binary())


def read_xml_records(chunk: Chunk, record: str | None) -> Iterator[pa.Array]:
    """The whole document, or each element named `record`. What cannot be parsed is left to the decoder to refuse."""
    if record is None:
        with open_file(chunk.path) as file:
            yield pa.array([file.read(MAX_BODY_BYTES + 1)], pa.binary())
        return
    batch: list[bytes] = []
    try:
        for element in _elements(chunk.path, record):
            batch.append(element)
            if len(batch) == _RECORDS_AT_ONCE:
                yield pa.array(batch, pa.binary())
                batch = []
    except etree.XMLSyntaxError:
        with open_file(chunk.path) as file:
            batch.append(file.read(MAX_BODY_BYTES + 1))
    if batch:
        yield pa.array(batch, pa.binary())


def _elements(path: str, record: str) -> Iterator[bytes]:
    """Entities stay references and nothing is fetched; the elements already read are let go."""
    with open_file(path) as file:
        safe = {"resolve_entities": False, "no_network": True, "load_dtd": False}
        for _, element in etree.iterparse(file, tag=("{*}" + record, record), **safe):
            yield etree.tostring(element, with_tail=False, encoding="utf-8")
            element.clear()
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]
