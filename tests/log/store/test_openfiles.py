"""Open files: more partitions than descriptors, and no failure of the disk that is forgotten with one."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.log.store.disk import RealDisk
from penstock.log.store.openfiles import LazyFile, OpenFiles

MANY = """
import os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
from penstock.log.errors import LogError
from penstock.log.frame import Frame
from penstock.log.log import Log

try:
    for cycle in range(2):
        with Log(Path(sys.argv[1])) as log:
            log.create("t", 1024)
            pushes = [log.append("t", number, Frame.pack([b"%d" % cycle])) for number in range(1024)]
            for push in pushes:
                push.result(60)
            found = [log.read("t", number, 0).frames for number in range(1024)]
            assert all(sum(frame.count for frame in frames) == cycle + 1 for frames in found)
            print(len(os.listdir("/proc/self/fd")))
except LogError as error:
    print(error)
"""


def many(directory: Path, allowed: int) -> str:
    command = [sys.executable, "-c", MANY, str(directory), str(allowed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_log_with_more_partitions_than_files_allowed_is_written_and_opened_again(tmp_path: Path) -> None:
    used = [int(line) for line in many(tmp_path, 256).split()]
    assert len(used) == 2
    assert max(used) < 200


def test_a_process_that_may_open_too_few_files_is_told_before_anything_is_written(tmp_path: Path) -> None:
    said = many(tmp_path / "log", 50)
    assert said == (
        "BadSettings: this process may open 50 files, and a log needs 64\n"
        "  fix  allow more before it starts: ulimit -n 1024\n"
    )
    assert not (tmp_path / "log").exists()


def file(pool: OpenFiles, path: Path) -> LazyFile:
    return LazyFile(pool, path, create=True, lasting=True)


def test_what_was_written_is_fsynced_before_its_file_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    pool = OpenFiles(2)
    files = [file(pool, tmp_path / str(number)) for number in range(4)]
    for number, one in enumerate(files):
        one.write(0, [b"%d" % number])
    assert len(pool) == 2
    assert synced == [str(tmp_path / "0"), str(tmp_path / "1")]
    assert [one.size() for one in files] == [1, 1, 1, 1]
    assert bytes(files[0].map(1)) == b"0"


def test_an_fsync_that_failed_when_a_file_was_closed_is_told_to_who_asks_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    pool = OpenFiles(1)
    first = file(pool, tmp_path / "a")
    first.write(0, [b"a"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        file(pool, tmp_path / "b").size()
    with pytest.raises(OSError, match="the disk is gone"):
        first.sync()
    first.sync()


def test_a_file_whose_name_another_one_has_is_gone(tmp_path: Path) -> None:
    pool = OpenFiles(1)
    first = file(pool, tmp_path / "a")
    (tmp_path / "new").write_bytes(b"other")
    os.replace(tmp_path / "new", tmp_path / "a")
    file(pool, tmp_path / "b")
    with pytest.raises(FileNotFoundError, match="another file has its name now"):
        first.size()


def test_a_file_gives_way_when_the_process_has_no_descriptor_left(tmp_path: Path) -> None:
    pool = OpenFiles(1000)
    files = [file(pool, tmp_path / str(number)) for number in range(20)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, before[1]))
        taken = []
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        files.append(file(pool, tmp_path / "more"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)
    assert len(pool) == 20
    assert len(os.listdir("/proc/self/fd")) <= used


def test_an_fsync_that_fails_while_another_one_is_asked_for_is_told_to_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def tell_one(number: int) -> None:  # as the kernel does it
        if threading.current_thread().name == "early":
            begun.set()
            go_on.wait(10)
            raise OSError(errno.EIO, "the disk is gone")

    pool = OpenFiles(2)
    shared = file(pool, tmp_path / "a")
    shared.write(0, [b"a"])
    monkeypatch.setattr(os, "fdatasync", tell_one)
    failed: list[OSError] = []

    def sync() -> None:
        try:
            shared.sync()
        except OSError as error:
            failed.append(error)

    early, asking = threading.Thread(target=pool.close_one, name="early"), threading.Thread(target=sync)
    early.start()
    begun.wait(10)
    asking.start()
    asking.join(0.2)
    go_on.set()
    early.join()
    asking.join()
    assert [error.strerror for error in failed] == ["the disk is gone"]


def test_a_closed_file_is_gone_for_who_still_has_it(tmp_path: Path) -> None:
    closed = file(OpenFiles(1), tmp_path / "a")
    closed.close()
    with pytest.raises(FileNotFoundError, match="it was closed"):
        closed.size()


def test_only_the_first_file_that_can_be_closed_is_looked_for(tmp_path: Path) -> None:
    looked_at: list[str] = []

    class Watched(LazyFile):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__("_users" if name == "users" else name, value)

        @property
        def users(self) -> int:
            looked_at.append(self.path.name)
            return int(self._users)

    pool = OpenFiles(100)
    files = [Watched(pool, tmp_path / str(number), create=True, lasting=True) for number in range(50)]
    files[0].write(0, [b"not fsynced"])
    looked_at.clear()
    assert pool.close_one()
    assert set(looked_at) == {"1"}
    assert len(pool) == 49


CROWDED = """
import os, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Settings

with Log(Path(sys.argv[1]), Settings(segment_bytes=1 << 16)) as log:
    log.create("t", 60)
    for number in range(60):
        log.append("t", number, Frame.pack([b"x" * 1000])).result(60)
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(80):  # several segments
        log.append("t", 0, Frame.pack([b"x" * 4000])).result(60)
    log.create("u")
    log.delete("t")
    for descriptor in taken:
        os.close(descriptor)
print("done")
"""


def test_segments_begin_and_topics_come_and_go_when_connections_have_taken_all_descriptors(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CROWDED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr


def test_a_directory_that_cannot_be_opened_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()

    def refuse(*_: object) -> int:
        raise OSError(errno.EIO, "the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="the disk is gone"):
            RealDisk().rename(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def test_a_write_that_the_kernel_cuts_short_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda number, buffers, place: write(number, [bytes(buffers[0])[:2]], place))
    short = file(OpenFiles(1), tmp_path / "a")
    short.write(1, [b"abc", memoryview(b"defgh")])
    assert (tmp_path / "a").read_bytes() == b"\0abcdefgh"


def test_a_file_that_somebody_writes_to_is_not_closed(tmp_path: Path) -> None:
    pool = OpenFiles(1)
    first, second = file(pool, tmp_path / "a"), tmp_path / "b"
    first.size()
    with first.turn:
        file(pool, second)
        assert first.descriptor >= 0
    assert pool.close_one()
    assert first.descriptor < 0
