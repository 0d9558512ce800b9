"""What the tests of sources and sinks read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines(directory: Path) -> list[bytes]:
    """The lines of all files, in the order of the files' names."""
    return [line for path in sorted(directory.glob("[!_.]*")) for line in path.read_bytes().splitlines()]


def records(directory: Path) -> list[Any]:
    return [json.loads(line) for line in lines(directory)]


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, hidden ones too."""
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}
