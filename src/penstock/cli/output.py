"""What commands write: plain text to standard output, errors in colour to standard error."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from penstock.errors import BadFile


def say(text: str) -> None:
    typer.echo(text)


def complain(text: str) -> None:
    """An error; what the user typed is never read as markup."""
    from rich.console import Console
    from rich.text import Text

    head, colon, rest = text.partition(":")
    first = Text(head, style="bold red") if colon and " " not in head else Text(head)
    Console(stderr=True, highlight=False, soft_wrap=True).print(first + Text(colon + rest))


def write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"cannot write {path}: {error.strerror}") from None


def is_terminal() -> bool:
    return sys.stderr.isatty()
