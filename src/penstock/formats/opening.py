"""Open files, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

UNREADABLE = (OSError, EOFError, zlib.error)
"""What opening and reading them may raise."""


def open_file(path: str) -> Any:
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")
