"""The directory for files of this user that can be made again."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from penstock.errors import BadMachine


def cache_directory() -> Path:
    """A directory that belongs to this user: penstock in XDG_CACHE_HOME or ~/.cache, or else a temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for directory in (Path(base) / "penstock", Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"):
        with suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A directory of somebody else could hold somebody else's programs.
            if os.access(directory, os.W_OK) and directory.stat().st_uid == os.getuid():
                return directory
    raise BadMachine("there is no directory for cached files", None, "set XDG_CACHE_HOME to a writable one")
