"""Resequencer: sends the messages of every key on in the order of their numbers, a whole batch of keys at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.envelope import AT, ORDER
from penstock.kernel.state.algorithm import SECOND, Moment, Outcome, filled
from penstock.kernel.state.keys import HIGH, LOW, Flags, Keys, Numbers
from penstock.kernel.state.rows import SEQUENCE, Fates, chosen, in_place_of_first, ordered, replaced
from penstock.kernel.state.segments import segments
from penstock.kernel.state.store import DEADLINE, GONE, LEADING, NEVER, WEIGHT
from penstock.patterns.key import DISCARD, HOLD
from penstock.patterns.resequence import DUPLICATE_SEQUENCE, LATE_MESSAGE, PASS, duplicate_reason, late_reason

EXPECTED, TOUCHED = "expected", "touched"
_MARKS = pa.schema([(WEIGHT, pa.int64()), (EXPECTED, pa.int64()), (TOUCHED, pa.int64()), (SEQUENCE, pa.int64())])


@dataclass(frozen=True)
class Resequencing:
    """The settings of one resequencer; `timeout` and `keep` are in seconds.

    The state of a key is the messages that wait and, in an endless sequence, one row of weight 0 with the number
    expected next. Without `keep`, that row stays for ever.
    """

    size: int | None
    window: int | None
    first: int | None
    timeout: float | None
    late: str
    duplicate: str
    on_timeout: str
    on_stop: str
    fates: Fates
    carried: pa.Schema
    keep: float | None = None

    @property
    def payload(self) -> pa.Schema:
        return pa.schema([*_MARKS, *self.carried])

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        return held.column(GONE).is_valid()

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome:
        work = _Work(self, moment, Keys.of(held).joined(Keys.of(rows)).distinct())
        work.expire(held)
        work.arrive(rows)
        work.release()
        return Outcome(work.out, work.kept())


class _Work:
    """One call of the resequencer; `expected`, `started` and `touched` have one entry for each of `keys`."""

    def __init__(self, rule: Resequencing, moment: Moment, keys: Keys) -> None:
        self.rule, self.moment, self.keys = rule, moment, keys
        self.schema = pa.schema([*LEADING, *rule.payload])
        self.out: list[pa.Table] = []
        self.keep: list[pa.Table] = []
        self.incomplete: list[pa.Table] = []
        self.expected: Numbers = np.zeros(len(keys), np.int64)
        self.started: Flags = np.zeros(len(keys), bool)
        self.touched: Numbers = np.full(len(keys), moment.now)

    def expire(self, held: pa.Table) -> None:
        """Send messages on that have waited too long, or discard them; the sequence continues behind them."""
        where = self.keys.find(Keys.of(held))
        marks = held.column(WEIGHT).to_numpy() == 0
        self.expected[where[marks]] = held.column(EXPECTED).to_numpy(zero_copy_only=False)[marks].astype(np.int64)
        self.started[where[marks]] = True
        self.touched[where] = held.column(TOUCHED).to_numpy()
        waiting = chosen(held, ~marks)
        late = waiting.column(DEADLINE).to_numpy() <= self.moment.now
        self.waiting = chosen(waiting, ~late)
        due = self._in_sequence(chosen(waiting, late))
        if len(due):
            self._advance(due)
            self._send(due, discard=self.rule.on_timeout == DISCARD)
        self.started &= self._having(self.waiting) | (self._after(self.rule.keep) > self.moment.now)

    def arrive(self, rows: pa.Table) -> None:
        """Put arrivals beside the messages that wait; those below the expected number are late."""
        where, numbers = self.keys.find(Keys.of(rows)), rows.column(SEQUENCE).to_numpy()
        self.touched[where] = self.moment.now
        if self.rule.window is not None:
            fresh = ~self.started[where]
            if self.rule.first is not None:
                self.expected[~self.started] = self.rule.first
            elif fresh.any():
                lowest = np.full(len(self.keys), NEVER)
                np.minimum.at(lowest, where[fresh], numbers[fresh])
                begun = ~self.started & (lowest < NEVER)
                self.expected[begun] = lowest[begun]
            self.started[where] = True
            late = numbers < self.expected[where]
            self._late(chosen(rows, late), self.expected[where[late]])
            rows = chosen(rows, ~late)
        self.rows = self._members(rows)
        if len(self.waiting):
            self.rows = pa.concat_tables([self.waiting, self.rows])

    def release(self) -> None:
        rows = self._of_sequences() if self.rule.size is not None else self._in_order()
        stops = self.moment.stops and self.rule.on_stop != HOLD
        if stops and len(rows):
            rest = self._in_sequence(rows)
            self._advance(rest)
            self._send(rest, discard=self.rule.on_stop == DISCARD)
            rows = rows.slice(0, 0)
        self._hold(rows)

    def kept(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self.keep])

    def _in_order(self) -> pa.Table:
        """Endless sequence: send on what follows the expected number, or exceeds the window; return the rest."""
        assert self.rule.window is not None
        rows = self._without_twins(self._in_sequence(self.rows))
        if not len(rows):
            return rows
        where, numbers = self.keys.find(Keys.of(rows)), rows.column(SEQUENCE).to_numpy()
        starts = Keys.of(rows).starts()
        ends = np.append(starts[1:], len(rows))
        position = np.arange(len(rows)) - np.repeat(starts, ends - starts)
        runs = np.ones(len(rows), bool)
        runs[1:] = (numbers[1:] != numbers[:-1] + 1) | (where[1:] != where[:-1])
        first_number = self.expected[where[starts]]
        follows = numbers[starts] == first_number
        too_many = np.maximum(ends - starts - self.rule.window, 0)
        least = np.maximum(too_many, follows.astype(np.int64))
        breaks = np.append(np.flatnonzero(runs), len(rows))
        goal = np.where(least > 0, breaks[np.searchsorted(breaks, starts + least)], starts)
        sent = position < np.repeat(np.minimum(goal, ends) - starts, ends - starts)
        going = chosen(rows, sent)
        if len(going):
            self._advance(going)
            self._send(going)
        return chosen(rows, ~sent)

    def _of_sequences(self) -> pa.Table:
        """Send on complete sequences of `size` messages, formed in the order of arrival; return the rest."""
        assert self.rule.size is not None
        rows = ordered(self.rows, Keys.of(self.rows).order())
        while len(rows):
            keys = Keys.of(rows)
            starts = keys.starts()
            found = segments(starts, np.ones(len(rows), np.int64), np.full(len(rows), self.rule.size))
            group = np.repeat(np.arange(len(found.starts)), found.ends - found.starts)
            twins = _twins(group, rows.column(SEQUENCE).to_numpy())
            first_of_key = np.append(starts[1:], len(rows))
            doubtful = np.repeat(np.add.reduceat(twins, starts) > 0, first_of_key - starts)
            sure = ~doubtful
            complete = (found.reasons[group] > 0) & sure
            if complete.any():
                going = chosen(rows, complete)
                order = np.lexsort((going.column(SEQUENCE).to_numpy(), group[complete]))
                self._send(ordered(going, order), group[complete][order])
            left = chosen(rows, sure & ~complete)
            self.incomplete.append(left)
            rows = self._drop_first_twin(rows, twins, doubtful)
        return pa.concat_tables([self.schema.empty_table(), *self.incomplete])

    def _drop_first_twin(self, rows: pa.Table, twins: Flags, doubtful: Flags) -> pa.Table:
        """Drop the first repeated number of each key; the other rows of these keys are cut into sequences again."""
        keys = Keys.of(rows)
        where = np.flatnonzero(twins)
        first = where[keys[where].starts()]
        gone = np.zeros(len(rows), bool)
        gone[first] = True
        self._duplicates(chosen(rows, gone))
        return chosen(rows, doubtful & ~gone)

    def _without_twins(self, rows: pa.Table) -> pa.Table:
        numbers, keys = rows.column(SEQUENCE).to_numpy(), Keys.of(rows)
        twins = np.zeros(len(rows), bool)
        same = (keys.high[1:] == keys.high[:-1]) & (keys.low[1:] == keys.low[:-1])
        twins[1:] = same & (numbers[1:] == numbers[:-1])
        self._duplicates(chosen(rows, twins))
        return chosen(rows, ~twins)

    def _in_sequence(self, rows: pa.Table) -> pa.Table:
        """The rows sorted by key and number; equal numbers stay in the order of arrival."""
        keys = Keys.of(rows)
        return ordered(rows, np.lexsort((rows.column(SEQUENCE).to_numpy(), keys.low, keys.high)))

    def _advance(self, rows: pa.Table) -> None:
        """Expect, for each key, the number after the last of these rows."""
        where = self.keys.find(Keys.of(rows))
        np.maximum.at(self.expected, where, rows.column(SEQUENCE).to_numpy() + 1)

    def _send(self, rows: pa.Table, groups: Numbers | None = None, discard: bool = False) -> None:
        """Send rows on in this order; messages of a group, or else of a key, take the place of its first message."""
        if discard:
            self.out.append(self.rule.fates.filtered(rows))
            return
        together = self.keys.find(Keys.of(rows)) if groups is None else groups
        order = in_place_of_first(rows, np.unique(together, return_inverse=True)[1])
        place = np.full(len(rows), self.rule.fates.here, np.int32)
        self.out.append(replaced(rows, {ORDER: order, AT: place}))

    def _late(self, rows: pa.Table, expected: Numbers) -> None:
        if not len(rows):
            return
        if self.rule.late == PASS:
            self.out.append(rows)
            return
        numbers = rows.column(SEQUENCE).to_pylist()
        reasons = pa.array([late_reason(*pair) for pair in zip(numbers, expected.tolist(), strict=True)], pa.string())
        self.out.append(self.rule.fates.declared(rows, self.rule.late, LATE_MESSAGE, reasons))

    def _duplicates(self, rows: pa.Table) -> None:
        if len(rows):
            reasons = pa.array([duplicate_reason(number) for number in rows.column(SEQUENCE).to_pylist()], pa.string())
            self.out.append(self.rule.fates.declared(rows, self.rule.duplicate, DUPLICATE_SEQUENCE, reasons))

    def _members(self, rows: pa.Table) -> pa.Table:
        columns = {name: rows[name] for name in (HIGH, LOW, SEQUENCE, *self.rule.carried.names)}
        columns |= {GONE: pa.repeat(pa.scalar(False), len(rows)), WEIGHT: pa.repeat(pa.scalar(1), len(rows))}
        return filled(self.schema, len(rows), columns)

    def _hold(self, rows: pa.Table) -> None:
        """Keep the messages that wait and, of every endless sequence, the number expected next."""
        rows = ordered(rows, Keys.of(rows).order())
        where = self.keys.find(Keys.of(rows))
        deadlines = self._after(self.rule.timeout)
        self.keep.append(replaced(rows, {
            DEADLINE: deadlines[where], TOUCHED: self.touched[where],
        }).cast(self.schema))  # fmt: skip
        if self.rule.window is None:
            return
        ends = np.where(self._having(rows), deadlines, self._after(self.rule.keep))
        marked = self.started
        keys = self.keys[marked]
        columns = {
            HIGH: pa.array(keys.high), LOW: pa.array(keys.low), WEIGHT: pa.array(np.zeros(len(keys), np.int64)),
            DEADLINE: pa.array(ends[marked]), TOUCHED: pa.array(self.touched[marked]),
            GONE: pa.array(np.zeros(len(keys), bool)), EXPECTED: pa.array(self.expected[marked]),
        }  # fmt: skip
        self.keep.append(filled(self.schema, len(keys), columns))

    def _having(self, rows: pa.Table) -> Flags:
        """Whether each key has some of these rows."""
        having = np.zeros(len(self.keys), bool)
        having[self.keys.find(Keys.of(rows))] = True
        return having

    def _after(self, wait: float | None) -> Numbers:
        """The time so many seconds after the last arrival of each key; never, if `seconds` is None."""
        return np.full(len(self.keys), NEVER) if wait is None else self.touched + round(wait * SECOND)


def _twins(group: Numbers, numbers: Numbers) -> Flags:
    """Which rows repeat a number of their group."""
    order = np.lexsort((np.arange(len(group)), numbers, group))
    twin = np.zeros(len(group), bool)
    same = (group[order][1:] == group[order][:-1]) & (numbers[order][1:] == numbers[order][:-1])
    twin[order[1:][same]] = True
    return twin
