"""Every line of a file exactly once, however the file is cut into chunks and blocks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.formats.compiled.machinecode import MachineCode
from penstock.spark.read import lines
from penstock.spark.read.lines import chunks, read_lines

PIECES = st.sampled_from([b"", b"a", b"{}", b"\r", b"x" * 7, b"y" * 40, b"\xff\x00", "é".encode()])
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])
Content = tuple[list[tuple[bytes, bytes]], bytes]
CONTENTS = st.tuples(st.lists(st.tuples(PIECES, ENDS), max_size=12), st.sampled_from([b"", b"no line end", b"z" * 30]))


def wanted(content: bytes) -> list[bytes]:
    return [line for line in content.replace(b"\r\n", b"\n").split(b"\n") if line]


def found(path: Path, chunk_bytes: int) -> list[bytes]:
    cut = chunks(str(path), path.name, path.stat().st_size, chunk_bytes=chunk_bytes)
    return [line for chunk in cut for array in read_lines(chunk) for line in array.to_pylist()]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONTENTS, st.integers(1, 50), st.integers(1, 20))
def test_chunks_hold_every_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Content, chunk: int, block: int
) -> None:
    written, last = content
    text = b"".join(piece + end for piece, end in written) + last
    path, packed = tmp_path / "lines", tmp_path / "lines.gz"
    path.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    assert found(path, chunk) == wanted(text)
    assert found(packed, chunk) == wanted(text)


def test_a_line_that_is_too_long_is_cut_and_its_neighbours_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_BODY_BYTES", 20)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 8)
    path = tmp_path / "lines"
    path.write_bytes(b"before\n" + b"x" * 100 + b"\nafter\nlast")
    for chunk_bytes in (5, 16, 30, 64, 1000):
        assert found(path, chunk_bytes) == [b"before", b"x" * 21, b"after", b"last"]


def test_a_chunk_has_the_same_lines_after_the_file_grew(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\n")
    first = chunks(str(path), "lines", 14, chunk_bytes=6)[0]
    before = [array.to_pylist() for array in read_lines(first)]
    path.write_bytes(path.read_bytes() + b"four\n")
    assert [array.to_pylist() for array in read_lines(first)] == before == [[b"one", b"two"]]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert found(path, 10) == []
    assert lines.as_lines(b"\n\r\n\n").equals(pa.array([], pa.binary()))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.binary(max_size=100) | PIECES, ENDS), max_size=12), st.binary(max_size=70))
def test_machine_code_cuts_the_same_lines(code: MachineCode, pieces: list[tuple[bytes, bytes]], last: bytes) -> None:
    block = b"".join(piece + end for piece, end in pieces) + last + b"."
    cut = lines.lines_by_machine_code(block, code)
    cut.validate(full=True)
    assert cut.to_pylist() == lines.lines_by_arrow(block).to_pylist() == wanted(block)
