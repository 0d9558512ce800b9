"""The built-in functions as Spark columns. Every one answers null where Python's meaning answers None."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.expr.functions import DOUBLE_TEXT, INTEGER_TEXT, python_pattern
from penstock.expr.nodes import Call, Literal
from penstock.schema import DOUBLE, INTEGER, STRING, Type

ARITHMETIC = ("add", "subtract", "multiply", "divide")


def lower_call(call: Call, columns: list[Column], kinds: list[Type], result: Type) -> Column:
    """The column of a built-in function; `kinds` are the types of its arguments.

    What is a DOUBLE here may still be infinite or not a number: the caller makes it `finite` where it is used.
    """
    literals = [argument.value if isinstance(argument, Literal) else None for argument in call.arguments]
    match call.name:
        case name if name in ARITHMETIC:
            return _arithmetic(name, columns, result)
        case "absolute" if kinds[0] == INTEGER:
            # abs(-2^63) has no 64-bit result; ANSI mode would stop the batch
            return F.when(columns[0] >= 0, columns[0]).otherwise(F.try_subtract(F.lit(0).cast("bigint"), columns[0]))
        case "round":
            return F.round(columns[0].cast("double"), _integer(literals[1]))
        case "substring":
            return F.substring(columns[0], _integer(literals[1]) + 1, _integer(literals[2]))
        case "matches":
            return columns[0].rlike(f"^(?:{_java_pattern(literals[1])})\\z")
        case "search":
            return columns[0].rlike(_java_pattern(literals[1]))
        case "extract":
            return F.get(F.regexp_extract_all(columns[0], F.lit(_java_pattern(literals[1])), F.lit(1)), F.lit(0))
        case "split":
            return F.split(columns[0], _quoted(str(literals[1])), -1)
        case "join":
            return F.array_join(columns[0], str(literals[1]))
        case "to_string":
            return _to_string(columns[0], kinds[0], literals[1] if len(literals) > 1 else None)
        case "to_integer":
            return _to_integer(columns[0], kinds[0])
        case "to_double":
            return _to_double(columns[0], kinds[0])
    return _PLAIN[call.name](*columns)


def _arithmetic(name: str, columns: list[Column], result: Type) -> Column:
    function = {"add": F.try_add, "subtract": F.try_subtract, "multiply": F.try_multiply, "divide": F.try_divide}[name]
    return function(*columns) if result == INTEGER else function(*(column.cast("double") for column in columns))


def finite(column: Column) -> Column:
    """Missing where a double is infinite or not a number."""
    return F.when(F.abs(column) <= F.lit(1.7976931348623157e308), column)


def _to_string(column: Column, kind: Type, digits: object) -> Column:
    if kind != DOUBLE:
        return column.cast("string")
    return F.round(column, _integer(digits)).try_cast(f"decimal(38,{_integer(digits)})").cast("string")


def _to_integer(column: Column, kind: Type) -> Column:
    return (_only(column, INTEGER_TEXT) if kind == STRING else column).try_cast("bigint")


def _to_double(column: Column, kind: Type) -> Column:
    return _only(column, DOUBLE_TEXT).try_cast("double") if kind == STRING else column.cast("double")


def _only(column: Column, pattern: str) -> Column:
    """The text if all of it matches, else no text, which is no number; asked once, because the text may be computed."""
    return F.regexp_extract(column, f"^(?:{pattern})\\z", 0)


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value


def _java_pattern(value: object) -> str:
    return python_pattern(str(value))


def _quoted(text: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", text)


_PLAIN: dict[str, Callable[..., Column]] = {
    "modulo": F.try_mod,
    "absolute": F.abs,
    "concat": F.concat,
    "upper": F.upper,
    "lower": F.lower,
    "trim": F.trim,
    "length": lambda text: F.char_length(text).cast("bigint"),
    "contains": F.contains,
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "replace": F.replace,
    "size": lambda parts: F.when(parts.isNotNull(), F.array_size(parts).cast("bigint")),
    "coalesce": lambda *columns: reduce(lambda left, right: F.coalesce(left, right), columns),
}  # fmt: skip
