"""A log is its owner's: nobody else can read its files, whatever made them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings

LEVELS = Settings(
    levels=(LevelSettings(Kind.MAPPED, 1 << 16, batch=100, overlap=100, latency=0.0),), throughput=1.0,
    segment_bytes=4096,
)  # fmt: skip


def modes(directory: Path) -> dict[str, str]:
    """What is not private."""
    found = {}
    for path in (directory, *directory.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            found[str(path.relative_to(directory))] = oct(mode)
    return found


def used(directory: Path) -> None:
    with Log(directory, LEVELS) as log:
        log.create("t", 2)
        for number in range(4):
            log.append("t", 0, Frame.pack([b"%d" % number * 3000]), Acknowledge.FSYNCED).result(60)
        log.commit("g", "t", 0, 1)
        log.producer("p")
        assert not modes(directory)
    assert not modes(directory)


def test_everything_that_a_log_makes_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        used(tmp_path / "log")
    finally:
        os.umask(before)


def test_a_log_that_others_could_read_is_private_once_it_is_opened(tmp_path: Path) -> None:
    used(tmp_path / "log")
    for path in (tmp_path / "log", *(tmp_path / "log").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (tmp_path / "log" / "mine.txt").write_text("not the log's")
    (tmp_path / "log" / "mine.txt").chmod(0o644)
    Log(tmp_path / "log").close()
    assert modes(tmp_path / "log") == {"mine.txt": "0o644"}
