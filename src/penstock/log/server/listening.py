"""The settings of a server: its ports, whom it lets in, and how much it takes at once."""

from __future__ import annotations

import hmac
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError
from penstock.log.wire import tcp, udp

HTTP_PORT = 19996
MEBIBYTE = 1 << 20


class CannotListen(PenstockError):
    """An address at which a server cannot listen, or does not dare to."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A port of 0 is any that is free, None none at all."""

    host: str = "127.0.0.1"
    tcp: int | None = tcp.PORT
    http: int | None = HTTP_PORT
    push: int | None = udp.PUSH_PORT
    pull: int | None = udp.PULL_PORT
    token: str = ""
    certificate: str | None = None
    key: str | None = None
    credit: int = 32 * MEBIBYTE
    """How many bytes of pushes one connection may have unanswered."""
    most_in_flight: int = 256 * MEBIBYTE
    """And all connections together."""
    most_unfinished: int = 256 * MEBIBYTE
    """Frames and bodies of all connections of which a part is still to come; beyond it, the oldest is given up."""
    most_connections: int = 1024
    """Of TCP, and as many of HTTP: those that have said hello, or shown the token."""
    most_strangers: int = 128
    """The others. One more takes the place of the one that has been there longest."""
    stranger_seconds: float = 10.0
    """How long they have to say it."""
    stranger_bytes: int = 16 * 1024
    """How long a frame of theirs may be."""
    most_requests: int = 1024
    """How many requests of one connection are worked on at a time; the others stay in the network."""
    largest_pull: int = 16 * MEBIBYTE
    unsent: int = MEBIBYTE
    """So many bytes of answers may wait for a slow reader before nothing more is read for it."""
    most_unsent: int = 256 * MEBIBYTE
    """And for all of them together; beyond it, the connection that has waited longest is ended."""
    packet_bytes: int = udp.PACKET_BYTES

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            what = f"without a token, a server does not listen at {self.host}: anybody could read and write"
            raise CannotListen(what, None, "give a token, or listen at 127.0.0.1")
        if self.key and not self.certificate:
            raise CannotListen("a key without a certificate", None, "give both, or a certificate that holds its key")
        if not 64 <= self.packet_bytes <= udp.LARGEST_PACKET:
            raise CannotListen(f"packets cannot have {self.packet_bytes:,} bytes", None,
                               f"choose 64 to {udp.LARGEST_PACKET:,}")  # fmt: skip

    def notes(self) -> list[str]:
        """Warnings for somebody who starts a server with these settings."""
        found = []
        if not is_loopback(self.host) and self.certificate is None:
            found.append("without a certificate, whoever reads the network reads the token: --certificate")
        if self.certificate is not None and (self.push is not None or self.pull is not None):
            found.append("UDP has no TLS, so what goes over it can be read on the network, also the pass made of the "
                         "token: --push-port -1 --pull-port -1 closes it")  # fmt: skip
        return found

    def is_token(self, given: str) -> bool:
        return not self.token or hmac.compare_digest(self.token.encode(), given.encode("utf-8", "surrogateescape"))

    def tls(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            names = " and ".join(str(Path(file)) for file in (self.certificate, self.key) if file)
            raise CannotListen(f"cannot use {names}: {error}", None, "both are files in PEM format") from None
        return context


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
