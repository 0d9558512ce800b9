"""A Kafka broker on this machine, in KRaft mode, on loopback: for tests, benchmarks and development.

Its jars come from Maven Central, once, into the cache directory. Everybody who may connect to loopback may use it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.bench.machine import source_tree
from penstock.cache import cache_directory
from penstock.errors import BadMachine
from penstock.spark.java import Java, find_java

HOST = "127.0.0.1"
PORT = 9092
START_SECONDS = 90.0
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_STARTED = "Kafka Server started"
_CLUSTER = "cGVuc3RvY2stYnJva2VyMQ"
_JAVA = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
num.network.threads=2
num.io.threads=2
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=1000
"""


def missing() -> str | None:
    """What this machine lacks for a broker, or None."""
    if _project() is None:
        return "Kafka's list of jars, bench/kafka, is only in the source tree of Penstock"
    try:
        find_java()
    except BadMachine:
        return "Kafka needs Java, and there is none that Penstock knows: penstock doctor says more"
    if _fetched() is None and shutil.which("mvn") is None:
        return "Kafka is not fetched, and there is no mvn (Maven) to fetch it"
    return None


def start(directory: Path, port: int = PORT) -> str:
    """Start a broker whose data is in `directory`; its address, when it answers. Port 0 is any that is free."""
    if lacking := missing():
        raise BadMachine(lacking, None, "install it, or use a Kafka that runs elsewhere")
    directory = directory.absolute()
    if running := process(directory):
        raise BadMachine(f"a Kafka runs in {directory}, as process {running}, at {address(directory)}", None,
                         "use that, or stop it first: scripts/kafka stop")  # fmt: skip
    java, jars = find_java(), fetch()
    directory.mkdir(parents=True, exist_ok=True)
    chosen, controller = _bindable(port), _bindable(0)
    properties = directory / "server.properties"
    properties.write_text(
        _PROPERTIES.format(host=HOST, port=chosen, controller=controller, data=directory / "data"), encoding="utf-8"
    )
    if not (directory / "data" / "meta.properties").exists():
        _format(java, jars, properties)
    _launch(java, jars, properties)
    try:
        _wait(directory)
    except BaseException:
        stop(directory)
        raise
    (directory / "address").write_text(f"{HOST}:{chosen}\n")
    return f"{HOST}:{chosen}"


def stop(directory: Path) -> bool:
    """End the broker of a directory; whether there was one. Its data stays."""
    running = process(directory)
    (directory / "address").unlink(missing_ok=True)
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        if not (pid := process(directory)):
            break
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)  # one that was halted would not end
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while process(directory) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    if pid := process(directory):
        raise BadMachine(f"cannot end Kafka in {directory}", None, f"end process {pid} yourself")
    (directory / "pid").unlink(missing_ok=True)
    return running is not None


def address(directory: Path) -> str | None:
    """Where the broker of a directory listens, or None if it does not run."""
    with suppress(FileNotFoundError):
        return (directory / "address").read_text().strip() if process(directory) else None
    return None


def process(directory: Path) -> int | None:
    """The number of the process of the broker of a directory, if it runs."""
    _children[:] = [child for child in _children if child.poll() is None]
    with suppress(OSError, ValueError):
        pid, _, born = (directory / "pid").read_text().partition(" ")
        return int(pid) if _born(int(pid)) == born else None
    return None


