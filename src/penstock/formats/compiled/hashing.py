"""SHA-256 of every text of a column, as machine code: for short texts a call from Python takes longer than the hash."""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled.blocks import big_endian_at, byte_at, four_bytes_at, put_byte, put_word, rotated, word
from penstock.formats.compiled.layout import HASH_BLOCK, HASH_ROUNDS, HASH_SCRATCH, HASH_STATE

apart = njit(error_model="numpy")

LENGTH_BYTES = 8
_MASK = 0xFFFFFFFF


@apart
def _compress(block: int, constants: int, state: int) -> None:
    """One block of 64 bytes; the schedule stands behind the state."""
    schedule = state + 8 * HASH_STATE
    for index in range(16):
        put_word(schedule, index, big_endian_at(block + 4 * index))
    for index in range(16, HASH_ROUNDS):
        early, late = word(schedule, index - 15), word(schedule, index - 2)
        first = rotated(early, 7) ^ rotated(early, 18) ^ (early >> 3)
        second = rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10)
        put_word(schedule, index, (word(schedule, index - 16) + first + word(schedule, index - 7) + second) & _MASK)
    a, b, c, d = word(state, 0), word(state, 1), word(state, 2), word(state, 3)
    e, f, g, h = word(state, 4), word(state, 5), word(state, 6), word(state, 7)
    for index in range(HASH_ROUNDS):
        mixed = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
        added = h + mixed + ((e & f) ^ (~e & g)) + word(constants, HASH_STATE + index) + word(schedule, index)
        other = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        h, g, f, e = g, f, e, (d + added) & _MASK
        d, c, b, a = c, b, a, (added + other) & _MASK
    put_word(state, 0, (word(state, 0) + a) & _MASK)
    put_word(state, 1, (word(state, 1) + b) & _MASK)
    put_word(state, 2, (word(state, 2) + c) & _MASK)
    put_word(state, 3, (word(state, 3) + d) & _MASK)
    put_word(state, 4, (word(state, 4) + e) & _MASK)
    put_word(state, 5, (word(state, 5) + f) & _MASK)
    put_word(state, 6, (word(state, 6) + g) & _MASK)
    put_word(state, 7, (word(state, 7) + h) & _MASK)


@apart
def _padded(text: int, length: int, target: int) -> int:
    """Copy the text, a bit behind it, zeros, and its length in bits; how many bytes that are."""
    for index in range(length):
        put_byte(target + index, byte_at(text + index))
    put_byte(target + length, 0x80)
    size = (length + 1 + LENGTH_BYTES + HASH_BLOCK - 1) // HASH_BLOCK * HASH_BLOCK
    for index in range(length + 1, size - LENGTH_BYTES):
        put_byte(target + index, 0)
    for index in range(LENGTH_BYTES):
        put_byte(target + size - 1 - index, (8 * length) >> (8 * index))
    return size


@cfunc(types.int64(*[types.int64] * 6), error_model="numpy")
def hash_texts(text: int, ends: int, rows: int, constants: int, scratch: int, found: int) -> int:
    """The first 128 bits of each digest as two words, all the first words before all the second ones.

    `constants` are the state at the beginning and a number for every round; `scratch` has room for the longest text,
    padded, behind HASH_SCRATCH bytes.
    """
    for row in range(rows):
        start = four_bytes_at(ends + 4 * row)
        size = _padded(text + start, four_bytes_at(ends + 4 * row + 4) - start, scratch + HASH_SCRATCH)
        for index in range(HASH_STATE):
            put_word(scratch, index, word(constants, index))
        for done in range(0, size, HASH_BLOCK):
            _compress(scratch + HASH_SCRATCH + done, constants, scratch)
        put_word(found, row, (word(scratch, 0) << 32) | word(scratch, 1))
        put_word(found, rows + row, (word(scratch, 2) << 32) | word(scratch, 3))
    return rows
