from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import BadSchema
from penstock.formats import Malformed, Xml
from penstock.formats.xml import XPaths, parse
from penstock.schema import BOOLEAN, DOUBLE, EMPTY, INTEGER, STRING, Array, schema

CAR = b"""<?xml version="1.0"?><!DOCTYPE car SYSTEM "car.dtd">
<car xmlns="urn:cars" id="7"><speed> 50 </speed><wheel>fl</wheel><wheel>f<!-- not text -->r</wheel>
<price currency="EUR">1.5</price><note>a<b>b</b>c</note><extras><radio>1</radio></extras><empty/></car>"""


def one(ddl: str, raw: bytes) -> Any:
    wanted = schema(ddl)
    fields = Xml(wanted).decode(raw, wanted)
    return fields if isinstance(fields, Malformed) else fields[wanted.names[0]]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("speed BIGINT", 50),
        ("speed DOUBLE", 50.0),
        ("speed STRING", " 50 "),
        ("_id BIGINT", 7),
        ("_other STRING", None),
        ("wheel ARRAY<STRING>", ["fl", "fr"]),
        ("wheel STRING", "fr"),
        ("price STRUCT<_currency: STRING, _VALUE: DOUBLE>", {"_currency": "EUR", "_VALUE": 1.5}),
        ("price DOUBLE", 1.5),
        ("note STRING", "abc"),
        ("note STRUCT<_VALUE: STRING, b: STRING>", {"_VALUE": "ac", "b": "b"}),
        ("extras MAP<STRING, BIGINT>", {"radio": 1}),
        ("empty STRING", ""),
        ("empty BIGINT", None),
        ("absent ARRAY<STRING>", None),
        ("absent STRUCT<x: STRING>", None),
    ],
)
def test_elements_and_attributes_are_fields(ddl: str, value: Any) -> None:
    assert one(ddl, CAR) == value


def test_a_nil_element_is_missing() -> None:
    raw = b'<m xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a i:nil="true"/><a>1</a></m>'
    assert one("a ARRAY<BIGINT>", raw) == [None, 1]


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("wheel ARRAY<BIGINT>", "field 'wheel[0]' is \"fl\", expected BIGINT"),
        ("price STRUCT<_currency: DOUBLE>", "field 'price._currency' is \"EUR\", expected DOUBLE"),
        ("speed BOOLEAN", "field 'speed' is \" 50 \", expected BOOLEAN"),
    ],
)
def test_text_of_another_type_is_refused_with_its_field(ddl: str, reason: str) -> None:
    assert one(ddl, CAR) == Malformed("WrongType", reason)


def bomb(use: bytes) -> bytes:
    levels = (b'<!ENTITY l%d "%s">' % (level, b"&l%d;" % (level - 1) * 10) for level in range(1, 12))
    return b'<!DOCTYPE a [<!ENTITY l0 "ha">' + b"".join(levels) + b"]>" + use


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not XML: Document is empty"),
        (b"<a><b></a>", "not XML: Opening and ending tag mismatch"),
        (b"<a>\xff</a>", "not XML: "),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "the document defines entities"),
        (
            b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
            "the document defines entities",
        ),
        (
            b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><a/>',
            "the document defines entities",
        ),
        (b'<!DOCTYPE a SYSTEM "a.dtd"><a>&x;</a>', "not XML: Entity 'x' not defined"),
        (b'<!DOCTYPE a SYSTEM "a.dtd"><a b="&x;"/>', "not XML: Entity 'x' not defined"),
        (bomb(b"<a>&l11;</a>"), "not XML: Maximum entity amplification factor exceeded"),
        (bomb(b'<a b="&l11;"/>'), "not XML: Maximum entity amplification factor exceeded"),
        (b"<a>" * 100_000, "not XML: Excessive depth"),
        (b"<a>" + b"x" * 11_000_000 + b"</a>", "not XML: Resource limit exceeded"),
    ],
    ids=range(12),
)
def test_a_document_that_is_broken_or_dangerous_is_malformed(raw: bytes, reason: str) -> None:
    malformed = parse(raw)
    assert isinstance(malformed, Malformed)
    assert malformed.error == "MalformedBody"
    assert malformed.reason.startswith(reason)


