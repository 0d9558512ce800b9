from __future__ import annotations

import pyarrow as pa

from penstock.formats import Malformed, Text
from penstock.schema import EMPTY

TEXT = Text()


def test_the_whole_body_is_the_value() -> None:
    assert TEXT.decode("é\n".encode(), TEXT.schema) == {"value": "é\n"}
    assert TEXT.decode(b"", TEXT.schema) == {"value": ""}
    assert TEXT.decode(b"x", EMPTY) == {}


def test_bytes_that_are_not_utf8_are_malformed() -> None:
    column, errors = TEXT.decode_batch(pa.array([b"a", b"b\xff", None]), TEXT.schema)
    assert column.to_pylist() == [{"value": "a"}, None, None]
    assert errors == [
        (1, Malformed("MalformedBody", "not UTF-8: byte 0xff at 1")),
        (2, Malformed("MalformedBody", "the message has no body")),
    ]


def test_encoding_writes_the_value() -> None:
    assert TEXT.encode({"value": "é"}) == "é".encode()
    assert TEXT.encode({"value": None}) == b""
