"""Journal: every change survives, and a damaged one is not passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log.errors import Damaged, NotAcknowledged
from penstock.log.store.journal import Journal
from tests.log.simulated import PowerLoss, SimulatedDisk
from tests.log.store.test_damage import with_content

FILE = Path("/log/groups.journal")


def test_a_change_is_there_after_a_power_loss_at_any_later_step() -> None:
    for step in range(40):
        disk = SimulatedDisk()
        disk.crash_at = step
        done: dict[bytes, bytes] = {}
        try:
            journal = Journal(disk, FILE)
            for number in range(9):
                key = b"%d" % (number % 2)
                journal.set(key, b"%d" % number)
                done[key] = b"%d" % number
                if number == 4:
                    journal._size = 2 << 20  # too long: written anew
        except PowerLoss:
            pass
        again = dict(Journal(disk.after_power_loss(), FILE).items())
        assert {key: again.get(key) for key in done} == done


def test_every_bit_flipped_is_noticed() -> None:
    disk = SimulatedDisk()
    journal = Journal(disk, FILE)
    for number in range(3):
        journal.set(b"k", b"%d" % number)
    content = bytearray(disk.names_seen[FILE].seen)
    for place in range(len(content)):
        content[place] ^= 1 << (place % 8)
        damaged = with_content(disk, FILE, bytes(content))
        if place < len(content) * 2 // 3:
            with pytest.raises(Damaged, match=r"groups\.journal has been changed"):
                Journal(damaged, FILE)
        else:
            found = Journal(damaged, FILE)
            assert found.get(b"k") == b"1"
            assert "a change was not finished" in str(found.findings[0])
        content[place] ^= 1 << (place % 8)


def test_a_change_that_failed_is_not_there_and_the_next_one_is() -> None:
    disk = SimulatedDisk()
    journal = Journal(disk, FILE)
    journal.set(b"k", b"1")
    disk.failing_syncs = 1
    with pytest.raises(NotAcknowledged, match="a change is not stored"):
        journal.set(b"k", b"2")
    assert journal.get(b"k") == b"1"
    journal.set(b"l", b"3")
    assert dict(Journal(disk.after_power_loss(), FILE).items()) == {b"k": b"1", b"l": b"3"}
