"""Sessions: when a client connects again, its earlier connection is ended, and nothing more is read from that.

The client may have given its messages new numbers since. If those with the old numbers were still read, they would be
stored twice.
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
