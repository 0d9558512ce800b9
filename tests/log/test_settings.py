"""Equation (1) and Table II of the paper."""

from __future__ import annotations

import pytest

from penstock.log.errors import BadSettings
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings, available_times


def test_equation_1_gives_the_number_of_the_paper() -> None:
    level = LevelSettings(Kind.MEMORY, 1_000_000, batch=512, overlap=1500)
    assert level.acceptable_latency(100e6) == pytest.approx(9.98e-3, rel=1e-3)


def test_a_violation_of_equation_1_is_reported_with_the_number_that_would_satisfy_it() -> None:
    level = LevelSettings(Kind.MEMORY, 1_000_000, batch=512, overlap=1500, latency=0.02)
    with pytest.raises(BadSettings) as raised:
        Settings(levels=(level,), throughput=100e6)
    assert str(raised.value) == (
        "BadSettings: level 1 (memory) of 1000000 bytes overwrites messages before the next level has them:"
        " 0.02 s is not less than 0.00997988 s at 1e+08 bytes/s\n"
        "  fix  at least capacity=2002013 for level 1, or a lower throughput"
    )
    enough = LevelSettings(Kind.MEMORY, 2_002_013, batch=512, overlap=1500, latency=0.02)
    assert Settings(levels=(enough,), throughput=100e6).violations() == ()
    almost = LevelSettings(Kind.MEMORY, 2_002_012, batch=512, overlap=1500, latency=0.02)
    with pytest.raises(BadSettings):
        Settings(levels=(almost,), throughput=100e6)


def test_a_batch_that_does_not_fit_violates_it_at_any_throughput() -> None:
    with pytest.raises(BadSettings, match="capacity=6501"):
        Settings(levels=(LevelSettings(Kind.MEMORY, 4096, batch=5000, overlap=1500, latency=0.0),), throughput=1.0)


def test_table_2_is_that_of_the_paper() -> None:
    levels = tuple(LevelSettings(Kind.MEMORY, size, latency=0.0) for size in (10**6, 8 * 10**9, 512 * 10**9))
    table = available_times(Settings(levels=levels))
    assert [round(seconds, 3) for seconds in table[0]] == [1.0, 0.01, 0.003]
    assert [round(seconds / 60, 1) for seconds in table[1]] == [133.3, 1.3, 0.4]
    assert [round(seconds / 3600, 1) for seconds in table[2]] == [142.2, 1.4, 0.5]


def test_a_level_that_holds_less_than_the_one_before_is_refused() -> None:
    first, second = (LevelSettings(Kind.MEMORY, size, latency=0.0) for size in (100_000, 50_000))
    with pytest.raises(BadSettings, match=r"level 2 holds less(.|\n)*capacity=100000 or more"):
        Settings(levels=(first, second))


def test_acknowledgements_have_names() -> None:
    assert [str(mode) for mode in Acknowledge] == ["memory", "written", "fsynced"]
    assert Acknowledge.of("written") is Acknowledge.WRITTEN
    with pytest.raises(BadSettings, match="one of memory, written, fsynced"):
        Acknowledge.of("synced")
