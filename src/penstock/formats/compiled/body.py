"""A column of JSON bodies to columns of fields, as machine code.

A position is an address. A function that moves on returns the new position, or REFUSED: then the whole row is
left to `jsonbatch`. Nothing is refused for good here, and nothing is accepted that `json.decode` refuses.
"""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled import layout
from penstock.formats.compiled.blocks import (
    byte_at,
    copy_block,
    four_bytes_at,
    put_byte,
    put_word,
    shift_right,
    word,
)
from penstock.formats.compiled.numbers import read_double, read_integer, split_number
from penstock.formats.compiled.strings import after_space, copy_unescaped, is_same, string_end
from penstock.formats.limits import MAX_BODY_BYTES

inline = njit(error_model="numpy", forceinline=True)
apart = njit(error_model="numpy")

REFUSED = -1
NOWHERE = 0
MOST_DEPTH = 60
_PROBES = 4
_MIX = 0x1E3779B97F4A7C15
_QUOTE, _COMMA, _COLON, _MINUS, _ZERO, _NINE, _F = (ord(character) for character in '",:-09f')
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = (ord(character) for character in "{}[]")
_TRUE, _ALSE, _NULL = (int.from_bytes(letters, "little") for letters in (b"true", b"alse", b"null"))


@inline
def _find_field(name: int, length: int, node: int) -> int:
    field = word(node, layout.FIRST_CHILD) if node else NOWHERE
    while field:
        if word(field, layout.NAME_LENGTH) == length and is_same(name, word(field, layout.NAME), length):
            break
        field = word(field, layout.NEXT_SIBLING)
    return field


@inline
def _is_slot_of(slot: int, position: int, length: int, node: int) -> bool:
    if word(slot, layout.NODE) != node or word(slot, layout.LENGTH) != length:
        return False
    return is_same(position, word(slot, layout.WRITTEN), length)


@inline
def _find_slot(position: int, length: int, node: int, slots: int) -> int:
    """The slot that has the key, or one that it may have: an empty one of a few, or the first of them."""
    first = word(position, 0) << (64 - 8 * min(length, 8))
    last = word(position + length - 8, 0) if length > 8 else 0
    place = shift_right((first ^ last + length + node) * _MIX, 64 - layout.SLOT_BITS)
    for number in range(place, place + _PROBES):
        slot = slots + 8 * layout.SLOT_WORDS * (number % (1 << layout.SLOT_BITS))
        if word(slot, layout.NODE) == layout.EMPTY or _is_slot_of(slot, position, length, node):
            return slot
    return slots + 8 * layout.SLOT_WORDS * place


@apart
def _learn_key(position: int, end: int, node: int, last: int, slots: int) -> int:
    """The slot of a key that was not the expected one."""
    closing, escaped = string_end(position + 1, end)
    if byte_at(position) != _QUOTE or closing < 0 or escaped:
        return REFUSED
    colon = after_space(closing + 1, end)
    value = after_space(colon + 1, end)
    if byte_at(colon) != _COLON or value >= end:
        return REFUSED
    length = value - position
    slot = _find_slot(position, length, node, slots)
    if not _is_slot_of(slot, position, length, node):
        field = _find_field(position + 1, closing - position - 1, node)
        put_word(slot, layout.WRITTEN, position)
        put_word(slot, layout.LENGTH, length)
        put_word(slot, layout.NODE, node)
        put_word(slot, layout.FIELD, field)
        put_word(slot, layout.FIELD_KIND, word(field, layout.KIND) if field else layout.UNREAD)
    put_word(last, layout.NEXT, slot)
    return slot


@inline
def _read_key(position: int, end: int, node: int, last: int, slots: int) -> int:
    """The slot of the key. What followed the last key before is expected to follow it again."""
    slot = word(last, layout.NEXT)
    length = word(slot, layout.LENGTH)
    is_expected = word(slot, layout.NODE) == node and position + length <= end
    if is_expected and is_same(position, word(slot, layout.WRITTEN), length):
        return slot
    return _learn_key(position, end, node, last, slots)


