"""Sessions: a client that connects anew goes on there, and what it had sent over its last connection is not read.

It may have given messages new numbers since. Read late, those of the old ones would be stored a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.log.server.talking import Talking


class Sessions:
    """In the event loop."""

    def __init__(self) -> None:
        self._connections: dict[str, Talking] = {}
        self._names: dict[Talking, str] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def begin(self, name: str, connection: Talking) -> None:
        """End the connection that the session had before."""
        if not name:
            return
        before = self._connections.get(name)
        if before is not None:
            self.end(before)
            before.is_ending = True
            if before.transport is not None:
                before.transport.abort()
        self._connections[name], self._names[connection] = connection, name

    def end(self, connection: Talking) -> None:
        name = self._names.pop(connection, None)
        if name is not None:
            del self._connections[name]
