"""A stream whose micro-batches are run by the tasks that read them.

Spark keeps the position and says when a batch begins, but it hands no message on, unless it is a row of a DataFrame:
what a batch has is what its sources have between the offsets in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.spark.read.dataframes import SOURCE, rows_of
from penstock.spark.read.pieces import PieceStream
from penstock.spark.read.positions import check_positions
from penstock.spark.read.source import unread
from penstock.spark.tasks.readers import Arrivals, Given
from penstock.spark.tasks.run import TaskRun
from penstock.spark.write.intent import Journal

_NO_ROWS = StructType([StructField(SOURCE, IntegerType())])


class TaskStream:
    """`sources` are those that tasks read piece by piece, by their number in the plan."""

    def __init__(self, run: TaskRun, sources: Mapping[int, PieceStream], journal: Journal) -> None:
        self.run, self.sources, self.journal = run, sources, journal
        self.rows = rows_of(run.plan.entries, streaming=True)

    def data(self) -> DataFrame:
        """All that Spark keeps a position of. DataFrames are the last ones: nobody knows how many sources they have."""
        schema = _NO_ROWS if self.rows is None else self.rows.schema
        found = [unread(self.run.spark, source, schema) for source in self.sources.values()]
        return reduce(DataFrame.union, found if self.rows is None else [*found, self.rows])

    def check_positions(self) -> None:
        """The checkpoint has positions that these sources understand."""
        last = self.journal.last
        if last is not None:
            entries = [self.run.plan.entries[number] for number in self.sources]
            check_positions(entries, self.journal.reached(last))

    def arrivals(self, number: int, data: DataFrame) -> Arrivals:
        """What a batch reads. `data` are the rows that Spark has for it."""
        ends = self.journal.reached(number)
        starts = self.journal.reached(number - 1) if number else [None] * len(ends)
        given = []
        reached = zip(self.sources.items(), starts, ends, strict=False)  # behind them those of DataFrames and of time
        for (place, source), start, end in reached:
            if end is not None:
                pieces = source.between(source.initialOffset() if start is None else start, end)
                given.append(Given(self.run.readers[place], pieces))
        return Arrivals(given, None if self.rows is None else data)
