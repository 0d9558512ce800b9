"""Files of JSON: one message per line, the elements of one array, or one document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from penstock.formats.limits import MAX_BODY_BYTES

LINES, ARRAY, DOCUMENT = "lines", "array", "document"
RECORDS = (LINES, ARRAY, DOCUMENT)
BLOCK_BYTES = 1024 * 1024
_FIRST_BYTES, _HEAD_BYTES = 4096, 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BRACKETS_ONLY = re.compile(rb"[\[{][\[{ \t\r]*\Z")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_NEIGHBOURS = re.compile(rb'[}\]"\w]\s*[{\["]')
"""With strings as single quotes: a value right after another one."""
_NO_JSON = re.compile(_NEIGHBOURS.pattern + rb'|\{\s*[^"}\s]')
"""That, or something else than a name in an object."""

Open = Callable[[], BinaryIO]


def detected(open_file: Open) -> str:
    """How a file is read if nobody says it: by its content alone, so that everybody finds the same.

    Lines, unless the first line has nothing but opening brackets, which no line of JSON is, and what follows goes on
    as one value: behind its first element if it is an array, whose elements fail one by one; to its end if it is a
    document.
    """
    with open_file() as file:
        head = _text(file.read(_FIRST_BYTES))
        first, newline, _ = head.partition(b"\n")
        if not newline or not _BRACKETS_ONLY.match(first):
            return LINES
        head += file.read(_HEAD_BYTES)
    if first.startswith(b"["):
        return ARRAY if _goes_on(head) else LINES
    if _NO_JSON.search(_STRING.sub(b'"', head)):
        return LINES
    with open_file() as file:
        return DOCUMENT if _is_one_value(file) else LINES


def _text(head: bytes) -> bytes:
    return head.removeprefix(_BYTE_ORDER_MARK).lstrip()


def _goes_on(array: bytes) -> bool:
    """Whether a comma or the end of the array stands behind its first element, as far as that is known."""
    for place, depth in zip(*(found.tolist() for found in Scanner().scan(array)), strict=True):
        if array[place] == 44 and depth <= 1:
            return not _NEIGHBOURS.search(_STRING.sub(b'"', array[1:place]))
        if array[place] in b"]}" and depth == 1:
            return array[place + 1 :].lstrip()[:1] in (b",", b"]", b"")
        if depth == 0:
            break
    return not _NEIGHBOURS.search(_STRING.sub(b'"', array[1:]))


def _is_one_value(file: BinaryIO) -> bool:
    """Whether the brackets of the file close where it ends."""
    scanner = Scanner()
    while block := file.read(BLOCK_BYTES):
        places, depths = scanner.scan(block)
        closed = np.flatnonzero(depths == 0)
        if len(closed):
            return not (block[int(places[closed[0]]) + 1 :].strip() or file.read(_HEAD_BYTES).strip())
    return False


class Scanner:
    """Where brackets and commas stand in a text of JSON that comes in blocks; those in strings do not count."""

    def __init__(self) -> None:
        self.depth, self.in_string, self.escaped = 0, False, False

    def scan(self, block: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Their places in the block, and how many brackets are open after each."""
        text = np.frombuffer(block, np.uint8)
        quotes = self._quotes(text, block)
        outside = (np.cumsum(quotes, dtype=np.int32) + self.in_string) % 2 == 0
        opening, closing = (text == 91) | (text == 123), (text == 93) | (text == 125)
        places = np.flatnonzero((opening | closing | (text == 44)) & outside)
        depths = self.depth + np.cumsum(opening[places].astype(np.int64) - closing[places])
        self.in_string ^= bool(int(quotes.sum()) % 2)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        return places, depths

    def _quotes(self, text: npt.NDArray[np.uint8], block: bytes) -> npt.NDArray[np.bool_]:
        """The quotes without those behind an odd number of backslashes."""
        quotes: npt.NDArray[np.bool_] = text == 34
        before, self.escaped = self.escaped, False
        if b"\\" not in block:
            if before:
                quotes[0] = False
            return quotes
        numbers = np.arange(len(text), dtype=np.int32)
        others = np.maximum.accumulate(np.where(text != 92, numbers, -1))
        run = numbers - others  # backslashes up to here
        run += np.where(others < 0, np.int32(before), np.int32(0))
        odd = run % 2 == 1
        self.escaped = bool(odd[-1])
        quotes[1:] &= ~odd[:-1]
        quotes[0] &= not before
        return quotes


def elements(file: BinaryIO, most: int = MAX_BODY_BYTES) -> Iterator[list[bytes]]:
    """The elements of an array, each with its own bytes, a block at a time.

    Nothing is lost of a file that is something else: every place between commas is a body, and so is what stands
    before or behind the array, or in place of its end. What is too long is cut, and known to be too long by its size.
    """
    first = b""
    while not first and (block := file.read(BLOCK_BYTES)):
        first = _text(block)
    if not first.startswith(b"["):
        yield from [[first + file.read(max(most + 1 - len(first), 0))]] if first else []
        return
    open_element, scanner, block, start = _Element(most), Scanner(), first, 1
    while block:
        places, depths = scanner.scan(block)
        ended = np.flatnonzero(depths == 0)
        last = int(ended[0]) if len(ended) else len(places)
        found = []
        for comma in places[:last][(depths[:last] == 1) & _commas(block, places[:last])].tolist():
            found.append(open_element.closed(block[start:comma]))
            start = comma + 1
        if len(ended):
            found += _end(open_element, block, start, int(places[last]), file, most)
            yield found
            return
        open_element.add(block[start:])
        if found:
            yield found
        block, start = file.read(BLOCK_BYTES), 0
    rest, is_whole = open_element.closed(b""), scanner.depth == 1 and not scanner.in_string
    yield [*([rest] if rest else []), *([b""] if is_whole else [])]


def _commas(block: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.frombuffer(block, np.uint8)[places] == 44)


def _end(element: _Element, block: bytes, start: int, end: int, file: BinaryIO, most: int) -> list[bytes]:
    """The last element, if the array has one, and what stands behind the array."""
    closed, count = element.closed(block[start:end]), element.count
    behind = block[end + 1 if block[end] == 93 else end :].lstrip()
    while not behind and (more := file.read(BLOCK_BYTES)):
        behind = more.lstrip()
    behind = (behind + file.read(most + 1)).rstrip()[: most + 1] if behind else b""
    return [*([closed] if closed or count > 1 else []), *([behind] if behind else [])]


class _Element:
    """The bytes of the element at hand, as far as they came; `count` counts elements."""

    def __init__(self, most: int) -> None:
        self.most, self.parts, self.size, self.count = most, list[bytes](), 0, 0

    def add(self, part: bytes) -> None:
        kept = part[: max(self.most + 1 - self.size, 0)]
        self.parts.append(kept)
        self.size += len(kept)

    def closed(self, part: bytes) -> bytes:
        self.add(part)
        whole = b"".join(self.parts).strip()
        self.parts, self.size, self.count = [], 0, self.count + 1
        return whole


def document(file: BinaryIO) -> bytes:
    """All of the file, without white space around it."""
    return _text(file.read(MAX_BODY_BYTES + 1)).rstrip()


def first_body(open_file: Open, records: str | None) -> bytes | None:
    """The first message of a file; None if it has none."""
    with open_file() as file:
        match records or detected(open_file):
            case "array":
                return next((one for some in elements(file) for one in some), None)
            case "document":
                return document(file) or None
        return next((line.rstrip(b"\r\n") for line in file if line.strip()), None)
