"""DuckDB: the same work as SQL in one process, the upper limit of an engine that works on columns.

What comes out is kept as a table of bodies and channels in memory, so that no body is left out as unused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from penstock.bench.peers.duckdb_queries import query_of
from penstock.bench.peers.fields import SYNONYMS
from penstock.bench.peers.protocol import Job, count_lines, longest_line, main, write_channels

LINES = """CREATE VIEW messages AS SELECT line FROM read_csv({files}, columns = {{'line': 'VARCHAR'}}, delim = '\\x01',
quote = '', escape = '', header = false, auto_detect = false, max_line_size = {longest})"""


class DuckDb:
    name = "duckdb"
    version = duckdb.__version__

    def load(self, job: Job) -> LoadedQuery:
        return LoadedQuery(job)


class LoadedQuery:
    """A connection to a database in memory with the tables of the job."""

    def __init__(self, job: Job) -> None:
        query = query_of(SYNONYMS.get(job.workload, job.workload), job)
        self._statement = f"CREATE OR REPLACE TEMP TABLE delivered AS {query}"
        self.messages = count_lines(job.inputs)
        in_order = job.workload.startswith("MDS-2-")
        self._connection = duckdb.connect(
            config={
                "threads": job.threads,
                "preserve_insertion_order": in_order,
                # It has no idea how long the files are, and would build its hash table from them.
                "disabled_optimizers": "join_order,build_side_probe_side",
            }
        )
        longest = max(2_000_000, longest_line(job.inputs) + 1)
        self._connection.execute(LINES.format(files=list(job.inputs), longest=longest))
        if "customers" in job.tables:
            source = f"read_json({list(job.tables['customers'])}, format = 'newline_delimited')"
            self._connection.execute(f"CREATE TABLE customers AS SELECT * FROM {source}")

    def run(self) -> Mapping[str, int]:
        self._connection.execute(self._statement)
        counted = self._connection.execute("SELECT channel, count(*) FROM delivered GROUP BY channel ORDER BY channel")
        return dict(counted.fetchall())

    def write(self, directory: Path) -> Mapping[str, int]:
        self._connection.execute(self._statement)
        rows = self._connection.execute("SELECT channel, body FROM delivered ORDER BY rowid")
        return write_channels(directory, iter(rows.fetchone, None))

    def close(self) -> None:
        self._connection.close()


if __name__ == "__main__":
    main(DuckDb())
