"""Groups go on where they committed, and never behind messages that a crash took."""

from __future__ import annotations

from pathlib import Path

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Settings
from tests.log.simulated import SimulatedDisk
from tests.log.store.test_faults import SMALL

SLOW = Settings(levels=SMALL.levels, throughput=1.0, flush_after=60)
HERE = Path("/log")


def test_a_group_is_given_the_messages_that_took_the_offsets_of_lost_ones() -> None:
    disk = SimulatedDisk()
    log = Log(HERE, SLOW, disk)
    log.create("t", 2)
    log.append("t", 0, Frame.pack([b"safe"])).result(60)
    log.append("t", 0, Frame.pack([b"lost"] * 4), Acknowledge.MEMORY).result(60)
    log.commit("readers", "t", 0, 5)
    log.commit("others", "t", 0, 1)
    killed = disk.after_kill()
    with Log(HERE, SLOW, killed) as again:
        assert again.committed("readers", "t", 0) == 1
        assert again.committed("others", "t", 0) == 1
        [finding] = again.findings()
        assert "group 'readers' committed offset 5 of topic 't' partition 0, whose messages end at 1" in str(finding)
        assert str(finding).endswith("it goes on with 1")
        again.append("t", 0, Frame.pack([b"new"] * 4)).result(60)
    with Log(HERE, SLOW, killed.after_kill()) as third:
        assert third.committed("readers", "t", 0) == 1
        assert third.findings() == []
    log.close()


def test_a_group_keeps_what_it_committed_of_messages_that_are_there() -> None:
    disk = SimulatedDisk()
    with Log(HERE, SLOW, disk) as log:
        log.create("t")
        log.append("t", 0, Frame.pack([b"a"] * 4), Acknowledge.MEMORY).result(60)
        log.commit("readers", "t", 0, 4)
    with Log(HERE, SLOW, disk.after_kill()) as again:
        assert again.committed("readers", "t", 0) == 4
        assert again.findings() == []
