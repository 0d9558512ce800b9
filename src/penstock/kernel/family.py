"""Stop the later parts of a split message, or copies of a multicast one, after too many earlier ones have failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.budget import is_exceeded
from penstock.kernel.block import Block, Numbers
from penstock.kernel.outcome import Died, Letters, Moved, Outcome
from penstock.plan.plan import Stage
from penstock.plan.stopping import STOPPED, allowed, reason_of


@dataclass(frozen=True)
class Members:
    """The parts or copies that a step made: for each the message it was made of (`family`), its number, their count."""

    family: Numbers
    number: Numbers
    size: Numbers


def marked(outcome: Outcome) -> tuple[Members, Outcome]:
    """Number the members, and note in the blocks of the outcome from which member each message comes."""
    every: list[Moved | Died] = [*outcome.moved, *outcome.died]
    none = np.zeros(0, np.int64)
    rows = np.concatenate([none, *(one.rows for one in every)])
    number = np.concatenate([none, *(one.rows * 0 if one.number is None else one.number for one in every)])
    order = np.lexsort((number, rows))
    code = np.empty(len(rows), np.int64)
    code[order] = np.arange(len(rows))
    members = Members(rows[order], number[order], np.bincount(rows)[rows[order]] if len(rows) else none)
    starts = np.cumsum([0, *(len(one.rows) for one in every)])

    def known(block: Block, place: int) -> Block:
        return replace(block, members=(*block.members, code[starts[place] : starts[place + 1]]))

    moved = [replace(one, block=known(one.block, place)) for place, one in enumerate(outcome.moved)]
    died = [replace(one, block=known(one.block, place)) for place, one in enumerate(outcome.died, len(moved))]
    return members, Outcome(moved, died, outcome.filtered)


def unmarked(block: Block) -> Block:
    return replace(block, members=block.members[:-1])


def stopped(stage: Stage, members: Members, dead: Sequence[Letters]) -> dict[int, str] | None:
    """The members to stop, each with the reason; None if there are none."""
    first: dict[int, tuple[tuple[int, ...], Letters, int]] = {}
    for letters in dead:
        block = letters.died.block
        order = [tuple(level[row] for level in block.order) for row in range(len(block))]
        for row, code in enumerate(block.members[-1].tolist()):
            if code not in first or order[row] < first[code][0]:
                first[code] = order[row], letters, row
    failed = np.zeros(len(members.family), np.int64)
    failed[list(first)] = 1
    before = np.cumsum(failed) - failed
    begins = np.searchsorted(members.family, members.family, side="left")
    before -= before[begins]
    found: dict[int, str] = {}
    for code in np.flatnonzero(before).tolist():
        size = int(members.size[code])
        if is_exceeded(allowed(stage), int(before[code]), size):
            start = int(begins[code])
            cause = start + int(np.flatnonzero(failed[start:code])[0])
            _, letters, row = first[cause]
            failure = letters.died.errors[row], letters.route, letters.step, letters.died.reasons[row]
            found[code] = reason_of(stage) % (int(members.number[cause]) + 1, size, *failure)
    return found or None


def without(outcome: Outcome, gone: Mapping[int, str]) -> Outcome:
    """The outcome in which stopped members are dead letters of the step that made them."""
    codes, kept = np.array(list(gone)), Outcome(filtered=outcome.filtered)

    def rest(one: Moved | Died) -> Numbers:
        mine = one.block.members[-1]
        is_gone = np.isin(mine, codes)
        rows = np.flatnonzero(is_gone)
        if len(rows):
            reasons = [gone[int(code)] for code in mine[rows]]
            kept.died.append(Died(one.block.take(rows), one.rows[rows], [STOPPED] * len(rows), reasons))
        return np.flatnonzero(~is_gone)

    kept.moved = [one.some(left) for one in outcome.moved if len(left := rest(one))]
    kept.died += [one.some(left) for one in outcome.died if len(left := rest(one))]
    return kept
