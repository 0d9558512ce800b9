"""Raw bodies to typed columns, with the same decoders that the reference uses, a whole Arrow batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf

from penstock.expr import nodes
from penstock.expr.evaluate import expression_key
from penstock.formats import Format, Malformed
from penstock.formats.arrow import arrow_type
from penstock.plan.plan import Entry
from penstock.schema import STRING, VARIANT, Array, Map, Struct, Type
from penstock.spark.types import has_variant, spark_type

BAD = spark.StructType(
    [spark.StructField("error", spark.StringType()), spark.StructField("reason", spark.StringType())]
)
BAD_ARROW = pa.struct([("error", pa.string()), ("reason", pa.string())])


def decoded_type(entry: Entry) -> Struct:
    """The fields that the entry's decoder fills; a VARIANT travels as JSON text."""
    fields = [(name, as_text(kind)) for name, kind in entry.scope.wanted.fields]
    paths = [(expression_key(path), path.kind) for path in entry.paths if isinstance(path, nodes.XPath)]
    return Struct((*fields, *paths))


def as_text(kind: Type) -> Type:
    match kind:
        case Array(element):
            return Array(as_text(element))
        case Map(value):
            return Map(as_text(value))
        case Struct(fields):
            return Struct(tuple((name, as_text(inner)) for name, inner in fields))
    return STRING if kind == VARIANT else kind


def reads_nothing(entry: Entry) -> bool:
    return not decoded_type(entry).fields


class Decoder:
    """Decodes batches for one entry; small, and pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.format: Format = entry.format
        self.wanted: Struct = entry.scope.wanted
        self.xpaths = tuple((path.path, path.kind) for path in entry.paths if isinstance(path, nodes.XPath))
        self.fields = arrow_type(decoded_type(entry))

    def __call__(self, bodies: pa.Array) -> tuple[pa.StructArray, pa.StructArray]:
        """The fields, null where the body is bad, and what is wrong there, null elsewhere."""
        columns, failures = self.format.decode_batch(bodies, self.wanted, xpaths=self.xpaths)
        fields = (
            pa.StructArray.from_arrays(columns.flatten(), fields=list(self.fields)) if len(self.fields) else columns
        )
        return fields, _bad(failures, len(bodies))


def _bad(failures: list[tuple[int, Malformed]], length: int) -> pa.StructArray:
    if not failures:
        return pa.nulls(length, BAD_ARROW)
    rows: list[dict[str, str] | None] = [None] * length
    for index, malformed in failures:
        rows[index] = {"error": malformed.error, "reason": malformed.reason}
    return pa.array(rows, BAD_ARROW)


def decode(data: DataFrame, entry: Entry, body: Column, label: str) -> DataFrame:
    """The DataFrame with columns `fields` and `bad`, made by a function that the physical plan shows as `label`."""
    decoder = Decoder(entry)
    result = spark.StructType(
        [
            spark.StructField("fields", spark_type(decoded_type(entry))),
            spark.StructField("bad", BAD),
        ]
    )

    def decode_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for bodies in batches:
            fields, bad = decoder(bodies)
            yield pa.StructArray.from_arrays([fields, bad], names=["fields", "bad"])

    decode_batches.__name__ = label
    # Not deterministic, for Spark: else it may decode before the limit of a DataFrame, or in each part of a union.
    udf = arrow_udf(decode_batches, result).asNondeterministic()  # type: ignore[call-overload]
    decoded = data.withColumn("_decoded", udf(body))
    return decoded.withColumns({"fields": F.col("_decoded.fields"), "bad": F.col("_decoded.bad")}).drop("_decoded")


def typed(column: Column, kind: Type) -> Column:
    """Decoded fields with JSON text turned into VARIANT where the schema says so."""
    if not has_variant(kind):
        return column
    match kind:
        case Array(element):
            return F.transform(column, lambda item: typed(item, element))
        case Map(value):
            return F.transform_values(column, lambda _, item: typed(item, value))
        case Struct(fields):
            rebuilt = F.struct(*(typed(column.getField(name), inner).alias(name) for name, inner in fields))
            return F.when(column.isNotNull(), rebuilt)
    return F.try_parse_json(column)
