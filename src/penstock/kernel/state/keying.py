"""Compute the key of each message that comes to a step that remembers, and the values that the step needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.nodes import Expr
from penstock.formats.jsonobjects import joined, scalar_texts
from penstock.kernel.asked import Answers
from penstock.kernel.block import Block, Numbers
from penstock.kernel.outcome import NEXT, Outcome
from penstock.kernel.state.hashing import hashes
from penstock.kernel.state.keys import HIGH, LOW, Flags
from penstock.kernel.state.rows import COMPLETES, KEY, SEQUENCE, fold_column
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import INVALID_KEY, NO_PARENT, NO_VALUE
from penstock.patterns.node import DEAD
from penstock.patterns.resequence import NO_NUMBER, Resequence
from penstock.patterns.strategy import Fold
from penstock.valuetexts import value_texts

Remembering = Aggregate | Resequence | Idempotent


def keyed(node: Remembering, block: Block, asked: Answers) -> Outcome:
    """Keep messages that have a key, with the values that the step needs; others are filtered or dead letters."""
    columns, keys, reasons = _asked(node, block, asked)
    valid: Flags = keys.is_valid().to_numpy(zero_copy_only=False)
    outcome = Outcome()
    if not valid.all():
        rows = np.flatnonzero(~valid)
        if node.invalid == DEAD:
            outcome.bury(block, rows, INVALID_KEY, reasons[rows].tolist())
        else:
            outcome.filtered = rows
    alone = isinstance(node, Aggregate) and node.new_group  # one group at a time, whatever its key
    hashed = hashes(pa.repeat(pa.scalar(""), len(keys)) if alone else keys)
    columns = {HIGH: pa.array(hashed.high), LOW: pa.array(hashed.low), KEY: keys, **columns}
    known = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    outcome.move(NEXT, replace(block, keyed=known), valid)
    return outcome


def _asked(node: Remembering, block: Block, asked: Answers) -> tuple[dict[str, pa.Array], pa.Array, Numbers]:
    """The values that the step needs of each message, its key, and the reason where the key is null."""
    match node:
        case Idempotent():
            return {}, _key(node.key, asked) if node.key else block.ids, np.full(len(block), NO_VALUE)
        case Resequence():
            key = _key(node.by, asked) if node.by else pa.repeat(pa.scalar(""), len(block))
            numbers = asked.value(node.sequence)
            reasons = np.where(np.asarray(key.is_null()), NO_VALUE, NO_NUMBER)
            return {SEQUENCE: numbers}, pc.if_else(numbers.is_valid(), key, None), reasons
    key = _key(node.by, asked) if node.by else block.parents
    reasons = np.where(np.asarray(key.is_null()) & bool(node.by), NO_VALUE, NO_PARENT)
    if node.needs_parts:
        parts = np.zeros(len(block), bool) if block.parts is None else block.parts.index >= 0
        key = pc.if_else(pa.array(parts), key, None)
    columns = {}
    if node.when is not None:
        columns[COMPLETES] = asked.value(node.when).fill_null(False)
    if isinstance(node.strategy, Fold):
        folds = enumerate(node.strategy.folds)
        columns |= {fold_column(number): asked.value(value) for number, (_, _, value) in folds if value is not None}
    return columns, key, reasons


def _key(parts: Sequence[Expr], asked: Answers) -> pa.Array:
    """The key as text, as `patterns/key.py` writes it; null when a part of it is null."""
    values = [asked.value(part) for part in parts]
    if len(values) == 1:
        return value_texts(values[0])
    texts = [part for value in values for part in (",", scalar_texts(value))]
    return joined("[", *texts[1:], "]")
