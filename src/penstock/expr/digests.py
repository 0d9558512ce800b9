"""Functions that hide or identify values: hashes, masks, UUIDs."""

from __future__ import annotations

import hashlib
import uuid

import xxhash

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "penstock")
_BETWEEN = "\x1f"


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def sha256(value: str | bytes) -> str:
    return hashlib.sha256(_bytes(value)).hexdigest()


def xxh64(value: str | bytes) -> int:
    """As a BIGINT, which has a sign."""
    return int.from_bytes(xxhash.xxh64_digest(_bytes(value)), "big", signed=True)


def mask(text: str, keep: int, mark: str = "*") -> str:
    """All but the last characters; all of a text that has no others."""
    kept = text[len(text) - keep :] if keep < len(text) else ""
    return mark * (len(text) - len(kept)) + kept


def name_of(*parts: str) -> str:
    """A UUID, version 5: the same for the same texts, everywhere and always."""
    return str(uuid.uuid5(_NAMESPACE, _BETWEEN.join(parts)))
