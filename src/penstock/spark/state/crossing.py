"""Rows on their way to Python and back: VARIANT values travel as JSON text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.plan.plan import Scope
from penstock.spark.decode import as_text, at_variants
from penstock.spark.frame import never_null, scope_column
from penstock.spark.types import has_variant, spark_type


def outgoing(data: DataFrame, scopes: Mapping[str, Scope]) -> DataFrame:
    """The rows as Arrow can carry them. Of what is ours, no map or array is null."""
    ours = [field for field in data.schema if field.name not in scopes]
    return _changed(data.withColumns({field.name: never_null(F.col(field.name), field.dataType) for field in ours
                                      if isinstance(field.dataType, (spark.MapType, spark.ArrayType))}),
                    scopes, F.to_json)  # fmt: skip


def incoming(data: DataFrame, scopes: Mapping[str, Scope]) -> DataFrame:
    """The rows as the plan knows them."""
    return _changed(data, scopes, F.try_parse_json)


def _changed(data: DataFrame, scopes: Mapping[str, Scope], change: Callable[[Column], Column]) -> DataFrame:
    rich = {name: scope.wanted for name, scope in scopes.items() if has_variant(scope.wanted)}
    return data.withColumns({name: at_variants(F.col(name), kind, change) for name, kind in rich.items()})


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    found: pa.Schema = to_arrow_schema(schema.toNullable(), timezone="UTC")
    return found


def scope_field(scope: Scope) -> spark.StructField:
    return spark.StructField(scope_column(scope), spark_type(as_text(scope.wanted)))
