"""DataFrames of the user's as a source: Spark computes their rows, and tasks get them as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.endpoints.simple import Frame
from penstock.envelope import ATTACHMENTS, BODY, ENVELOPE, HEADERS, ID, OFFSET, PARTITION, TIME, TOPIC
from penstock.errors import BadEndpoint, UnknownField
from penstock.kernel.block import Arrived
from penstock.plan.plan import Entry

SOURCE = "source"
"""The number of the source that a row comes from."""
_META = {
    ID: "string",
    HEADERS: "map<string, string>",
    ATTACHMENTS: "map<string, binary>",
    TOPIC: "string",
    PARTITION: "int",
    OFFSET: "bigint",
    TIME: "timestamp",
}
_DEFAULTS = {TOPIC: "''", PARTITION: "0", OFFSET: "0"}


def framed(entry: Entry, streaming: bool) -> DataFrame:
    """The bodies, and beside them the columns of the envelope that the DataFrame has, or else a number for each row."""
    source = entry.source
    assert isinstance(source, Frame)
    data: DataFrame = source.dataframe
    _check(entry, source, streaming)
    names = [name for name in data.columns if name in _META and name != source.column]
    kept = {name: F.col(f"`{name}`").cast(_META[name]) for name in names}
    if OFFSET in kept:
        kept[OFFSET] = F.coalesce(kept[OFFSET], F.lit(0))
    raw = F.col(f"`{source.column}`").cast("binary")
    made = {BODY: F.coalesce(raw, F.lit(b""))}
    if ID not in kept and OFFSET not in kept:
        made |= _numbered(raw, streaming)
    return data.select(*(column.alias(name) for name, column in (made | kept).items()))


def _check(entry: Entry, source: Frame, streaming: bool) -> None:
    data: DataFrame = source.dataframe
    if data.isStreaming != streaming:
        kind, other = ("streaming", "batch") if data.isStreaming else ("batch", "streaming")
        raise BadEndpoint(
            f"route {entry.route!r} reads a {kind} DataFrame in a {other} run",
            fix="run it as a stream" if data.isStreaming else "make it with spark.readStream",
        )
    if source.column not in data.columns:
        raise UnknownField(
            f"the DataFrame of route {entry.route!r} has no column {source.column!r}",
            fix=f"name the column with the raw bodies; it has {', '.join(data.columns)}",
        )
    given = {field.name: field.dataType.simpleString() for field in data.schema.fields}
    _check_type(entry, source.column, given[source.column], ("string", "binary"))
    if HEADERS in given:
        _check_type(entry, HEADERS, given[HEADERS], ("map<string,string>",))


def _check_type(entry: Entry, column: str, found: str, wanted: tuple[str, ...]) -> None:
    if found not in wanted:
        raise BadEndpoint(
            f"column {column!r} of the DataFrame of route {entry.route!r} is {found}, not {' or '.join(wanted)}",
            fix="cast it before, or name another column",
        )


def _numbered(body: Column, streaming: bool) -> dict[str, Column]:
    """The number of each row. On a stream it is a hash of the body, because a replay may number rows in another way."""
    if streaming:
        return {OFFSET: F.pmod(F.xxhash64(body), F.lit(1 << 62))}
    number = F.monotonically_increasing_id()
    return {
        PARTITION: F.shiftright(number, 33).cast("int"),
        OFFSET: number.bitwiseAND(F.lit((1 << 33) - 1)),
    }


def rows_of(entries: Iterable[Entry], streaming: bool) -> DataFrame | None:
    """The rows of all DataFrames together; None if no source is a DataFrame."""
    found = [_whole(framed(entry, streaming), number)
             for number, entry in enumerate(entries) if isinstance(entry.source, Frame)]  # fmt: skip
    return reduce(DataFrame.union, found) if found else None


def _whole(data: DataFrame, number: int) -> DataFrame:
    """The DataFrame with all columns of the envelope, and the number of its source."""
    have = data.columns
    texts = {SOURCE: str(number), BODY: BODY} | {
        name: f"`{name}`" if name in have else f"CAST({_DEFAULTS.get(name, 'NULL')} AS {kind})"
        for name, kind in _META.items()
    }
    return data.selectExpr(*(f"{text} AS `{name}`" for name, text in texts.items()))


class FramePieces:
    """Makes messages of rows; its pieces are Arrow batches, which Spark hands to the task that computes them."""

    def __init__(self, entry: Entry) -> None:
        assert isinstance(entry.source, Frame)
        given = {*entry.source.dataframe.columns} - {entry.source.column}
        self.has_ids, self.has_times = ID in given, TIME in given

    def found(self, cores: int) -> list[pa.RecordBatch]:
        return []

    def blocks(self, rows: pa.RecordBatch) -> Iterator[Arrived]:
        known = {name: rows.column(name).cast(ENVELOPE.field(name).type) for name in (BODY, *_META)}
        topics, partitions, offsets = known[TOPIC], known[PARTITION], known[OFFSET]
        ids = known[ID]
        if not self.has_ids:
            place = (topics, partitions.cast(pa.string()), offsets.cast(pa.string()))
            ids = pc.binary_join_element_wise(*place, "/", null_handling="skip")
        yield Arrived(known[BODY], topics.fill_null(""), partitions.fill_null(0).to_numpy(), offsets.to_numpy(),
                      known[TIME] if self.has_times else None, known[HEADERS], known[ATTACHMENTS], ids)  # fmt: skip
