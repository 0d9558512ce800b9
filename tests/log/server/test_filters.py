"""Filters of pulls: what they may cost, and who waits for them."""

from __future__ import annotations

import time

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server import pulls
from penstock.log.server.serve import Server
from penstock.log.wire import requests
from penstock.log.wire.requests import Output, Pull, Pulled, Refused
from tests.log.server.raw import Raw

SLOW = Output("matches(a, '[ac]*a[ac]{1000}b')")
"""A pattern for which RE2 follows a thousand places at once."""


def pull(offset: int = 0, output: Output | None = None, wait: float = 0.0) -> Pull:
    return Pull("orders", 0, offset, wait=wait, output=output)


@pytest.mark.parametrize("pattern", ["(a|aa)+b", "(a*)*b", "(a+)+b"])
def test_pulls_with_hostile_patterns_do_not_stop_the_server(server: Server, pattern: str) -> None:
    with Raw(server.tcp) as raw:
        raw.push(0, b'{"a": "%s"}' % (b"a" * 5000), b'{"a": "aab"}')
        raw.receive()
        began = time.monotonic()
        for number in range(4):
            raw.send(number, pull(output=Output(f"matches(a, '{pattern}')")))
        found = [raw.receive() for _ in range(4)]
        assert all(isinstance(reply, Pulled) and reply.next == 2 and b"aab" in bulk for _, reply, bulk in found)
        raw.push(9, b"{}")
        assert raw.receive()[0] == 9
        assert time.monotonic() - began < 5


def test_slow_filters_keep_neither_pushes_nor_other_pulls_waiting(server: Server, log: Log) -> None:
    log.append("orders", 0, Frame.pack([b'{"a": "%s"}' % (b"ac" * 5000)] * 20)).result()
    with Raw(server.tcp) as slow, Raw(server.tcp) as other:
        for number in range(8):
            slow.send(number, pull(output=SLOW, wait=60))
        began = time.monotonic()
        other.push(1, b"{}")
        other.receive()
        other.send(2, pull())
        assert isinstance(other.receive()[1], Pulled)
        other.send(3, requests.Topics())
        assert isinstance(other.receive()[1], requests.TopicList)
        assert time.monotonic() - began < 1


def test_a_slow_filter_answers_after_a_while_and_says_where_to_go_on(server: Server, log: Log) -> None:
    """Three megabytes would take it half a minute."""
    texts = [b'{"a": "%s"}' % (b"ac" * 5000)] * 300 + [b'{"a": "%sb"}' % (b"a" * 2000)]
    log.append("orders", 0, Frame.pack(texts)).result()
    with Raw(server.tcp) as raw:
        began = time.monotonic()
        raw.send(0, pull(output=SLOW))
        _, reply, bulk = raw.receive()
        assert time.monotonic() - began < 3
        assert isinstance(reply, Pulled)
        assert (bulk, 0 < reply.next < 301) == (b"", True)
        assert reply.examined == reply.next
        raw.send(1, pull(295, SLOW, wait=20))
        _, reply, bulk = raw.receive()
        assert isinstance(reply, Pulled)
        assert reply.next == 301
        assert Frame.parse(bulk).values.to_pylist() == texts[-1:]


def test_filters_take_turns(server: Server, log: Log) -> None:
    """Two slow pulls hold all threads of filters; a third one is answered long before they end."""
    log.append("orders", 0, Frame.pack([b'{"a": "%s"}' % (b"ac" * 5000)] * 100)).result()
    with Raw(server.tcp) as slow, Raw(server.tcp) as quick:
        slow.send(0, pull(output=SLOW, wait=60))
        slow.send(1, pull(output=SLOW, wait=60))
        began = time.monotonic()
        quick.send(2, pull(output=Output("starts_with(a, 'ac')")))
        assert isinstance(quick.receive()[1], Pulled)
        assert time.monotonic() - began < 3


def test_a_message_too_large_for_the_patterns_is_named(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulls, "_MOST_STEPS", 10_000_000)
    log.append("orders", 0, Frame.pack([b'{"a": "a"}', b'{"a": "%s"}' % (b"a" * 20_000)])).result()
    with Raw(server.tcp) as raw:
        raw.send(0, pull(output=SLOW))
        _, reply, _ = raw.receive()
        assert isinstance(reply, Refused)
        assert reply.what.startswith("the patterns of the filter are too large for the message at offset 1, which has")
        raw.send(1, pull(output=Output("matches(a, '(a|aa)+')")))
        assert isinstance(raw.receive()[1], Pulled)


def test_a_pattern_too_large_is_refused_before_anything_is_read(server: Server) -> None:
    with Raw(server.tcp) as raw:
        raw.send(0, pull(output=Output("matches(a, '(a{1000}){1000}')")))
        _, reply, _ = raw.receive()
        assert isinstance(reply, Refused)
        assert "cannot be matched" in reply.what
