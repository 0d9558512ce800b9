"""Dead letters through their app again, so that a crash at any moment neither loses nor doubles a message.

Everything is computed first. Then the record of the replay is written, with the letters that it took and what is to
be published: from here on they count as replayed. Then it is published. A replay that dies before its record has
changed nothing; one that dies later is finished, not computed again, by the next one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.dead.letter import Letter
from penstock.dead.store import Replay, Store
from penstock.errors import BadEndpoint, PenstockError
from penstock.route.app import App

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.run import RunResult
    from penstock.spark.write.intent import Intent


def replay(
    app: App, store: Store, letters: Sequence[Letter], at: str, source: str | None = None,
    spark: SparkSession | None = None,
) -> RunResult:  # fmt: skip
    """Send the letters through the app and write down that they were."""
    from penstock.spark.replay import replay as run

    key = key_of(app, letters)
    taken = Replay(key, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), at, tuple(one.name for one in letters))

    def record(intent: Intent) -> None:
        store.write(msgspec.structs.replace(taken, pending=msgspec.json.encode(intent).decode()))

    result = run(app, [one.dead for one in letters], at, source, key, store.staging, record, spark)
    store.write(taken)
    return result


def finish(app: App, store: Store) -> list[Replay]:
    """Publish what earlier replays have computed and could not publish to the end; remove what others have left."""
    from penstock.spark.replay import finish as publish
    from penstock.spark.replay import sweep
    from penstock.spark.write.intent import Intent

    unfinished = [one for one in store.replays() if one.pending]
    for one in unfinished:
        try:
            publish(app, msgspec.json.decode(one.pending, type=Intent), store.staging)
        except PenstockError as error:
            raise BadEndpoint(f"replay {one.key} died before it was published, and cannot be finished: {error.what}",
                              error.origin, error.fix) from error  # fmt: skip
        store.write(msgspec.structs.replace(one, pending=""))
    sweep(app, f"{app.name}-replay-", store.staging)
    return unfinished


def key_of(app: App, letters: Sequence[Letter]) -> str:
    """The name of a replay: the same letters, replayed as often before, give the same one.

    So a replay that is repeated because its record was lost replaces its own files and rows.
    """
    names = "\n".join(sorted(f"{letter.name} {letter.replays}" for letter in letters))
    return f"{app.name}-replay-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
