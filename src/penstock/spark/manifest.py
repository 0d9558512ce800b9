"""Run the tasks of a pass and collect what they report: the files they staged, and notes for the driver."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from pyspark import SparkContext
from pyspark.sql import Row

from penstock.spark.write.intent import StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging


def reported(run: Callable[[], list[Row]], targets: Mapping[int, Target], staging: Staging) -> list[Row]:
    """Run the tasks and return what they report; files that earlier attempts staged are removed first.

    If the tasks fail or are interrupted, they are told to stop and waited for, and what they staged is removed. Only
    then is the error raised, so nothing is written after it.
    """
    forget(targets, staging)
    staging.gate.open()
    context = SparkContext._active_spark_context
    assert context is not None
    tag = f"penstock-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        rows = run()
        for row in rows:
            if row.place in targets:
                staging.check_visible(targets[row.place], row.path)
    except BaseException as error:
        # Spark's own end of an interrupted call may fail, too, and hide why.
        interrupted = isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)
        _cancel(context, tag)
        staging.gate.close()
        forget(targets, staging)
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(Exception):
            context.removeJobTag(tag)
    return rows


def _cancel(context: SparkContext, tag: str) -> None:
    """Cancel the jobs in a thread of its own, because an interrupted thread has lost its connection to Java."""

    def cancel() -> None:
        with suppress(Exception):
            context.cancelJobsWithTag(tag)

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    thread.join()


def staged(rows: Sequence[Row], targets: Mapping[int, Target], staging: Staging) -> tuple[StagedFile, ...]:
    return tuple(
        StagedFile(target.name, row.path, staging.final(target, row.partition), row.rows, row.partition)
        for row in rows
        if (target := targets.get(row.place)) is not None
    )


def forget(targets: Mapping[int, Target], staging: Staging) -> None:
    """Remove the files that a pass has staged."""
    for target in targets.values():
        staging.clear(target)
