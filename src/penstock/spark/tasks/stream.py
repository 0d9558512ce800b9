"""A stream whose micro-batches are run by the tasks that read them.

Spark keeps the position and says when a batch begins and what it reads, but it hands no message on, unless it is a row
of a DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.failures import DECODE
from penstock.spark.read.dataframes import SOURCE, rows_of
from penstock.spark.read.handover import Handover
from penstock.spark.read.pieces import PieceStream
from penstock.spark.read.source import unread
from penstock.spark.tasks.readers import Arrivals, Given
from penstock.spark.tasks.run import TaskRun
from penstock.summary import Step

_NO_ROWS = StructType([StructField(SOURCE, IntegerType())])


class TaskStream:
    """An app as a stream; `sources` are those that tasks read piece by piece, by their number in the plan.

    The offsets of a batch are handed over in files in `directory`.
    """

    def __init__(self, run: TaskRun, sources: Mapping[int, PieceStream], directory: str) -> None:
        self.run, self.sources = run, sources
        self.handovers = {number: Handover(directory, number) for number in sources}
        self.rows = rows_of(run.plan.entries, streaming=True)

    def data(self) -> DataFrame:
        """All sources as one DataFrame, whose positions Spark keeps; DataFrames last: each may be many sources."""
        schema = _NO_ROWS if self.rows is None else self.rows.schema
        found = [unread(self.run.spark, source, schema, self.handovers[number])
                 for number, source in self.sources.items()]  # fmt: skip
        return reduce(DataFrame.union, found if self.rows is None else [*found, self.rows])

    def arrivals(self, data: DataFrame) -> Arrivals:
        """What the batch that begins now reads; `data` has the rows of DataFrames that Spark gives it."""
        given = []
        for number, handover in self.handovers.items():
            planned = handover.take()
            if planned is not None:
                pieces = self.sources[number].between(planned.start, planned.end)
                given.append(Given(self.run.readers[number], pieces))
        return Arrivals(given, None if self.rows is None else data)

    def show(self, data: DataFrame, steps: Mapping[str, Step]) -> None:
        """Let Spark count the messages of a batch, for its web pages and listeners.

        Not with DataFrames among the sources: Spark has counted their rows, and would compute them again.
        """
        if self.rows is not None:
            return
        for number, handover in self.handovers.items():
            handover.counted(steps[f"{self.run.plan.entries[number].route}.{DECODE}"].received)
        data.write.format("noop").mode("overwrite").save()
