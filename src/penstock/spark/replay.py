"""Send dead letters through an app again, each at the step that failed or at the start, into the app's own sinks."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

import msgspec
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.durable import remove_if_empty
from penstock.message import DeadLetter
from penstock.patterns.key import FLUSH
from penstock.plan.build import build
from penstock.plan.plan import Plan
from penstock.reference.resume import STEP, Entrance, entrances
from penstock.route.app import App
from penstock.spark.all_or_nothing import Whole, computed, computed_beside
from penstock.spark.beside import beside
from penstock.spark.failure import stopped
from penstock.spark.passes import Passes
from penstock.spark.run import RunResult, summarized
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.table import StateTable
from penstock.spark.tasks.readers import Arrivals, Given, LetterReader, Letters
from penstock.spark.tasks.run import TaskRun
from penstock.spark.write.console import show
from penstock.spark.write.intent import Intent, Journal
from penstock.spark.write.outlets import Target, promised, targets
from penstock.spark.write.preparing import prepared
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging, remove_staged
from penstock.summary import Summary


def replay(
    app: App,
    letters: Iterable[DeadLetter],
    at: str = STEP,
    source: str | None = None,
    key: str | None = None,
    lasting: str | None = None,
    record: Callable[[Intent], None] | None = None,
    spark: SparkSession | None = None,
    checkpoint: str | None = None,
) -> RunResult:
    """Dead letters as one batch; what cannot go on is raised before Spark starts.

    With the `checkpoint` of a stream they meet what its steps remember, and are remembered; without, the memory is
    empty, and is forgotten.

    All of it is computed before the first sink changes. With `record`, what will be published is written down in
    between, so that a replay that dies later can be finished by `finish`; rows for servers wait in
    `lasting`, or in the checkpoint.
    """
    plan = build(app)
    found = entrances(plan, letters, at, source)
    result = RunResult(Summary(app.name), {outlet.channel: [] for outlet in plan.outlets})
    if not found:
        return result
    outlets = prepared(promised(targets(plan)))
    spark = spark or session(app.name)
    ship(spark)
    started = time.monotonic()
    arrivals = Arrivals([arriving_again(plan, found)])
    with ExitStack() as held:
        scratch = held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True))
        passes = held.enter_context(beside(plan, checkpoint)) if checkpoint else None
        run, last = key or f"{app.name}-replay-{uuid.uuid4().hex[:12]}", lasting or scratch
        if checkpoint and passes is not None:  # whoever finishes it there looks for its rows there
            last = Journal(os.path.abspath(checkpoint)).staging
        try:
            if passes is not None:
                beginning = TaskRun(spark, plan, passes.targets(outlets))
                whole = computed_beside(passes, beginning, arrivals, Staging(run, scratch, last))
            else:
                alone = Passes(plan, StateTable(os.path.join(scratch, "state"), FLUSH)) if plan.remembers else None
                beginning = TaskRun(spark, plan, outlets if alone is None else alone.targets(outlets))
                whole = computed(beginning, arrivals, alone, run, scratch, last)
            kept, waiting = _published(whole, passes, record)
        except (PySparkException, Py4JJavaError) as error:
            raise stopped("replay", error, fix="nothing was written: mend the cause and replay again") from error
    show(kept, outlets)
    seconds = time.monotonic() - started
    result.add(summarized(plan, whole.intent.counts, len(found), seconds, waiting), kept)
    return result


def _published(
    whole: Whole, passes: Passes | None, record: Callable[[Intent], None] | None
) -> tuple[Kept, Mapping[str, int]]:
    """Written down, then published; and how many wait at each step after it."""
    intent = _lasting(whole.intent, whole.targets.values())
    try:
        if record is not None or passes is not None:
            whole.seal()
        if record is not None:
            record(intent)
        if passes is not None:
            passes.begin_replay(intent)
    except BaseException:
        whole.forget()
        raise
    kept = whole.publish()
    return kept, whole.waiting if passes is None else passes.end_replay(intent)


def finish(app: App, intent: Intent, lasting: str) -> None:
    """Publish a replay that was computed and died before its end; what is already published stays as it is."""
    outlets = prepared(promised(targets(app.plan)))
    publish(intent, outlets, Staging(intent.key, lasting, lasting), again=True)


def finish_beside(app: App, intent: Intent, checkpoint: str) -> bool:
    """Finish a replay into the state of a stream; False if it died before it was recorded there."""
    with beside(build(app), checkpoint) as passes:  # what was begun there is published now
        return passes is not None and passes.table.has_replayed(intent.key)


def sweep(app: App, keys: str, lasting: str) -> None:
    """Remove the staged files of replays with such keys, none of which may be running."""
    for target in targets(app.plan).values():
        parent = Staging("", lasting, lasting).parent(target)
        remove_staged(parent, keys)
        if target.directory:
            remove_if_empty(parent)


def _lasting(intent: Intent, outlets: Iterable[Target]) -> Intent:
    names = {target.name for target in outlets if target.lasts}
    return msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel in names))


def arriving_again(plan: Plan, found: Sequence[Entrance]) -> Given:
    """The letters in groups that enter at the same place and are decoded in the same way."""
    groups: dict[tuple[str, int, bool], list[tuple[int, Entrance]]] = {}
    for number, one in enumerate(found):
        title = one.reader.route if one.stage is None else one.stage.title
        groups.setdefault((title, one.reader.scope.number, one.stage is None), []).append((number, one))
    sources = {entry.route: number for number, entry in enumerate(plan.entries)}
    pieces = []
    for group in groups.values():
        first = group[0][1]
        pieces.append(Letters.of(group, sources[first.reader.route] if first.stage is None else 0))
    return Given(LetterReader(), pieces)
