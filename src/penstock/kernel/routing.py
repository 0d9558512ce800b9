"""Steps that say where messages go: filter, choice, load balancer, recipient list, multicast, wire tap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.columnwise import elements_of
from penstock.failures import MISSING_FIELD, UNKNOWN_RECIPIENT
from penstock.kernel.asked import Answers
from penstock.kernel.block import Block, Numbers
from penstock.kernel.outcome import NEXT, Died, Moved, Outcome
from penstock.kernel.work import Works
from penstock.patterns.balance import RANDOM, STICKY, Balance, turn
from penstock.patterns.choice import Choice
from penstock.patterns.filter import Filter
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import DEAD, missing_reason
from penstock.patterns.recipients import Recipients
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.valuetexts import value_texts


def go_on(node: Join, block: Block, asked: Answers) -> Outcome:
    return Outcome([Moved(NEXT, block, np.arange(len(block)))])


def send(node: To, block: Block, asked: Answers) -> Outcome:
    return Outcome([Moved(node.channel, block, np.arange(len(block)))])


def sift(node: Filter, block: Block, asked: Answers) -> Outcome:
    outcome = Outcome()
    passes, unknown = _decided(asked.value(node.predicate))
    if node.missing == DEAD:
        rows = np.flatnonzero(unknown)
        outcome.bury(block, rows, MISSING_FIELD, [missing_reason(node.predicate)] * len(rows))
    else:
        unknown = np.zeros(len(block), bool)
    outcome.move(NEXT, block, passes)
    others = ~passes & ~unknown
    if node.discard:
        outcome.move(node.discard, block, others)
    else:
        outcome.filtered = np.flatnonzero(others)
    return outcome


def choose(node: Choice, block: Block, asked: Answers) -> Outcome:
    """Content-based router: the first true case decides; a missing value before it may make a dead letter."""
    outcome, undecided = Outcome(), np.ones(len(block), bool)
    for channel, test in node.cases:
        passes, unknown = _decided(asked.value(test))
        if node.missing == DEAD:
            rows = np.flatnonzero(undecided & unknown)
            outcome.bury(block, rows, MISSING_FIELD, [missing_reason(test)] * len(rows))
            undecided &= ~unknown
        outcome.move(channel, block, undecided & passes)
        undecided &= ~passes
    outcome.move(node.otherwise, block, undecided)
    return outcome


def _decided(answers: pa.Array) -> tuple[Numbers, Numbers]:
    """Which answers are true, and which are missing."""
    if pa.types.is_null(answers.type):
        return np.zeros(len(answers), bool), np.ones(len(answers), bool)
    unknown = answers.is_null().to_numpy(zero_copy_only=False)
    true = pc.fill_null(answers, False) if answers.null_count else answers
    return true.to_numpy(zero_copy_only=False), unknown


def balance(node: Balance, block: Block, asked: Answers) -> Outcome:
    outcome, known = Outcome(), np.ones(len(block), bool)
    if node.strategy == STICKY:
        assert node.key is not None
        keys = asked.value(node.key)
        known = keys.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(~known)
        outcome.bury(block, rows, MISSING_FIELD, ["the sticky key is missing"] * len(rows))
        number = _turns(value_texts(keys), node.seed)
    elif node.strategy == RANDOM:
        number = _turns(block.ids, node.seed)
    else:
        number = block.arrived.offsets[block.origin]
        if block.parts is not None:
            number = np.where(block.parts.index >= 0, block.parts.index, number)
    limits = node.limits()
    chosen = np.searchsorted(limits, number % limits[-1], side="right")
    for place, target in enumerate(node.targets):
        outcome.move(target, block, known & (chosen == place))
    return outcome


def _turns(texts: pa.Array, seed: int) -> Numbers:
    distinct = texts.dictionary_encode()
    turns = np.array([turn(text, seed) for text in distinct.dictionary.to_pylist()] or [0], np.int64)
    found: Numbers = turns[pc.fill_null(distinct.indices, 0).to_numpy()]
    return found


def copy(node: Multicast, block: Block, asked: Answers) -> Outcome:
    every = np.ones(len(block), bool)
    outcome = Outcome()
    for number, target in enumerate(node.targets):
        outcome.move(target, block, every, number)
    return outcome


def tap(node: Tap, block: Block, asked: Answers) -> Outcome:
    every = np.ones(len(block), bool)
    outcome = Outcome()
    outcome.move(node.target, block, every, 0)
    outcome.move(NEXT, block, every, 1)
    return outcome


def address(node: Recipients, block: Block, asked: Answers) -> Outcome:
    outcome = Outcome()
    value = asked.value(node.recipients)
    named = pc.split_pattern(value, node.separator) if pa.types.is_string(value.type) else value
    rows, names = elements_of(named)
    names = pc.utf8_trim(names, " ")
    there = pc.fill_null(pc.greater(pc.binary_length(names), 0), False)
    rows, names = rows[there.to_numpy(zero_copy_only=False)], names.filter(there)
    rows, names, number = _distinct(rows, names)
    nobody = np.setdiff1d(np.arange(len(block)), rows)
    outcome.bury(block, nobody, UNKNOWN_RECIPIENT, ["the message names no recipient"] * len(nobody))
    place = pc.fill_null(pc.index_in(names, pa.array(node.known)), len(node.known)).to_numpy()
    for index, channel in enumerate(node.known):
        chosen = place == index
        if chosen.any():
            outcome.moved.append(Moved(channel, block.take(rows[chosen]), rows[chosen], number[chosen]))
    unknown = place == len(node.known)
    if unknown.any():
        reasons = [f"no channel is known as '{name}'" for name in names.filter(pa.array(unknown)).to_pylist()]
        outcome.died.append(
            Died(block.take(rows[unknown]), rows[unknown], [UNKNOWN_RECIPIENT] * len(reasons), reasons, number[unknown])
        )
    return outcome


def _distinct(rows: Numbers, names: pa.Array) -> tuple[Numbers, pa.Array, Numbers]:
    """Each recipient of a message once, in order, and its number among the recipients of that message."""
    codes = names.dictionary_encode()
    pairs = rows.astype(np.int64) * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
    _, first = np.unique(pairs, return_index=True)
    first.sort()
    rows, names = rows[first], names.take(pa.array(first))
    begins = np.searchsorted(rows, rows, side="left")
    return rows, names, np.arange(len(rows)) - begins


STEPS: Works = {
    Join: go_on, To: send, Filter: sift, Choice: choose, Balance: balance, Recipients: address, Multicast: copy,
    Tap: tap,
}  # fmt: skip
