"""Compile the machine code: run as `python -m penstock.formats.compiled.compilation`.

It is silent, yields to other programs, and does nothing if the code is there or is being compiled.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from penstock.formats.compiled.machinecode import code_file, store, target_machine, tried

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
    """An object file that holds the functions under their plain names and needs nothing else."""
    from llvmlite import binding

    from penstock.formats.compiled.body import read_bodies
    from penstock.formats.compiled.hashing import hash_texts
    from penstock.formats.compiled.joining import join_texts
    from penstock.formats.compiled.lengths import add_lengths
    from penstock.formats.compiled.lines import cut_lines
    from penstock.formats.compiled.objects import write_objects

    machine = target_machine()
    whole = binding.parse_assembly("")
    functions: dict[str, Any] = {
        "read_bodies": read_bodies, "cut_lines": cut_lines, "write_objects": write_objects, "join_texts": join_texts,
        "add_lengths": add_lengths, "hash_texts": hash_texts,
    }  # fmt: skip
    for name, function in functions.items():
        module = binding.parse_assembly(function.inspect_llvm())
        module.get_function(function.native_name).name = name
        whole.link_in(module)
    whole.verify()
    code: bytes = machine.emit_object(whole)
    return code


def _remove_forgotten(directory: Path) -> None:
    for file in directory.iterdir():
        if time.time() - file.stat().st_mtime > _FORGOTTEN_AFTER:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
