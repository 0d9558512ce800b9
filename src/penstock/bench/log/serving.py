"""A server for the figures on reading, in a process of its own: a log with three levels, all of them full.

    python -m penstock.bench.log.serving DIRECTORY PAYLOAD

prints a line of JSON: its port, and from which offset to which each level answers.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from penstock.bench.log.publishers import message
from penstock.log import Acknowledge, Frame, Kind, LevelSettings, Log, Settings
from penstock.log.server import Listening, Server

TOPIC = "figure"
BATCH = 32 << 10
SETTINGS = Settings(levels=(
    LevelSettings(Kind.MEMORY, 1 << 20, batch=1472),
    LevelSettings(Kind.SHARED, 4 << 20, batch=BATCH),
    LevelSettings(Kind.MAPPED, 16 << 20, batch=128 << 10),
), segment_bytes=512 << 10)  # fmt: skip
"""A segment is small, so that a read of one does not make the kernel read ahead into the next."""


def frames(payload: int, count: int) -> list[Frame]:
    """Frames as level 2 hands them on; a message says its number, as far as there is room."""
    each = BATCH // (payload + 12)
    return [Frame.pack([message(number, place, payload) for place in range(each)]) for number in range(count)]


def fill(log: Log, payload: int, size: int) -> int:
    """Append frames until `size` bytes are there; how many messages a frame has."""
    made = frames(payload, 64)
    for number in range(size // BATCH + 1):
        last = log.append(TOPIC, 0, made[number % len(made)], Acknowledge.WRITTEN)
        if number % 32 == 0:
            last.result()
    last.result()
    return made[0].count


def level_ranges(log: Log) -> list[tuple[int, int]]:
    """For every level the first offset that it answers, and the one at which a faster level begins."""
    end, found = log.ends(TOPIC, 0).next, []
    for level in log._partition(TOPIC, 0).stack.levels:
        found.append((level.first, end))
        end = min(end, level.first)
    return found


def main() -> None:
    directory, payload = Path(sys.argv[1]), int(sys.argv[2])
    with Log(directory, SETTINGS) as log:
        cold = log.ends(TOPIC, 0).next
        fill(log, payload, 3 * SETTINGS.levels[-1].capacity // 2)
        with Server(log, Listening(tcp=0, http=None, push=None, pull=None)) as server:
            print(json.dumps({"port": server.tcp, "cold": cold, "levels": level_ranges(log)}), flush=True)
            threading.Event().wait()


if __name__ == "__main__":
    main()
