"""The log behind sockets: UDP, TCP and HTTP."""

from __future__ import annotations

from penstock.log.server.listening import CannotListen, Listening
from penstock.log.server.serve import Server

__all__ = ["CannotListen", "Listening", "Server"]
