"""Send dead letters through their app again, so that a crash at any moment neither loses nor doubles a message.

Everything is computed first. Then the record of the replay is written, with the letters that it took and what is to be
published: from here on they count as replayed. Then it is published. A replay that dies before its record has changed
nothing; one that dies later is published to its end, not computed again, by the next replay.

A replay into the state of a stream is also recorded beside that state, and counts from then on. If it dies later, the
stream or the next replay finishes it; if it dies earlier, it has no effect.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.dead.letter import Letter
from penstock.dead.outlook import Outlook, outlook
from penstock.dead.store import Replay, Store
from penstock.errors import BadEndpoint, CannotReplay, PenstockError
from penstock.route.app import App

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.run import RunResult
    from penstock.spark.write.intent import Intent


def replay(
    app: App, store: Store, letters: Sequence[Letter], at: str, source: str | None = None,
    spark: SparkSession | None = None, checkpoint: str | None = None, fresh: bool = False,
) -> RunResult:  # fmt: skip
    """Send the letters through the app and write down that they were.

    If they may come to a step that remembers messages, `checkpoint` is the stream whose memory that is, or `fresh`
    says that there is none.
    """
    from penstock.spark.replay import replay as run

    check_memory(outlook(app.plan, letters, at, source), checkpoint, fresh)
    # Without state nothing is written beside the stream that could say that a replay counts.
    key, place = key_of(app, letters), os.path.abspath(checkpoint) if checkpoint and app.plan.remembers else ""
    names, now = tuple(one.name for one in letters), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    taken = Replay(key, now, at, names, checkpoint=place)

    def record(intent: Intent) -> None:
        store.write(msgspec.structs.replace(taken, pending=msgspec.json.encode(intent).decode()))

    result = run(app, [one.dead for one in letters], at, source, key, store.staging, record, spark, checkpoint)
    store.write(taken)
    return result


def check_memory(known: Outlook, checkpoint: str | None, fresh: bool) -> None:
    """Letters that come to a step with memory have to meet what it remembers, and be remembered."""
    if known.memory is not None and not checkpoint and not fresh:
        raise CannotReplay(
            f"step {known.memory.title!r} remembers messages, and nobody said where its memory is",
            fix="name the checkpoint of the stream: --checkpoint DIR; for letters of batch runs, which have no memory,"
            " write --fresh",
        )


def finish(app: App, store: Store) -> list[Replay]:
    """Publish what earlier replays have computed and could not publish to the end; remove what others have left."""
    from penstock.spark.replay import finish as publish
    from penstock.spark.replay import finish_beside, sweep
    from penstock.spark.write.intent import Intent

    unfinished, finished = [one for one in store.replays() if one.pending], list[Replay]()
    for one in unfinished:
        intent, counts = msgspec.json.decode(one.pending, type=Intent), True
        try:
            if one.checkpoint:
                counts = finish_beside(app, intent, one.checkpoint)
            else:
                publish(app, intent, store.staging)
        except PenstockError as error:
            raise BadEndpoint(f"replay {one.key} died before it was published, and cannot be finished: {error.what}",
                              error.origin, error.fix) from error  # fmt: skip
        store.write(msgspec.structs.replace(one, pending="", letters=one.letters if counts else ()))
        finished += [one] if counts else []
    sweep(app, f"{app.name}-replay-", store.staging)
    return finished


def key_of(app: App, letters: Sequence[Letter]) -> str:
    """The name of a replay: the same letters, replayed as often before, give the same one.

    So a replay that is repeated because its record was lost replaces its own files and rows.
    """
    names = "\n".join(sorted(f"{letter.name} {letter.replays}{_correction(letter)}" for letter in letters))
    return f"{app.name}-replay-{hashlib.sha256(names.encode()).hexdigest()[:12]}"


def _correction(letter: Letter) -> str:
    return f" {hashlib.sha256(letter.dead.message.raw).hexdigest()}" if letter.corrected else ""
