"""A Spark cluster on this machine: a standalone master and its workers, as processes of their own on loopback.

For trying out and testing what a real cluster does. Everybody who may connect to loopback may use it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import BadMachine
from penstock.spark.archive import archive_options
from penstock.spark.gateway import quoted, spark_environment
from penstock.spark.java import find_java

HOST = "127.0.0.1"
PORT = 7077
START_SECONDS = 90.0
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_ADDRESS = "address.json"

_OPTIONS = {
    # A port that is taken is an error: the next one would not be where we look.
    "spark.port.maxRetries": "0",
    "spark.master.rest.enabled": "false",
    "spark.worker.cleanup.enabled": "true",
}


@dataclass(frozen=True)
class Worker:
    """What the master knows about a worker."""

    alive: bool
    cores: int
    megabytes: int


@dataclass(frozen=True)
class Cluster:
    """A master that answers: its address for Spark, its web page, its workers, and where pid files and logs are."""

    directory: Path
    master: str
    web: str
    workers: tuple[Worker, ...] = ()


def start(directory: Path, workers: int = 2, cores: int = 1, memory: str = "1g", port: int | None = None) -> Cluster:
    """Start a master and its workers, and return when all of them have registered; if one fails, none is left.

    Without `port` the master listens at 7077 if that is free, else at any free port.
    """
    directory = directory.absolute()
    if processes(directory):
        raise BadMachine(f"a cluster runs in {directory}", None, "stop it first: penstock cluster stop")
    shutil.rmtree(directory / "work", ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    chosen, web = port or _free_port(PORT), _free_port()
    running = Cluster(directory, f"spark://{HOST}:{chosen}", f"http://{HOST}:{web}")
    begun: list[subprocess.Popen[bytes]] = []
    try:
        address = ["--host", HOST, "--port", str(chosen), "--webui-port", str(web)]
        begun.append(_launch(directory, "master", "org.apache.spark.deploy.master.Master", address))
        _wait(running, begun, 0)
        for number in range(1, workers + 1):
            options = ["--host", HOST, "--webui-port", "0", "--cores", str(cores), "--memory", memory,
                       "--work-dir", str(directory / "work"), running.master]  # fmt: skip
            begun.append(_launch(directory, f"worker-{number}", "org.apache.spark.deploy.worker.Worker", options))
        _wait(running, begun, workers)
        (directory / _ADDRESS).write_text(json.dumps({"master": running.master, "web": running.web}))
    except BaseException:
        stop(directory)
        raise
    return status(directory) or running


def stop(directory: Path) -> int:
    """End all processes of the cluster and theirs; the answer is how many of its own there were."""
    found = processes(directory)
    # Workers end their executors before they end themselves; what is left is in their groups.
    for pid in found.values():
        _signal(os.kill, pid, signal.SIGTERM)
    _wait_for_end(directory, STOP_SECONDS)
    for pid in found.values():
        _signal(os.killpg, pid, signal.SIGKILL)
    _wait_for_end(directory, STOP_SECONDS)
    if left := processes(directory):
        raise BadMachine(f"cannot end the cluster in {directory}: {', '.join(left)} still run", None,
                         f"end process {', '.join(map(str, left.values()))} yourself")  # fmt: skip
    for file in (*directory.glob("*.pid"), directory / _ADDRESS):
        file.unlink(missing_ok=True)
    return len(found)


def status(directory: Path) -> Cluster | None:
    """The cluster of the directory, or None where none answers."""
    try:
        known = json.loads((directory / _ADDRESS).read_text())
        page = _ask(known["web"])
    except (OSError, ValueError):
        return None
    workers = tuple(Worker(w["state"] == "ALIVE", w["cores"], w["memory"]) for w in page["workers"])
    return Cluster(directory, page["url"], known["web"], workers)


def processes(directory: Path) -> dict[str, int]:
    """The running masters and workers of a directory, by name."""
    _children[:] = [child for child in _children if child.poll() is None]
    found = {}
    for file in sorted(directory.glob("*.pid")):
        pid, _, born = file.read_text().partition(" ")
        if pid.isdigit() and _born(int(pid)) == born:
            found[file.stem] = int(pid)
    return found


# Whoever starts a process has to ask for its end, or it stays in the table of processes.
_children: list[subprocess.Popen[bytes]] = []


def _launch(directory: Path, name: str, main: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = _environment(directory)
    with open(directory / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [os.path.join(environment["SPARK_HOME"], "bin", "spark-class"), main, *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children.append(process)
    try:
        (directory / f"{name}.pid").write_text(f"{process.pid} {_born(process.pid)}")
    except BaseException:
        _signal(os.killpg, process.pid, signal.SIGKILL)
        raise
    return process


def _environment(directory: Path) -> dict[str, str]:
    java = find_java()
    settings = [f"-D{key}={value}" for key, value in _OPTIONS.items()]
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive_options(java), *settings]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    return kept | spark_environment(java) | {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(map(quoted, options)),
    }  # fmt: skip


def _wait(running: Cluster, begun: Sequence[subprocess.Popen[bytes]], workers: int) -> None:
    """Wait until the master answers and so many workers have registered with it."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError, ValueError):
            page = _ask(running.web)
            if page["url"] == running.master and page["status"] == "ALIVE" and page["aliveworkers"] >= workers:
                return
        ended = [number for number, process in enumerate(begun) if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            name = "master" if not workers or ended == [0] else f"worker-{ended[0] if ended else 1}"
            log = running.directory / f"{name}.log"
            what = "ended while it started" if ended else f"did not start within {START_SECONDS:.0f} s"
            raise BadMachine(f"the {name} of the cluster {what}: {_last_words(log)}", None, f"see {log}")
        time.sleep(_POLL_SECONDS)


def _wait_for_end(directory: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and processes(directory):
        time.sleep(_POLL_SECONDS)


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    raised = [line for line in lines if re.match(r"(Caused by: )?[\w.$]+(Exception|Error)\b", line)]
    return (raised or [line for line in lines if " ERROR " in line] or ["it wrote nothing", *lines])[-1].strip()


def _ask(web: str) -> Mapping[str, Any]:
    # Not through a proxy: this is loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{web}/json/", timeout=5) as answer:
        page: Mapping[str, Any] = json.load(answer)
        return page


def _free_port(wanted: int = 0) -> int:
    with socket.socket() as found:
        # As Java does it: a port that was in use a minute ago is free.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, wanted))
        except OSError:
            return _free_port()
        port: int = found.getsockname()[1]
        return port


def _signal(send: Any, pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        send(pid, number)


def _born(pid: int) -> str | None:
    """When a process started, which tells it from a later one of the same number; None for one that ended."""
    if not os.path.exists("/proc/self/stat"):
        return _asked(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _asked(pid: int) -> str | None:
    told = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True).stdout.split()
    return None if not told or told[0].startswith("Z") else " ".join(told[1:])
