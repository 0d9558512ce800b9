from __future__ import annotations

import pytest

from penstock.errors import BadSchema
from penstock.formats import infer, infer_csv


@pytest.mark.parametrize(
    ("samples", "ddl"),
    [
        ([b'{"a":1}', b'{"a":2}'], "a BIGINT"),
        ([b'{"a":1}', b'{"a":2.5}'], "a DOUBLE"),
        ([b'{"a":9223372036854775808}'], "a DOUBLE"),
        ([b'{"a":1}', b'{"a":"x"}'], "a VARIANT"),
        ([b'{"a":[1]}', b'{"a":{"b":1}}'], "a VARIANT"),
        ([b'{"a":null}', b'{"a":true}'], "a BOOLEAN"),
        ([b'{"a":null}'], "a STRING"),
        ([b'{"a":[]}'], "a ARRAY<VARIANT>"),
        ([b'{"a":[null]}'], "a ARRAY<VARIANT>"),
        ([b'{"a":[]}', b'{"a":[1,2.5]}'], "a ARRAY<DOUBLE>"),
        ([b'{"a":[{"x":1},{"y":"t"}]}'], "a ARRAY<STRUCT<x: BIGINT, y: STRING>>"),
        ([b'{"a":{"x":1}}', b"not json", b"[1]", b'{"a":{"y":null},"b":1}'],
         "a STRUCT<x: BIGINT, y: STRING>, b BIGINT"),
        ([b"{}"], ""),
        ([b'{"a":[{}],"b":{}}'], "a ARRAY<VARIANT>, b VARIANT"),
    ],
)  # fmt: skip
def test_a_schema_fits_all_samples(samples: list[bytes], ddl: str) -> None:
    assert infer(samples).ddl() == ddl


def test_samples_without_an_object_give_no_schema() -> None:
    with pytest.raises(BadSchema, match="no sample is a JSON object"):
        infer([b"x", b"[]", b"\xff"])


def test_csv_columns_take_the_narrowest_type() -> None:
    rows = ["1,1,true,x,", "2,1.5,false,1,", "too,few", '3,"",true,,']
    assert infer_csv("a,b,c,d,e\n", rows[:3]).ddl() == "a BIGINT, b DOUBLE, c BOOLEAN, d STRING, e STRING"
    assert infer_csv("a,,c,d,e", rows).ddl() == "a BIGINT, column_2 STRING, c BOOLEAN, d STRING, e STRING"


def test_a_csv_header_names_every_column_once() -> None:
    with pytest.raises(BadSchema, match="column 'a' occurs twice"):
        infer_csv("a,a", [])
