"""Compile the decoder: run as `python -m penstock.formats.jsoncompiled.compilation`.

It is silent, yields to other programs, and does nothing if the code is there or is being compiled.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from penstock.formats.jsoncompiled.machinecode import FUNCTION, code_file, store, target_machine, tried

_FORGOTTEN_AFTER = 30 * 24 * 3600


def main() -> None:
    os.nice(5)
    compile_once(code_file())


def compile_once(file: Path) -> None:
    with open(file.parent / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not file.is_file():
            _remove_forgotten(file.parent)
            tried(file).touch()
            store(object_code(), file)
            tried(file).unlink()


def object_code() -> bytes:
    """An object file that holds the function under its plain name and needs nothing else."""
    from llvmlite import binding

    from penstock.formats.jsoncompiled.body import read_bodies

    machine = target_machine()
    module = binding.parse_assembly(read_bodies.inspect_llvm())
    module.get_function(read_bodies.native_name).name = FUNCTION
    module.verify()
    code: bytes = machine.emit_object(module)
    return code


def _remove_forgotten(directory: Path) -> None:
    for file in directory.iterdir():
        if time.time() - file.stat().st_mtime > _FORGOTTEN_AFTER:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
