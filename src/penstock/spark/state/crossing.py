"""Rows on their way to Python and back: VARIANT values travel as JSON text."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.plan.plan import Scope
from penstock.schema import Array, Map, Struct, Type
from penstock.spark.decode import as_text, typed
from penstock.spark.frame import scope_column
from penstock.spark.types import has_variant, spark_type


def outgoing(data: DataFrame, scopes: Mapping[str, Scope]) -> DataFrame:
    """The rows as Arrow can carry them."""
    rich = {name: scope.wanted for name, scope in scopes.items() if has_variant(scope.wanted)}
    return data.withColumns({name: _texted(F.col(name), kind) for name, kind in rich.items()}) if rich else data


def incoming(data: DataFrame, scopes: Mapping[str, Scope]) -> DataFrame:
    """The rows as the plan knows them."""
    rich = {name: scope.wanted for name, scope in scopes.items() if has_variant(scope.wanted)}
    return data.withColumns({name: typed(F.col(name), kind) for name, kind in rich.items()}) if rich else data


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    found: pa.Schema = to_arrow_schema(schema.toNullable(), timezone="UTC")
    return found


def scope_field(scope: Scope) -> spark.StructField:
    return spark.StructField(scope_column(scope), spark_type(as_text(scope.wanted)))


def _texted(column: Column, kind: Type) -> Column:
    if not has_variant(kind):
        return column
    match kind:
        case Array(element):
            return F.transform(column, lambda item: _texted(item, element))
        case Map(value):
            return F.transform_values(column, lambda _, item: _texted(item, value))
        case Struct(fields):
            rebuilt = F.struct(*(_texted(column.getField(name), inner).alias(name) for name, inner in fields))
            return F.when(column.isNotNull(), rebuilt)
    return F.to_json(column)
