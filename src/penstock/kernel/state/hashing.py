"""The hash of keys: the first 128 bits of SHA-256, the same in every process and every version."""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.formats.compiled.layout import HASH_BLOCK, HASH_SCRATCH
from penstock.formats.compiled.machinecode import SWITCH, MachineCode
from penstock.kernel.state.keys import Keys, Numbers


@cache
def _constants() -> Numbers:
    """The fractions of the roots of the first primes, in 32 bits: eight square roots, and 64 cube roots."""
    primes = [number for number in range(2, 312) if all(number % part for part in range(2, number))]
    roots = [*(_fraction(prime, 2) for prime in primes[:8]), *(_fraction(prime, 3) for prime in primes)]
    return np.array(roots, np.int64)


def _fraction(number: int, degree: int) -> int:
    goal, low, high = number << (32 * degree), 0, number << 32
    while low < high:  # the largest whole number whose power is not larger
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= goal else (low, middle - 1)
    return low & 0xFFFFFFFF


def hashes(texts: pa.Array) -> Keys:
    """The hash of each text as a pair of numbers. What it is for a null means nothing."""
    if SWITCH.code is not None:
        return _by_machine_code(SWITCH.code, texts)
    encoded = texts.dictionary_encode()
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text).digest() for text in encoded.dictionary.cast(pa.binary()).to_pylist()])
    numbers = np.frombuffer(digests, ">i8").reshape(-1, 4)[:, :2].astype(np.int64)
    rows = encoded.indices.fill_null(0).to_numpy()
    if not len(numbers):
        return Keys(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    return Keys(numbers[rows, 0], numbers[rows, 1])


def _by_machine_code(code: MachineCode, texts: pa.Array) -> Keys:
    rows = len(texts)
    if not rows:
        return Keys.none()
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + rows + 1]
    text = np.frombuffer(data if data is not None else b"", np.uint8)
    scratch = np.empty(HASH_SCRATCH + int(np.diff(ends).max()) + 2 * HASH_BLOCK, np.uint8)
    found = np.empty(2 * rows, np.int64)
    code.hash_texts(text.ctypes.data, ends.ctypes.data, rows, _constants().ctypes.data, scratch.ctypes.data,
                    found.ctypes.data)  # fmt: skip
    return Keys(found[:rows], found[rows:])
