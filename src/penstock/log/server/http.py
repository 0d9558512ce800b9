"""HTTP for people: the standard library's server, one thread per connection. What needs speed speaks TCP or UDP."""

from __future__ import annotations

import logging
import socket
import threading
import time
from functools import partial
from http.server import ThreadingHTTPServer
from typing import Any

from penstock.log.server.handler import shut
from penstock.log.server.pages import Pages
from penstock.log.server.service import Service
from penstock.log.server.strangers import Strangers
from penstock.log.wire.errors import TooMany

_LOGGER = logging.getLogger(__name__)
_MADE_AT_ONCE = 8
"""Ranges that are read and written down at a time; who waits for that holds no memory."""


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], Pages, bind_and_activate=False)
        self.socket.close()
        self.service = service
        tls = service.listening.tls()
        # The handshake is made by the connection's own thread: a client that does not go on stops nobody else.
        self.socket = listener if tls is None else tls.wrap_socket(
            listener, server_side=True, do_handshake_on_connect=False
        )
        self.socket.listen(self.request_queue_size)
        self.busy = 0
        self.lock = threading.Lock()
        self.strangers = Strangers(service.listening.most_strangers, service.listening.stranger_seconds)
        self.known: set[Any] = set()
        self.making = threading.BoundedSemaphore(_MADE_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.strangers.enter(request, partial(self.end_stranger, request))
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started, so none will forget it
            self.strangers.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.strangers.leave(request)
            with self.lock:
                self.known.discard(request)

    def service_actions(self) -> None:
        """Several times in a second."""
        self.strangers.end_late()

    def end_stranger(self, request: Any) -> None:
        self.service.counters.strangers += 1
        shut(request)

    def know(self, request: Any) -> None:
        """The client has shown its token, and is no stranger any more."""
        with self.lock:
            if request in self.known:
                return
            if len(self.known) >= self.service.listening.most_connections:
                raise TooMany(f"{len(self.known):,} connections are open", None, "try again later")
            self.known.add(request)
        self.strangers.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOGGER.debug("a connection of %s broke", client_address, exc_info=True)

    def count_busy(self, more: int) -> None:
        with self.lock:
            self.busy += more

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until every request that has begun is answered; idle connections are not waited for."""
        end = time.monotonic() + seconds
        while self.busy and time.monotonic() < end:
            time.sleep(0.01)
