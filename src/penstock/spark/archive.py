"""Start Java sooner: an archive of the classes that Spark loads, made once per Java and Spark.

Java calls this application class data sharing. Whatever goes wrong here costs time, never the run.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from penstock.cache import cache_directory
from penstock.spark.java import LAUNCHER, Java

_ROOM = 1 << 30
_DAY = 24 * 3600


def archive_options(java: Java) -> list[str]:
    """Options that use the archive; none if it is missing, and then it is made after this process ends.

    PENSTOCK_ARCHIVE=off does without.
    """
    # Java does not archive classes from directories, and that is what SPARK_CONF_DIR adds.
    if os.environ.get("PENSTOCK_ARCHIVE") == "off" or "SPARK_CONF_DIR" in os.environ:
        return []
    with suppress(OSError):
        file = archive_file(java)
        if file.is_file():
            for part in file.parent.glob(f"{file.stem}.*"):
                os.utime(part)
            return ["-Xshare:auto", f"-XX:SharedArchiveFile={file}"]
        _remove_forgotten(file.parent)
        if not tried(file).exists() and shutil.disk_usage(file.parent).free > _ROOM:
            # Recording slows Java down, so it gets a run of its own.
            atexit.register(_train_in_background)
    return []


def archive_file(java: Java) -> Path:
    """Where the archive for this Java and this Spark belongs, whether it is there or not."""
    jars = Path(pyspark.__file__).resolve().parent / "jars"
    parts = [f"{path} {os.stat(path).st_mtime_ns}" for path in (java.home / "lib" / "modules", jars)]
    key = hashlib.sha256("\n".join([*parts, LAUNCHER]).encode()).hexdigest()[:12]
    directory = cache_directory() / "classes"
    directory.mkdir(exist_ok=True)
    return directory / f"spark-{pyspark.__version__}-java-{java.version}-{key}.jsa"


def tried(file: Path) -> Path:
    """A mark that somebody began to make the archive: one that cannot be made is not tried every time."""
    return file.with_suffix(".tried")


def _train_in_background() -> None:
    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "penstock.spark.make_archive"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _remove_forgotten(directory: Path) -> None:
    for file in directory.iterdir():
        age = time.time() - file.stat().st_mtime
        if age > (30 * _DAY if file.suffix in (".jsa", ".base") else _DAY):
            file.unlink(missing_ok=True)
