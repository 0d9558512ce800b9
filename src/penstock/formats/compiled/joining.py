"""Texts that are anywhere in memory, put together in groups, as machine code."""

from __future__ import annotations

from numba import cfunc, types

from penstock.formats.compiled.blocks import copied, put_byte, put_four_bytes, word

_COMMA = ord(",")


@cfunc(types.int64(*[types.int64] * 10), error_model="numpy")
def join_texts(
    addresses: int, lengths: int, group_ends: int, groups: int, before: int, before_length: int, after: int,
    after_length: int, target: int, ends: int,
) -> int:  # fmt: skip
    """How many bytes were written: each group's texts with commas between them, and what stands around them.

    `group_ends` says how many texts there were up to the end of each group; `ends` gets where each one ends.
    """
    written, row = target, 0
    for group in range(groups):
        written = copied(before, before_length, written)
        first = row
        while row < word(group_ends, group):
            if row > first:
                put_byte(written, _COMMA)
                written += 1
            written = copied(word(addresses, row), word(lengths, row), written)
            row += 1
        written = copied(after, after_length, written)
        put_four_bytes(ends + 4 * (group + 1), written - target)
    return written - target
