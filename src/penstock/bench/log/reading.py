"""The paper's figures 14 and 15: how fast each level answers reads of 32, 512 and 1472 bytes.

The server is a process of its own. Every answer says which level gave it, and one of another level fails the run. The
last level is read twice: the first time nothing of its files is in the machine's memory, and each place is in a file
of its own, so that the kernel has not read ahead to it; the second time all of it is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.log.processes import HOST, running, wait_until
from penstock.bench.log.samples import Sample, Samples
from penstock.bench.log.serving import BATCH, SETTINGS, TOPIC, fill, level_ranges
from penstock.errors import BadMachine
from penstock.log import Frame, Log
from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.levels.shared import SharedReader
from penstock.log.wire import requests

READ, ROUND_TRIP = "read", "round trip"
PAYLOADS = (32, 512, 1472)
SAME_PROCESS, SHARED = "level 1, same process", "level 2, shared memory"
LEVEL_1, LEVEL_2, LEVEL_3, LAST, COLD = "level 1", "level 2", "level 3", "last level", "last level, not cached"
SIDES = (SAME_PROCESS, SHARED, LEVEL_1, LEVEL_2, LEVEL_3, LAST, COLD)
_APART = 2 * SETTINGS.segment_bytes
"""Bytes from one cold read to the next."""
_WINDOW = 64


@dataclass(frozen=True)
class Read:
    """Offsets to ask for, and the level that must answer: 0 is the last one."""

    side: str
    level: int
    offsets: Sequence[int]


def prepare(directory: Path, payload: int, reads: int) -> int:
    """A log with as many places as there are cold reads; how many messages a frame has."""
    shutil.rmtree(directory, ignore_errors=True)
    with Log(directory, SETTINGS) as log:
        log.create(TOPIC, 1)
        return fill(log, payload, 2 * reads * _APART)


def forget(directory: Path) -> None:
    """Have the kernel drop the files from its memory."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


@contextmanager
def served(directory: Path, payload: int) -> Iterator[dict[str, object]]:
    command = [sys.executable, "-m", "penstock.bench.log.serving", str(directory), str(payload)]
    with running(command, directory.parent, None) as said:
        wait_until(lambda: said.read_text().endswith("}\n"), None, said)
        found: dict[str, object] = json.loads(said.read_text())
        yield found


def one_by_one(connection: Connection, read: Read, payload: int) -> list[float]:
    """The round trip of each, in seconds."""
    trips = []
    for offset in read.offsets:
        started = time.perf_counter()
        reply, bulk = connection.ask(requests.Pull(TOPIC, 0, offset, payload, 1))
        trips.append(time.perf_counter() - started)
        _check(read, payload, offset, reply, bulk)
    return trips


def many_at_once(connection: Connection, read: Read, payload: int) -> float:
    """The seconds of all, with several requests on the way."""
    offsets = iter(read.offsets)
    asked: dict[int, int] = {}
    answers: list[tuple[int, requests.Reply, memoryview]] = []
    started = time.perf_counter()
    for offset in (next(offsets, None) for _ in range(_WINDOW)):
        if offset is not None:
            asked[connection.send(requests.Pull(TOPIC, 0, offset, payload, 1))] = offset
    while asked:
        received = connection.receive()
        assert received is not None
        number, reply, bulk = received
        answers.append((asked.pop(number), reply, bulk))
        following = next(offsets, None)
        if following is not None:
            asked[connection.send(requests.Pull(TOPIC, 0, following, payload, 1))] = following
    seconds = time.perf_counter() - started
    for answered, reply, bulk in answers:
        _check(read, payload, answered, reply, bulk)
    return seconds


