"""JSON: the definition is pinned by examples, the fast path by agreement with the definition."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.formats import Json, Malformed
from penstock.formats.arrow import arrow_type
from penstock.formats.limits import MAX_DEPTH
from penstock.schema import Array, Map, Struct, Type, schema

ORDER = schema(
    "n BIGINT, d DOUBLE, s STRING, b BOOLEAN, a ARRAY<BIGINT>, m MAP<STRING, DOUBLE>, "
    "o STRUCT<x: BIGINT, y: STRING, z: ARRAY<STRUCT<k: STRING>>>"
)
WITH_VARIANT = schema("v VARIANT, n BIGINT, l ARRAY<VARIANT>, o STRUCT<v: VARIANT>")


def decode(raw: bytes, wanted: Struct = ORDER) -> dict[str, Any] | Malformed:
    return Json(ORDER).decode(raw, wanted)


def one(ddl: str, raw: bytes) -> Any:
    wanted = schema(ddl)
    fields = decode(raw, wanted)
    assert_batch_agrees([raw], wanted)
    return fields if isinstance(fields, Malformed) else fields[wanted.names[0]]


def plain(value: Any, kind: Type) -> Any:
    """What came out of Arrow, as `decode` writes it."""
    if value is None:
        return None
    match kind:
        case Struct(fields):
            return {name: plain(value[name], inner) for name, inner in fields}
        case Array(element):
            return [plain(inner, element) for inner in value]
        case Map(inner_kind):
            return {name: plain(inner, inner_kind) for name, inner in value}
    return as_variant(value) if kind.name == "VARIANT" else value


def as_variant(text: str) -> Any:
    return decode(b'{"v":' + text.encode() + b"}", schema("v VARIANT"))["v"]  # type: ignore[index]


def assert_batch_agrees(bodies: list[bytes], wanted: Struct) -> None:
    expected = [decode(raw, wanted) for raw in bodies]
    inputs = [pa.array(bodies, pa.binary())]
    if all(raw.decode(errors="ignore").encode() == raw for raw in bodies):
        inputs.append(pa.array([raw.decode() for raw in bodies], pa.string()))
    for array in inputs:
        column, errors = Json(ORDER).decode_batch(array, wanted)
        column.validate(full=True)
        assert column.type == arrow_type(wanted)
        found: list[Any] = [plain(value, wanted) for value in column.to_pylist()]
        for index, malformed in errors:
            assert found[index] is None
            found[index] = malformed
        # repr tells 0.0 from -0.0 and 1 from 1.0 and True
        assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("ddl", "raw", "value"),
    [
        ("d DOUBLE", b'{"d": 1}', 1.0),
        ("d DOUBLE", b'{"d": -0}', 0.0),
        ("d DOUBLE", b'{"d": -0.0}', -0.0),
        ("d DOUBLE", b'{"d": 123456789012345678901234567890}', 1.2345678901234568e29),
        ("d DOUBLE", b'{"d": 1e-400}', 0.0),
        ("n BIGINT", b'{"n": 9223372036854775807}', 2**63 - 1),
        ("n BIGINT", b'{"n": -9223372036854775808}', -(2**63)),
        ("n BIGINT", b'{"n": null}', None),
        ("n BIGINT", b"{}", None),
        ("n BIGINT", b' \t\r\n{"n":\n1}\n', 1),
        ("n BIGINT", b'{"n":1,"n":2}', 2),
        ("n BIGINT", b'{"n":1,"n":null}', None),
        ("n BIGINT", b'{"\\u006e":1}', 1),
        ("s STRING", b'{"s": "\\ud83d\\ude00\\n\\u0000"}', "\U0001f600\n\0"),
        ("s STRING", b'{"s": 1.50 }', "1.50"),
        ("s STRING", b'{"s": true}', "true"),
        ("s STRING", b'{"s": {"a" : [1, "x"]} }', '{"a" : [1, "x"]}'),
        ("s STRING", '{"s": ["é"]}'.encode(), '["é"]'),
        ("b BOOLEAN", b'{"b": false}', False),
        ("a ARRAY<STRING>", b'{"a": ["x", 1, null, {}]}', ["x", "1", None, "{}"]),
        ("m MAP<STRING, STRING>", b'{"m": {"k": 1, "k": null, "l": "x"}}', {"k": None, "l": "x"}),
        ("o STRUCT<x: BIGINT, y: STRING>", b'{"o": {"x": 1}, "o": {"y": "z"}}', {"x": None, "y": "z"}),
        ("v VARIANT", b'{"v": {"a": [1, 2.0, null, 1e2]}}', {"a": [1, 2, None, 100]}),
        ("v VARIANT", b'{"v": 9223372036854775808}', 9223372036854775808),
        ("v VARIANT", b'{"v": null}', None),
        ("`a b` BIGINT", b'{"a b": 1}', 1),
    ],
)
def test_a_value_of_the_declared_type_is_read(ddl: str, raw: bytes, value: Any) -> None:
    assert repr(one(ddl, raw)) == repr(value)


@pytest.mark.parametrize(
    ("ddl", "raw", "reason"),
    [
        ("OTOTALPRICE DOUBLE", b'{"OTOTALPRICE":"abc"}', "field 'OTOTALPRICE' is \"abc\", expected DOUBLE"),
        ("n BIGINT", b'{"n":1.0}', "field 'n' is 1.0, expected BIGINT"),
        ("n BIGINT", b'{"n":1e2}', "field 'n' is 1e2, expected BIGINT"),
        ("n BIGINT", b'{"n":true}', "field 'n' is true, expected BIGINT"),
        ("n BIGINT", b'{"n":9223372036854775808,"n":1}', "field 'n' is 9223372036854775808, expected BIGINT"),
        ("n BIGINT", b'{"n":"1","n":1}', "field 'n' is \"1\", expected BIGINT"),
        ("d DOUBLE", b'{"d":1e999}', "field 'd' is 1e999, expected DOUBLE"),
        ("b BOOLEAN", b'{"b":0}', "field 'b' is 0, expected BOOLEAN"),
        ("a ARRAY<BIGINT>", b'{"a":[1,"x"]}', "field 'a[1]' is \"x\", expected BIGINT"),
        ("a ARRAY<BIGINT>", b'{"a":{}}', "field 'a' is {}, expected ARRAY<BIGINT>"),
        ("m MAP<STRING, BIGINT>", b'{"m":{"k":"x"}}', "field 'm.k' is \"x\", expected BIGINT"),
        ("o STRUCT<x: BIGINT>", b'{"o":{"x":[]}}', "field 'o.x' is [], expected BIGINT"),
        ("o STRUCT<x: BIGINT>", b'{"o":1}', "field 'o' is 1, expected STRUCT<x: BIGINT>"),
        ("v VARIANT", b'{"v":[1e999]}', "field 'v' is 1e999, expected VARIANT"),
        ("n BIGINT", b'{"n":%s}' % (b"5" * 90), f"field 'n' is {'5' * 37}..., expected BIGINT"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_field(ddl: str, raw: bytes, reason: str) -> None:
    assert one(ddl, raw) == Malformed("WrongType", reason)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON: the text ends too early at byte 0"),
        (b"[1]", "not a JSON object but array"),
        (b"null", "not a JSON object but null"),
        (b'{"x":1} x', "not JSON: unexpected text at byte 8"),
        (b'{"x":1} 2', "not JSON: more text after the value at byte 8"),
        (b'{"x":1}{"x":2}', "not JSON: more text after the value at byte 7"),
        (b'{"x":1},{"x":2}', "not JSON: more text after the value at byte 7"),
        (b'{"x":NaN}', "not JSON: unexpected text at byte 5"),
        (b'{"x":-Infinity}', "not JSON: unexpected text at byte 5"),
        (b'{"x":01}', "not JSON: expected , or } at byte 6"),
        (b'{"x":1.}', "not JSON: unexpected text at byte 6"),
        (b'{"x":[1,]}', "not JSON: expected a value at byte 8"),
        (b'{"x":1,}', "not JSON: a key must be a string at byte 7"),
        (b"{1:2}", "not JSON: a key must be a string at byte 1"),
        (b'{"x" 2}', "not JSON: expected : at byte 5"),
        (b'{"x":"a\nb"}', "not JSON: unexpected text at byte 5"),
        (b'{"x":"\\q"}', "not JSON: unexpected text at byte 5"),
        (b'{"x":"\\ud800"}', "not JSON: half of a surrogate pair at byte 5"),
        (b'{"\\udc00":1}', "not JSON: half of a surrogate pair at byte 1"),
        (b'{"x":"\xff"}', "not UTF-8: byte 0xff at 6"),
        (b'{"x":"\xed\xa0\x80"}', "not UTF-8: byte 0xed at 6"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        ('{"é":!}'.encode(), "not JSON: unexpected text at byte 6"),
    ],
)
def test_a_body_that_is_not_one_json_object_is_malformed(raw: bytes, reason: str) -> None:
    assert one("n BIGINT", raw) == Malformed("MalformedBody", reason)


def test_fields_that_nobody_reads_are_not_type_checked() -> None:
    assert decode(b'{"n":"text","d":1.5}', schema("d DOUBLE")) == {"d": 1.5}


@pytest.mark.parametrize("number", [b"1" * 5000, b"-0." + b"3" * 5000, b"1" * 5000 + b"e-4990", b"0e" + b"9" * 30])
def test_numbers_of_any_length_are_read_or_refused(number: bytes) -> None:
    for ddl in ("n BIGINT", "n DOUBLE", "n STRING", "n VARIANT", "other BIGINT"):
        assert_batch_agrees([b'{"n":' + number + b"}"], schema(ddl))


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"x":', b"}")])
def test_nesting_has_a_limit_whichever_way_it_is_decoded(depth: int, opening: bytes, closing: bytes) -> None:
    inside = b'"]]]]}}}}",' if opening == b"[" else b'"]]}}","x":'
    raw = b'{"x":' + opening + inside + opening * (depth - 2) + b"1" + closing * (depth - 1) + b"}"
    for wanted in (schema("n BIGINT"), schema("x STRING"), schema("x VARIANT")):
        fields = decode(raw, wanted)
        assert isinstance(fields, Malformed) == (depth > MAX_DEPTH)
        assert_batch_agrees([raw], wanted)


def test_a_long_flat_body_is_not_a_deep_one() -> None:
    raw = json.dumps({"a": list(range(3000)), "x": [{"k": []} for _ in range(1000)]}).encode()
    assert one("a ARRAY<BIGINT>", raw) == list(range(3000))


def test_a_message_without_a_body_is_malformed() -> None:
    column, errors = Json(ORDER).decode_batch(pa.array([b"{}", None], pa.binary()), ORDER)
    assert [value is None for value in column.to_pylist()] == [False, True]
    assert errors == [(1, Malformed("MalformedBody", "the message has no body"))]


def test_bodies_that_make_sense_only_together_are_each_malformed() -> None:
    assert_batch_agrees([b'{"n":1},{"n":2}', b"", b'{"n":1}'], ORDER)
    assert_batch_agrees([b'{"n":1}\n{"n":2}', b" ", b'{"n":1', b"}"], ORDER)
    assert_batch_agrees([b'{"a":[{}', b'{"n":1}]}'], ORDER)


def test_one_bad_message_in_a_large_batch_is_found_at_its_place() -> None:
    bodies = [b'{"n":%d,"s":"x"}' % index for index in range(5000)]
    bodies[0] = b"{"
    bodies[2048] = b'{"n":"x"}'
    bodies[4999] = b'{"s":1}'
    column, errors = Json(ORDER).decode_batch(pa.array(bodies), schema("n BIGINT, s STRING"))
    assert [index for index, _ in errors] == [0, 2048]
    assert column.field(0).to_pylist()[1:2048] == list(range(1, 2048))
    assert column[4999].as_py() == {"n": None, "s": "1"}


def test_a_slice_of_a_column_is_decoded_as_it_is_seen() -> None:
    column, errors = Json(ORDER).decode_batch(pa.array(["x", '{"n":1}', '{"n":2}']).slice(1), schema("n BIGINT"))
    assert (column.to_pylist(), errors) == ([{"n": 1}, {"n": 2}], [])


@pytest.mark.parametrize("wanted", [Struct(()), ORDER])
def test_an_empty_batch_and_a_route_that_reads_nothing_keep_the_rows(wanted: Struct) -> None:
    assert len(Json(ORDER).decode_batch(pa.array([], pa.binary()), wanted)[0]) == 0
    assert_batch_agrees([b"{}", b"x", b'{"n":1}'], wanted)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "é", "", "f0", "`"])
def test_any_text_can_be_a_key(name: str) -> None:
    wanted = Struct(((name, schema("x BIGINT").fields[0][1]),))
    raw = json.dumps({name: 5}).encode()
    assert decode(raw, wanted) == {name: 5}
    assert_batch_agrees([raw, b"{", b"{}"], wanted)


def test_encoding_drops_nulls_of_objects_and_keeps_those_of_arrays() -> None:
    fields = {"n": 1, "s": None, "a": [1, None], "o": {"x": None, "y": "é"}, "d": float("nan")}
    assert Json(ORDER).encode(fields) == '{"n":1,"a":[1,null],"o":{"y":"é"}}'.encode()


numbers = st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ndsbamoxyzkvl"), inner, max_size=5),
    max_leaves=12,
)
typed = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30),
        "s": st.text(max_size=8) | documents,
        "b": st.booleans(),
        "a": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
        "m": st.dictionaries(st.text(max_size=3), st.none() | st.integers(-9, 9), max_size=3),
        "o": st.fixed_dictionaries({}, optional={"x": st.integers(0, 9), "y": documents, "v": documents}),
        "v": documents,
        "l": st.lists(documents, max_size=3),
    },
)
RAW_TOKENS = [
    "{", "}", "[", "]", ",", ":", '"', '"n"', '"s":', '"a":[1]', "1", "-0", "1.5", "1e5", "1E400", "01",
    "null", "true", "NaN", "\\", "\\ud800", "\\u0041", " ", "\n", "\t", "\x00", "é", "\ufeff",
    '{"n":1}', '"o":{', '"d":',
]  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Sound documents, documents with repeated keys, documents with a scar, and heaps of tokens."""
    shape = draw(st.sampled_from(["typed", "any", "twice", "scar", "tokens", "bytes"]))
    if shape == "tokens":
        return "".join(draw(st.lists(st.sampled_from(RAW_TOKENS), max_size=12))).encode()
    if shape == "bytes":
        return draw(st.binary(max_size=12))
    document = draw(documents if shape == "any" else typed)
    text = json.dumps(document, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    raw = text.encode("utf-8", "surrogatepass")
    if shape == "twice":
        other = json.dumps(draw(typed)).encode()
        return raw[:-1].rstrip() + b"," + other[1:] if document and other != b"{}" else raw
    if shape == "scar":
        at = draw(st.integers(0, len(raw)))
        patch = draw(st.sampled_from(RAW_TOKENS)).encode() if draw(st.booleans()) else draw(st.binary(max_size=2))
        return raw[:at] + patch + raw[at + draw(st.integers(0, 3)) :]
    return raw


@settings(max_examples=400)
@given(st.lists(bodies(), max_size=5), st.sampled_from([ORDER, WITH_VARIANT, schema("s STRING"), Struct(())]))
@example([b'{"n":1},{"n":2}', b""], ORDER)
@example([b'{"n":1', b',"d":2}'], ORDER)
@example([b'{"s":"\xc3"}', b'{"s":"\xa9"}'], ORDER)
def test_a_batch_is_decoded_as_each_message_is(raws: list[bytes], wanted: Struct) -> None:
    assert_batch_agrees(raws, wanted)


@settings(max_examples=100)
@given(typed)
def test_what_is_encoded_is_decoded_again(fields: dict[str, Any]) -> None:
    wanted = schema("n BIGINT, b BOOLEAN, a ARRAY<BIGINT>")
    raw = Json(wanted).encode(fields)
    assert decode(raw, wanted) == {name: fields.get(name) for name in wanted.names}
