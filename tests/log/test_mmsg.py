"""Datagrams, many in one call; and one by one where there is no such call."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

from penstock.log import mmsg


@pytest.fixture(params=["127.0.0.1", "::1"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket(family, socket.SOCK_DGRAM) as other:
        try:
            one.bind((request.param, 0))
        except OSError:
            pytest.skip(f"no {request.param} here")
        mmsg.set_timeout(one, 0.2)
        other.connect(one.getsockname()[:2])
        other.settimeout(2)
        yield one, other


@pytest.fixture(params=["several", "one"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "one":
        monkeypatch.setattr(mmsg, "LIBRARY", None)
    return str(request.param)


def test_packets_come_and_go(calls: str, pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    mmsg.set_timeout(one, 0.2)
    receiver, sender = mmsg.Receiver(one, 16, 100), mmsg.Sender(one, 16, 100)
    sent = [bytes([number]) * (number + 1) for number in range(5)]
    for packet in sent:
        other.send(packet)
    found = []
    while len(found) < 5:
        count = receiver.receive()
        assert count
        found += [receiver.data[row, : receiver.sizes[row]].tobytes() for row in range(count)]
        sender.data[:count] = receiver.data[:count, :100]
        sender.sizes[:count] = receiver.sizes[:count]
        sender.send_to(receiver.addresses[:count], receiver.address_sizes[:count])
    assert found == sent
    assert [other.recv(200) for _ in sent] == sent


def test_nothing_is_received_in_time(calls: str, pair: tuple[socket.socket, socket.socket]) -> None:
    mmsg.set_timeout(pair[0], 0.05)
    began = time.monotonic()
    assert mmsg.Receiver(pair[0], 4, 100).receive() == 0
    assert 0.03 < time.monotonic() - began < 2


def test_packets_that_are_too_long_are_counted(calls: str, pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    mmsg.set_timeout(one, 0.2)
    receiver = mmsg.Receiver(one, 4, 10)
    for size in (10, 11, 500):
        other.send(bytes(size))
    sizes = []
    while len(sizes) < 3:
        sizes += receiver.sizes[: receiver.receive()].tolist()
    assert sizes == [10, 0, 0]
    assert receiver.truncated == 2


def test_an_address_that_cannot_be_reached_costs_its_packet_only(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    receiver, sender = mmsg.Receiver(one, 4, 10), mmsg.Sender(one, 4, 10)
    other.send(b"a")
    assert receiver.receive() == 1
    sender.data[:2, 0], sender.sizes[:2] = ord("x"), 1
    addresses, sizes = np.repeat(receiver.addresses[:1], 2, 0), np.repeat(receiver.address_sizes[:1], 2)
    addresses[0, 2:4] = 0  # port 0
    sender.send_to(addresses, sizes)
    assert other.recv(10) == b"x"
    assert sender.lost == 1