def _check(read: Read, payload: int, offset: int, reply: requests.Reply, bulk: memoryview) -> None:
    each = BATCH // (payload + 12)
    if not isinstance(reply, requests.Pulled) or reply.level != read.level:
        raise BadMachine(f"{read.side} was asked for offset {offset}, and the answer is {reply}", None,
                         "the levels are not as full as they should be: report this")  # fmt: skip
    value = Frame.parse(bulk[: reply.sizes[0]]).values[0].as_py()
    # What the bench appended in its own process and in the server's begins anew with frame 0: only the place counts.
    if len(value) != payload or not value.split(b" ")[0].endswith(b".%d" % (offset % each)):
        raise BadMachine(f"offset {offset} of {read.side} is {value[:20]!r}", None, "report this")


def measure(samples: Samples, directory: Path, rounds: int, reads: int, say: Callable[[str], None]) -> None:
    for payload in PAYLOADS:
        say(f"figures 14 and 15: {payload} B, writing")
        each = prepare(directory / "log", payload, reads)
        for number in range(rounds):
            say(f"figures 14 and 15: {payload} B, round {number + 1} of {rounds}")
            forget(directory / "log")
            with served(directory / "log", payload) as found:
                _round(samples, directory / "log", payload, number, reads, each, found)
        _in_process(samples, directory / "own", payload, rounds, reads)
    shutil.rmtree(directory, ignore_errors=True)


def _round(samples: Samples, directory: Path, payload: int, number: int, reads: int, each: int,
           found: dict[str, object]) -> None:  # fmt: skip
    chance = random.Random(number)
    port, cold, ranges = found["port"], found["cold"], found["levels"]
    assert isinstance(ranges, list)
    assert isinstance(cold, int)
    step = max(each * (_APART // BATCH), 1)
    places = [(place + number * each // 2) % cold for place in range(0, cold, step)][: 2 * reads]
    chance.shuffle(places)
    sides = [Read(COLD, 0, places), Read(LAST, 0, places)]
    for level, (first, end) in enumerate(ranges, 1):
        sides.append(Read((LEVEL_1, LEVEL_2, LEVEL_3)[level - 1], level,
                          [chance.randrange(first, end) for _ in range(2 * reads)]))  # fmt: skip
    with Connection(Address.of(f"{HOST}:{port}")) as connection:
        for read in sides:
            half = len(read.offsets) // 2
            trips = one_by_one(connection, Read(read.side, read.level, read.offsets[:half]), payload)
            seconds = many_at_once(connection, Read(read.side, read.level, read.offsets[half:]), payload)
            _note(samples, read.side, payload, number, trips, len(read.offsets) - half, seconds)
    first, end = ranges[1]
    shared = SharedReader(directory / "topics" / TOPIC / "0", 2)
    offsets = [chance.randrange(first, end) for _ in range(reads)]
    trips = []
    for offset in offsets:
        started = time.perf_counter()
        found_there = shared.read(offset, payload)
        trips.append(time.perf_counter() - started)
        assert found_there
        assert found_there[0].first == offset
    _note(samples, SHARED, payload, number, trips, len(trips), sum(trips))


def _in_process(samples: Samples, directory: Path, payload: int, rounds: int, reads: int) -> None:
    """What a program sees that has the log in itself."""
    with Log(directory, SETTINGS) as log:
        log.create(TOPIC, 1)
        fill(log, payload, SETTINGS.levels[1].capacity)
        first, end = level_ranges(log)[0]
        chance = random.Random(payload)
        for number in range(-1, rounds):
            trips = []
            for offset in (chance.randrange(first, end) for _ in range(2 * reads)):
                started = time.perf_counter()
                reading = log.read(TOPIC, 0, offset, most_bytes=payload, most_messages=1)
                trips.append(time.perf_counter() - started)
                assert reading.level == 1
            if number >= 0:
                _note(samples, SAME_PROCESS, payload, number, trips, len(trips), sum(trips))
    shutil.rmtree(directory)


def _note(samples: Samples, side: str, payload: int, number: int, trips: Sequence[float], count: int,
          seconds: float) -> None:  # fmt: skip
    ordered = sorted(trips)
    middle, late = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    samples.add(Sample(READ, side, "", payload, _WINDOW, number, count, seconds))
    samples.add(Sample(ROUND_TRIP, side, "", payload, 1, number, len(ordered), sum(ordered), middle, late))