@pytest.mark.parametrize(
    ("path", "kind", "value"),
    [
        ("//b", BOOLEAN, True),
        ("//zz", BOOLEAN, False),
        ("count(//b)", BOOLEAN, True),
        ("number('x')", BOOLEAN, False),
        ("''", BOOLEAN, False),
        ("//b[2]", STRING, "two!"),
        ("//zz", STRING, None),
        ("count(//b)", STRING, "2"),
        ("0.5", STRING, "0.5"),
        ("1 = 1", STRING, "true"),
        ("/a/@n", DOUBLE, 4.0),
        ("//b", DOUBLE, None),
        ("//zz", DOUBLE, None),
        ("1 div 0", DOUBLE, None),
        ("sum(//@n) + 1", DOUBLE, 8.0),
        ("//b", Array(STRING), ["one", "two!"]),
        ("//@n", Array(STRING), [" 4 ", "3"]),
        ("//b/text()", Array(STRING), ["one", "two"]),
        ("//zz", Array(STRING), []),
    ],
)
def test_an_xpath_column_has_xpaths_own_conversions(path: str, kind: Any, value: Any) -> None:
    raw = b'<a n=" 4 "><b>one</b><b n="3">two<c>!</c></b></a>'
    root = parse(raw)
    assert not isinstance(root, Malformed)
    assert XPaths(((path, kind),)).evaluate(root) == [value]
    column, errors = Xml().decode_batch(pa.array([raw]), EMPTY, xpaths=((path, kind),))
    assert (column.to_pylist(), errors) == ([{"xpath_0": value}], [])


@pytest.mark.parametrize(
    ("path", "value"),
    [("//comment()", [" c ", ""]), ("//processing-instruction()", ["i j", ""]),
     ("/a/node()[. != '']", ["x", " c ", "i j"])],
)
def test_comments_and_instructions_have_a_text_in_xpath(path: str, value: list[str]) -> None:
    raw = b"<a>x<!-- c --><!----><?p i j?><?q?></a>"
    for kind, expected in ((Array(STRING), value), (STRING, value[0]), (DOUBLE, None), (BOOLEAN, True)):
        assert Xml().decode(raw, EMPTY, xpaths=((path, kind),)) == {"xpath_0": expected}


def test_fields_and_xpaths_come_together() -> None:
    wanted = schema("_n BIGINT")
    fields = Xml(wanted).decode(b'<a n="4"/>', wanted, xpaths=(("count(/*)", DOUBLE), ("name(/*)", STRING)))
    assert fields == {"_n": 4, "xpath_0": 1.0, "xpath_1": "a"}


def test_an_xpath_that_cannot_be_read_is_an_error_of_the_route() -> None:
    with pytest.raises(BadSchema, match="cannot read XPath '//b\\['"):
        XPaths((("//b[", STRING),))
    with pytest.raises(BadSchema, match="cannot give BIGINT"):
        XPaths((("//b", INTEGER),))


def test_an_xpath_that_cannot_be_evaluated_does_not_end_the_batch() -> None:
    column, errors = Xml().decode_batch(pa.array(["<a/>"]), EMPTY, xpaths=(("unknown()", STRING),))
    assert column.to_pylist() == [None]
    assert errors[0][1].error == "WrongType"


def test_bad_rows_of_a_batch_are_listed() -> None:
    wanted = schema("a BIGINT")
    column, errors = Xml(wanted).decode_batch(pa.array(["<m><a>1</a></m>", "<m", None, "<m><a>x</a></m>"]), wanted)
    assert column.to_pylist() == [{"a": 1}, None, None, None]
    assert [(index, malformed.error) for index, malformed in errors] == [
        (1, "MalformedBody"),
        (2, "MalformedBody"),
        (3, "WrongType"),
    ]


@pytest.mark.parametrize("ddl", ["v VARIANT", "a ARRAY<ARRAY<STRING>>", "m MAP<STRING, VARIANT>"])
def test_a_schema_that_xml_cannot_carry_is_refused(ddl: str) -> None:
    with pytest.raises(BadSchema):
        Xml(ddl)


def test_encoding_escapes_text_and_names() -> None:
    fields = {"_id": "<&>", "a": None, "b": ["x", True], "c": {"_u": "E", "_VALUE": 1.5}, "1 b": "\0&"}
    raw = '<message id="&lt;&amp;&gt;"><b>x</b><b>true</b><c u="E">1.5</c><_1_b>\ufffd&amp;</_1_b></message>'
    assert Xml().encode(fields) == raw.encode()


texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=8)


@settings(max_examples=100)
@given(
    st.fixed_dictionaries(
        {
            "_id": st.none() | texts,
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "s": st.none() | texts,
            "l": st.none() | st.lists(st.none() | texts, min_size=1, max_size=3),
            "o": st.none() | st.fixed_dictionaries({"b": st.none() | st.booleans()}),
        }
    )
)
def test_what_is_encoded_is_decoded_again(fields: dict[str, Any]) -> None:
    xml = Xml("_id STRING, n BIGINT, d DOUBLE, s STRING, l ARRAY<STRING>, o STRUCT<b: BOOLEAN>", root="order")
    assert xml.decode(xml.encode(fields), xml.schema) == fields


@settings(max_examples=300)
@given(st.text(max_size=4))
@example("")
@example("a:b")
@example("²")
@example("ª")
@example("xmlns")
def test_every_name_can_be_written(name: str) -> None:
    root = parse(Xml(root=name).encode({name: 1, "_" + name: 2}))
    assert not isinstance(root, Malformed)
