"""The one place where Spark sessions are made."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.errors import BadMachine
from penstock.spark.gateway import executor_options, launch, use_this_python
from penstock.spark.master import check, is_local, is_loopback

# What results depend on: set on every session, also on one that was there before us.
MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variant.allowDuplicateKeys": "true",  # the last one counts; without it the value would be null
}

_STREAMING = "org.apache.spark.sql.execution.streaming"

_EVERYWHERE = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Remembering which Python line made each column costs more than making the column.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The default starts some twenty processes per micro-batch on a local disk, and writes each file twice. On a
    # cluster it is the same, so that a checkpoint can move from one to the other.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_LONGEST_SOCKET_DIRECTORY = 60
"""A socket's whole path has at most 103 bytes on some systems, and Spark's names have 42."""

_LOCAL = {
    # Planning again in the middle of a batch costs more than it saves on one machine.
    "spark.sql.adaptive.enabled": "false",
    # What is shuffled is read again at once, out of the file system's cache.
    "spark.shuffle.compress": "false",
}


def session(
    name: str = "penstock",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    quick: bool = False,
) -> SparkSession:
    """The session of this process: the one that runs, or a new one.

    The master is the one given, that of spark-submit, PENSTOCK_MASTER, or all cores of this machine. A session that
    runs keeps its settings, but for `conf` and those that results depend on. `quick` starts sooner and computes
    slower; PENSTOCK_QUICK=1 in the environment asks for the same.
    """
    if SparkContext._active_spark_context is not None:
        return _running(master, MEANING | dict(conf or {}))
    quick = quick or os.environ.get("PENSTOCK_QUICK") == "1"
    settings = _settings(name, master, conf or {}, quick)
    local = is_local(settings["spark.master"])
    use_this_python(local)
    with _interrupts_kept():
        _start(settings, quick)
    spark = SparkSession.builder.getOrCreate()
    if local and "spark.sql.shuffle.partitions" not in settings:
        spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    return spark


def driver_memory() -> str:
    """A quarter of the memory, from one to four gigabytes, unless PENSTOCK_DRIVER_MEMORY says otherwise."""
    if chosen := os.environ.get("PENSTOCK_DRIVER_MEMORY"):
        return chosen
    megabytes = memory() // 4 >> 20
    return f"{min(max(megabytes, 1024), 4096)}m"


def memory() -> int:
    """The bytes of memory that this machine, or the container around this process, has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(total, int(text)) if text.isdigit() else total


def _running(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if master and master != spark.sparkContext.master:
        raise BadMachine(f"Spark runs already, on {spark.sparkContext.master} and not on {master}", None,
                         "stop that session, or run this in a process of its own")  # fmt: skip
    return spark


def _settings(name: str, master: str | None, conf: Mapping[str, str], quick: bool) -> dict[str, str]:
    submitted = _submitted()
    if submitted.get("spark.app.name") == os.path.basename(sys.argv[0]):
        del submitted["spark.app.name"]
    chosen = master or submitted.get("spark.master") or os.environ.get("PENSTOCK_MASTER") or "local[*]"
    check(chosen)
    given = {**submitted, **MEANING, **conf, "spark.master": chosen}
    scratch = _scratch_directory()
    settings = {"spark.app.name": name, **_EVERYWHERE, "spark.sql.warehouse.dir": scratch}
    if is_local(chosen):
        settings |= _LOCAL | _sockets(scratch)
    else:
        settings["spark.executor.defaultJavaOptions"] = executor_options(quick, is_loopback(chosen) and not submitted)
    if is_local(chosen) or is_loopback(chosen):
        settings |= _LOOPBACK
    if not submitted:
        settings["spark.driver.memory"] = driver_memory()
    return settings | given


def _sockets(directory: str) -> dict[str, str]:
    """Java and its Python workers on one machine talk through files, where the names of these are not too long.

    Over TCP a job of Python tasks waits forty milliseconds for an answer that says nothing.
    """
    if len(os.fsencode(directory)) > _LONGEST_SOCKET_DIRECTORY:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def _submitted() -> dict[str, str]:
    """The settings of spark-submit, when that started this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _start(settings: Mapping[str, str], quick: bool) -> None:
    # Java outlives a stopped session, and the next one uses it again.
    gateway = launch(settings, quick) if SparkContext._gateway is None else None
    configuration = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    SparkContext(conf=configuration, gateway=gateway)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep the handler of Ctrl-C: Spark's would cancel a micro-batch before anybody can stop its query."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _scratch_directory() -> str:
    directory = tempfile.mkdtemp(prefix="penstock-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
