"""How JSON is written: with a space behind every comma and colon, as `json.dumps` does, or compact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle

import numpy as np

SPACED, COMPACT, MIXED = "spaced", "compact", "mixed"
SPELLINGS = (SPACED, COMPACT)
"""What can be measured. Answers are checked on lines of both, which is `MIXED`."""
_QUOTE, _COMMA, _COLON, _SPACE = b'",: '
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def respelled(spelling: str) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """What makes compact JSON, in pieces that end outside of texts, into JSON of this spelling."""
    return _FORMS[spelling]


def _spaced(chunks: Iterable[bytes]) -> Iterator[bytes]:
    return map(with_spaces, chunks)


def _mixed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    turns = cycle((True, False))
    for chunk in chunks:
        yield b"".join(with_spaces(line) if next(turns) else line for line in chunk.splitlines(keepends=True))


def with_spaces(compact: bytes) -> bytes:
    """The same JSON with a space behind every comma and colon that stands outside of texts."""
    plain = _ESCAPED.sub(b"..", compact) if b"\\" in compact else compact  # an escaped quote ends no text
    letters = np.frombuffer(plain, np.uint8)
    outside = np.bitwise_xor.accumulate(letters == _QUOTE) == 0
    marks = outside & ((letters == _COMMA) | (letters == _COLON))
    ends = np.flatnonzero(marks)
    spaced = np.repeat(np.frombuffer(compact, np.uint8), 1 + marks.astype(np.int8))
    spaced[ends + np.arange(1, len(ends) + 1)] = _SPACE
    return spaced.tobytes()


_FORMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {SPACED: _spaced, COMPACT: iter, MIXED: _mixed}
