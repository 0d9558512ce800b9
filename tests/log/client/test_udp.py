"""The client of the UDP ports: packets are filled, answers are waited for, refusals are errors."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from penstock.log import mmsg
from penstock.log.client import UdpClient
from penstock.log.client.udp import AT_ONCE
from penstock.log.errors import OffsetOutOfRange, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge
from penstock.log.wire import udp
from penstock.log.wire.errors import BadRequest, NoServer


@pytest.fixture
def client(server: Server) -> UdpClient:
    assert server.push
    assert server.pull
    return UdpClient("127.0.0.1", server.push, server.pull, timeout=30)


@pytest.fixture(params=["sendmmsg", "plain"])
def _either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(mmsg, "LIBRARY", None)


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize("mode", ["memory", "written", "fsynced"])
def test_many_messages_are_there_once(client: UdpClient, log: Log, mode: str) -> None:
    messages = [b"%d" % number * (number % 40) for number in range(20_000)]
    with client:
        assert client.push("orders", messages, partition=1, acknowledge=mode) == []
        assert AT_ONCE < client.sent < 3 * AT_ONCE * 4
        # Packets are worked on in the order in which they come: on this machine that is the order of sending.
        assert list(client.read("orders", partition=1)) == list(enumerate(messages))
        assert [offset for offset, _ in client.read("orders", 19_990, partition=1)] == list(range(19_990, 20_000))


def test_packets_are_full_and_none_is_too_long(client: UdpClient) -> None:
    with client:
        for length in range(1440):
            packets = list(client._packets("orders", 0, [b"x" * length] * 3, ""))
            assert sum(len(packet.messages) for packet in packets) == 3
            assert all(len(packet.data) <= udp.PACKET_BYTES for packet in packets)
        assert [len(packet.messages) for packet in client._packets("orders", 0, [b"x" * 8] * 200, "")] == [145, 55]
        with pytest.raises(udp.BadPacket, match="the limit is 1,472"):
            client.push("orders", [b"x" * 1460])


def test_what_nobody_answers_is_returned(log: Log, serving: Callable[..., Server]) -> None:
    server = serving(token="right")
    assert server.push
    assert server.pull
    with UdpClient("127.0.0.1", server.push, server.pull, token="wrong", timeout=0.1) as client:
        assert client.push("orders", [b"one", b"two"]) == []  # nobody was asked
        assert client.push("orders", [b"one", b"two"], acknowledge="memory") == [b"one", b"two"]
        with pytest.raises(NoServer, match=rf"no log server answers at 127.0.0.1:{server.pull} over UDP"):
            client.pull("orders", 0)
    with UdpClient("127.0.0.1", server.push, server.pull, token="right") as client:
        assert client.push("orders", [b"three"], acknowledge="memory") == []
        assert client.pull("orders", 0).messages == (b"three",)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with UdpClient("127.0.0.1", port, port, timeout=0.1) as client:
        assert client.push("orders", [b"one"], acknowledge="memory") == [b"one"]
        with pytest.raises(NoServer):
            client.pull("orders", 0)


def test_refusals_are_errors(client: UdpClient, log: Log) -> None:
    with client:
        with pytest.raises(UnknownTopic, match="a push to topic 'nope' was refused: unknown topic"):
            client.push("nope", [b"x"], acknowledge="memory")
        with pytest.raises(OffsetOutOfRange, match="a pull from topic 'orders' was refused: out of range"):
            client.pull("orders", 10**9)
        log.append("orders", 0, Frame.pack([b"x" * 3000, b"small"]), Acknowledge.MEMORY).result()
        with pytest.raises(BadRequest, match="the message at offset 0 of topic 'orders' fits no packet") as caught:
            client.pull("orders", 0)
        assert "go on at offset 1" in str(caught.value)
        assert list(client.read("orders", 1)) == [(1, b"small")]
