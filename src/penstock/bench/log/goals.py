"""What the log should reach, as ratios within one run, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.bench.log.comparing import PUBLISHERS, STREAM, WAITING
from penstock.bench.log.peers import OURS, PEERS
from penstock.bench.log.peers.base import FSYNCED, WRITTEN
from penstock.bench.log.reading import COLD, LEVEL_1, READ, SAME_PROCESS
from penstock.bench.log.samples import Samples
from penstock.bench.log.writing import ALONE, LAST_LEVEL, LEVELS, WRITE

MET, MISSED = "met", "MISSED"


@dataclass(frozen=True, slots=True)
class Goal:
    text: str
    ratio: float
    wanted: float | None
    """None where nothing is wanted, and the number says more about another one."""

    @property
    def status(self) -> str:
        return "" if self.wanted is None else MET if self.ratio >= self.wanted else MISSED


def goals(samples: Samples) -> list[Goal]:
    """Those of which something was measured."""
    found: list[tuple[str, float | None, float | None]] = []
    for what, mode, wanted in ((LAST_LEVEL, WRITTEN, 50.0), (WRITE, WRITTEN, None), (WRITE, FSYNCED, None)):
        ratio = samples.ratio(*({"what": what, "side": side, "mode": mode, "payload": 32} for side in (LEVELS, ALONE)))
        found.append((f"{what}, 32 B, {mode}: with levels by without", ratio, wanted))
    for side in (SAME_PROCESS, LEVEL_1):
        ratio = samples.ratio(*({"what": READ, "side": one, "payload": 32} for one in (side, COLD)))
        found.append((f"{READ}, 32 B: {side} by {COLD}", ratio, 20.0))
    for name in PEERS:
        if name not in OURS:
            found += _against(samples, name)
    return [Goal(text, ratio, wanted) for text, ratio, wanted in found if ratio is not None]


def _against(samples: Samples, name: str) -> list[tuple[str, float | None, float | None]]:
    found: list[tuple[str, float | None, float | None]] = []
    cases = ((WAITING, PUBLISHERS, OURS[0]), (WAITING, PUBLISHERS, OURS[1]), (STREAM, 1, OURS[0]))
    for what, publishers, ours in cases:
        for mode in samples.values("mode", side=name):
            for payload in samples.values("payload", side=name):
                ratio = samples.ratio(*(
                    {"what": what, "side": side, "mode": mode, "payload": payload, "setting": publishers}
                    for side in (ours, name)
                ))  # fmt: skip
                case = f"{publishers} {what}" if what == WAITING else what
                wanted = 1.0 if mode == FSYNCED or what == WAITING else None
                pair = f"{PEERS[ours].title} by {PEERS[name].title}"
                found.append((f"{case}, {payload} B, {mode}: {pair}", ratio, wanted))
    return found
