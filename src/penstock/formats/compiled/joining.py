"""Join the texts of a column into groups, with commas between them, as machine code."""

from __future__ import annotations

from numba import cfunc, types

from penstock.formats.compiled.blocks import copied, copied_within, four_bytes_at, put_byte, put_four_bytes

_COMMA = ord(",")


@cfunc(types.int64(*[types.int64] * 11), error_model="numpy")
def join_texts(
    text: int, text_ends: int, readable: int, group_ends: int, groups: int, before: int, before_length: int, after: int,
    after_length: int, target: int, ends: int,
) -> int:  # fmt: skip
    """How many bytes were written: each group's texts with commas between them, and what stands around them.

    Text n begins at `text_ends[n]` of `text`, which may be read up to `readable`. `group_ends` says how many texts
    there were up to the end of each group; `ends` gets where each one ends.
    """
    written, row = target, 0
    for group in range(groups):
        written = copied(before, before_length, written)
        first, last = row, four_bytes_at(group_ends + 4 * group)
        while row < last:
            if row > first:
                put_byte(written, _COMMA)
                written += 1
            start = four_bytes_at(text_ends + 4 * row)
            written = copied_within(text + start, four_bytes_at(text_ends + 4 * row + 4) - start, readable, written)
            row += 1
        written = copied(after, after_length, written)
        put_four_bytes(ends + 4 * group, written - target)
    return written - target
