"""Body types as Spark has them."""

from __future__ import annotations

from pyspark.sql import types as spark

from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, VARIANT, Array, Map, Struct, Type

_SCALARS: dict[Type, spark.DataType] = {
    STRING: spark.StringType(),
    BOOLEAN: spark.BooleanType(),
    INTEGER: spark.LongType(),
    DOUBLE: spark.DoubleType(),
    VARIANT: spark.VariantType(),
}


def spark_type(kind: Type) -> spark.DataType:
    match kind:
        case Array(element):
            return spark.ArrayType(spark_type(element))
        case Map(value):
            return spark.MapType(spark.StringType(), spark_type(value))
        case Struct(fields):
            return spark.StructType([spark.StructField(name, spark_type(inner)) for name, inner in fields])
    return _SCALARS[kind]


def has_variant(kind: Type) -> bool:
    match kind:
        case Array(inner) | Map(inner):
            return has_variant(inner)
        case Struct(fields):
            return any(has_variant(inner) for _, inner in fields)
    return kind == VARIANT
