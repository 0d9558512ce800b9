from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, MapType, StringType, StructType

from penstock.errors import BadSchema
from penstock.formats import Csv, Format, Json, Malformed, Text, Xml, base
from penstock.formats.arrow import arrow_type
from penstock.schema import STRING, schema

ALL = [Json("value STRING"), Xml("value STRING"), Csv("value STRING"), Text()]


def test_types_are_those_that_spark_expects_from_arrow() -> None:
    ours = arrow_type(schema("s STRING, n BIGINT, d DOUBLE, b BOOLEAN, a ARRAY<STRING>, m MAP<STRING, BIGINT>"))
    spark = StructType()
    for name, kind in (
        ("s", StringType()),
        ("n", LongType()),
        ("d", DoubleType()),
        ("b", BooleanType()),
        ("a", ArrayType(StringType())),
        ("m", MapType(StringType(), LongType())),
    ):
        spark.add(name, kind)
    assert ours.equals(to_arrow_type(spark), check_metadata=True)
    assert arrow_type(schema("v VARIANT").fields[0][1]) == pa.string()


@pytest.mark.parametrize("of", ALL, ids=lambda of: of.name)
def test_a_format_can_be_sent_to_an_executor(of: Format) -> None:
    assert pickle.loads(pickle.dumps(of)) == of
    assert hash(pickle.loads(pickle.dumps(of))) == hash(of)


@pytest.mark.parametrize("of", ALL, ids=lambda of: of.name)
def test_a_value_survives_every_format(of: Format) -> None:
    raw = of.encode({"value": "a, <b> & \"c\"\n'é'"})
    assert of.decode(raw, of.schema) == {"value": "a, <b> & \"c\"\n'é'"}
    column, errors = of.decode_batch(pa.array([raw], pa.binary()), of.schema)
    assert (column.to_pylist(), errors) == ([of.decode(raw, of.schema)], [])


@pytest.mark.parametrize("of", ALL, ids=lambda of: of.name)
def test_a_body_beyond_the_limit_is_refused(of: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_BODY_BYTES", 5)
    assert of.decode(b"123456", of.schema) == Malformed("BodyTooLarge", "the body has 6 bytes, the limit is 5")


@pytest.mark.parametrize("of", [Json("a STRING"), Csv("a STRING"), Text()], ids=lambda of: of.name)
def test_only_xml_has_xpath_columns(of: Format) -> None:
    with pytest.raises(BadSchema, match="has no XPath columns"):
        of.decode(b"", of.schema, xpaths=(("//a", STRING),))
