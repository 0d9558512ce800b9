"""What commands write: plain text to standard output, errors in colour to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from penstock.errors import BadFile


def visible(text: str) -> str:
    """Text for a terminal: what would move the cursor, change the screen or turn the text around is written out."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text)


def say(text: str) -> None:
    typer.echo(text)


def complain(text: str) -> None:
    """An error; what the user typed is never read as markup."""
    from rich.console import Console
    from rich.text import Text

    head, colon, rest = visible(text).partition(":")
    first = Text(head, style="bold red") if colon and " " not in head else Text(head)
    Console(stderr=True, highlight=False, soft_wrap=True).print(first + Text(colon + rest))


def write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"cannot write {path}: {error.strerror}") from None


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Cells under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def is_terminal() -> bool:
    return sys.stderr.isatty()
