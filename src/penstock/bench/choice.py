"""What a user chooses by text: names with wildcards, and ranges of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from penstock.errors import BadBenchmark, did_you_mean


def names(text: str | None, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The names in text like "RT-1-A,MDS-1-*", in the order in which they are known; none for None."""
    listed = list(known)
    chosen: set[str] = set()
    for word in _words(text):
        found = {name for name in listed if fnmatchcase(name, word)}
        if not found:
            raise BadBenchmark(f"there is no {what} {word!r}", None, did_you_mean(word, listed))
        chosen |= found
    return tuple(name for name in listed if name in chosen)


def numbers(text: str | None, option: str, least: int, most: int) -> tuple[int, ...] | None:
    """The numbers in text like "0..6", "1,4,7" or "1..14,20"; None for None."""
    if text is None:
        return None
    found: set[int] = set()
    for word in _words(text):
        match = re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", word)
        if match is None:
            raise BadBenchmark(f"{option} {text}: {word!r} is no number or range", None, _like(least, most))
        first, last = int(match[1]), int(match[2] or match[1])
        if not least <= first <= last <= most:
            raise BadBenchmark(f"{option} {text}: {word!r} is not inside {least}..{most}", None, _like(least, most))
        found.update(range(first, last + 1))
    if not found:
        raise BadBenchmark(f"{option} has no number", None, _like(least, most))
    return tuple(sorted(found))


def _like(least: int, most: int) -> str:
    return f"write numbers from {least} to {most}, like {least}..{most} or {least},{most}"


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
