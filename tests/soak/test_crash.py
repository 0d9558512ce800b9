"""The driver is killed at random moments, again and again; in the end every sink holds every message once.

PENSTOCK_KILLS says how often, half of them for each kind of memory; `make soak` does it fifty times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.database import Database
from tests.soak.orders import FORGETFUL, KEEPING, expected, feed

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("PENSTOCK_KILLS", "2"))
ORDERS_PER_FILE = 40
FILES_PER_LIFE = 4
PATIENCE_SECONDS = 240


@pytest.mark.parametrize("memory", [KEEPING, FORGETFUL])
def test_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path, postgres: Database, memory: str) -> None:
    chance = random.Random(os.environ.get("PENSTOCK_SEED", "penstock"))
    written = 0
    feed(tmp_path, 0, ORDERS_PER_FILE)
    written += ORDERS_PER_FILE
    for _ in range(-(-KILLS // 2)):
        life = start(tmp_path, postgres.url, memory)
        for _ in range(FILES_PER_LIFE):
            feed(tmp_path, written, ORDERS_PER_FILE)
            written += ORDERS_PER_FILE
            time.sleep(chance.uniform(0.2, 2.5))  # the moment of death is the point of this test
        kill(life)
    finish(tmp_path, postgres, written, memory)

    # Removing the last entry of the commit log makes Spark repeat the last batch: no sink changes.
    commits = [path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit()]
    max(commits, key=lambda path: int(path.name)).unlink()
    before = files_of(tmp_path)
    finish(tmp_path, postgres, written, memory)
    assert files_of(tmp_path) == before


def start(directory: Path, database: str, memory: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.soak.orders", str(directory), database, memory]
    output = open(directory / "log.txt", "ab")  # noqa: SIM115
    return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)


def kill(life: subprocess.Popen[bytes]) -> None:
    """The whole group: driver, Java and workers die in the same moment."""
    with suppress(ProcessLookupError):
        os.killpg(life.pid, signal.SIGKILL)
    life.wait()


def finish(directory: Path, database: Database, written: int, memory: str) -> None:
    """Let it run until everything is there and its batch has ended, and a little longer for what should not come."""
    wanted = expected(written, memory)
    life = start(directory, database.url, memory)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := contents(directory, database)) != wanted and time.monotonic() < deadline:
            assert life.poll() is None, (directory / "log.txt").read_text()[-4000:]
            time.sleep(0.5)
        assert found == wanted, differences(found, wanted)
        while newest(directory, "commits") != newest(directory, "offsets"):
            assert time.monotonic() < deadline, "the last batch does not end"
            time.sleep(0.05)
    finally:
        kill(life)
    assert contents(directory, database) == wanted


def newest(directory: Path, log: str) -> int:
    """The last batch in a log of Spark's checkpoint."""
    place = directory / "checkpoint" / log
    names = [path.name for path in place.iterdir()] if place.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def contents(directory: Path, database: Database) -> dict[str, Counter[str]]:
    out = directory / "out"
    return {
        "log": Counter(row["line"]["id"] for row in parquet_rows(out / "log")),
        "files": Counter(json.dumps(row) for row in json_rows(out / "files")),
        "rows": Counter(json.dumps(row) for row in table_rows(database)),
        "table": Counter(
            json.dumps({name: row[name] for name in ("number", "total", "n")}) for row in parquet_rows(out / "table")
        ),
        "dead": Counter(dead_line(row) for row in json_rows(out / "dead")),
    }


def dead_line(row: dict[str, object]) -> str:
    """The line that failed: its order, and that it is the bad one of it."""
    order = json.loads(str(row["body"]))
    return f"{order['number']}-bad"


def table_rows(database: Database) -> list[dict[str, object]]:
    (known,) = database.run("SELECT to_regclass('orders') IS NOT NULL AS there")
    return database.run("SELECT number, total, n FROM orders") if known["there"] else []


def parquet_rows(directory: Path) -> list[dict[str, object]]:
    files = sorted(directory.glob("*.parquet"))
    return [row for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]


def json_rows(directory: Path) -> list[dict[str, object]]:
    files = sorted(directory.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def files_of(directory: Path) -> dict[str, bytes]:
    published = (path for path in (directory / "out").rglob("*") if path.is_file() and "_staging" not in path.parts)
    return {str(path): path.read_bytes() for path in published}


def differences(found: dict[str, Counter[str]], wanted: dict[str, Counter[str]]) -> dict[str, list[object]]:
    """Per sink, a few messages that are missing and a few that are too many."""
    pairs = {name: (wanted[name] - found[name], found[name] - wanted[name]) for name in wanted}
    return {name: [list(part.items())[:5] for part in pair] for name, pair in pairs.items() if any(pair)}
