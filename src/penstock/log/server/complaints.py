"""Print what goes wrong in a server, but only now and then a line of each kind, however often it happens."""

from __future__ import annotations

import logging
import threading
import time

_LOGGER = logging.getLogger("penstock.log.server")
_EVERY = 30.0
"""Seconds between two lines of one kind."""
_LONGEST = 200
"""Characters of what an exception says: a client may have chosen them."""


class Complaints:
    """Counts lines that were left out, by kind; for any thread."""

    def __init__(self, every: float = _EVERY) -> None:
        self._every = every
        self._said: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def failed(self, what: str, error: BaseException) -> None:
        """A failure of our own, with its traceback."""
        kind = f"{what}: {type(error).__name__}"
        left_out = self._left_out(kind)
        if left_out is not None:
            _LOGGER.error("%s: %.*s%s", kind, _LONGEST, str(error), left_out, exc_info=error)

    def noticed(self, what: str) -> None:
        """Print a mistake of a client; the text must not depend on the client."""
        left_out = self._left_out(what)
        if left_out is not None:
            _LOGGER.warning("%s%s", what, left_out)

    def _left_out(self, kind: str) -> str | None:
        """How many lines of this kind were left out since the last one, as text; None if this line is left out, too."""
        now = time.monotonic()
        with self._lock:
            since, count = self._said.get(kind, (0.0, 0))
            if since and now - since < self._every:
                self._said[kind] = since, count + 1
                return None
            self._said[kind] = now, 0
        return f" ({count:,} more since the last such line)" if count else ""
