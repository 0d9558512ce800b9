"""What Numba lacks: loads from any address, and tests of a whole block of bytes without a loop.

An address is an int64. The vector types are LLVM's own, so every processor gets the instructions it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from penstock.formats.compiled.layout import BLOCK

_BYTE, _HALF, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_BYTE, BLOCK)
_QUOTE, _BACKSLASH, _SPACE, _ZERO, _LINE_END = (ord(character) for character in '"\\ 0\n')


def _instruction(count: int, kind: Any = types.int64) -> Callable[[Callable[..., Any]], Any]:
    """A function of `count` words that is written as LLVM instructions."""

    def decorate(write: Callable[..., Any]) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            written = write(builder, *arguments)
            return context.get_dummy_value() if kind == types.void else written

        def one(typing_context: Any, first: Any) -> Any:
            return kind(types.int64), generate

        def two(typing_context: Any, first: Any, second: Any) -> Any:
            return kind(types.int64, types.int64), generate

        def three(typing_context: Any, first: Any, second: Any, third: Any) -> Any:
            return kind(types.int64, types.int64, types.int64), generate

        return intrinsic((one, two, three)[count - 1])

    return decorate


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _store(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)


def _number(value: int) -> Any:
    return ir.Constant(_WORD, value)


def _all(byte: int) -> Any:
    return ir.Constant(_VECTOR, [byte] * BLOCK)


def _first(builder: Any, flags: Any) -> Any:
    """The index of the first flag that is set, or BLOCK."""
    bits = builder.zext(builder.bitcast(flags, ir.IntType(BLOCK)), _WORD)
    return builder.cttz(builder.or_(bits, _number(1 << BLOCK)), ir.Constant(ir.IntType(1), 1))


@_instruction(1)
def byte_at(builder: Any, address: Any) -> Any:
    return builder.zext(_load(builder, address, _BYTE), _WORD)


@_instruction(1)
def four_bytes_at(builder: Any, address: Any) -> Any:
    return builder.zext(_load(builder, address, ir.IntType(32)), _WORD)


@_instruction(1)
def big_endian_at(builder: Any, address: Any) -> Any:
    """Four bytes, the highest first."""
    return builder.zext(builder.bswap(_load(builder, address, _HALF)), _WORD)


@_instruction(2)
def rotated(builder: Any, value: Any, count: Any) -> Any:
    """A number of 32 bits, rotated to the right."""
    narrow, right = builder.trunc(value, _HALF), builder.trunc(count, _HALF)
    left = builder.sub(ir.Constant(_HALF, 32), right)
    return builder.zext(builder.or_(builder.lshr(narrow, right), builder.shl(narrow, left)), _WORD)


@_instruction(2)
def word(builder: Any, record: Any, index: Any) -> Any:
    return _load(builder, builder.add(record, builder.shl(index, _number(3))), _WORD)


@_instruction(3, types.void)
def put_word(builder: Any, record: Any, index: Any, value: Any) -> None:
    _store(builder, builder.add(record, builder.shl(index, _number(3))), value)


@_instruction(2, types.void)
def put_byte(builder: Any, address: Any, value: Any) -> None:
    _store(builder, address, builder.trunc(value, _BYTE))


@_instruction(2, types.void)
def put_four_bytes(builder: Any, address: Any, value: Any) -> None:
    _store(builder, address, builder.trunc(value, ir.IntType(32)))


@_instruction(2, types.void)
def copy_block(builder: Any, source: Any, target: Any) -> None:
    _store(builder, target, _load(builder, source, _VECTOR))


@_instruction(1)
def count_plain(builder: Any, address: Any) -> Any:
    """How many bytes come before a quote, a backslash, a control character or one beyond ASCII; at most BLOCK."""
    block = _load(builder, address, _VECTOR)
    quotes, backslashes = (builder.icmp_unsigned("==", block, _all(byte)) for byte in (_QUOTE, _BACKSLASH))
    others = builder.icmp_signed("<", block, _all(_SPACE))  # beyond ASCII is negative
    return _first(builder, builder.or_(builder.or_(quotes, backslashes), others))


@_instruction(1)
def count_unescaped(builder: Any, address: Any) -> Any:
    """How many bytes come before one that JSON writes as an escape; at most BLOCK."""
    block = _load(builder, address, _VECTOR)
    quotes, backslashes = (builder.icmp_unsigned("==", block, _all(byte)) for byte in (_QUOTE, _BACKSLASH))
    controls = builder.icmp_unsigned("<", block, _all(_SPACE))
    return _first(builder, builder.or_(builder.or_(quotes, backslashes), controls))


@_instruction(1, types.float64)
def double_at(builder: Any, address: Any) -> Any:
    return _load(builder, address, ir.DoubleType())


@_instruction(1)
def count_before_line_end(builder: Any, address: Any) -> Any:
    """How many bytes come before a line's end; at most BLOCK."""
    return _first(builder, builder.icmp_unsigned("==", _load(builder, address, _VECTOR), _all(_LINE_END)))


@_instruction(1)
def count_digits(builder: Any, address: Any) -> Any:
    """How many digits come first; at most BLOCK."""
    values = builder.sub(_load(builder, address, _VECTOR), _all(_ZERO))
    return _first(builder, builder.icmp_unsigned(">", values, _all(9)))


@_instruction(2)
def count_equal(builder: Any, left: Any, right: Any) -> Any:
    """How many bytes are the same before the first that is not; at most BLOCK."""
    blocks = (_load(builder, address, _VECTOR) for address in (left, right))
    return _first(builder, builder.icmp_unsigned("!=", *blocks))


@_instruction(1)
def leading_zeros(builder: Any, value: Any) -> Any:
    return builder.ctlz(value, ir.Constant(ir.IntType(1), 0))


@_instruction(2)
def upper_product(builder: Any, left: Any, right: Any) -> Any:
    """The upper half of the product of two unsigned words."""
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(left, wide), builder.zext(right, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD)


@_instruction(2)
def is_below(builder: Any, left: Any, right: Any) -> Any:
    """Whether left < right, both unsigned."""
    return builder.zext(builder.icmp_unsigned("<", left, right), _WORD)


@_instruction(2)
def shift_right(builder: Any, value: Any, count: Any) -> Any:
    """An unsigned word, shifted."""
    return builder.lshr(value, count)


@njit(error_model="numpy", forceinline=True)  # type: ignore[misc,unused-ignore]
def copied(source: int, length: int, target: int) -> int:
    """Whole blocks are copied: what is written behind the text is written over. Where the text ends."""
    done = 0
    while done < length:
        copy_block(source + done, target + done)
        done += BLOCK
    return target + length


@njit(error_model="numpy", forceinline=True)  # type: ignore[misc,unused-ignore]
def copied_within(source: int, length: int, readable: int, target: int) -> int:
    """As `copied`, out of memory that may be read only up to `readable`."""
    done = 0
    while done < length and source + done + BLOCK <= readable:
        copy_block(source + done, target + done)
        done += BLOCK
    while done < length:
        put_byte(target + done, byte_at(source + done))
        done += 1
    return target + length
