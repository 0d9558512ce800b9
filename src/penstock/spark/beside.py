"""Open the state of a stream for a replay of dead letters between two of its batches."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import BadEndpoint
from penstock.kernel.state.step import state_steps
from penstock.patterns.key import HOLD
from penstock.plan.plan import Plan
from penstock.spark.checkpoint import check_whole, owned, state_of
from penstock.spark.passes import Passes
from penstock.spark.state.table import StateTable
from penstock.spark.upgrade import check_kept, check_same
from penstock.spark.write.intent import Journal
from penstock.spark.write.outlets import targets
from penstock.spark.write.preparing import prepared
from penstock.spark.write.staging import Staging, remove_staged


@contextmanager
def beside(plan: Plan, checkpoint: str) -> Iterator[Passes | None]:
    """Lock the checkpoint and publish what was left unpublished there; gives None if the app has no state."""
    place = os.path.abspath(checkpoint)
    if not os.path.isdir(place):
        raise BadEndpoint(f"there is no checkpoint {place}", fix="check the path; it is relative to where you run")
    with owned(place, f"a replay of app {plan.name!r}"):
        check_whole(place)
        yield _passes(plan, place) if plan.remembers else None


def _passes(plan: Plan, place: str) -> Passes:
    if not os.path.isdir(state_of(place)):
        raise _unstarted(place)
    journal, passes = Journal(place), Passes(plan, StateTable(state_of(place), HOLD))
    staging = Staging(f"{plan.name}-stop-{uuid.uuid4().hex[:8]}", journal.staging, journal.staging)
    if passes.is_interrupted:
        passes.finish_again(prepared(targets(plan)), staging)
    for parent in (staging.lasting, *map(staging.parent, passes.targets({}).values())):
        remove_staged(parent, f"{plan.name}-replay-")  # of replays that never counted
    newest = passes.table.newest
    if newest is None:
        raise _unstarted(place)
    for number in journal.after(newest):
        raise BadEndpoint(f"batch {number} of the stream at {place} is computed, and not published to its end",
                          fix="start the stream there once more, with --once; then replay")  # fmt: skip
    contents = passes.table.contents(journal.notes_after)
    check_same(place, plan, contents)
    for step in state_steps(plan, HOLD):
        check_kept(place, contents, step.title, step.algorithm.payload)
    return passes


def _unstarted(place: str) -> BadEndpoint:
    return BadEndpoint(f"no batch of a stream with state was published at {place}",
                       fix="name the checkpoint of the stream that the letters are of")  # fmt: skip