def fetch() -> Path:
    """The directory of Kafka's jars, each with the checksum that bench/kafka/jars.sha256 says."""
    found = _fetched()
    if found is not None:
        return found
    project = _project()
    assert project is not None
    target = _jars_directory(project)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        print("fetching Kafka with mvn (39 MB)", file=sys.stderr)
        pom = str(project / "pom.xml")
        command = ["mvn", "-q", "-B", "--strict-checksums", "-f", pom, f"-Djars={temporary}", "package"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            said = next((line for line in (done.stdout + done.stderr).splitlines() if line.strip()), "it says nothing")
            raise BadMachine(f"mvn cannot fetch Kafka: {said}", None, "see whether Maven reaches its repository")
        _verify(project, temporary)
        if target.exists():  # of an earlier, incomplete or changed one, or another process was faster
            shutil.rmtree(target)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _project() -> Path | None:
    root = source_tree()
    project = root / "bench" / "kafka" if root else None
    return project if project and (project / "pom.xml").exists() else None


def _jars_directory(project: Path) -> Path:
    return cache_directory() / "kafka" / hashlib.sha256((project / "jars.sha256").read_bytes()).hexdigest()[:12]


def _fetched() -> Path | None:
    project = _project()
    if project is None:
        return None
    try:
        return _verify(project, _jars_directory(project))
    except BadMachine:
        return None


def _verify(project: Path, directory: Path) -> Path:
    wanted = [line.split() for line in (project / "jars.sha256").read_text().splitlines()]
    there = {path.name for path in directory.glob("*.jar")}
    if there != {name for _, name in wanted}:
        raise BadMachine("the jars of Kafka are not those of bench/kafka/jars.sha256", None, "write that file anew")
    for checksum, name in wanted:
        if hashlib.sha256((directory / name).read_bytes()).hexdigest() != checksum:
            raise BadMachine(f"{name} does not have its checksum", None, "fetch it again, from a mirror you trust")
    return directory


def _format(java: Java, jars: Path, properties: Path) -> None:
    command = [*_java(java, jars), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise BadMachine(f"Kafka cannot make its directory: {_last_words(done.stdout + done.stderr)}", None,
                         f"remove {properties.parent} if it is an older version's")  # fmt: skip


def _java(java: Java, jars: Path) -> list[str]:
    return [str(java.home / "bin" / "java"), *_JAVA, "-cp", str(jars / "*")]


# Whoever starts a process has to ask for its end, or it stays in the table of processes.
_children: list[subprocess.Popen[bytes]] = []


def _launch(java: Java, jars: Path, properties: Path) -> None:
    directory = properties.parent
    with open(directory / "log", "wb") as log:
        child = subprocess.Popen([*_java(java, jars), "kafka.Kafka", str(properties)], cwd=directory,
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                 start_new_session=True)  # fmt: skip
    _children.append(child)
    (directory / "pid").write_text(f"{child.pid} {_born(child.pid)}")


def _wait(directory: Path) -> None:
    deadline, log = time.monotonic() + START_SECONDS, directory / "log"
    while _STARTED not in (said := log.read_text(errors="replace")):
        if not process(directory):
            raise BadMachine(f"Kafka ended while it started: {_last_words(said)}", None, f"see {log}")
        if time.monotonic() > deadline:
            raise BadMachine(f"Kafka did not start within {START_SECONDS:.0f} s", None, f"see {log}")
        time.sleep(_POLL_SECONDS)


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if "Exception" in line or " ERROR " in line]
    return (lines or said.splitlines() or ["it says nothing"])[-1].strip()


def _bindable(port: int) -> int:
    with socket.socket() as found:
        # As Java does it: a port that was in use a minute ago is free.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, port))
        except (OSError, OverflowError) as error:
            fix = "end what listens there, or give another --port; 0 is any that is free"
            raise BadMachine(f"Kafka cannot listen at {HOST}:{port}: {error}", None, fix) from None
        return int(found.getsockname()[1])


def _born(pid: int) -> str | None:
    """When a process started, which tells it from a later one of the same number; None for one that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/kafka", description="A Kafka broker on this machine.")
    parser.add_argument("action", choices=("start", "stop", "status", "address"))
    parser.add_argument("--directory", type=Path, help="where its data and its log are; otherwise build/kafka")
    parser.add_argument("--port", type=int, default=PORT, help=f"start: {PORT}, or 0 for any that is free")
    given = parser.parse_args(arguments)
    directory = (given.directory or (source_tree() or Path.cwd()) / "build" / "kafka").absolute()
    try:
        if given.action == "start":
            print(start(directory, given.port))
        elif given.action == "stop":
            print("stopped" if stop(directory) else "no Kafka runs here")
        else:
            found = address(directory)
            print(found or "no Kafka runs here", file=sys.stdout if found else sys.stderr)
            return 0 if found else 1
    except BadMachine as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
