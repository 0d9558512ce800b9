"""Aggregator: collects the messages of each key in groups and sends complete ones on, a whole batch of keys at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import AT, COUNT, TIME
from penstock.kernel.state.algorithm import SECOND, Moment, Outcome, filled
from penstock.kernel.state.assembly import Assembly, Made
from penstock.kernel.state.keys import HIGH, LOW, Flags, Keys, Numbers, ranges
from penstock.kernel.state.members import CHAPTERS, chapter, forgotten, fresh, read_chapters
from penstock.kernel.state.reduce import FIRST, LAST, MAX, reduced
from penstock.kernel.state.rows import (
    COMPLETED_BY,
    COMPLETES,
    GROUP_SIZE,
    KEY,
    Fates,
    replaced,
)
from penstock.kernel.state.segments import NEW_GROUP, OPEN, PREDICATE, SIZE, Segments, segments
from penstock.kernel.state.store import DEADLINE, GONE, LEADING, NEVER, WEIGHT
from penstock.patterns.aggregate import (
    BY_BATCH,
    BY_INTERVAL,
    BY_NEW_GROUP,
    BY_PREDICATE,
    BY_SIZE,
    BY_STOP,
    BY_TIMEOUT,
    PARTS,
    REOPEN,
)
from penstock.patterns.key import DISCARD, FLUSH, HOLD

CLOSED, OPENED, TOUCHED = "closed", "opened", "touched"
_MARKS = pa.schema([(KEY, pa.string()), (WEIGHT, pa.int64()), (CLOSED, pa.bool_()),
                    (OPENED, pa.int64()), (TOUCHED, pa.int64())])  # fmt: skip
_REASONS = {SIZE: BY_SIZE, PREDICATE: BY_PREDICATE, NEW_GROUP: BY_NEW_GROUP}
Reasons = npt.NDArray[Any]


@dataclass(frozen=True)
class Aggregating:
    """The settings of one aggregator; times in seconds as in the node."""

    size: int | str | None
    timeout: float | None
    interval: float | None
    predicate: bool
    batch_end: bool
    new_group: bool
    on_timeout: str
    on_stop: str
    closed: str
    closed_for: float | None
    assembly: Assembly
    fates: Fates
    carried: pa.Schema

    @property
    def payload(self) -> pa.Schema:
        return pa.schema([*_MARKS, *self.carried, *self.assembly.state])

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        return pc.is_valid(held.column(GONE))

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome:
        work = _Work(self, moment)
        work.expire(held)
        work.arrive(rows)
        work.release()
        state = work.kept()
        if CHAPTERS in state.column_names:
            state = pa.concat_tables([state, forgotten(held, state)])
        return Outcome(work.out, state, work.merged)


class _Work:
    """One call of the aggregator: `out` are rows that leave the step, `keep` are rows that stay in its state."""

    def __init__(self, rule: Aggregating, moment: Moment) -> None:
        self.rule, self.moment = rule, moment
        self.schema = pa.schema([*LEADING, *rule.payload])
        self.out: list[pa.Table] = []
        self.keep: list[pa.Table] = []
        self.merged = 0

    def expire(self, held: pa.Table) -> None:
        """End the groups whose time is over; the others stay open for arrivals."""
        late = pc.less_equal(held.column(DEADLINE), self.moment.now)
        due, rest = held.filter(late), held.filter(pc.invert(late))
        self.shut = rest.filter(rest.column(CLOSED))
        self.open = rest.filter(pc.invert(rest.column(CLOSED)))
        ended = due.filter(pc.invert(due.column(CLOSED)))
        if not len(ended):
            return
        starts = Keys.of(ended).starts()
        if self.rule.on_timeout == DISCARD:
            self.out.append(self.rule.fates.filtered(ended))
            self._close(ended, starts)
            return
        ends = np.append(starts[1:], len(ended))
        touched = reduced(MAX, ended.column(TOUCHED).combine_chunks(), starts, ends).to_numpy()
        reasons = np.where(_after(touched, self.rule.timeout) <= self.moment.now, BY_TIMEOUT, BY_INTERVAL)
        self._emit(ended, Segments(starts, ends, np.ones(len(starts), np.int8)), reasons)

    def arrive(self, rows: pa.Table) -> None:
        """Add arrivals to the open groups of their keys; those for a closed group are filtered or dead letters."""
        if len(self.shut):
            shut = Keys.of(self.shut).distinct().find(Keys.of(rows)) >= 0
            self.out.append(self.rule.fates.closed(rows.filter(pa.array(shut)), self.rule.closed))
            rows = rows.filter(pa.array(~shut))
        self.rows, order = self._members(rows), np.arange(len(rows))  # in the order of their keys
        if len(self.open):
            self.rows = pa.concat_tables([self.open, self.rows])
            order = Keys.of(self.rows).order()
            self.rows = self.rows.take(pa.array(order))
        self.completes = self._flags(rows, order)

    def release(self) -> None:
        """Cut the rows into groups, send the complete ones on, and keep the others."""
        rows, rule = self.rows, self.rule
        if not len(rows):
            return
        found = segments(
            Keys.of(rows).starts(), rows.column(WEIGHT).to_numpy(), self._sizes(), self.completes, self._changes()
        )
        reasons = np.array([_REASONS.get(int(reason), "") for reason in found.reasons], dtype=object)
        if rule.closed != REOPEN:
            found, reasons = self._first_groups(found, reasons)
        is_open = found.reasons == OPEN
        complete = Segments(found.starts[~is_open], found.ends[~is_open], found.reasons[~is_open])
        self._emit(rows, complete, reasons[~is_open])
        left = Segments(found.starts[is_open], found.ends[is_open], found.reasons[is_open])
        if rule.batch_end:
            self._emit(rows, left, np.full(len(left.starts), BY_BATCH))
        elif self.moment.stops and rule.on_stop == FLUSH:
            self._emit(rows, left, np.full(len(left.starts), BY_STOP))
        elif self.moment.stops and rule.on_stop == DISCARD:
            self.out.append(rule.fates.filtered(rows.take(pa.array(_rows_in(left)))))
        else:
            assert not self.moment.stops or rule.on_stop == HOLD
            self._hold(rows, left)

    def kept(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), self.shut, *self.keep])

    def _first_groups(self, found: Segments, reasons: Reasons) -> tuple[Segments, Reasons]:
        """Only the first group of each key, where keys close with their first group; rows behind it are too late."""
        keys = Keys.of(self.rows)[found.starts]
        first = np.zeros(len(found.starts), bool)
        first[keys.starts()] = True
        late = Segments(found.starts[~first], found.ends[~first], found.reasons[~first])
        self.out.append(self.rule.fates.closed(self.rows.take(pa.array(_rows_in(late))), self.rule.closed))
        return Segments(found.starts[first], found.ends[first], found.reasons[first]), reasons[first]

    def _emit(self, rows: pa.Table, groups: Segments, reasons: Reasons) -> None:
        if not len(groups.starts):
            return
        starts, ends = groups.starts, groups.ends
        weights = np.add.reduceat(rows.column(WEIGHT).to_numpy()[_rows_in(groups)], _offsets(groups))
        columns = {
            name: reduced(FIRST, rows.column(name).combine_chunks(), starts, ends)
            for name in (KEY, *self.rule.carried.names)
        }
        columns[TIME] = reduced(LAST, rows.column(TIME).combine_chunks(), starts, ends)
        columns[COMPLETED_BY] = pa.array(list(reasons), pa.string())
        columns[GROUP_SIZE] = pa.array(weights, pa.int64())
        columns[AT] = pa.array(np.full(len(starts), self.rule.fates.here, np.int32))
        made = self.rule.assembly.put_together(rows, starts, ends, columns)
        self.merged += int(weights.sum()) - len(made.rows) - int(weights[made.failed].sum())
        self.out.append(made.rows)
        if len(made.failed):
            self._bury(rows, starts[made.failed], ends[made.failed], made)
        self._close(rows, starts)

    def _bury(self, rows: pa.Table, starts: Numbers, ends: Numbers, made: Made) -> None:
        """Every member of a group that failed is a dead letter, also those that came in earlier batches."""
        lengths = ends - starts
        members = rows.take(pa.array(ranges(starts, lengths)))
        reasons = made.reasons.take(pa.array(np.repeat(np.arange(len(starts)), lengths)))
        if CHAPTERS in members.column_names:
            new, waited = pa.array(fresh(members)), pa.array(~fresh(members))
            assert self.moment.find is not None
            earlier, groups = read_chapters(members.filter(waited), self.moment.find)
            self.out.append(self.rule.fates.dead(earlier, made.error, reasons.filter(waited).take(pa.array(groups))))
            members, reasons = members.filter(new), reasons.filter(new)
        self.out.append(self.rule.fates.dead(members, made.error, reasons))

    def _close(self, rows: pa.Table, starts: Numbers) -> None:
        if self.rule.closed == REOPEN:
            return
        keys = Keys.of(rows)[starts]
        until = _after(np.full(len(keys), self.moment.now), self.rule.closed_for)
        marks = {HIGH: pa.array(keys.high), LOW: pa.array(keys.low), DEADLINE: pa.array(until),
                 GONE: _same(False, keys), CLOSED: _same(True, keys), WEIGHT: _same(0, keys)}  # fmt: skip
        self.shut = pa.concat_tables([self.shut, filled(self.schema, len(keys), marks)])

    def _hold(self, rows: pa.Table, groups: Segments) -> None:
        if not len(groups.starts):
            return
        starts, ends = groups.starts, groups.ends
        opened = reduced(FIRST, rows.column(OPENED).combine_chunks(), starts, ends).to_numpy()
        touched = reduced(MAX, rows.column(TOUCHED).combine_chunks(), starts, ends).to_numpy()
        deadlines = np.minimum(_after(opened, self.rule.interval), _after(touched, self.rule.timeout))
        kept, lengths = self.rule.assembly.compacted(rows, starts, ends)
        if CHAPTERS in self.schema.names:
            self.keep.append(chapter(rows, starts, ends, kept))
        self.keep.append(replaced(kept, {
            DEADLINE: np.repeat(deadlines, lengths), OPENED: np.repeat(opened, lengths),
            TOUCHED: np.repeat(touched, lengths),
        }))  # fmt: skip

    def _members(self, rows: pa.Table) -> pa.Table:
        now = np.full(len(rows), self.moment.now)
        marks = {
            HIGH: rows[HIGH], LOW: rows[LOW], KEY: rows[KEY], DEADLINE: np.full(len(rows), NEVER),
            GONE: _same(False, rows), CLOSED: _same(False, rows), WEIGHT: _same(1, rows), OPENED: now, TOUCHED: now,
        }  # fmt: skip
        columns = {name: pa.array(value) if isinstance(value, np.ndarray) else value for name, value in marks.items()}
        columns |= {name: rows[name] for name in self.rule.carried.names} | self.rule.assembly.members(rows)
        return filled(self.schema, len(rows), columns)

    def _flags(self, rows: pa.Table, order: Numbers) -> Flags | None:
        if not self.rule.predicate:
            return None
        arrived = pc.fill_null(rows.column(COMPLETES), False).to_numpy()
        return np.concatenate((np.zeros(len(self.open), bool), arrived))[order]

    def _sizes(self) -> Numbers | None:
        if self.rule.size is None:
            return None
        if self.rule.size == PARTS:
            counts: Numbers = self.rows.column(COUNT).fill_null(1).to_numpy()
            return counts
        return np.full(len(self.rows), int(self.rule.size))

    def _changes(self) -> Flags | None:
        if not self.rule.new_group:
            return None
        keys = self.rows.column(KEY).combine_chunks().dictionary_encode().indices.to_numpy()
        return np.concatenate(([False], keys[1:] != keys[:-1]))


def _after(times: Numbers, seconds: float | None) -> Numbers:
    return np.full(len(times), NEVER) if seconds is None else times + round(seconds * SECOND)


def _rows_in(groups: Segments) -> Numbers:
    return ranges(groups.starts, groups.ends - groups.starts)


def _offsets(groups: Segments) -> Numbers:
    return np.concatenate(([0], np.cumsum(groups.ends - groups.starts)[:-1]))


def _same(value: object, rows: pa.Table | Keys) -> pa.Array:
    return pa.repeat(pa.scalar(value), len(rows))
