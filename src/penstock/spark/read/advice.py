"""Advice for the summary of a run about files of which nothing could be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from penstock.endpoints.files import Files, find_files
from penstock.failures import DECODE
from penstock.formats import Json, Malformed
from penstock.formats.jsonfiles import LINES
from penstock.formats.opening import UNREADABLE, open_file
from penstock.plan.plan import Entry, Plan
from penstock.reference.decode import decode
from penstock.spark.read.files import FilePieces
from penstock.summary import Summary

_FILES, _LINES, _LINE_BYTES = 100, 20, 64 * 1024


def advice(plan: Plan, summary: Summary) -> tuple[str, ...]:
    """A sentence for every file of JSON whose first lines all fail, if any body did. Only beginnings are looked at."""
    failed = [
        entry
        for entry in plan.entries
        if isinstance(entry.source, Files)
        and isinstance(entry.format, Json)
        and (step := summary.steps.get(f"{entry.route}.{DECODE}")) is not None
        and step.dead
    ]
    return tuple(said for entry in failed for said in _about(entry))


def _about(entry: Entry) -> Iterator[str]:
    assert isinstance(entry.source, Files)
    pieces = FilePieces(entry)
    for path in find_files(entry.source.path)[:_FILES]:
        try:
            if pieces.records_of(path) != LINES:
                continue
            with open_file(path) as file:
                found = islice(iter(lambda: file.readline(_LINE_BYTES), b""), 10 * _LINES)
                lines = list(islice((line.strip() for line in found if line.strip()), _LINES))
        except UNREADABLE:
            continue
        reasons = [decode(entry, line) for line in lines]
        if lines and all(isinstance(reason, Malformed) for reason in reasons):
            what = "the only line" if len(lines) == 1 else f"none of the first {len(lines)} lines"
            can = "cannot be read" if len(lines) == 1 else "can be read"
            yield f"{what} of {path} {can}: {_looks(lines, reasons[0])}"


def _looks(lines: list[bytes], reason: object) -> str:
    first = lines[0].removeprefix(b"\xef\xbb\xbf")
    match first[:1]:
        case b"[":
            return _like("an array of JSON", "array")
        case b"{" if first == b"{":  # a document would have been found
            return "it holds several JSON documents, or a broken one; write each in a line of its own (jq -c .)"
        case b"{" if not first.endswith(b"}"):
            return _like("a JSON document over several lines", "document")
        case b"<":
            return "it looks like XML; write Files(..., format=Xml(...))"
    if first.startswith(b"\x1f\x8b"):
        return "it is compressed; give it a name that ends with .gz"
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16; convert it to UTF-8"
    assert isinstance(reason, Malformed)
    return f"{reason.error}: {reason.reason}"


def _like(what: str, records: str) -> str:
    return f"it looks like {what}; write Files(..., records=\"{records}\"), in YAML records: {records}"
