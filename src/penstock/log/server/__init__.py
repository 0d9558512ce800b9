"""The log behind sockets: UDP, TCP and HTTP."""
