"""Every step of a plan as a function over blocks, which tries failed messages again where redelivery has no delay."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.failures import FUNCTION_FAILED
from penstock.kernel import content, routing, splitting
from penstock.kernel.asked import Questions
from penstock.kernel.block import Block
from penstock.kernel.headers import with_headers
from penstock.kernel.outcome import Died, Outcome, Raised
from penstock.kernel.state.keying import keyed
from penstock.kernel.work import Work, Works
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.node import DEAD
from penstock.patterns.redelivery import REDELIVERED
from penstock.patterns.resequence import Resequence
from penstock.patterns.to import To
from penstock.plan.plan import Stage

STEPS: Works = {
    **routing.STEPS, **content.STEPS, **splitting.STEPS,
    Aggregate: keyed, Resequence: keyed, Idempotent: keyed,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of a plan with its prepared expressions and its function; pickled to the workers."""

    stage: Stage
    questions: Questions
    work: Work

    @classmethod
    def of(cls, stage: Stage) -> Step:
        if isinstance(stage.node, To):  # a worker has no business with the sink of a channel
            stage = replace(stage, node=replace(stage.node, sink=None))
        questions = Questions(stage, strict=getattr(stage.node, "missing", None) == DEAD)
        assert type(stage.node) in STEPS, f"no kernel for {stage.node!r}"
        return cls(stage, questions, STEPS[type(stage.node)])

    def __call__(self, block: Block) -> Outcome:
        """The outcome for a block, after the last try of messages that are tried again at once."""
        outcome = self._once(block)
        if self.stage.at_once is None:
            return outcome
        pieces, outcome.died = [piece for died in outcome.died for piece in _by_fate(died, self.stage)], []
        while pieces:
            died, is_tried = pieces.pop()
            if not is_tried:
                outcome.died.append(died)
                continue
            later = self._once(tried_again(died.block))
            failed, later.died = later.died, []
            outcome.add(later, died.rows)
            again = (replace(one, rows=died.rows[one.rows]) for one in failed)
            pieces += [piece for one in again for piece in _by_fate(one, self.stage)]
        return outcome

    def _once(self, block: Block) -> Outcome:
        rows, asked, failures = np.arange(len(block)), self.questions.about(block), dict[int, str | Exception]()
        while True:
            if asked.failures:
                failed = np.fromiter(asked.failures, np.int64, len(asked.failures))
                failures |= dict(zip(rows[failed].tolist(), asked.failures.values(), strict=True))
                is_good = np.ones(len(rows), bool)
                is_good[failed] = False
                good = np.flatnonzero(is_good)
                rows, asked = rows[good], asked.only(good)
            outcome = self.work(self.stage.node, asked.block, asked) if len(rows) else Outcome()
            if not asked.failures:
                break
        if failures:
            found, outcome = outcome, Outcome()
            outcome.add(found, rows)
            dead = np.array(sorted(failures))
            outcome.bury(block, dead, FUNCTION_FAILED, Raised([failures[row] for row in dead.tolist()]))
        return outcome


def _by_fate(died: Died, stage: Stage) -> list[tuple[Died, bool]]:
    """Divide failed messages into those that are tried again at once (True) and dead letters (False)."""
    granted = {error: 0 if died.number is not None else stage.tries(error) for error in set(died.errors)}
    again = died.block.tries <= np.array([granted[error] for error in died.errors])
    fates = ((again, True), (~again, False))
    return [(died.some(np.flatnonzero(chosen)), fate) for chosen, fate in fates if chosen.any()]


def tried_again(failed: Block, form: Block | None = None) -> Block:
    """Failed messages for their next try, in the earlier form `form` if given, with the header that counts tries."""
    counted = with_headers(form or failed, {REDELIVERED: pa.array(failed.tries).cast(pa.string())})
    return replace(counted, attempt=failed.tries + 1)
