"""Stories of a log with clients, network and disk, by chance: whatever fails, what is acknowledged is there, once.

`PENSTOCK_LOG_SEEDS` says how many. A seed that fails is in the error, and tells the same story again:
`PENSTOCK_LOG_FIRST_SEED=17 PENSTOCK_LOG_SEEDS=1`.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.log.simulation.clock import Clock
from tests.log.simulation.world import Turns, World

SEEDS = int(os.environ.get("PENSTOCK_LOG_SEEDS", "500"))
FIRST = int(os.environ.get("PENSTOCK_LOG_FIRST_SEED", "0"))
PARTS = 4
STEPS = 250


@pytest.mark.parametrize("part", range(PARTS))
def test_everything_acknowledged_is_there_once_whatever_fails(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.log.log.Committer", Turns)
    clock = Clock()
    clock.rule(monkeypatch)
    faults: Counter[str] = Counter()
    failed: dict[int, str] = {}
    for seed in range(FIRST + part, FIRST + SEEDS, PARTS):
        world = World(seed, clock)
        try:
            world.run(STEPS)
        except Exception as error:
            failed[seed] = f"{type(error).__name__}: {error}"
            print(f"seed {seed}: {failed[seed]}", flush=True)
        faults += world.faults
        faults["acknowledged"] += sum(history.acknowledged for history in world.histories)
        faults["repeated"] += sum(history.repeated for history in world.histories)
        faults["forgotten and stored again"] += sum(history.forgotten for history in world.histories)
    print(", ".join(f"{count:,} {what}" for what, count in faults.most_common()))
    assert not failed, f"{len(failed)} of {SEEDS} seeds fail; seed {min(failed)}: {failed[min(failed)]}"
