"""How far a run has come, and how long the rest will take."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to do: a check or a fork. What a unit takes depends on its peer more than on anything else."""

    peer: str
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """What is done, what is being done, what comes next; `left` is in seconds, None while nobody knows."""

    done: int
    total: int
    now: str
    then: str
    left: float | None


class Watch:
    """Units are started and ended in the order in which they were expected."""

    def __init__(self, note: Callable[[str], None], show: Callable[[State], None]) -> None:
        self.note, self.show = note, show
        self.units: list[Unit] = []
        self.position = 0
        self.begun = 0.0
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def expect(self, units: Iterable[Unit]) -> None:
        self.units.extend(units)

    def start(self) -> None:
        self.begun = time.monotonic()
        self.show(self.state())

    def done(self, said: str = "") -> None:
        """The unit is done; what it `said` stays on the screen."""
        unit, seconds = self.units[self.position], time.monotonic() - self.begun
        self.seconds[unit.peer].append(seconds)
        self.position += 1
        if said:
            self.note(f"[{self.position}/{len(self.units)}] {unit.text}: {said}")

    def skip(self) -> None:
        """The unit need not be done."""
        self.position += 1

    def state(self) -> State:
        now, then = (self.units[n].text if n < len(self.units) else "" for n in (self.position, self.position + 1))
        return State(self.position, len(self.units), now, then, self.left())

    def left(self) -> float | None:
        """The seconds that are left, if units go on to take what those of the same peer took."""
        known = [seconds for peer in self.seconds.values() for seconds in peer]
        if not known:
            return None
        usual = sum(known) / len(known)
        waiting = Counter(unit.peer for unit in self.units[self.position :])
        means = {peer: sum(seconds) / len(seconds) for peer, seconds in self.seconds.items()}
        return sum(count * means.get(peer, usual) for peer, count in waiting.items())


def duration(seconds: float) -> str:
    """Like "40 s", "12 min" or "3 h 05 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
