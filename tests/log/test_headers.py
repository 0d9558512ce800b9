"""Headers, of ours and of strangers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.client import Consumer
from penstock.log.frame import Frame
from penstock.log.headers import read_headers, write_headers
from penstock.log.log import Log
from penstock.log.server.serve import Server


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4))
def test_headers_come_back_as_they_were(headers: dict[str, str]) -> None:
    assert read_headers(write_headers(headers)) == headers


@pytest.mark.parametrize(("raw", "found"), [
    (None, {}), (b"", {}), (b"broken", {}), (b"[1]", {}), (b"\xff", {}), (b'"text"', {}), (b"[" * 100_000, {}),
    (b'{"a": 1, "b": null, "c": "x"}', {"a": "1", "b": "null", "c": "x"}),
])  # fmt: skip
def test_what_is_no_object_is_none(raw: bytes | None, found: dict[str, str]) -> None:
    assert read_headers(raw) == found


def test_a_stranger_cannot_stop_readers_with_headers(server: Server, log: Log) -> None:
    values = [b'{"total": 1}', b'{"total": 2}']
    log.append("orders", 0, Frame.pack(values, headers=[b"broken", b'{"region":"EU"}'])).result()
    for where, expected in (("", [0, 1]), ("header.region = 'EU' AND total > 0", [1])):
        with Consumer("orders", server=server.address, where=where) as consumer:
            assert [message.offset for message in consumer.messages(timeout=0.3)] == expected
