"""Raw bodies to typed columns, with the same decoders that the reference uses, a whole Arrow batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf

from penstock.expr import nodes
from penstock.expr.evaluate import expression_key
from penstock.expr.vectorized import evaluate_batch
from penstock.formats import Format, Malformed
from penstock.formats.arrow import arrow_type
from penstock.plan.plan import Answer, Entry
from penstock.schema import BOOLEAN, INTEGER, STRING, VARIANT, Array, Map, Struct, Type
from penstock.spark.frame import BAD_ERROR, BAD_REASON, BODY, PARTS, answer_column, field_column
from penstock.spark.types import has_variant, spark_type


def decoded_type(entry: Entry) -> Struct:
    """The fields that go on from the entry's decoder; a VARIANT travels as JSON text."""
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
    return not decoded_type(entry).fields and not entry.answers and not entry.written


def decoded_columns(entry: Entry) -> spark.StructType:
    """What decoding adds to a row: a column per field and per answer, the parts, and what is wrong with the body."""
    kinds = enumerate(kind for _, kind in decoded_type(entry).fields)
    fields = [(field_column(index), spark_type(kind)) for index, kind in kinds]
    answers = [(answer_column(answer.number), spark_type(_answer_type(answer))) for answer in entry.answers]
    parts = [(PARTS, spark.ArrayType(spark.BinaryType()))] if entry.written and entry.written.parted else []
    bad = [(BAD_ERROR, spark.StringType()), (BAD_REASON, spark.StringType())]
    return spark.StructType([spark.StructField(name, kind) for name, kind in (*fields, *answers, *parts, *bad)])


def _answer_type(answer: Answer) -> Type:
    return INTEGER if isinstance(answer.expression, nodes.Case) else BOOLEAN


class Decoder:
    """Decodes batches for one entry; small, and pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.format: Format = entry.format
        self.parsed: Struct = entry.parsed
        self.wanted: Struct = entry.scope.wanted
        self.xpaths = tuple((path.path, path.kind) for path in entry.paths if isinstance(path, nodes.XPath))
        self.questions = tuple(answer.expression for answer in entry.answers)
        self.written = entry.written
        self.names: list[str] = decoded_columns(entry).names
        self.original = entry.original

    def __call__(self, bodies: pa.Array) -> tuple[list[pa.Array], pa.Array]:
        """The columns of `decoded_columns`, and the bodies that go on.

        Of a bad body no field is there, no condition is true, and it goes on as it came.
        """
        decoded, failures = self.format.decode_batch(bodies, self.parsed, xpaths=self.xpaths)
        columns = decoded.flatten()
        fields = narrowed(columns, self.parsed, self.wanted)
        paths = columns[len(self.parsed.fields) :]
        answers = [evaluate_batch(question, decoded) for question in self.questions]
        written = self.written.write(decoded) if self.written else pa.nulls(len(bodies), bodies.type)
        parted = self.written is not None and self.written.parted
        made = [*fields, *paths, *answers, *([written] if parted else []), *_bad(failures, len(bodies))]
        return made, self._bodies(bodies, pa.nulls(len(bodies), bodies.type) if parted else written, failures)

    def _bodies(self, bodies: pa.Array, made: pa.Array, failures: list[tuple[int, Malformed]]) -> pa.Array:
        if self.original:
            return bodies
        if not failures:
            return made
        bad = np.zeros(len(bodies), np.bool_)
        bad[[index for index, _ in failures]] = True
        return pc.if_else(pa.array(bad), bodies, made)


def narrowed(columns: list[pa.Array], parsed: Struct, wanted: Struct) -> list[pa.Array]:
    """Of the columns that were parsed, those that are wanted, at every level."""
    chosen: list[pa.Array] = []
    for (name, kind), column in zip(parsed.fields, columns, strict=False):
        inner = wanted.get(name)
        if isinstance(kind, Struct) and isinstance(inner, Struct) and inner != kind:
            fields = [pa.field(below, arrow_type(as_text(below_kind))) for below, below_kind in inner.fields]
            below_columns = narrowed(column.flatten(), kind, inner)
            chosen.append(pa.StructArray.from_arrays(below_columns, fields=fields, mask=column.is_null()))
        elif inner is not None:
            chosen.append(column)
    return chosen


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
    if entry.written:
        result = spark.StructType([*result, spark.StructField(BODY, spark.BinaryType())])

    def decode_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for bodies in batches:
            columns, kept = decoder(bodies)
            yield pa.StructArray.from_arrays([*columns, kept][: len(result)], names=result.names)

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
    return at_variants(column, kind, F.try_parse_json)


def at_variants(column: Column, kind: Type, change: Callable[[Column], Column]) -> Column:
    """The column with every VARIANT in it changed; what has none stays as it is."""
    if not has_variant(kind):
        return column
    match kind:
        case Array(element):
            return F.transform(column, lambda item: at_variants(item, element, change))
        case Map(value):
            return F.transform_values(column, lambda _, item: at_variants(item, value, change))
        case Struct(fields):
            parts = (at_variants(column.getField(name), inner, change).alias(name) for name, inner in fields)
            return F.when(column.isNotNull(), F.struct(*parts))
    return change(column)
