"""The tables that Python fills and machine code reads: records of 64-bit words, and the names of their words."""

from __future__ import annotations

BLOCK = 32
"""Bytes that are looked at together."""

PADDING = 8 * BLOCK
"""Bytes behind a body that must be readable: machine code may look there, but what it sees has no effect."""

UNREAD, STRUCT, STRING, INTEGER, DOUBLE, BOOLEAN = range(6)
"""What is wanted of a field."""

NODE_WORDS = 10
LINKS = 3
PARENT, FIRST_CHILD, NEXT_SIBLING, KIND, NAME, NAME_LENGTH, VALUES, VALID, TEXT_END, SEEN = range(NODE_WORDS)
"""A wanted field: its place in the schema, its name, where its columns are, and the row that had it last.

VALUES has a word for each row: an integer, the bits of a double, 0 or 1, or the length of a string. VALID has a
byte for each row. The strings themselves are written one after the other, up to TEXT_END.
"""

SLOT_BITS = 8
SLOT_WORDS = 6
WRITTEN, LENGTH, NODE, FIELD, FIELD_KIND, NEXT = range(SLOT_WORDS)
"""A key that was met before: where it was written, from its first quote to its value, in which object, what it
means, and the slot of the key that came after it the last time."""

EMPTY = -1
"""The NODE of a slot without a key. There are 2 ** SLOT_BITS slots."""

SMALLEST_POWER, LARGEST_POWER = -300, 300
TENS = 20
"""The table of numbers starts with so many powers of ten; then come two words for each power of five."""

GIVE_UP_AFTER = 128
"""If so many rows were refused, and they are more than half, the rest is not tried."""
