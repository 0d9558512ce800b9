"""A driver that stops its tasks goes on when the last of them has ended, whatever the load."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from penstock.errors import BadEndpoint
from penstock.spark.write.gate import Gate

WRITES = """\
import sys
from penstock.spark.write.gate import Gate
with Gate(sys.argv[1]).passed():
    print("inside", flush=True)
    sys.stdin.read()
"""


def task(gate: Gate) -> subprocess.Popen[bytes]:
    made = subprocess.Popen([sys.executable, "-c", WRITES, gate.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdout is not None
    assert made.stdout.readline() == b"inside\n"
    return made


@pytest.mark.parametrize("killed", [False, True])
def test_a_gate_closes_when_the_last_task_has_ended(tmp_path: Path, killed: bool) -> None:
    gate, ended = Gate(str(tmp_path / "tasks")), threading.Event()
    gate.open()
    tasks = [task(gate), task(gate)]
    closing = threading.Thread(target=lambda: (gate.close(), ended.set()))
    closing.start()
    for one in tasks:
        assert not ended.is_set()
        if killed:
            one.kill()
        else:
            one.communicate(b"")
        one.wait()
    closing.join(60)
    assert ended.is_set()


def test_who_comes_after_the_end_writes_nothing(tmp_path: Path) -> None:
    gate = Gate(str(tmp_path / "tasks"))
    gate.open()
    gate.close()
    with pytest.raises(BadEndpoint, match="came when its run was over"), gate.passed():
        pass
    gate.close()  # again is no error


def test_who_waited_for_a_gate_that_was_closed_does_not_pass_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(str(tmp_path / "tasks"))
    gate.open()

    def between(file: IO[bytes], kind: int) -> None:
        monkeypatch.undo()
        gate.close()
        gate.open()

    monkeypatch.setattr(fcntl, "flock", between)
    with pytest.raises(BadEndpoint, match="came when its run was over"), gate.passed():
        pass


def test_a_gate_is_locked_through_a_descriptor_that_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS wants it: a shared lock needs one that can read, an exclusive one needs one that can write."""
    gate, modes = Gate(str(tmp_path / "tasks")), {}
    gate.open()

    def locked(file: IO[bytes], kind: int) -> None:
        modes[kind] = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE

    monkeypatch.setattr(fcntl, "flock", locked)
    with gate.passed():
        pass
    gate.close()
    assert modes[fcntl.LOCK_SH] in (os.O_RDONLY, os.O_RDWR)
    assert modes[fcntl.LOCK_EX] == os.O_RDWR


def test_a_task_that_may_not_read_the_gate_writes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    gate = Gate(str(tmp_path / "tasks"))
    gate.open()
    monkeypatch.setattr("penstock.spark.write.gate.open", refused, raising=False)
    with gate.passed():
        pass


@pytest.mark.parametrize("other", ["machine", "namespace"])
def test_who_does_not_share_the_directory_has_no_gate(tmp_path: Path, other: str) -> None:
    gate = Gate(str(tmp_path / "elsewhere" / "tasks"))
    machine, namespace = gate.seen_from
    with pytest.raises(BadEndpoint, match="came when its run was over"), gate.passed():
        pass
    elsewhere = ("another", namespace) if other == "machine" else (machine, "mnt:[1]")
    with replace(gate, seen_from=elsewhere).passed():
        pass
