"""Say what a replay will do before it is done: which letters come again, where, and which cannot succeed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.dead.letter import Letter
from penstock.errors import CannotReplay
from penstock.failures import DECODE
from penstock.formats import Malformed
from penstock.patterns.aggregate import COMPLETED_BY, GROUP_SIZE
from penstock.plan.plan import Plan, Stage
from penstock.reference.decode import decode
from penstock.reference.memory import remembering
from penstock.reference.resume import Entrance, entrances

UNCHANGED = "left out: its body cannot be decoded now either"


@dataclass(frozen=True)
class Outlook:
    """The letters that come again, as how many messages, those that are left out, and the rows of a table about all.

    `memory` is a step that remembers messages, if any of them may come to one.
    """

    taken: tuple[Letter, ...]
    left_out: tuple[Letter, ...]
    messages: int
    places: Counter[tuple[str, str, str]]
    memory: Stage | None


def outlook(plan: Plan, letters: Sequence[Letter], at: str, source: str | None = None) -> Outlook:
    """Raises what cannot be. A body that does not fit its source now would only die again: it is left out."""
    taken: list[Letter] = []
    left_out: list[Letter] = []
    places: Counter[tuple[str, str, str]] = Counter()
    memory: Stage | None = None
    for letter in letters:
        (one,) = entrances(plan, [letter.dead], at, source)
        fails = one.stage is None and isinstance(decode(one.reader, one.carrier), Malformed)
        (left_out if fails else taken).append(letter)
        places[f"{letter.dead.route}.{letter.dead.step}", letter.dead.error, UNCHANGED if fails else _place(one)] += 1
        if not fails:
            memory = memory or remembering(plan, one.reader.route, one.stage)
    messages = len(entrances(plan, [one.dead for one in taken], at, source))
    return Outlook(tuple(taken), tuple(left_out), messages, places, memory)


def _place(one: Entrance) -> str:
    return one.stage.title if one.stage is not None else f"the start of {one.reader.route}"


def corrected(letter: Letter, body: bytes) -> Letter:
    """The letter with another body, as if that had come from the source: it enters at the start."""
    dead = letter.dead
    if dead.step != DECODE and {COMPLETED_BY, GROUP_SIZE} <= dead.message.headers.keys():
        raise CannotReplay(f"letter {letter.name} was put together by an aggregator: it has no body to correct",
                           fix="replay it at its step")  # fmt: skip
    message = replace(dead.message, raw=body, fields=None, rewritten=False)
    return replace(letter, dead=replace(dead, message=message, step=DECODE), corrected=True)
