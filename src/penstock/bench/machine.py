"""Where a benchmark ran: the machine, the versions, the commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import penstock

_PACKAGES = ("pyspark", "pyarrow", "duckdb", "polars", "msgspec", "numba")


def machine() -> str:
    """Like "AMD EPYC 7B13, 2 cores, 23 GB, Linux x86_64"."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return f"{_processor()}, {cores()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown processor")


def versions() -> str:
    """Like "penstock 0.1.0, python 3.11.9, pyspark 4.3.0"."""
    found = [f"penstock {penstock.__version__}", f"python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def source_tree() -> Path | None:
    """The checkout that this package is part of; None if it is installed."""
    package = Path(penstock.__file__).resolve().parent
    root = package.parent.parent
    return root if (root / "pyproject.toml").exists() and root / "src" / "penstock" == package else None


def commit() -> str | None:
    """The commit of the source tree, with a + if files differ from it."""
    root = source_tree()
    if root is None:
        return None
    name = _git(root, "rev-parse", "--short=12", "HEAD")
    if name is None:
        return None
    return name + "+" if _git(root, "status", "--porcelain", "--untracked-files=no") else name


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
