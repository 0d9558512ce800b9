"""Parser: something that reads bytes, as a function for the fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parser:
    """`target` takes any bytes. What it raises is a finding: it catches the errors that its seam promises itself."""

    target: Callable[[bytes], None]
    seeds: Sequence[bytes]


def run_one(parsers: Sequence[Parser], data: bytes) -> None:
    """The first byte says which parser gets the rest."""
    if data:
        parsers[data[0] % len(parsers)].target(data[1:])


def seeds_of(parsers: Sequence[Parser]) -> list[bytes]:
    return [bytes([number]) + seed for number, parser in enumerate(parsers) for seed in parser.seeds]


def pieces(data: bytes, mark: bytes = b"\xfe") -> list[bytes]:
    """Several inputs in one: 0xfe occurs in no text."""
    return data.split(mark)


def text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
