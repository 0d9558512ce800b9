"""The tables that Python fills and machine code reads: records of 64-bit words, and the names of their words."""

from __future__ import annotations

BLOCK = 32
"""Bytes that are looked at together."""

PADDING = 8 * BLOCK
"""Bytes behind a body that must be readable: machine code may look there, but what it sees has no effect."""

UNREAD, STRUCT, STRING, INTEGER, DOUBLE, BOOLEAN, ARRAY, DIGITS, JSON = range(9)
"""What is wanted of a field, or written of a column. DIGITS is the text of a number; JSON is written as it is."""

NODE_WORDS = 16
LINKS = 5
PARENT, FIRST_CHILD, NEXT_SIBLING, INSIDE, AFTER = range(LINKS)
KIND, NAME, NAME_LENGTH, VALUES, VALID, TEXT_END, SEEN, ELEMENTS, ROW, TEXT_BEFORE, ELEMENTS_BEFORE = range(
    LINKS, NODE_WORDS
)
"""A wanted field: its place in the schema, its name, where its columns are, and the row that had it last.

INSIDE is the array whose elements the node's rows are, if they are not those of the bodies; AFTER is the first node
behind it and all that it has. VALUES has a word for each row: an integer, the bits of a double, 0 or 1, the length of a
string or an array. VALID has a byte for each row. The strings themselves are written one after the other, up to
TEXT_END. ELEMENTS is how many an array has had until now, ROW whose elements are being read. What TEXT_END and ELEMENTS
were before a body is kept in case it is refused.
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

COLUMN_WORDS = 8
(
    COLUMN_KIND, LABEL, LABEL_LENGTH, COLUMN_VALID, COLUMN_VALUES, COLUMN_ENDS, COLUMN_TEXT, COLUMN_TEXT_END
) = range(COLUMN_WORDS)  # fmt: skip
"""A column to be written: what it holds, the text before its values (with BLOCK readable bytes behind it), a byte for
each row that says whether there is one (0 if all rows have one), values, and for strings where they end, what they are,
and what is behind the last of them.
"""

HASH_STATE, HASH_ROUNDS, HASH_BLOCK = 8, 64, 64
HASH_SCRATCH = 8 * (HASH_STATE + HASH_ROUNDS)
"""SHA-256: bytes before a padded text, for the state and the message schedule, a word for each of their numbers."""
