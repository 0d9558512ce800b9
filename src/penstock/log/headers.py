"""Headers: one JSON object per message, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_decoder = msgspec.json.Decoder(dict[str, Any])


def write_headers(headers: Mapping[str, str] | None) -> bytes | None:
    return msgspec.json.encode({str(name): str(value) for name, value in headers.items()}) if headers else None


def read_headers(raw: bytes | None) -> dict[str, str]:
    """Names and texts. Nobody checks them when a message is pushed, so what is no object is read as none."""
    if not raw:
        return {}
    try:
        found = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in found.items()}  # fmt: skip
