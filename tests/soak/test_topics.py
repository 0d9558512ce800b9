"""A stream between topics is killed at random moments; in the end every message is there once, at offsets without gaps.

PENSTOCK_KILLS says how often; `make soak` does it fifty times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.log import Frame
from penstock.log import Log as OpenLog
from penstock.log.errors import LogError
from penstock.log.reader import FileReader
from tests.broker import Broker
from tests.soak.topics import EVEN, ODD, order

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("PENSTOCK_KILLS", "1"))
PUSHES_PER_LIFE, ORDERS_PER_PUSH = 10, 100
PATIENCE_SECONDS = 120
START_SECONDS = 60

Push = Callable[[int, int], None]
Contents = dict[str, list[bytes]]


def test_a_log_has_every_message_once(tmp_path: Path) -> None:
    def push(first: int, stop: int) -> None:
        log.append("orders", first // ORDERS_PER_PUSH % 2, Frame.pack([order(one) for one in range(first, stop)]))

    def contents() -> Contents:
        return {name: logged(tmp_path / "out", name) for name in (EVEN, ODD)}

    with OpenLog(tmp_path / "in") as log:
        log.create("orders", 2)
        survive(["log", str(tmp_path)], tmp_path, push, contents)


def logged(directory: Path, topic: str) -> list[bytes]:
    """All messages of a topic; that offsets have no gaps is checked on the way."""
    found: list[bytes] = []
    try:
        reader = FileReader(directory, topic)
        for number in range(reader.found().partitions):
            following, end = 0, reader.ends(number).next
            for piece in reader.pieces(number, 0, end):
                assert piece.first == following
                following += piece.stop - piece.start
                found += piece.frame.values[piece.start : piece.stop].to_pylist()
            assert following == end
    except LogError:  # there is no topic yet
        return []
    return sorted(found)


def test_kafka_has_every_message_once(tmp_path: Path, kafka: Broker) -> None:
    from penstock.kafka.client import Place
    from penstock.kafka.topic import prepare
    from tests.kafka.topics import bodies, fill, new_topic

    prefix = f"{new_topic(kafka.address)}-"
    names = {name: prefix + name for name in ("orders", EVEN, ODD)}
    for name in names.values():
        prepare(Place(name, kafka.address), 2)

    def push(first: int, stop: int) -> None:
        some = [order(one) for one in range(first, stop)]
        fill(kafka.address, names["orders"], some, first // ORDERS_PER_PUSH % 2)

    def contents() -> Contents:
        found = {name: bodies(kafka.address, names[name]) for name in (EVEN, ODD)}
        return {name: sorted(one for part in parts for one in part) for name, parts in found.items()}

    survive(["kafka", str(tmp_path), kafka.address, prefix], tmp_path, push, contents)


def survive(arguments: list[str], directory: Path, push: Push, contents: Callable[[], Contents]) -> None:
    chance = random.Random(os.environ.get("PENSTOCK_SEED", "topics"))
    pushed = 0
    for _ in range(KILLS):
        before, deadline = batches(directory), time.monotonic() + START_SECONDS
        life = start(arguments, directory)
        pushed = more(push, pushed)
        while batches(directory) == before and time.monotonic() < deadline:
            time.sleep(0.1)
        for _ in range(PUSHES_PER_LIFE):
            pushed = more(push, pushed)
            time.sleep(chance.uniform(0.0, 0.4))  # the moment of death is the point of this test
        kill(life)
    wanted = {EVEN: sorted(map(order, range(0, pushed, 2))), ODD: sorted(map(order, range(1, pushed, 2)))}
    life = start(arguments, directory)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = contents()
            if all(len(found[name]) >= len(wanted[name]) for name in wanted):
                break
            assert life.poll() is None, (directory / "log.txt").read_text()[-4000:]
            time.sleep(0.3)
        time.sleep(1)  # for what should not come
    finally:
        kill(life)
    found = contents()
    for name in wanted:
        assert found[name] == wanted[name], difference(found[name], wanted[name])
    assert not list((directory / "dead").glob("*.jsonl"))


def more(push: Push, pushed: int) -> int:
    push(pushed, pushed + ORDERS_PER_PUSH)
    return pushed + ORDERS_PER_PUSH


def batches(directory: Path) -> int:
    commits = directory / "checkpoint" / "commits"
    return max((int(file.name) for file in commits.glob("*") if file.name.isdigit()), default=-1)


def start(arguments: list[str], directory: Path) -> subprocess.Popen[bytes]:
    with open(directory / "log.txt", "ab") as output:
        command = [sys.executable, "-m", "tests.soak.topics", *arguments]
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)


def kill(life: subprocess.Popen[bytes]) -> None:
    """The whole group: driver, Java and workers die in the same moment."""
    with suppress(ProcessLookupError):
        os.killpg(life.pid, signal.SIGKILL)
    life.wait()


def difference(found: list[bytes], wanted: list[bytes]) -> str:
    lost, extra = sorted(set(wanted) - set(found)), len(found) - len(set(found))
    return f"{len(lost)} lost, like {lost[:3]}; {extra} twice"
