"""JSON bodies: the definition, msgspec and machine code read the same, and write the same."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import BadSchema
from penstock.formats import Json, Malformed, infer, jsonobjects
from penstock.formats.arrow import arrow_type
from penstock.formats.compiled import columns, machinecode
from penstock.formats.compiled.machinecode import Switch
from penstock.formats.json import decode
from penstock.formats.jsonarrays import Texts
from penstock.formats.jsonbatch import decode_by_msgspec, with_refused
from penstock.schema import VARIANT, Array, Map, Struct, Type, schema
from penstock.spark.read.lines import lines_by_arrow, lines_by_machine_code
from tests.fuzz.parser import Parser, pieces


def _code() -> machinecode.MachineCode:
    """In a file, because what Atheris has instrumented cannot be compiled."""
    file = machinecode.code_file()
    if not file.is_file():
        machinecode.compile_in_background().wait()
    return machinecode.load(file)


CODE = _code()
SCHEMAS = [
    schema(text)
    for text in (
        "n BIGINT, d DOUBLE, s STRING, b BOOLEAN",
        "o STRUCT<x: BIGINT, y: STRING, p: STRUCT<n: DOUBLE, b: BOOLEAN>>, n BIGINT, `é` STRING",
        "a ARRAY<BIGINT>, o ARRAY<STRUCT<x: STRING, y: ARRAY<STRUCT<n: DOUBLE, t: STRING>>>>, m ARRAY<ARRAY<STRING>>",
        "v VARIANT, n BIGINT, l ARRAY<VARIANT>, o STRUCT<v: VARIANT>",
        "m MAP<STRING, DOUBLE>, k MAP<STRING, STRUCT<s: STRING>>, s STRING",
        "`` BIGINT, `a name that does not fit into one block of bytes` DOUBLE",
    )
]
_MAY_BE_INFINITE = re.compile(rb"[eE]\+?[0-9]{2}|[0-9]{99}")
"""Numbers that no type holds, so that no schema fits them."""
PLAIN = Json("s STRING, `na\"me` STRING, n BIGINT, d DOUBLE, b BOOLEAN")


def readers_agree(data: bytes) -> None:
    """The first byte chooses a schema; the bodies are one batch."""
    wanted, bodies = SCHEMAS[data[0] % len(SCHEMAS)] if data else SCHEMAS[0], pieces(data[1:])
    expected = [decode(raw, wanted) for raw in bodies]
    array = pa.array(bodies, pa.binary())
    batches = [decode_by_msgspec(array, wanted, decode)]
    plan = columns.plan_of(wanted)
    if plan is not None:
        batches.append(with_refused(*columns.read_with(CODE, array, plan), array, wanted, decode))
    for column, errors in batches:
        column.validate(full=True)
        assert column.type == arrow_type(wanted)
        assert errors == [(row, found) for row, found in enumerate(expected) if isinstance(found, Malformed)]
        for found, right in zip(column.to_pylist(), expected, strict=True):
            # repr tells 0.0 from -0.0, and 1 from 1.0 and True
            assert repr(_plain(found, wanted)) == repr(None if isinstance(right, Malformed) else right)


def _plain(value: Any, kind: Type) -> Any:
    """What Arrow has, as the definition has it."""
    if value is None:
        return None
    match kind:
        case Struct(fields):
            return {name: _plain(value[name], inner) for name, inner in fields}
        case Array(element):
            return [_plain(inner, element) for inner in value]
        case Map(inner_kind):
            return {name: _plain(inner, inner_kind) for name, inner in value}
    if kind == VARIANT:
        found = decode(b'{"v":' + value.encode() + b"}", Struct((("v", VARIANT),)))
        assert not isinstance(found, Malformed)
        return found["v"]
    return value


def writers_agree(data: bytes) -> None:
    """What is read is written by Arrow and by machine code as the definition writes it."""
    bodies = [raw for raw in pieces(data) if not isinstance(decode(raw, PLAIN.schema), Malformed)]
    if not bodies:
        return
    rows: list[Any] = [decode(raw, PLAIN.schema) for raw in bodies]
    expected = [PLAIN.encode(row) for row in rows]
    for raw, row in zip(expected, rows, strict=True):
        assert repr(decode(raw, PLAIN.schema)) == repr(row)
    column = pa.array(rows, arrow_type(PLAIN.schema))
    fields = {name: column.field(number) for number, name in enumerate(PLAIN.schema.names)}
    for code in (None, CODE):
        jsonobjects.SWITCH = Switch(code=code, is_hopeless=True)
        assert jsonobjects.write_objects(fields).to_pylist() == expected


def joined_texts_are_the_same(data: bytes) -> None:
    """Machine code and Arrow join texts to arrays alike; every fourth ends one."""
    texts = pieces(data)
    array = pa.array([*texts, bytes(64)], pa.binary())  # what stands behind a text is read
    ends = np.array(sorted({*range(0, len(texts), 4), len(texts)}), np.int64)
    order = np.arange(len(texts))[::-1].copy()
    column = Texts([array], [np.arange(len(texts))])
    by_code = column._by_machine_code(CODE, order, ends, b"[", b"]").to_pylist()
    begins = [0, *ends[:-1].tolist()]
    assert by_code == [b"[" + b",".join(texts[::-1][a:b]) + b"]" for a, b in zip(begins, ends.tolist(), strict=True)]
    assert column.join(order, ends, b"[", b"]").to_pylist() == by_code


def lines_are_the_same(data: bytes) -> None:
    expected = [line for line in data.replace(b"\r\n", b"\n").split(b"\n") if line]
    assert lines_by_machine_code(data, CODE).to_pylist() == expected
    assert lines_by_arrow(data).to_pylist() == expected


def inferred_schemas_fit(data: bytes) -> None:
    samples = pieces(data)
    try:
        found = infer(samples)
    except BadSchema:
        return
    assert schema(found.ddl()) == found
    for raw in samples:
        decoded = decode(raw, found)
        if isinstance(decoded, Malformed):
            assert decoded.error == "MalformedBody" or _MAY_BE_INFINITE.search(raw), decoded


_VALUES: list[Any] = [
    {}, {"n": 1, "d": 2.5, "s": "text", "b": True}, {"n": -(2**63), "d": 1e300, "s": "é\n\U0001f600", "b": False},
    {"o": {"x": 1, "y": "z", "p": {"n": 1.5, "b": None}}, "é": "ü"}, {"n": 1.0, "s": 5, "d": -0.0},
    {"a": [1, None], "o": [{"x": "1", "y": [{"n": 1, "t": "u"}]}, None], "m": [["a"], []]},
    {"v": {"a": [1, 2.0, None, "x"]}, "l": [1, "x", {}], "o": {"v": [True]}}, {"m": {"k": 1.5}, "k": {"l": {"s": "x"}}},
    {"s": "a", 'na"me': "b" * 40, "n": 10**17, "d": 10.05, "b": True}, {"f": "a", "i": [{"s": "x", "n": 1, "d": 0.5}]},
    {"": 7, "a name that does not fit into one block of bytes": 1e-7},
]  # fmt: skip
_BODIES = [json.dumps(value, ensure_ascii=False).encode() for value in _VALUES]
_TIGHT = [json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() for value in _VALUES]
_ODD = [b'{"\\u006e":1,"s":"\\ud83d\\ude00"}', b'{"n":01}', b'{"s":"\\ud800"}', b'{"d":1e400}', b"[[[[", b'{"a":[1,]}']
PARSERS = [
    Parser(readers_agree, [bytes([number]) + raw for number in range(len(SCHEMAS)) for raw in (*_BODIES, *_ODD)]),
    Parser(writers_agree, [*_TIGHT, b"\xfe".join(_BODIES)]),
    Parser(joined_texts_are_the_same, [b"\xfe".join(_TIGHT), b"", b"\xfe\xfe"]),
    Parser(lines_are_the_same, [b"\n".join(_TIGHT), b"a\r\n\r\nb\rc\n\n", b""]),
    Parser(inferred_schemas_fit, [*_BODIES, b"\xfe".join(_BODIES), *_ODD]),
]
