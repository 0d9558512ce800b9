"""Find and load the file of compiled functions; if there is none, have it compiled.

Importing Numba takes a second and compiling ten, so neither happens here. A process of its own compiles, once for a
processor and version, and keeps the object file in the cache directory; loading that takes LLVM alone, a tenth of a
second. Whatever goes wrong costs time, never the run: without the functions other code does the work.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.cache import cache_directory
from penstock.errors import BadMachine

SWITCH_AFTER_BYTES = 32 * 1024 * 1024
"""A process that reads less does not load the machine code: it would cost more than it saves."""

_ARGUMENTS = {
    "read_bodies": 9, "cut_lines": 4, "write_objects": 6, "join_texts": 11, "add_lengths": 3,
    "hash_texts": 6,
}
"""How many each function has; all are 64-bit integers, as is the result."""

_SOURCES = (
    "layout", "blocks", "numbers", "strings", "body", "lines", "objects", "joining", "lengths", "hashing",
    "compilation",
)  # fmt: skip
_DIGEST = 32
_DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class MachineCode:
    read_bodies: Callable[..., int]
    cut_lines: Callable[..., int]
    write_objects: Callable[..., int]
    join_texts: Callable[..., int]
    add_lengths: Callable[..., int]
    hash_texts: Callable[..., int]
    engine: Any
    """Owns the memory that the functions are in."""


@dataclass(slots=True)
class Switch:
    """What this process has read so far, and the machine code once that is enough."""

    read_bytes: int = 0
    code: MachineCode | None = None
    file: Path | None = None
    is_hopeless: bool = False
    orders: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def after(self, more_bytes: int) -> MachineCode | None:
        """The machine code if it is worth its price and there; counts the bytes."""
        self.read_bytes += more_bytes
        if self.code is None and self.read_bytes > SWITCH_AFTER_BYTES and not self.is_hopeless:
            try:
                self.code = self._load_or_order()
            except (ImportError, OSError, BadMachine, RuntimeError):
                self.is_hopeless = True
        return self.code

    def _load_or_order(self) -> MachineCode | None:
        if self.file is None:
            self.file = code_file()
        if self.file.is_file():
            return load(self.file)
        if not self.orders and not _was_tried(self.file):
            self.orders.append(compile_in_background())
        return None


SWITCH = Switch()


def is_possible() -> bool:
    """Whether this machine can compile: Numba is there, and memory is as the code expects it."""
    is_fit = sys.byteorder == "little" and sys.maxsize > 2**32
    return is_fit and find_spec("numba") is not None and os.environ.get("PENSTOCK_COMPILED") != "off"


def code_file() -> Path:
    """Where the code for this processor and these versions belongs, whether it is there or not."""
    if not is_possible():
        raise ImportError("numba")
    from llvmlite import binding

    parts = [_source(name) for name in _SOURCES]
    parts += [importlib.metadata.version(package).encode() for package in ("numba", "llvmlite")]
    parts += [binding.get_host_cpu_name().encode(), binding.get_host_cpu_features().flatten().encode()]
    directory = cache_directory() / "machinecode"
    directory.mkdir(exist_ok=True)
    return directory / f"json-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}.o"


def _source(name: str) -> bytes:
    """The text of a module beside this one, also where the package is an archive, as on the machines of a cluster."""
    text = pkgutil.get_data(__package__, f"{name}.py")
    if text is None:
        raise ImportError(f"{name}.py cannot be read")
    return text


def tried(file: Path) -> Path:
    """A mark that somebody began to compile: what cannot be compiled is tried once a day."""
    return file.with_suffix(".tried")


def _was_tried(file: Path) -> bool:
    with suppress(FileNotFoundError):
        return time.time() - tried(file).stat().st_mtime < _DAY
    return False


def compile_in_background() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.formats.compiled.compilation"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def target_machine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3, jit=True)


def store(code: bytes, file: Path) -> None:
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(hashlib.sha256(code).digest() + code)
    os.replace(unfinished, file)


def load(file: Path) -> MachineCode:
    from llvmlite import binding

    stored = file.read_bytes()
    if hashlib.sha256(stored[_DIGEST:]).digest() != stored[:_DIGEST]:
        file.unlink()
        raise OSError(f"{file} is damaged")
    with suppress(OSError):
        os.utime(file)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(stored[_DIGEST:]))
    engine.finalize_object()
    return MachineCode(**{name: _function(engine, name) for name in _ARGUMENTS}, engine=engine)


def _function(engine: Any, name: str) -> Callable[..., int]:
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * _ARGUMENTS[name])
    return signature(engine.get_function_address(name))
