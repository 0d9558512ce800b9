"""A server that is killed again and again, and clients that go on pushing.

Run as a program it is the server's parent: it imports everything once and then forks, so that a start takes
milliseconds. It reads lines from standard input, and for each one starts a server and prints its process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from penstock.log.client import Producer, Sent
from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.frame import Frame
from penstock.log.wire import requests
from penstock.log.wire.errors import NoServer

PARTITIONS = 2
TOPIC = "orders"


class Victim:
    """The server."""

    def __init__(self, directory: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self.parent = subprocess.Popen(
            [sys.executable, "-m", "tests.log.killing", str(directory), str(self.port)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        self.process = 0
        self.found: list[int] = []
        """The ends of the partitions as the server found them, before anybody could push."""

    def start(self) -> None:
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write("start\n")
        self.parent.stdin.flush()
        self.process = int(self.parent.stdout.readline())
        word, *ends = self.parent.stdout.readline().split()
        assert word == "serving"
        self.found = [int(end) for end in ends]

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.parent.stdout is not None
        os.kill(self.process, number)
        assert self.parent.stdout.readline().startswith("ended")

    def end(self) -> None:
        for process in (self.process, self.parent.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.parent.wait(20)
        for pipe in (self.parent.stdin, self.parent.stdout):
            assert pipe is not None
            pipe.close()


def parent(directory: str, port: str) -> None:
    from penstock.log.server import serve  # noqa: F401  so that children have it

    for _ in sys.stdin:
        process = os.fork()
        if not process:
            child(Path(directory), int(port))
        print("ended", os.waitpid(process, 0)[1], flush=True)


def child(directory: Path, port: int) -> None:
    from penstock.log.log import Log
    from penstock.log.server.listening import Listening
    from penstock.log.server.serve import Server
    from penstock.log.settings import Settings

    status = 1
    try:
        os.write(1, f"{os.getpid()}\n".encode())  # not by the parent: one writer at a time keeps lines whole
        stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        # Often enough that what is pushed to memory is partly in files when the server is killed; segments so small
        # that many are begun, and that the last one, which is read at every start, does not grow with the kills.
        with Log(directory, Settings(flush_after=0.02, segment_bytes=1 << 20)) as log:
            log.create(TOPIC, PARTITIONS)
            ends = [str(log.ends(TOPIC, partition).next) for partition in range(PARTITIONS)]
            with Server(log, Listening(tcp=port, http=None, push=None, pull=None)):
                os.write(1, f"serving {' '.join(ends)}\n".encode())
                stopping.wait()
        status = 0
    finally:
        os._exit(status)


@dataclass
class Acknowledged:
    """What a server has promised while it lived: values by partition and offset."""

    found: list[dict[int, bytes]] = field(default_factory=lambda: [{} for _ in range(PARTITIONS)])

    def add(self, partition: int, offset: int, value: bytes) -> None:
        before = self.found[partition].setdefault(offset, value)
        assert before == value, f"offset {offset} was given to {before!r} and to {value!r}"


class Steady:
    """A producer that lives through all of it, and numbers its messages in every partition."""

    def __init__(self, address: str, mode: str) -> None:
        self.producer = Producer(address, acknowledge=mode, linger=0.001, batch_bytes=2000, buffer_bytes=200_000,
                                 retry_for=300.0)  # fmt: skip
        self.sent = [0] * PARTITIONS
        self.waiting: list[tuple[int, bytes, Sent]] = []
        self.running, self.ended = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            while not self.ended.is_set():
                if not self.running.wait(0.05):
                    continue
                for partition in range(PARTITIONS):
                    for _ in range(10):
                        value = b"steady %d %d" % (partition, self.sent[partition])
                        self.sent[partition] += 1
                        self.waiting.append((partition, value, self.producer.send(TOPIC, value, partition=partition)))
                time.sleep(0.0005)
        except BaseException as error:
            self.failure = error

    def is_disconnected(self) -> bool:
        connection = self.producer._engine.connection
        return connection is None or not connection.is_open

    def collect(self, into: Acknowledged) -> int:
        """What was acknowledged since the last time."""
        left, count = [], 0
        for partition, value, sent in list(self.waiting):
            if not sent.done():
                left.append((partition, value, sent))
                continue
            placed = sent.result(0)
            if placed.offset >= 0:
                into.add(partition, placed.offset, value)
            count += 1
        seen = count + len(left)
        self.waiting[:seen] = left
        return count


class Hasty:
    """Pushes without numbers over one connection, until that breaks; what was not answered is forgotten."""

    def __init__(self, address: str, mode: str, name: int) -> None:
        self.address, self.mode, self.name = Address.of(address), mode, name
        self.sent = 0
        self.placed: list[tuple[int, int, bytes]] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            with Connection(self.address) as connection:
                while True:
                    asked: dict[int, tuple[int, bytes]] = {}
                    for _ in range(5):
                        partition, value = self.sent % PARTITIONS, b"hasty %d %d" % (self.name, self.sent)
                        self.sent += 1
                        push = requests.Push(TOPIC, partition, self.mode)
                        asked[connection.send(push, Frame.pack([value]).data)] = partition, value
                    while asked:
                        received = connection.receive()
                        assert received is not None
                        number, reply, _ = received
                        if isinstance(reply, requests.Pushed):
                            partition, value = asked[number]
                            self.placed.append((partition, reply.first, value))
                        del asked[number]
        except NoServer:
            pass


def read_all(address: str, partition: int, offset: int) -> list[bytes]:
    """Everything from an offset on; offsets without gaps are checked here."""
    found: list[bytes] = []
    with Connection(Address.of(address)) as connection:
        while True:
            reply, bulk = connection.ask(requests.Pull(TOPIC, partition, offset, 8 << 20))
            assert isinstance(reply, requests.Pulled)
            at = 0
            for size in reply.sizes:
                frame = Frame.parse(bulk[at : at + size])
                assert frame.offsets.tolist() == list(range(offset, offset + frame.count))
                found += frame.values.to_pylist()
                offset, at = frame.next, at + size
            assert offset == reply.next
            if not reply.sizes:
                return found


if __name__ == "__main__":
    parent(*sys.argv[1:])
