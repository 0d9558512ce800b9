"""A batch run that is published whole or not at all: all its passes are computed first, and become one intent."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from pyspark.sql import DataFrame

from penstock.patterns.key import FLUSH
from penstock.plan.plan import Plan
from penstock.spark.budget import check_budget
from penstock.spark.execute import Executed, compute
from penstock.spark.lower import lower
from penstock.spark.manifest import forget
from penstock.spark.rounds import Rounds
from penstock.spark.state.table import StateTable
from penstock.spark.write.intent import Counts, Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging
from penstock.summary import Step

_PARTITIONS = 1_000_000
"""More than a pass has: the files of a later pass stand behind those of the ones before."""


@dataclass(frozen=True)
class Whole:
    """All passes of a run, staged: what will be published, the query of the first pass, and who waits in the end."""

    intent: Intent
    query: DataFrame
    targets: Mapping[int, Target]
    stagings: tuple[Staging, ...]
    waiting: Mapping[str, int]

    def seal(self) -> None:
        """Make the names of all staged files last."""
        for staging in self.stagings:
            staging.seal(self.targets.values(), [file for file in self.intent.files if staging.holds(file)])

    def publish(self, first: bool = False) -> Kept:
        kept = publish(self.intent, self.targets, self.stagings[0], first)
        self.forget()
        return kept

    def forget(self) -> None:
        for staging in self.stagings:
            forget(self.targets, staging)


def computed(
    plan: Plan,
    data: DataFrame,
    targets: Mapping[int, Target],
    key: str,
    scratch: str,
    lasting: str,
    resumes_at: Collection[str] = (),
) -> Whole:
    """All passes over the messages, within their error budget; no sink has changed when this ends."""
    passes: list[Executed] = []
    try:
        for done in _passes(plan, data, targets, key, scratch, lasting, resumes_at):
            passes.append(done)
    except BaseException:
        for done in passes:
            forget(targets, done.staging)
        raise
    stagings = tuple(done.staging for done in passes)
    whole = Whole(_joined(key, passes), passes[0].query, targets, stagings, passes[-1].waiting)
    try:
        check_budget(plan, whole.intent, targets)
    except BaseException:
        whole.forget()
        raise
    return whole


def _passes(
    plan: Plan,
    data: DataFrame,
    targets: Mapping[int, Target],
    key: str,
    scratch: str,
    lasting: str,
    resumes_at: Collection[str],
) -> Iterator[Executed]:
    if plan.remembers:
        rounds = Rounds(plan, StateTable(os.path.join(scratch, "state"), FLUSH), resumes_at)
        yield from rounds.until_quiet(data, targets, key, scratch, lasting, held=True)
        return
    staging = Staging(key, scratch, lasting)
    intent, query = compute(lower(plan, data, resumes_at=resumes_at), plan, targets, staging)
    yield Executed(intent, Kept(), query, staging)


def _joined(key: str, passes: Sequence[Executed]) -> Intent:
    files = tuple(
        replace(file, partition=number * _PARTITIONS + file.partition)
        for number, done in enumerate(passes)
        for file in done.intent.files
    )
    return Intent(key, _sum([done.intent.counts for done in passes]), files)


def _sum(counts: Sequence[Counts]) -> Counts:
    delivered: Counter[str] = Counter()
    filtered: Counter[str] = Counter()
    steps: dict[str, Step] = {}
    for one in counts:
        delivered.update(one.delivered)
        filtered.update(one.filtered)
        steps |= {title: steps.get(title, Step()) + step for title, step in one.steps.items()}
    return Counts(
        delivered,
        filtered,
        sum(one.dead for one in counts),
        sum(one.copied for one in counts),
        sum(one.held for one in counts),
        steps,
    )
