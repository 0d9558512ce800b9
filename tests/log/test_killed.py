"""kill -9 of a process that appends, again and again, in each acknowledgement mode; and shared memory beside it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.log.check import check as check_log
from penstock.log.errors import UnknownTopic
from penstock.log.frame import Frame
from penstock.log.levels.shared import SharedReader
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings
from tests.log.checker import check, read_all

CYCLES = int(os.environ.get("PENSTOCK_KILLS", "5"))
WRITER = """
import sys
from collections import deque
from pathlib import Path
from penstock.log import Acknowledge, Frame, Log, Settings

directory, mode, cycle = sys.argv[1:]
log = Log(Path(directory), Settings(segment_bytes=1 << 16, flush_after=0.02))
log.create("t")
waiting = deque()
number = 0
Frame.pack([b"warm", b"up"]).values  # the first one imports much
print("ready", flush=True)
while True:
    count = 1 + number % 7
    values = [f"{cycle}-{number + place}".encode() for place in range(count)]
    number += count
    waiting.append((log.append("t", 0, Frame.pack(values), Acknowledge.of(mode)), values))
    while waiting and (waiting[0][0].done() or len(waiting) > 50):
        future, values = waiting.popleft()
        first = future.result().first
        sys.stdout.write("".join(f"{first + place} {value.decode()}\\n" for place, value in enumerate(values)))
        sys.stdout.flush()
"""


def cycle(directory: Path, mode: Acknowledge, number: int) -> dict[int, bytes]:
    """Start a writer, kill it, and return what it said was acknowledged."""
    out = directory.parent / f"said-{number}"
    with out.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(directory), str(mode), str(number)], stdout=said)
        try:
            while not out.stat().st_size:
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(random.uniform(0.0, 0.25))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    lines = out.read_text().split("\n")[1:-1]  # the last one may be cut
    return {int(offset): value.encode() for offset, value in (line.split() for line in lines)}


@pytest.mark.parametrize("mode", list(Acknowledge), ids=str)
def test_a_killed_process_loses_nothing_that_it_may_not(tmp_path: Path, mode: Acknowledge) -> None:
    directory = tmp_path / "log"
    acknowledged: dict[int, bytes] = {}
    for number in range(CYCLES):
        said = cycle(directory, mode, number)
        with Log(directory) as log:
            found = read_all(lambda offset, log=log: log.read("t", 0, offset))  # type: ignore[misc]
            end = log.ends("t", 0).next
        if mode is Acknowledge.MEMORY:  # a tail may be lost, never a middle
            said = {offset: value for offset, value in said.items() if offset < end}
        acknowledged |= said
        pushed = [f"{one}-{place}".encode() for one in range(number + 1) for place in range(len(found) + 1)]
        check(found, acknowledged, pushed)
        own = [int(value.split(b"-")[1]) for _, value in found if value.startswith(b"%d-" % number)]
        assert own == list(range(len(own))), "the order of the publisher is not kept"
    assert check_log(directory).is_sound
    assert acknowledged


SHARED = Settings(
    levels=(LevelSettings(Kind.SHARED, 1 << 16, batch=100, overlap=100, latency=0.0),), throughput=1.0, flush_after=60
)
READER = """
import sys, time
from pathlib import Path
from penstock.log.levels.shared import SharedReader

reader = SharedReader(Path(sys.argv[1]), 1)
print("ready", flush=True)
hits = misses = offset = 0
end = time.monotonic() + 120  # of a machine that does nothing else two seconds are enough
while hits < 500 and time.monotonic() < end:
    visible = reader.visible
    if visible > offset + 3000 or misses % 7 == 0:
        offset = max(offset, visible - 1500)  # the edge where messages are being overwritten
    frames = reader.read(offset, 2000)
    if frames is None:
        misses += 1
        continue
    for frame in frames:
        for place, value in zip(frame.offsets.tolist(), frame.values.to_pylist()):
            assert place == offset, (place, offset)
            assert value == (b"%d;" % place) * (1 + place % 30), (place, value)
            offset += 1
            hits += 1
print(hits, misses)
"""


def test_another_process_reads_shared_memory_while_it_is_overwritten(tmp_path: Path) -> None:
    with Log(tmp_path, SHARED) as log:
        log.create("t")
        directory = tmp_path / "topics" / "t" / "0"
        offset = 0

        def push() -> None:
            nonlocal offset
            values = [(b"%d;" % place) * (1 + place % 30) for place in range(offset, offset + 5)]
            log.append("t", 0, Frame.pack(values), Acknowledge.MEMORY)
            offset += 5

        push()
        reader = subprocess.Popen([sys.executable, "-c", READER, str(directory)], stdout=subprocess.PIPE, text=True)
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        while reader.poll() is None:
            push()
        assert reader.returncode == 0
        hits, _ = map(int, reader.stdout.read().split())
        assert hits >= 500
        log.append("t", 0, Frame.pack([b"end"])).result(60)
        mine = SharedReader(directory, 1)
        frames = mine.read(offset, 1000)
        assert frames is not None
        assert frames[0].values.to_pylist() == [b"end"]
        assert mine.read(0, 1000) is None
    with pytest.raises(UnknownTopic, match="open the log in another process first"):
        SharedReader(directory, 1)
