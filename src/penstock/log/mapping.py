"""Mapped memory without a descriptor: Python's own `mmap` keeps one for every mapping."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import pyarrow as pa

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


class _Mapping:
    """The memory of one mapping; it ends with the last view of it."""

    def __init__(self, descriptor: int, size: int, protection: int) -> None:
        self.size = size
        self.address = _LIBC.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
        if self.address == _FAILED:
            self.size, number = 0, ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def __del__(self, unmap: Any = _LIBC.munmap) -> None:
        if self.size:
            unmap(self.address, self.size)


def mapped(descriptor: int, size: int, *, writable: bool = False) -> memoryview:
    """The first `size` bytes of a file. They stay readable when it is closed, and when it is removed."""
    if size == 0:
        return memoryview(b"")
    mapping = _Mapping(descriptor, size, mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
    if not writable:  # a type of ctypes for every size would cost more than the mapping
        return memoryview(pa.foreign_buffer(mapping.address, size, mapping)).cast("B")
    memory = (ctypes.c_ubyte * size).from_address(mapping.address)
    memory.mapping = mapping  # type: ignore[attr-defined]
    return memoryview(memory).cast("B")
