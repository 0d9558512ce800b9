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
from penstock.plan.plan import Entry
from penstock.schema import STRING, VARIANT, Array, Map, Struct, Type
from penstock.spark.frame import BAD_ERROR, BAD_REASON, field_column
from penstock.spark.types import has_variant, spark_type


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


def decoded_columns(entry: Entry) -> spark.StructType:
    """What decoding adds to a row: one column per field, and what is wrong with the body, if anything is.

    They are columns, not one struct: Spark reads a column of an Arrow batch faster than the field of a struct in it.
    """
    fields = [
        spark.StructField(field_column(index), spark_type(kind))
        for index, (_, kind) in enumerate(decoded_type(entry).fields)
    ]
    return spark.StructType(
        [*fields, *(spark.StructField(name, spark.StringType()) for name in (BAD_ERROR, BAD_REASON))]
    )


class Decoder:
    """Decodes batches for one entry; small, and pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.format: Format = entry.format
        self.wanted: Struct = entry.scope.wanted
        self.xpaths = tuple((path.path, path.kind) for path in entry.paths if isinstance(path, nodes.XPath))
        self.names: list[str] = decoded_columns(entry).names

    def __call__(self, bodies: pa.Array) -> list[pa.Array]:
        """The columns of `decoded_columns`: the fields are null where the body is bad."""
        columns, failures = self.format.decode_batch(bodies, self.wanted, xpaths=self.xpaths)
        return [*columns.flatten(), *_bad(failures, len(bodies))]


def _bad(failures: list[tuple[int, Malformed]], length: int) -> list[pa.Array]:
    if not failures:
        return [pa.nulls(length, pa.string())] * 2
    errors: list[str | None] = [None] * length
    reasons: list[str | None] = [None] * length
    for index, malformed in failures:
        errors[index], reasons[index] = malformed.error, malformed.reason
    return [pa.array(errors, pa.string()), pa.array(reasons, pa.string())]


def decode(data: DataFrame, entry: Entry, body: Column, label: str) -> DataFrame:
    """The DataFrame with the decoded columns, made by a function that the physical plan shows as `label`."""
    decoder, result = Decoder(entry), decoded_columns(entry)

    def decode_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for bodies in batches:
            yield pa.StructArray.from_arrays(decoder(bodies), names=decoder.names)

    decode_batches.__name__ = label
    # Not deterministic, for Spark: else it may decode before the limit of a DataFrame, or in each part of a union.
    udf = arrow_udf(decode_batches, result).asNondeterministic()  # type: ignore[call-overload]
    decoded = data.withColumn("_decoded", udf(body))
    return decoded.withColumns({name: F.col(f"_decoded.{name}") for name in result.names}).drop("_decoded")


def body_fields(entry: Entry) -> Column:
    """The decoded columns as the body's struct; Spark takes it apart again where single fields are read."""
    paths = decoded_type(entry).fields[len(entry.scope.wanted.fields) :]
    columns = [
        typed(F.col(field_column(index)), kind).alias(name)
        for index, (name, kind) in enumerate((*entry.scope.wanted.fields, *paths))
    ]
    return F.struct(*columns) if columns else F.lit(None).cast("struct<>")


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
