"""Many datagrams in one system call: recvmmsg and sendmmsg, which Python does not have, through ctypes.

The structures that the kernel reads lie in NumPy arrays, made once; a call fills them without Python touching a
packet. ctypes releases Python's lock during the call. Elsewhere than on 64-bit Linux it is one call per packet.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys
from typing import Any, TypeAlias

import numpy as np

PACKETS = 1024
"""As many as one call takes; the kernel's own limit."""
ADDRESS_BYTES = 28
"""An IPv6 address as the kernel writes it; that of IPv4 is shorter."""

_VECTOR = np.dtype([("base", "u8"), ("length", "u8")])
_HEADER = np.dtype([
    ("name", "u8"), ("name_length", "u4"), ("", "u4"), ("vector", "u8"), ("vectors", "u8"), ("control", "u8"),
    ("control_length", "u8"), ("flags", "i4"), ("", "u4"), ("size", "u4"), ("", "u4"),
])  # fmt: skip
_WAIT_FOR_ONE = 0x10000
_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
_PASSING = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EPERM, errno.EINVAL, errno.ENOBUFS,
            errno.EMSGSIZE, errno.EACCES)  # fmt: skip
"""What one receiver's address can cause; the packet is lost, which is nothing new to UDP."""

Array: TypeAlias = np.ndarray[Any, Any]


def _library() -> Any:
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "recvmmsg") and hasattr(library, "sendmmsg") else None


LIBRARY = _library()


class Packets:
    """Room for datagrams: a row of `data`, a size and an address for each."""

    def __init__(self, packets: int, width: int) -> None:
        self.data: Array = np.zeros((packets, width), np.uint8)
        self.addresses: Array = np.zeros((packets, ADDRESS_BYTES), np.uint8)
        self.address_sizes: Array = np.zeros(packets, np.uint32)
        self.sizes: Array = np.zeros(packets, np.int64)
        self._vectors: Array = np.zeros(packets, _VECTOR)
        self._headers: Array = np.zeros(packets, _HEADER)
        rows = np.arange(packets, dtype=np.uint64)
        self._vectors["base"] = self.data.ctypes.data + rows * np.uint64(width)
        self._headers["vector"] = self._vectors.ctypes.data + rows * np.uint64(_VECTOR.itemsize)
        self._headers["vectors"] = 1
        self._headers["name"] = self.addresses.ctypes.data + rows * np.uint64(ADDRESS_BYTES)

    @property
    def most(self) -> int:
        return len(self.sizes)

    @property
    def width(self) -> int:
        return int(self.data.shape[1])


class Receiver(Packets):
    """Waits for datagrams. The socket must be blocking; its time-out is how long one call waits at most."""

    def __init__(self, own: socket.socket, packets: int = PACKETS, width: int = 2048) -> None:
        super().__init__(packets, width + 1)  # one byte more tells that a packet was longer
        self.socket = own
        self.truncated = 0
        self._vectors["length"] = width + 1

    def receive(self) -> int:
        """How many rows are filled now: zero if nothing came in time. Packets that are too long have size zero."""
        count = self._several() if LIBRARY is not None else self._one()
        sizes = self.sizes[:count]
        too_long = sizes >= self.width
        if too_long.any():
            self.truncated += int(np.count_nonzero(too_long))
            sizes[too_long] = 0
        return count

    def _several(self) -> int:
        self._headers["name_length"] = ADDRESS_BYTES
        count = LIBRARY.recvmmsg(
            self.socket.fileno(), ctypes.c_void_p(self._headers.ctypes.data), self.most, _WAIT_FOR_ONE, None
        )
        if count < 0:
            return _failed(ctypes.get_errno())
        self.sizes[:count] = self._headers["size"][:count]
        self.address_sizes[:count] = self._headers["name_length"][:count]
        return int(count)

    def _one(self) -> int:
        try:
            packet, address = self.socket.recvfrom(self.width)
        except (TimeoutError, BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            return _failed(error.errno or 0)
        self.data[0, : len(packet)] = np.frombuffer(packet, np.uint8)
        self.sizes[0] = len(packet)
        self.addresses[0] = packed(address)
        self.address_sizes[0] = ADDRESS_BYTES
        return 1


class Sender(Packets):
    """Sends what was put into its rows: `data`, `sizes`, and the addresses as a receiver got them."""

    def __init__(self, own: socket.socket, packets: int = PACKETS, width: int = 2048) -> None:
        super().__init__(packets, width)
        self.socket = own
        self.lost = 0

    def send_to(self, addresses: Array, address_sizes: Array) -> None:
        """The first rows go to these addresses."""
        count = len(addresses)
        self.addresses[:count] = addresses
        if LIBRARY is None:
            self._one_by_one(count)
            return
        self._vectors["length"][:count] = self.sizes[:count]
        self._headers["name_length"][:count] = address_sizes
        self._several(count)

    def send(self, count: int) -> None:
        """The first rows go to where the socket is connected to."""
        if LIBRARY is None:
            for row in range(count):
                try:
                    self.socket.send(self.data[row, : int(self.sizes[row])].tobytes())
                except OSError:
                    self.lost += 1
            return
        self._vectors["length"][:count] = self.sizes[:count]
        self._headers["name_length"][:count] = 0
        self._several(count)

    def _one_by_one(self, count: int) -> None:
        for row in range(count):
            try:
                self.socket.sendto(self.data[row, : int(self.sizes[row])].tobytes(), unpacked(self.addresses[row]))
            except OSError:
                self.lost += 1

    def _several(self, count: int) -> None:
        at = 0
        while at < count:
            start = self._headers.ctypes.data + at * _HEADER.itemsize
            sent = LIBRARY.sendmmsg(self.socket.fileno(), ctypes.c_void_p(start), count - at, 0)
            if sent > 0:
                at += sent
                continue
            number = ctypes.get_errno()
            if number == errno.EINTR:
                continue
            if number not in _PASSING and number not in _AGAIN:
                raise OSError(number, os.strerror(number))
            at += 1
            self.lost += 1


def _failed(number: int) -> int:
    if number in _AGAIN or number in _PASSING:
        return 0
    raise OSError(number, os.strerror(number))


def packed(address: Any) -> Array:
    """An address in our own form, where the kernel's is not at hand."""
    host = socket.inet_pton(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, address[0])
    row = np.zeros(ADDRESS_BYTES, np.uint8)
    row[0], row[1:3] = len(host), np.frombuffer(int(address[1]).to_bytes(2, "little"), np.uint8)
    row[3 : 3 + len(host)] = np.frombuffer(host, np.uint8)
    return row


def unpacked(row: Array) -> tuple[str, int]:
    data = row.tobytes()
    family = socket.AF_INET if data[0] == 4 else socket.AF_INET6
    return socket.inet_ntop(family, data[3 : 3 + data[0]]), int.from_bytes(data[1:3], "little")


def set_timeout(own: socket.socket, seconds: float) -> None:
    """How long one `receive` waits. Python's own time-outs would make the socket non-blocking."""
    if LIBRARY is None:
        own.settimeout(seconds)
        return
    own.setblocking(True)
    whole = int(seconds)
    value = np.array([whole, int((seconds - whole) * 1e6)], np.int64).tobytes()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
