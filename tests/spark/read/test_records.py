"""CSV records with line ends inside quotes, and XML documents and elements, as bodies."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from penstock import Csv
from penstock.formats import Malformed
from penstock.formats.xml import parse
from penstock.spark.read import records
from penstock.spark.read.lines import Chunk
from penstock.spark.read.records import read_csv_records, read_xml_records

ENTITIES = b'<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]>'
BOMB = ENTITIES + b"<r><item>&c;</item><item>fine</item></r>"


def chunk(path: Path) -> Chunk:
    return Chunk(str(path), path.name, 0, 0, path.stat().st_size)


def csv_records(path: Path, **options: bool) -> list[bytes]:
    format = Csv("id BIGINT, note STRING", **options)
    return [record for array in read_csv_records(chunk(path), format) for record in array.to_pylist()]


def xml_records(path: Path, record: str | None = None) -> list[bytes]:
    return [body for array in read_xml_records(chunk(path), record) for body in array.to_pylist()]


def test_a_record_ends_outside_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes.csv"
    path.write_bytes(b'id,note\r\n1,"two\nlines, and ""quotes"""\r\n\r\n2,plain\n3,last')
    expected = [b'1,"two\nlines, and ""quotes"""', b"2,plain", b"3,last"]
    for block in (1, 3, 10, 1000):
        monkeypatch.setattr(records, "BLOCK_BYTES", block)
        assert csv_records(path) == expected
        assert csv_records(path, header=False) == [b"id,note", *expected]


def test_packed_csv_reads_as_the_plain_file_does(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv.gz"
    path.write_bytes(gzip.compress(b"id,note\n1,a\n"))
    assert csv_records(path) == [b"1,a"]


def test_a_file_with_nothing_but_a_header_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    for content in (b"", b"id,note", b"id,note\n"):
        path.write_bytes(content)
        assert csv_records(path) == []


def test_a_document_is_one_body_with_its_own_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b"<?xml version='1.0'?>\n<a><b/></a>\n")
    assert xml_records(path) == [path.read_bytes()]


def test_elements_of_one_name_are_bodies_whatever_their_namespace(tmp_path: Path) -> None:
    path = tmp_path / "orders.xml"
    path.write_bytes(b'<o xmlns:n="urn:n"><order id="1">x</order> tail <n:order><n:k>1</n:k></n:order><other/></o>')
    assert xml_records(path, "order") == [
        b'<order xmlns:n="urn:n" id="1">x</order>',
        b'<n:order xmlns:n="urn:n"><n:k>1</n:k></n:order>',
    ]
    packed = tmp_path / "orders.xml.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert xml_records(packed, "order") == xml_records(path, "order")


def test_a_file_that_breaks_off_is_kept_whole_behind_the_elements_read_before(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_bytes(b"<o><order>1</order><order>2</ord")
    first, rest = xml_records(path, "order")
    assert first == b"<order>1</order>"
    assert rest == path.read_bytes()
    assert isinstance(parse(rest), Malformed)


def test_an_entity_is_not_expanded_in_an_element(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xml"
    path.write_bytes(BOMB)
    bomb, fine = xml_records(path, "item")
    assert bomb == b"<item>&c;</item>"
    assert isinstance(parse(bomb), Malformed)
    assert fine == b"<item>fine</item>"