@inline
def _is_repeated(field: int, row: int) -> bool:
    before = word(field, layout.SEEN)
    put_word(field, layout.SEEN, row)
    return before == row


@inline
def _put(field: int, row: int, value: int) -> None:
    put_word(word(field, layout.VALUES), row, value)
    put_byte(word(field, layout.VALID) + row, 1)


@inline
def _open_array(array: int, row: int) -> None:
    put_word(array, layout.ROW, row)
    _put(array, row, word(array, layout.ELEMENTS))


@inline
def _close_array(array: int) -> int:
    """Note how many elements there were; the row that they belong to."""
    row = word(array, layout.ROW)
    values = word(array, layout.VALUES)
    put_word(values, row, word(array, layout.ELEMENTS) - word(values, row))
    return row


@inline
def _add_element(array: int) -> int:
    """The row of one more element, of which nothing is there yet."""
    row = word(array, layout.ELEMENTS)
    put_word(array, layout.ELEMENTS, row + 1)
    node, after = word(array, layout.FIRST_CHILD), word(array, layout.AFTER)
    while node != after:
        if word(node, layout.INSIDE) == array:
            put_word(word(node, layout.VALUES), row, 0)
            put_byte(word(node, layout.VALID) + row, 0)
            put_word(node, layout.SEEN, layout.EMPTY)
        node += 8 * layout.NODE_WORDS
    return row


@inline
def _copy_plain(start: int, length: int, target: int) -> int:
    """Whole blocks are copied; what is too much is overwritten by the next string."""
    done = 0
    while done < length:
        copy_block(start + done, target + done)
        done += layout.BLOCK
    return target + length


@inline
def _read_string(position: int, end: int, row: int, field: int, kind: int) -> int:
    start = position + 1
    closing, escaped = string_end(start, end)
    if closing < 0 or (kind != layout.STRING and kind != layout.UNREAD):
        return REFUSED
    if kind == layout.STRING:
        target = word(field, layout.TEXT_END)
        if escaped:
            text_end = copy_unescaped(start, closing, target)
        else:
            text_end = _copy_plain(start, closing - start, target)
        put_word(field, layout.TEXT_END, text_end)
        _put(field, row, text_end - target)
    return closing + 1


@inline
def _read_number(position: int, row: int, field: int, kind: int, numbers: int) -> int:
    if kind == layout.UNREAD:
        return split_number(position)[0]
    if kind == layout.DOUBLE:
        end, value = read_double(position, numbers)
    elif kind == layout.INTEGER:
        end, value = read_integer(position, numbers)
    elif kind == layout.DIGITS:
        end = split_number(position)[0]
        value = end - position
        if end >= 0:
            put_word(field, layout.TEXT_END, _copy_plain(position, value, word(field, layout.TEXT_END)))
    else:
        return REFUSED
    _put(field, row, value)
    return end


@inline
def _read_word(position: int, row: int, field: int, kind: int) -> int:
    """true, false or null; a null leaves the field as it is, which is invalid."""
    letters = four_bytes_at(position)
    if letters == _NULL:
        return position + 4
    is_false = byte_at(position) == _F and four_bytes_at(position + 1) == _ALSE
    if letters != _TRUE and not is_false:
        return REFUSED
    if kind == layout.BOOLEAN:
        _put(field, row, not is_false)
    elif kind != layout.UNREAD:
        return REFUSED
    return position + 4 + is_false


@inline
def _read_scalar(position: int, end: int, row: int, field: int, kind: int, numbers: int) -> int:
    byte = byte_at(position)
    if byte == _QUOTE:
        return _read_string(position, end, row, field, kind)
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return _read_number(position, row, field, kind, numbers)
    return _read_word(position, row, field, kind)


