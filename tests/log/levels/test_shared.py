"""Shared memory: nobody can guess where it is, and a log that finds none takes messages all the same."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from penstock.log.errors import UnknownTopic
from penstock.log.frame import Frame
from penstock.log.levels import shared
from penstock.log.levels.shared import SharedReader
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings

SHARED = Settings(levels=(LevelSettings(Kind.SHARED, 1 << 16, batch=100, overlap=100, latency=0.0),), throughput=1.0)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own in the place of the machine's shared memory."""
    place = tmp_path / "shm"
    place.mkdir()
    monkeypatch.setattr(shared, "_SHARED", place)
    return place


def pushed(log: Log, partitions: int = 1) -> None:
    log.create("t", partitions)
    for number in range(partitions):
        log.append("t", number, Frame.pack([b"m"]), Acknowledge.MEMORY).result(60)


def test_names_of_shared_memory_are_random_and_private(tmp_path: Path, memory: Path) -> None:
    names = []
    for _ in range(2):
        with Log(tmp_path / "log", SHARED) as log:
            pushed(log)
            (found,) = memory.iterdir()
            names.append(found.name)
            assert stat.S_IMODE(found.stat().st_mode) == 0o700
            assert [stat.S_IMODE(file.stat().st_mode) for file in found.iterdir()] == [0o600]
        assert not list(memory.iterdir())
    assert names[0] != names[1]


def test_what_a_killed_process_left_is_removed_when_the_log_is_opened(tmp_path: Path, memory: Path) -> None:
    left, other = memory / "penstock-0123", memory / "penstock-4567"
    for directory in (left, other):
        directory.mkdir(mode=0o700)
        (directory / "t-0-1").write_bytes(bytes(100))
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "shared").write_text(str(left))
    Log(tmp_path / "log", SHARED).close()
    assert list(memory.iterdir()) == [other]


def test_a_note_that_somebody_changed_removes_nothing_elsewhere(tmp_path: Path, memory: Path) -> None:
    victim = tmp_path / "penstock-victim"
    victim.mkdir(mode=0o700)
    link = memory / "penstock-link"
    link.symlink_to(victim)
    for named in (victim, link, memory / "penstock-x" / ".." / ".." / "penstock-victim"):
        (tmp_path / "log").mkdir(exist_ok=True)
        (tmp_path / "log" / "shared").write_text(str(named))
        Log(tmp_path / "log", SHARED).close()
    assert victim.is_dir()


def test_a_reader_trusts_no_memory_that_another_user_could_have_made(tmp_path: Path, memory: Path) -> None:
    place = tmp_path / "log" / "topics" / "t" / "0"
    with Log(tmp_path / "log", SHARED) as log:
        pushed(log)
        (found,) = memory.iterdir()
        assert SharedReader(place, 1).visible == 1
        found.chmod(0o777)
        with pytest.raises(UnknownTopic, match="no shared level 1"):
            SharedReader(place, 1)
        found.chmod(0o700)
        (file,) = found.iterdir()
        other = tmp_path / "other"
        file.rename(other)
        file.symlink_to(other)
        with pytest.raises(OSError):
            SharedReader(place, 1)


def test_all_partitions_take_messages_where_there_is_little_shared_memory(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    total = 64 << 20

    def small(path: object) -> os.statvfs_result:
        used = sum(file.stat().st_size for file in memory.rglob("*") if file.is_file())
        return os.statvfs_result((4096, 4096, total // 4096, 0, (total - used) // 4096, 0, 0, 0, 0, 255))

    monkeypatch.setattr(os, "statvfs", small)
    with Log(tmp_path / "log") as log:
        pushed(log, 40)
        kinds = [one.levels[1].kind for one in log.statistics().partitions]
        assert sorted(set(kinds)) == ["memory", "shared"]
        assert [log.read("t", number, 0).frames[0].values.to_pylist() for number in range(40)] == [[b"m"]] * 40
    (said,) = [record.getMessage() for record in caplog.records if "not shared" in record.getMessage()]
    assert "MiB of" in said
    assert "give" in said


def test_a_log_without_any_shared_memory_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_SHARED", tmp_path / "nowhere")
    with Log(tmp_path / "log", SHARED) as log:
        pushed(log)
        assert log.statistics().partitions[0].levels[0].kind == "memory"
