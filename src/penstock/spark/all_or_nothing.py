"""A batch run that is published whole or not at all: all its passes are computed first, and become one intent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from penstock.spark.budget import check_budget
from penstock.spark.execute import Executed
from penstock.spark.manifest import forget
from penstock.spark.passes import Passes
from penstock.spark.tasks.readers import Arrivals
from penstock.spark.tasks.run import TaskRun
from penstock.spark.write.intent import Counts, Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging
from penstock.summary import Step

_PARTITIONS = 1_000_000
"""More partitions than a pass has, so that the files of a later pass are numbered behind those of earlier ones."""


@dataclass(frozen=True)
class Whole:
    """All passes of a run, staged: the intent to publish, how many messages came in, and how many wait at each step."""

    intent: Intent
    received: int
    targets: Mapping[int, Target]
    stagings: tuple[Staging, ...]
    waiting: Mapping[str, int]

    def seal(self) -> None:
        """Fsync the directories of all staged files, so that their names survive a power failure."""
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
    run: TaskRun, arrivals: Arrivals, passes: Passes | None, key: str, scratch: str, lasting: str
) -> Whole:
    """Compute all passes over the messages, within the error budget; no sink has changed when this returns."""
    executed: list[Executed] = []
    try:
        for done in _executed(run, arrivals, passes, key, scratch, lasting):
            executed.append(done)
    except BaseException:
        for done in executed:
            forget(run.targets, done.staging)
        raise
    stagings, received = tuple(done.staging for done in executed), executed[0].received
    return _within_budget(run, Whole(_joined(key, executed), received, run.targets, stagings, executed[-1].waiting))


def computed_beside(passes: Passes, run: TaskRun, arrivals: Arrivals, staging: Staging) -> Whole:
    """Compute the one pass of a replay into the state of a stream, where messages may go on waiting."""
    done = passes.replay(run, arrivals, staging)
    return _within_budget(run, Whole(done.intent, done.received, run.targets, (staging,), {}))


def _within_budget(run: TaskRun, whole: Whole) -> Whole:
    try:
        check_budget(run.plan, whole.intent, run.targets)
    except BaseException:
        whole.forget()
        raise
    return whole


def _executed(
    run: TaskRun, arrivals: Arrivals, passes: Passes | None, key: str, scratch: str, lasting: str
) -> Iterator[Executed]:
    if passes is not None:
        yield from passes.until_quiet(run, arrivals, key, scratch, lasting, held=True)
        return
    staging = Staging(key, scratch, lasting)
    yield Executed(*run.compute(arrivals, staging), Kept(), staging)


def _joined(key: str, executed: Sequence[Executed]) -> Intent:
    files = tuple(
        replace(file, partition=number * _PARTITIONS + file.partition)
        for number, done in enumerate(executed)
        for file in done.intent.files
    )
    return Intent(key, _sum([done.intent.counts for done in executed]), files)


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