@inline
def _read_body(position: int, end: int, row: int, root: int, slots: int, numbers: int) -> bool:
    """Whether the body is one JSON object whose wanted fields are now in their columns."""
    if end - position > MAX_BODY_BYTES:
        return False
    position = after_space(position, end)
    if byte_at(position) != _OPEN_OBJECT:
        return False
    position = after_space(position + 1, end)
    node, slot = root, slots
    outer = unread_depth = 0
    depth = shapes = 1  # a bit of `shapes` for each open object (1) or array (0), the innermost first
    may_close = True
    while position < end:
        if not (may_close and byte_at(position) == (_CLOSE_OBJECT if shapes & 1 else _CLOSE_ARRAY)):
            field, kind = NOWHERE, layout.UNREAD
            if shapes & 1:
                slot = _read_key(position, end, node, slot, slots)
                if slot < 0:
                    return False
                position = after_space(position + word(slot, layout.LENGTH), end)
                field, kind = word(slot, layout.FIELD), word(slot, layout.FIELD_KIND)
                if field and _is_repeated(field, row):
                    return False
            elif node:
                field, row = word(node, layout.FIRST_CHILD), _add_element(node)
                kind = word(field, layout.KIND)
            byte = byte_at(position)
            if byte in (_OPEN_OBJECT, _OPEN_ARRAY):
                if depth == MOST_DEPTH:
                    return False
                if kind == layout.STRUCT and byte == _OPEN_OBJECT:
                    put_byte(word(field, layout.VALID) + row, 1)
                    node = field
                elif kind == layout.ARRAY and byte == _OPEN_ARRAY:
                    _open_array(field, row)
                    node = field
                elif kind != layout.UNREAD:
                    return False
                elif node:
                    outer, unread_depth, node = node, depth, NOWHERE
                depth += 1
                shapes = shapes << 1 | (byte == _OPEN_OBJECT)
                may_close = True
                position = after_space(position + 1, end)
                continue
            position = _read_scalar(position, end, row, field, kind, numbers)
            if position < 0:
                return False
            position = after_space(position, end)
        may_close = False
        byte = byte_at(position)
        while byte == (_CLOSE_OBJECT if shapes & 1 else _CLOSE_ARRAY):
            if node and not shapes & 1:
                row = _close_array(node)
            depth -= 1
            shapes >>= 1
            if depth == 0:
                return after_space(position + 1, end) == end
            if node:
                node = word(node, layout.PARENT)
            elif depth == unread_depth:
                node = outer
            position = after_space(position + 1, end)
            byte = byte_at(position)
        if byte != _COMMA:
            return False
        position = after_space(position + 1, end)
    return False


@inline
def _remember(nodes: int, count: int) -> None:
    """Keep how far the columns without a row for each body are."""
    for index in range(count):
        field = nodes + 8 * layout.NODE_WORDS * index
        put_word(field, layout.TEXT_BEFORE, word(field, layout.TEXT_END))
        put_word(field, layout.ELEMENTS_BEFORE, word(field, layout.ELEMENTS))


@inline
def _forget(row: int, nodes: int, count: int) -> None:
    """Take back what was read of a body."""
    for index in range(count):
        field = nodes + 8 * layout.NODE_WORDS * index
        put_word(field, layout.TEXT_END, word(field, layout.TEXT_BEFORE))
        put_word(field, layout.ELEMENTS, word(field, layout.ELEMENTS_BEFORE))
        if not word(field, layout.INSIDE):
            put_word(word(field, layout.VALUES), row, 0)
            put_byte(word(field, layout.VALID) + row, 0)


@cfunc(types.int64(*[types.int64] * 9), error_model="numpy")
def read_bodies(
    data: int, tail: int, tail_row: int, offsets: int, rows: int, nodes: int, count: int, slots: int, numbers: int
) -> int:
    """Read the rows. Those that were refused, or not tried because too many were, are not VALID in the root."""
    refused = 0
    for row in range(rows):
        base = data if row < tail_row else tail
        start, end = four_bytes_at(offsets + 4 * row), four_bytes_at(offsets + 4 * row + 4)
        _remember(nodes, count)
        if _read_body(base + start, base + end, row, nodes, slots, numbers):
            put_byte(word(nodes, layout.VALID) + row, 1)
            continue
        _forget(row, nodes, count)
        refused += 1
        if refused > layout.GIVE_UP_AFTER and 2 * refused > row:
            break
    return refused
