"""The address of a server, with the token and the certificate that a client needs to talk to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.log.numbers import whole_number
from penstock.log.wire.tcp import PORT

LOCAL = f"127.0.0.1:{PORT}"


class BadAddress(PenstockError):
    """Text that is not the address of a server."""


@dataclass(frozen=True, slots=True)
class Address:
    """`authority` is a file with the certificate of the server, or of who signed it; with it, or `tls`, TLS is used."""

    host: str
    port: int
    token: str = field(default="", repr=False)
    tls: bool = False
    authority: str | None = None

    @staticmethod
    def of(text: str | Address, token: str = "", tls: bool = False, authority: str | None = None) -> Address:
        """From `host:port`, `[::1]:port` or `host`."""
        if isinstance(text, Address):
            return text
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, port = text, str(PORT)
        number = whole_number(port)
        if number is None or not 0 < number < 65536 or not host:
            raise BadAddress(f"{text!r} is not the address of a server", None, f"write it like {LOCAL}")
        return Address(host.strip("[]"), number, token, tls or authority is not None, authority)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.authority)
        except (OSError, ssl.SSLError) as error:
            raise BadAddress(f"cannot use the certificate {self.authority}: {error}") from None
