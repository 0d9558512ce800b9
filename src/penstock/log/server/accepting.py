"""Accept TCP connections; every one is a stranger, with little room and time, until it has said hello."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from penstock.log.server.tcp import Connection

if TYPE_CHECKING:
    from penstock.log.server.service import Service

_BACKLOG = 1024
_PAUSE = 0.1


class Accepting:
    """In the event loop."""

    def __init__(self, service: Service, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        self.service, self.listener, self.tls = service, listener, tls
        self._admitting: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._running = service.loop.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                own, _ = await self.service.loop.sock_accept(self.listener)
            except OSError as error:  # too many files are open, as a rule: others will be closed
                self.service.complaints.noticed(f"a connection could not be accepted: {error.strerror}")
                await asyncio.sleep(_PAUSE)
                continue
            task = self.service.loop.create_task(self._admit(own))
            self._admitting.add(task)
            task.add_done_callback(self._admitting.discard)

    async def _admit(self, own: socket.socket) -> None:
        connection = Connection(self.service, own)
        seconds = self.service.listening.stranger_seconds if self.tls is not None else None
        try:
            await self.service.loop.connect_accepted_socket(
                lambda: connection, own, ssl=self.tls, ssl_handshake_timeout=seconds
            )
        except OSError:  # no TLS, or gone; SSLError and TimeoutError are such errors too
            own.close()
        except Exception as error:
            self.service.complaints.failed("a connection could not begin", error)
            own.close()
        finally:
            if connection.transport is None:
                connection.is_no_stranger()

    def close(self) -> None:
        for task in (self._running, *self._admitting):
            task.cancel()
        self.listener.close()
