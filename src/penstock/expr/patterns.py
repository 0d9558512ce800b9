"""Regular expressions of RFC 9485, matched by RE2 in time that grows with the text, whatever the pattern.

A pattern is small, because memory and the time for each character grow with it. One that a message brings may be
anything: where it is no pattern, or too large, it matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import re2  # type: ignore[import-untyped]

from penstock.errors import BadExpression
from penstock.expr.iregexp import depth, positions, read

LONGEST = 4096
"""Characters of a pattern."""
_DEEPEST = 100
_MOST_TIMES = 1000
_MEMORY = 1 << 20
_MOST_KNOWN = 128

_ASSIGNED = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_CONTROL = r"\p{Cc}\p{Cf}\p{Co}\p{Cs}"
_PART = re.compile(r"\\[pP]\{[^}]*\}|\\.|.", re.DOTALL)
_IN_CLASS = {"&": r"\&", "|": r"\|", "~": r"\~"}  # where other dialects see operators
_RE2 = {".": r"[^\n\r]", "$": r"\z"}


def matches(text: str, pattern: str) -> bool:
    """All of the text."""
    return _compiled(pattern).fullmatch(_encoded(text)) is not None


def search(text: str, pattern: str) -> bool:
    """Some part of the text."""
    return _compiled(pattern).search(_encoded(text)) is not None


def extract(text: str, pattern: str) -> str | None:
    """What the first group holds in the first match."""
    found = _compiled(pattern, True).search(_encoded(text))
    group: bytes | None = found.group(1) if found else None
    return None if group is None else group.decode()


def test_batch(name: str, texts: pa.Array, pattern: str) -> pa.Array:
    """`matches` or `search` of many texts."""
    regular = re2_pattern(pattern)
    return pc.match_substring_regex(texts, rf"\A(?:{regular})\z" if name == "matches" else regular)


def is_pattern(text: str) -> bool:
    """Whether a text is written by the rules of RFC 9485, and can be matched here."""
    return len(text) <= LONGEST and _is_pattern(text)


@lru_cache(maxsize=_MOST_KNOWN)
def _is_pattern(text: str) -> bool:
    return mistake(text) is None


def mistake(pattern: str) -> BadExpression | None:
    """What is wrong with a pattern, or None."""
    if len(pattern) <= LONGEST and read(pattern) is None:
        return BadExpression(f"{_shown(pattern)} is not a portable regular expression",
                             fix=r"use RFC 9485 syntax: [0-9] for \d; no look-around, no back-references")  # fmt: skip
    return excess(pattern)


def excess(pattern: str) -> BadExpression | None:
    """What is too much in a pattern that may be written by the rules, or None."""
    if len(pattern) > LONGEST:
        return BadExpression(f"a regular expression of {len(pattern):,} characters is longer than {LONGEST:,}")
    tokens = read(pattern)
    if tokens is None:
        return None
    if any(max(token.least, token.most or 0) > _MOST_TIMES for token in tokens):  # RE2 would take it for text
        return BadExpression(f"{_shown(pattern)} repeats more than {_MOST_TIMES:,} times")
    if depth(tokens) > _DEEPEST:
        return BadExpression(f"{_shown(pattern)} has more than {_DEEPEST} groups inside one another")
    try:
        _compiled(pattern, captures="(" in pattern)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        return BadExpression(f"{_shown(pattern)} cannot be matched: {reason}",
                             fix="repeat at most 1,000 times in all, large classes less often")  # fmt: skip
    return None


@lru_cache(maxsize=_MOST_KNOWN)
def cost(pattern: str) -> int:
    """Steps that each character of a text may take; a hundred million of them are about a second."""
    return max(1, positions(read(pattern) or []))


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")


def groups(pattern: str) -> int:
    return int(_compiled(pattern, True).groups)


def has_anchor(pattern: str) -> bool:
    """Whether ^ or $ stands where other dialects see an anchor, and I-Regexp an ordinary character."""
    return any(part in ("^", "$") and not in_class for part, in_class in parts(pattern))


def re2_pattern(pattern: str) -> str:
    return "".join(_for_re2(part, in_class) for part, in_class in parts(pattern))


def _for_re2(part: str, in_class: bool) -> str:
    """RE2 does not know which characters are not assigned, and does not count them to the others in \\p{C}."""
    if part[1:] in ("p{C}", "P{C}", "p{Cn}", "P{Cn}"):
        unassigned = _unassigned() if part[1] == "p" else ""
        known = {"p{C}": _CONTROL, "P{C}": _ASSIGNED, "p{Cn}": "", "P{Cn}": _ASSIGNED + _CONTROL}[part[1:]]
        return unassigned + known if in_class else f"[{unassigned}{known}]"
    return (_IN_CLASS if in_class else _RE2).get(part, part)


@lru_cache(maxsize=1)
def _unassigned() -> str:
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    found = re2.finditer(f"[^{_ASSIGNED}{_CONTROL}]+", everything)
    spans = [(everything[each.start()], everything[each.end() - 1]) for each in found]
    return "".join(rf"\x{{{ord(first):x}}}-\x{{{ord(last):x}}}" for first, last in spans)


def parts(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character or escape, and whether it stands in a character class."""
    in_class = False
    for part in _PART.findall(pattern):
        yield part, in_class and part != "]"
        in_class = part == "[" or (in_class and part != "]")


@lru_cache(maxsize=_MOST_KNOWN)
def _compiled(pattern: str, captures: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = not captures
    return re2.compile(_encoded(re2_pattern(pattern)), options)


def _encoded(text: str) -> bytes:
    """Half of a surrogate pair is no character: it becomes a question mark, as in Java."""
    return text.encode("utf-8", "replace")
