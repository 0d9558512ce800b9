"""Check that this machine can run routes, and say what to do where it cannot."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cache import cache_directory
from penstock.errors import PenstockError
from penstock.formats.compiled.machinecode import is_possible
from penstock.spark.java import find_java

if TYPE_CHECKING:
    import pyarrow

_GIGABYTE = 1 << 30
_REINSTALL = 'pip install --upgrade --force-reinstall "penstock"'


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a machine needs: whether it is there, what was found, and what to do if it is not."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def diagnose() -> list[Check]:
    """Look at all that routes need, from Python to a message that goes through Spark and back."""
    needed = [
        _python(),
        _java(),
        _package("pyspark", (4, 3), (4, 4)),
        _package("pyarrow", (18,), None),
        _package("pandas", (2, 2), (3,)),
    ]
    machine = [
        _memory(),
        Check("cores", True, str(os.cpu_count() or 1)),
        Check("compiled json", True, _compiled_json()),
        _writable("cache directory", "XDG_CACHE_HOME"),
        _writable("temporary directory", "TMPDIR"),
    ]
    spark = [_spark()] if all(check.ok for check in needed) else []
    return needed + machine + spark


def _python() -> Check:
    return Check("python", sys.version_info >= (3, 11), platform.python_version(), "use Python 3.11 or newer")


def _java() -> Check:
    try:
        java = find_java()
    except PenstockError as error:
        return Check("java", False, error.what, error.fix or "")
    return Check("java", True, f"{java.version} from {java.source}, {java.home}")


def _package(name: str, lowest: tuple[int, ...], below: tuple[int, ...] | None) -> Check:
    wanted = f"{name}>={_dotted(lowest)}" + (f",<{_dotted(below)}" if below else "")
    fix = f'pip install "{wanted}"'
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", fix)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    return Check(name, lowest <= numbers and (below is None or numbers < below), version, fix)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _memory() -> Check:
    free = _free_memory()
    fix = "close other programs: a route needs about 2 GB"
    return Check("memory", free >= 2 * _GIGABYTE, f"{free / _GIGABYTE:.1f} GB free", fix)


def _free_memory() -> int:
    information = Path("/proc/meminfo")
    if information.is_file():
        found = re.search(r"^MemAvailable:\s+(\d+) kB", information.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    # macOS does not tell what is free: what is there has to do.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _compiled_json() -> str:
    """No run needs it, so it is never a failure."""
    if is_possible():
        return f"with numba {importlib.metadata.version('numba')}"
    return 'no, which is slower for large runs: pip install "penstock[fast]"'


def _writable(name: str, variable: str) -> Check:
    fix = f"set {variable} to a directory that you may write to"
    try:
        directory = cache_directory() if variable == "XDG_CACHE_HOME" else Path(tempfile.gettempdir())
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"penstock")
    except (OSError, PenstockError) as error:
        return Check(name, False, str(error), fix)
    return Check(name, True, str(directory))


def _spark() -> Check:
    """Start Spark, send rows to a Python worker and back, and time both."""
    from penstock.spark.session import session

    started = time.perf_counter()
    try:
        spark = session("penstock-doctor", quick=True)
        ready = time.perf_counter()
        rows = spark.range(100).mapInArrow(_unchanged, "id long").count()
        done = time.perf_counter()
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Check("spark", False, reason, "PENSTOCK_SPARK_LOG=info penstock doctor shows what Spark says")
    found = f"started in {ready - started:.1f} s, {rows} rows through Python in {done - ready:.1f} s"
    return Check("spark", rows == 100, found, _REINSTALL)


def _unchanged(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    yield from batches
