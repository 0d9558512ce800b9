"""Hash whole columns of texts to numbers, which are the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_WORD = 8
_LONG_BYTES = 64
"""Longer texts are rare as keys: each is looked at by itself, so that one of them does not hold up the others."""

_ODD, _OTHER = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)


def hashes(texts: pa.Array) -> Hashes:
    """A number for each text, eight bytes of all texts at once. What is null gets any."""
    start, length, content = _spread(texts)
    result: Hashes = length.astype(np.uint64) * _OTHER
    # A word begins at every byte: texts begin anywhere.
    words = np.ndarray(len(content) - _WORD + 1, "<u8", content, strides=(1,))
    rows = np.flatnonzero((length > 0) & (length <= _LONG_BYTES))
    at, left = start[rows], length[rows]
    while len(rows):
        mixed = (result[rows] ^ words[at] & _FIRST_BYTES[np.minimum(left, _WORD)]) * _ODD
        result[rows] = mixed ^ mixed >> _HALF
        more = left > _WORD
        rows, at, left = rows[more], at[more] + _WORD, left[more] - _WORD
    for row in np.flatnonzero(length > _LONG_BYTES).tolist():
        text = content[start[row] : start[row] + length[row]]
        result[row] = xxhash.xxh3_64_intdigest(text)
    return result * _OTHER


def _spread(texts: pa.Array) -> tuple[Any, Any, Any]:
    """Where each text begins, its length, and the bytes of all, with a word of nothing behind them."""
    texts = texts.cast(pa.large_binary())
    _, ends, content = texts.buffers()
    if not len(texts) or content is None:
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(_WORD, np.uint8)
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    used = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    return offsets[:-1] - offsets[0], np.diff(offsets), np.concatenate([used, np.zeros(_WORD, np.uint8)])
