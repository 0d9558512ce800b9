"""A driver of its own: it runs one app after the other on a master, as the lines of its input ask.

A line is JSON with the directory of an app and whether it runs as a stream; so is the answer, with the numbers.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from penstock.endpoints import lookup
from penstock.route.load import load
from penstock.spark.run import run_batch
from penstock.spark.session import session
from penstock.spark.stream import run_stream

SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
}


def main(master: str) -> None:
    # Tables travel as files of their own, as large ones do.
    lookup.SMALL_BYTES = 0
    spark = session("tests", master, SETTINGS)
    for line in sys.stdin:
        order = json.loads(line)
        with contextlib.chdir(order["directory"]):
            app = load(os.path.abspath("app.py"))
            result = run_stream(app, "position", once=True, spark=spark) if order["stream"] else run_batch(app, spark)
        print(json.dumps(result.summary.as_dict()), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
