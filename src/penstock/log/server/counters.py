"""The counters of a server since it started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """UDP's are written by one thread each."""

    requests: int = 0
    refused: int = 0
    malformed: int = 0
    strangers: int = 0
    """Connections that were ended because they said nothing."""
    unread: int = 0
    """Connections that were ended because they did not take their answers."""
    unauthorised: int = 0
    pushed_messages: int = 0
    pushed_bytes: int = 0
    pulled_messages: int = 0
    pulled_bytes: int = 0
    http_requests: int = 0
    udp_packets: int = 0
    udp_calls: int = 0
    udp_messages: int = 0
    udp_malformed: int = 0
    udp_truncated: int = 0
    udp_unauthorised: int = 0
    udp_refused: int = 0
    udp_pulls: int = 0
