"""Journal: every change survives, and a damaged one is not passed over in silence."""

from __future__ import annotations

from contextlib import suppress
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


def test_content_of_more_than_a_frame_can_hold_is_written_anew_and_takes_further_changes() -> None:
    disk = SimulatedDisk()
    journal = Journal(disk, FILE)
    large = {b"%d" % number: bytes([number]) * (1 << 20) for number in range(70)}
    for key, value in large.items():
        journal.set(key, value)
    disk.failing_syncs = 1
    with pytest.raises(NotAcknowledged):
        journal.set(b"lost", b"1")
    journal.set(b"kept", b"2")  # after a failure all is written anew
    journal.set(b"0", b"3")
    again = Journal(disk, FILE)
    assert dict(again.items()) == large | {b"kept": b"2", b"0": b"3"}
    assert len(disk.names_seen[FILE].seen) > 64 << 20


def test_a_journal_that_was_written_anew_and_damaged_later_is_not_passed_over() -> None:
    disk = SimulatedDisk()
    journal = Journal(disk, FILE)
    for number in range(3):
        journal.set(b"%d" % number, bytes([number + 1]) * (1 << 20))
    journal._rewrite()
    content = bytearray(disk.names_seen[FILE].seen)
    content[-100] ^= 1
    with pytest.raises(Damaged, match=r"groups\.journal has been changed"):
        Journal(with_content(disk, FILE, bytes(content)), FILE)


def test_what_is_removed_stays_away_whenever_the_power_fails() -> None:
    for step in range(30):
        disk = SimulatedDisk()
        journal = Journal(disk, FILE)
        for number in range(4):
            journal.set(b"%d" % number, b"x")
        disk.crash_at = disk.steps + step
        is_done = False
        try:
            journal.remove([b"1", b"3"])
            is_done = True
            journal._size = 2 << 20  # too long: written anew
            journal.set(b"0", b"y")
        except PowerLoss:
            pass
        again = dict(Journal(disk.after_power_loss(), FILE).items())
        assert set(again) == {b"0", b"2"} if is_done else set(again) in ({b"0", b"2"}, {b"0", b"1", b"2", b"3"})


def test_a_power_loss_may_take_a_page_of_a_removal_of_several_frames() -> None:
    disk = SimulatedDisk()
    journal = Journal(disk, FILE)
    keys = [b"%06d" % number + b"g" * 150 for number in range(9000)]
    journal._change(dict.fromkeys(keys, b"1"))
    left = set()
    for step in range(8):
        found = disk.after_kill()
        found.crash_at = step
        with suppress(PowerLoss):
            Journal(found, FILE).remove(keys[:8999])
        inode = found.names_seen[FILE]
        content = bytearray(inode.seen)
        for position, data in inode.writes:
            page = position + len(data) // 8
            content[page : page + 4096] = bytes(4096)
        again = Journal(with_content(found, FILE, bytes(content)), FILE)
        assert again.get(keys[8999]) == b"1"
        left.add(len(again.items()))
    assert min(left) == 1
    assert max(left) == 9000
