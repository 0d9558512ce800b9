"""Polars: the same work as expressions in one process, the upper limit of an engine that works on columns.

What comes out is collected as a frame of bodies and channels, so that no body is left out as unused.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.peers.fields import SYNONYMS
from penstock.bench.peers.protocol import Job, count_lines, main, write_channels

if TYPE_CHECKING:
    import polars as pl


class Polars:
    name = "polars"

    def __init__(self) -> None:
        import polars as pl

        self.version = pl.__version__

    def load(self, job: Job) -> LoadedFrame:
        return LoadedFrame(job)


class LoadedFrame:
    """The frame of a job, built again for every iteration."""

    def __init__(self, job: Job) -> None:
        import polars as pl

        from penstock.bench.peers.polars_frames import frame_of

        if pl.thread_pool_size() != job.threads:
            raise ValueError(f"this process has {pl.thread_pool_size()} threads, the job wants {job.threads}")
        self._frame = frame_of(SYNONYMS.get(job.workload, job.workload), job)
        self.messages = count_lines(job.inputs)

    def run(self) -> Mapping[str, int]:
        counted = self._collected()["channel"].value_counts(sort=True)
        return dict(counted.iter_rows())

    def write(self, directory: Path) -> Mapping[str, int]:
        return write_channels(directory, self._collected().select("channel", "body").iter_rows())

    def close(self) -> None: ...

    def _collected(self) -> pl.DataFrame:
        return self._frame().collect(engine="streaming")


def set_threads(arguments: Path) -> None:
    """Tell Polars the threads of the first job; it wants to know when it is imported."""
    given = json.loads(arguments.read_text(encoding="utf-8"))
    first = given[0] if isinstance(given, list) else given
    os.environ["POLARS_MAX_THREADS"] = str(first.get("threads", Job.threads))


if __name__ == "__main__":
    set_threads(Path(sys.argv[1]))
    main(Polars())
