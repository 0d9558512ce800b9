"""Server: serves a log at its ports until it is stopped, which loses no message that was answered."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from penstock.log.log import Log
from penstock.log.server.accepting import Accepting
from penstock.log.server.http import HttpServer
from penstock.log.server.listening import Listening
from penstock.log.server.service import Service
from penstock.log.server.udp import PullPort, PushPort, UdpPort, bound_socket

_Result = TypeVar("_Result")
_LOGGER = logging.getLogger(__name__)
_LAST_ANSWERS = 10.0
"""Seconds that a server which stops waits at most for clients to take their answers."""


class Server:
    """Serves a log until `stop`; the log stays open.

    with Log(directory) as log, Server(log, Listening(tcp=0)) as server:
        print(server.tcp)
    """

    def __init__(self, log: Log, listening: Listening | None = None) -> None:
        self.log = log
        self.listening = Listening() if listening is None else listening
        self.tcp = self.http = self.push = self.pull = None
        self._loop = asyncio.new_event_loop()
        self.service = Service(log, self.listening, self._loop)
        self._udp: list[UdpPort] = []
        self._http: HttpServer | None = None
        self._accepting: Accepting | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock-log-tcp", daemon=True)
        self._lock = threading.Lock()
        self._is_stopped = False

    tcp: int | None
    http: int | None
    push: int | None
    pull: int | None

    def start(self) -> Server:
        """Listen at all ports, or at none: a port that is taken raises before anything was served."""
        sockets: list[socket.socket] = []
        try:
            self._open(sockets)
        except BaseException:
            for each in sockets:
                each.close()
            for port in self._udp:
                port.socket.close()
            self._end_loop()
            raise
        for port in self._udp:
            port.start()
        for note in self.listening.notes():
            _LOGGER.warning("note: %s", note)
        return self

    def _open(self, sockets: list[socket.socket]) -> None:
        listening = self.listening
        tls = listening.tls()
        if listening.tcp is not None:
            sockets.append(own := bound_socket(listening, listening.tcp, socket.SOCK_STREAM))
            self.tcp = own.getsockname()[1]
        if listening.http is not None:
            sockets.append(web := bound_socket(listening, listening.http, socket.SOCK_STREAM))
            self.http = web.getsockname()[1]
        if listening.push is not None:
            self._udp.append(pushes := PushPort(self.service, listening.push))
            self.push = pushes.port
        if listening.pull is not None:
            self._udp.append(pulls := PullPort(self.service, listening.pull))
            self.pull = pulls.port
        self._thread.start()
        if listening.tcp is not None:
            self._accepting = self._wait(self._accept(own, tls))
        if listening.http is not None:
            self._http = HttpServer(self.service, web)
            serving = threading.Thread(
                target=self._http.serve_forever, args=(0.05,), name="penstock-log-http", daemon=True
            )
            serving.start()

    async def _accept(self, own: socket.socket, tls: ssl.SSLContext | None) -> Accepting:
        return Accepting(self.service, own, tls)

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def address(self) -> str:
        """Where clients connect to."""
        return f"{self.listening.host}:{self.tcp}"

    def stop(self) -> None:
        """Refuse what is new, answer what is begun, then close the connections."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
        self.service.is_stopping.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.wait_until_idle(_LAST_ANSWERS)
            self._http.server_close()
        for port in self._udp:
            port.join(_LAST_ANSWERS)
        self._wait(self._end_connections())
        self._end_loop()

    def _end_loop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self.service.close()

    async def _end_connections(self) -> None:
        if self._accepting is not None:
            self._accepting.close()
        connections = self.service.connections
        for each in list(connections):
            each.puller.stop_waiting()
        end = time.monotonic() + _LAST_ANSWERS
        while any(each.is_busy for each in connections) and time.monotonic() < end:
            await asyncio.sleep(0.005)
        for each in list(connections):
            each.end()
        while connections and time.monotonic() < end:
            await asyncio.sleep(0.005)
        for each in list(connections):
            if each.transport is not None:
                each.transport.abort()
        await asyncio.sleep(0)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *failed: object) -> None:
        self.stop()
