"""Machine code: lines as they are, and whatever the JSON decoder does not refuse, it reads as the definition does."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.agreement.values import WHOLE, WRONG, dumped

from penstock.formats import Json, Malformed
from penstock.formats.compiled import columns, layout, machinecode
from penstock.formats.compiled.converting import NotConverted
from penstock.formats.json import decode
from penstock.formats.jsonbatch import with_refused
from penstock.formats.limits import MAX_DEPTH
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Array, Struct, Type, schema

pytest.importorskip("numba")

LONG_NAME = "a name that does not fit into one block of bytes"
FLAT = schema("n BIGINT, d DOUBLE, s STRING, b BOOLEAN")
NESTED = Struct(
    (
        ("o", schema("x BIGINT, y STRING, p STRUCT<n: DOUBLE, b: BOOLEAN>")),
        ("n", INTEGER),
        ("é", STRING),
        ("", INTEGER),
        (LONG_NAME, DOUBLE),
        (LONG_NAME + "!", STRING),
    )
)
NUMBERS = [
    "0", "-0", "-0.0", "0.0", "0e5", "-0e0", "1", "-1", "1e5", "1E+5", "1e-5", "0.1", "-0.1", "123456789012345678",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "9999999999999999999", "18446744073709551616", "9007199254740992", "9007199254740993", "9007199254740993.0",
    "1e22", "1e23", "8.5e22", "1e300", "1e301", "1e308", "1.7976931348623157e308", "1.7976931348623159e308", "1e400",
    "5e-324", "2.2250738585072014e-308", "2.2250738585072011e-308", "1e-300", "1e-400", "341734.47000000003",
    "1" * 31, "1" * 32, "1" * 33, "1" * 400, "0." + "1" * 31, "0." + "1" * 32, "0." + "0" * 40 + "1",
    "1e00000005", "1e000000005", "1.5e+0003", "01", "-01", "00", "+1", ".5", "-.5", "1.", "1.e5", "1e", "1e+", "-",
    "--1", "1-", "0x10", "1_0", "1 0", "NaN", "Infinity", "-Infinity", "1.2.3", "1e5.0", "١",
]  # fmt: skip


def read(code: machinecode.MachineCode, bodies: pa.Array, wanted: Struct) -> tuple[list[Any], list[int]]:
    """The rows, and which were refused. Checks that those that were not are what the definition says."""
    plan = columns.plan_of(wanted)
    assert plan is not None
    column, refused = columns.read_with(code, bodies, plan)
    column.validate(full=True)
    rows = column.to_pylist()
    for index in set(range(len(bodies))) - set(refused.tolist()):
        # repr tells 0.0 from -0.0 and 1 from 1.0 and True
        found = repr(rows[index]).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")
        assert found == repr(decode(bodies[index].as_py(), wanted)), bodies[index]
    return rows, refused.tolist()


def is_read(code: machinecode.MachineCode, raw: bytes, wanted: Struct) -> bool:
    """Whether a body was read. It is also put between sound ones, and where memory ends."""
    sound = b'{"n":1, "s":"x"}'
    _, refused = read(code, pa.array([raw], pa.binary()), wanted)
    _, refused_between = read(code, pa.array([sound, raw, sound, raw, raw], pa.binary()), wanted)
    assert refused_between == ([1, 3, 4] if refused else [])
    return not refused


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_all_shapes(code: machinecode.MachineCode, number: str) -> None:
    for body in ('{"n":%s}', '{"d":%s}', '{"d": %s ,"n":1}', '{"s":%s}', '{"unread":%s}', '{"unread":[%s,1]}'):
        is_read(code, (body % number).encode(), FLAT)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b" { } \r\n\t",
        b'{"n":1,"d":341734.47000000003,"s":"text","b":true}',
        b'{"n":9223372036854775807,"d":5,"s":"","b":false}',
        b'{"n":null,"d":null,"s":null,"b":null}',
        b'{ "n" : 1 , "d" : -2.5e-7 , "s" : "text" , "b" : true }',
        b'{\n\t"s":\r\n"text"\n,\n"n" :1}',
        '{"s":"é € 😀","unread":"é € 😀"}'.encode(),
        b'{"s":"' + b"x" * 31 + b'","n":1}',
        b'{"s":"' + b"x" * 32 + b'","n":1}',
        b'{"s":"' + b"x" * 1000 + b'","n":1}',
        b'{"unread":"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00E9","n":1}',
        b'{"s":"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00E9 \\u20ac \\u0000 \\uffff","n":1}',
        b'{"s":"\\n","unread":"\\n"}',
        b'{"unread":[],"other":{},"more":[[],{},[1,"x",{"n":"not this one"}]],"n":1}',
        b'{"unread":1,"unread":2,"n":1}',
    ],
)
def test_bodies_that_are_not_refused(code: machinecode.MachineCode, raw: bytes) -> None:
    assert is_read(code, raw, FLAT)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"o":{"x":1,"y":"text","p":{"n":1.5,"b":true}},"n":2}',
        b'{"n":1,"o":{"n":"unread","d":{"x":2},"p":{},"x":7}}',
        b'{"o":null,"n":1}',
        b'{"o":{},"n":1}',
        '{"é":"ü","":5}'.encode(),
        f'{{"{LONG_NAME}":1.5,"{LONG_NAME}!":"x","{LONG_NAME}?":"y","o":{{"{LONG_NAME}":"unread"}}}}'.encode(),
    ],
)
def test_nested_fields_and_odd_names_are_not_refused(code: machinecode.MachineCode, raw: bytes) -> None:
    assert is_read(code, raw, NESTED)


ARRAYS = schema(
    "a ARRAY<BIGINT>, o ARRAY<STRUCT<x: STRING, y: ARRAY<STRUCT<n: DOUBLE, t: STRING>>>>, m ARRAY<ARRAY<STRING>>"
)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":[],"o":[],"m":[]}',
        b'{"a":[1,2,null,3],"m":[["a","b"],[],null,["c",null]]}',
        b'{"o":[{"x":"1","y":[{"n":1,"t":"u"},{}]},{"y":[]},null,{"x":"2"},{"y":null,"x":"3"}],"a":null}',
        b'{"o":[{"x":"a","unread":[1,{"x":"not this one"}]},{"unread":{"y":[1]},"x":"b"}],"a":[5]}',
    ],
)
def test_arrays_are_not_refused(code: machinecode.MachineCode, raw: bytes) -> None:
    assert is_read(code, raw, ARRAYS)


@pytest.mark.parametrize(
    "raw",
    [b'{"a":[1,"x"]}', b'{"a":{}}', b'{"a":1}', b'{"o":[[]]}', b'{"m":["a"]}', b'{"o":[{"x":"1"},{"y":[{"t":"u"},7]}]}',
     b'{"a":[1,2}', b'{"a":[1,]}', b'{"a":[1', b'{"o":[{"x":"1"]}', b'{"o":[{"y":[{"n":1}}]}'],
)  # fmt: skip
def test_what_was_read_of_an_array_is_taken_back(code: machinecode.MachineCode, raw: bytes) -> None:
    assert not is_read(code, raw, ARRAYS)
    sound = b'{"o":[{"x":"1","y":[{"n":1,"t":"u"}]},{"x":"2"}],"a":[7,8],"m":[["a"]]}'
    assert read(code, pa.array([sound, raw, sound, raw, sound], pa.binary()), ARRAYS)[1] == [1, 3]


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"null", b"[]", b"1", b'"x"', b"{", b"}", b"{}}", b"{} {}", b"{},", b"{]", b'{"a":[}', b'{"a":1]',
        b"\xef\xbb\xbf{}", b"{}\x00", b'{"n":1,}', b'{,"n":1}', b'{"n"}', b'{"n":}', b'{"n":1 "d":2}', b'{"n" 1}',
        b'{n:1}', b"{'n':1}", b'{"a":[1,]}', b'{"a":[,1]}', b'{"a":[1 2]}', b'{"a":{"b":1,}}', b'{"a":1{"b":2}}',
        b'{"a":tru}', b'{"a":True}', b'{"a":nul}', b'{"a":falsy}', b'{"a":nulll}', b'{"a":truefalse}',
        b'{"a":"x}', b'{"a":"x"', b'{"a', b'{"a"', b'{"a":', b'{"a":"x\ny"}', b'{"a":"x\x00y"}', b'{"a":"\x1f"}',
        b'{"a":"\\x"}', b'{"a":"\\u12g4"}', b'{"a":"\\u123"}', b'{"a":"\\', b'{"a":"\\u', b'{"a":"\\ud800"}',
        b'{"a":"\xff"}', b'{"a":"\xc3"}', b'{"a":"\xc0\x80"}', b'{"a":"\xe0\x9f\xbf"}', b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xf0\x8f\xbf\xbf"}', b'{"a":"\xf4\x90\x80\x80"}', b'{"a":"\xf5\x80\x80\x80"}', b'{"a":"\x80"}',
        b'{"\xff":1}', b'{"a":\xc2\xa01}', b'{"a":1}\xc2\xa0', b'{\x0c}', b'{\x0b"a":1}',
        b'{"n":1.5}', b'{"n":"1"}', b'{"n":true}', b'{"n":[]}', b'{"n":{}}', b'{"d":"x"}', b'{"b":1}', b'{"b":"true"}',
    ],
)  # fmt: skip
def test_malformed_bodies_and_wrong_types_are_refused(code: machinecode.MachineCode, raw: bytes) -> None:
    assert isinstance(decode(raw, FLAT), Malformed)
    assert not is_read(code, raw, FLAT)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"n":1,"n":2}', b'{"\\u006e":1}', b'{"s":1}', b'{"s":{}}', b'{"s":true}', b'{"d":-0}',
        b'{"a":"\\ud83d\\ude00"}', b'{"d":1e-320}', b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
    ],
)  # fmt: skip
def test_what_is_rare_is_left_to_others(code: machinecode.MachineCode, raw: bytes) -> None:
    assert not isinstance(decode(raw, FLAT), Malformed)
    assert not is_read(code, raw, FLAT)


@pytest.mark.parametrize("depth", [2, 58, 59, 60, 61, 64, 65, MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"n":', b"}")])
def test_nesting(code: machinecode.MachineCode, depth: int, opening: bytes, closing: bytes) -> None:
    raw = b'{"x":' + opening * (depth - 1) + b"1" + closing * (depth - 1) + b',"n":5}'
    assert is_read(code, raw, FLAT) == (depth <= 60)
    is_read(code, raw[:-8] + b"}", FLAT)


def test_a_text_that_is_expected_elsewhere_is_not_taken_for_a_key(code: machinecode.MachineCode) -> None:
    bodies = [b'{"o":{"x":1},"n":2}', b'{"o":1{"x":1},"n":2}', b'{"o":{"x":1},"n":2}', b'{"n":2"o":{"x":1}}']
    bodies += [b'{"x":1,"o":{"n":3}}', b'{"o":{"o":{"x":4}}}', b'{"a":{"x":1},"o":{"x":5}}', b'{"o":{"x" :6}}']
    for wanted in (NESTED, schema("o STRUCT<x: BIGINT>, x BIGINT"), schema("x STRING, a STRUCT<x: DOUBLE>")):
        read(code, pa.array(bodies * 3, pa.binary()), wanted)


def test_keys_may_come_and_go_and_change_their_order(code: machinecode.MachineCode) -> None:
    chance = random.Random(7)
    names = [f"key{index}" for index in range(300)]
    wanted = Struct(tuple((name, INTEGER) for name in names[::7]))
    bodies = []
    for _ in range(300):
        chosen = (
            chance.sample(names, chance.randint(0, 40)) if chance.random() < 0.5 else names[: chance.randint(0, 40)]
        )
        bodies.append(json.dumps({name: chance.randint(-9, 9) for name in chosen}).encode())
    assert read(code, pa.array(bodies, pa.binary()), wanted)[1] == []


def test_slices_and_null_slots(code: machinecode.MachineCode) -> None:
    bodies = pa.array([b"x", b'{"s":"a"}', None, b'{"s":"bc"}', b"", b'{"s":"d"}', b"{"], pa.binary())
    assert read(code, bodies.slice(1, 5), schema("s STRING")) == (
        [{"s": "a"}, None, {"s": "bc"}, None, {"s": "d"}],
        [1, 3],
    )
    assert read(code, bodies.slice(3, 0), schema("s STRING")) == ([], [])
    assert read(code, pa.array([None, None], pa.binary()), FLAT) == ([None, None], [0, 1])
    hidden = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), *pa.array([b"{}", b"{}"]).buffers()[1:]])
    assert read(code, hidden, FLAT)[1] == [0]


def test_a_route_that_reads_nothing_keeps_the_rows(code: machinecode.MachineCode) -> None:
    assert read(code, pa.array([b"{}", b"x", b'{"n":1}']), Struct(())) == ([{}, None, {}], [1])


def test_doubles_are_the_nearest_ones(code: machinecode.MachineCode) -> None:
    chance = random.Random(7)
    numbers = []
    for power in range(layout.SMALLEST_POWER - 25, layout.LARGEST_POWER + 25):
        numbers += [f"{chance.randrange(10 ** chance.randint(1, 19))}e{power}" for _ in range(20)]
        # exactly between two doubles, and next to that
        numbers += [f"{(2**53 + 2 * chance.randrange(2**52) + 1) * 2 + shift}e{power}" for shift in (-1, 0, 1)]
    read(code, pa.array([b'{"d":%s}' % number.encode() for number in numbers]), schema("d DOUBLE"))


scalars = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.sampled_from(["n", "d", "s", "b", "o", "x", "y", "p", "é", "", LONG_NAME, "other"])
documents = st.recursive(
    scalars | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=15,
)
types: st.SearchStrategy[Type] = st.deferred(
    lambda: st.sampled_from([STRING, INTEGER, DOUBLE, BOOLEAN]) | schemas | st.builds(Array, types)
)
schemas: st.SearchStrategy[Struct] = st.dictionaries(keys, types, max_size=4).map(
    lambda kinds: Struct(tuple(kinds.items()))
)


def matching(kind: Type) -> st.SearchStrategy[Any]:
    """Values that mostly are what the type wants."""
    if isinstance(kind, Struct):
        fields = {name: matching(inner) for name, inner in kind.fields}
        return st.fixed_dictionaries({}, optional={**fields, "other": documents})
    if isinstance(kind, Array):
        return st.lists(matching(kind.element), max_size=4)
    plain: dict[Type, st.SearchStrategy[Any]] = {
        STRING: st.text(max_size=40),
        INTEGER: st.integers(-(2**63), 2**63 - 1),
        DOUBLE: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20),
        BOOLEAN: st.booleans(),
    }
    return plain[kind] | plain[kind] | plain[kind] | st.none() | documents


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[bytes], Struct]:
    wanted = draw(schemas)
    spaces = draw(st.sampled_from([None, None, 1]))
    marks = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
    documents = draw(st.lists(matching(wanted), min_size=1, max_size=6))
    ascii_only = draw(st.booleans())
    texts = [json.dumps(document, ensure_ascii=ascii_only, indent=spaces, separators=marks) for document in documents]
    return [text.encode("utf-8", "surrogatepass") for text in texts], wanted


@settings(max_examples=200)
@given(batch=batches())
def test_random_bodies(code: machinecode.MachineCode, batch: tuple[list[bytes], Struct]) -> None:
    bodies, wanted = batch
    read(code, pa.array(bodies, pa.binary()), wanted)


SCARS = [
    *(bytes([byte]) for byte in b'{}[],:"\\0-.eE+ \n\x00\x1f\x7f\x80\xff'), b"\xc3", b"\xe2\x82", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"null", b"true", b"1", b'"n":1,', b',"n":2', b"\\ud800", b"\\u00e9", b"[[", b"]]", b"}}",
]  # fmt: skip


@settings(max_examples=300)
@given(batch=batches(), data=st.data())
@example(batch=([b'{"s":"x"}', b'{"s":"x","n":1}'], FLAT), data=None)
def test_damaged_bodies(code: machinecode.MachineCode, batch: tuple[list[bytes], Struct], data: Any) -> None:
    """Bytes changed, deleted, inserted, cut off, between bodies that are whole."""
    bodies, wanted = batch
    damaged = []
    for raw in bodies:
        at = 4 if data is None else data.draw(st.integers(0, len(raw)))
        patch = b"" if data is None else data.draw(st.sampled_from(SCARS) | st.binary(max_size=2))
        gone = len(raw) if data is None else data.draw(st.sampled_from([0, 0, 1, 1, 2, 5, len(raw)]))
        damaged += [raw, raw[:at] + patch + raw[at + gone :]]
    read(code, pa.array(damaged, pa.binary()), wanted)


def test_refused_rows_are_filled_in_at_their_places(code: machinecode.MachineCode) -> None:
    wanted = schema("n BIGINT, s STRING, o STRUCT<x: BIGINT>")
    bodies = [b'{"n":%d,"s":"x%d","o":{"x":%d}}' % (index, index, index) for index in range(200)]
    bodies[0], bodies[50], bodies[51], bodies[199] = b"{", b'{"s":"\\ud83d\\ude00"}', b'{"s":5}', b'{"n":"x"}'
    array = pa.array(bodies)
    plan = columns.plan_of(wanted)
    assert plan is not None
    column, errors = with_refused(*columns.read_with(code, array, plan), array, wanted, decode)
    expected = [decode(raw, wanted) for raw in bodies]
    assert errors == [(index, row) for index, row in enumerate(expected) if isinstance(row, Malformed)]
    assert column.to_pylist() == [None if isinstance(row, Malformed) else row for row in expected]


@pytest.fixture
def switch(code: machinecode.MachineCode, monkeypatch: pytest.MonkeyPatch) -> machinecode.Switch:
    columns.plan_of.cache_clear()
    switch = machinecode.Switch(code=code)
    monkeypatch.setattr(columns, "SWITCH", switch)
    return switch


def test_a_batch_is_decoded_by_machine_code_once_that_is_loaded(switch: machinecode.Switch) -> None:
    bodies = pa.array([b'{"n":%d}' % index for index in range(1000)])
    assert columns.read(bodies, FLAT) is not None
    assert columns.read(bodies.cast(pa.string()), FLAT) is not None
    assert columns.read(bodies[: columns.FEWEST_ROWS - 1], FLAT) is None
    assert columns.read(pa.array([b'{"n":1, "s":"' + b"x" * columns.FEWEST_BYTES + b'"}']), FLAT) is not None
    assert columns.read(bodies.cast(pa.large_binary()), FLAT) is None
    for ddl in ("n ARRAY<VARIANT>", "n MAP<STRING, BIGINT>", "n VARIANT", "o STRUCT<x: VARIANT>"):
        assert columns.read(bodies, schema(ddl)) is None
    column, errors = Json(FLAT).decode_batch(bodies, schema("n BIGINT"))
    assert (column.field(0).to_pylist(), errors) == (list(range(1000)), [])


def test_bodies_like_those_that_were_refused_are_not_tried_for_a_while(switch: machinecode.Switch) -> None:
    refused = pa.array([b'{"s":5}'] * 1000)
    sound = pa.array([b'{"s":"x"}'] * 1000)
    assert columns.read(sound, FLAT) is not None
    assert columns.read(refused, FLAT) is None
    tries = [columns.read(sound, FLAT) is not None for _ in range(40)]
    assert tries.index(True) == 30
    assert all(tries[30:])
    mixed = pa.array([b'{"s":5}'] * 400 + [b'{"s":"x"}'] * 600)
    column, errors = Json(FLAT).decode_batch(mixed, schema("s STRING"))
    assert (column.field(0).to_pylist(), errors) == (["5"] * 400 + ["x"] * 600, [])


def test_a_small_run_loads_neither_numba_nor_llvm() -> None:
    program = (
        "import sys, pyarrow as pa\n"
        "from penstock.formats import Json\n"
        "bodies = pa.array([b'{\"n\":1}'] * 10000)\n"
        "Json('n BIGINT').decode_batch(bodies, Json('n BIGINT').schema)\n"
        "sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_code_is_ordered_once_and_used_when_it_is_there(
    code: machinecode.MachineCode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders: list[str] = []
    stored = machinecode.code_file().read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machinecode, "compile_in_background", lambda: orders.append("order"))
    switch = machinecode.Switch()
    assert switch.after(machinecode.SWITCH_AFTER_BYTES) is None
    assert orders == []
    assert [switch.after(1), switch.after(1)] == [None, None]
    assert orders == ["order"]
    machinecode.code_file().write_bytes(stored)
    assert switch.after(1) is not None


def test_code_that_somebody_else_compiles_is_waited_for(
    code: machinecode.MachineCode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders: list[str] = []
    stored = machinecode.code_file().read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machinecode, "compile_in_background", lambda: orders.append("order"))
    mark = machinecode.tried(machinecode.code_file())
    mark.touch()
    switch = machinecode.Switch(read_bytes=machinecode.SWITCH_AFTER_BYTES)
    assert (switch.after(1), orders) == (None, [])
    machinecode.code_file().write_bytes(stored)
    assert switch.after(1) is not None
    os.utime(mark, (0, 0))
    machinecode.code_file().unlink()
    assert machinecode.Switch(read_bytes=machinecode.SWITCH_AFTER_BYTES).after(1) is None
    assert orders == ["order"]


def test_damaged_code_is_removed_and_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = machinecode.code_file()
    machinecode.store(b"code", file)
    file.write_bytes(file.read_bytes()[:-1])
    switch = machinecode.Switch(read_bytes=machinecode.SWITCH_AFTER_BYTES)
    assert switch.after(1) is None
    assert switch.is_hopeless
    assert not file.exists()


@pytest.mark.parametrize("failure", [ImportError("numba"), OSError("read-only"), RuntimeError("LLVM")])
def test_nobody_notices_that_there_is_no_code(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def fail() -> Path:
        raise failure

    monkeypatch.setattr(machinecode, "code_file", fail)
    switch = machinecode.Switch(read_bytes=machinecode.SWITCH_AFTER_BYTES)
    assert switch.after(1) is None
    assert switch.is_hopeless


def test_the_tables_have_room_for_what_is_read_behind_a_body() -> None:
    assert layout.PADDING >= 4 * layout.BLOCK + 60
    assert len(columns.numbers()) == layout.TENS + 2 * (layout.LARGEST_POWER - layout.SMALLEST_POWER + 1)
    assert columns.numbers().dtype == np.uint64


VALUES = schema(
    "day DATE, at TIMESTAMP, amount DECIMAL(12, 2), blob BINARY, rates ARRAY<DECIMAL(20, 8)>, who STRUCT<d: DATE>"
)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"day":"2024-02-29","at":"2024-02-29T10:00:00Z","amount":12.30,"blob":"aGk="}',
        b'{"rates":[1,-2.5,null,1e3,0.00000001],"amount": -0 ,"who":{"d":"1970-01-01"},"x":1}',
        b'{"at":"2024-02-29 10:00:00.5+02:00","amount":9999999999.99}',
        b'{"day":null,"at":null,"amount":null,"blob":"","rates":[]}',
        b'{"day":"9999-12-31","at":"9999-12-31T23:59:59.999999Z","who":{"d":"0001-01-01"}}',
    ],
)
def test_values_are_read_as_the_definition_reads_them(code: machinecode.MachineCode, raw: bytes) -> None:
    assert is_read(code, raw, VALUES)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"day":"2024-02-30"}', b'{"day":"0000-01-01"}',
        b'{"day":"2024-2-3"}', b'{"at":"2024-01-01T00:00:00"}', b'{"at":"2024-01-01"}',
        b'{"at":"9999-12-31T23:59:59-01:00"}', b'{"at":"2024-01-01T24:00:00Z"}', b'{"at":"2024-01-01T10:00:60Z"}',
        b'{"at":"2024-01-01T10:00:00+25:00"}', b'{"amount":0.001}', b'{"amount":10000000000}', b'{"blob":"aGk"}',
        b'{"rates":[1,1e30]}', b'{"amount":1e400}',
    ],
)  # fmt: skip
def test_a_value_that_is_none_of_its_type_is_left_to_others(code: machinecode.MachineCode, raw: bytes) -> None:
    bodies, plan = pa.array([b"{}", raw, b"{}"], pa.binary()), columns.plan_of(VALUES)
    assert plan is not None
    with pytest.raises(NotConverted):
        columns.read_with(code, bodies, plan)


@given(st.lists(WHOLE.map(dumped) | WRONG.map(dumped), min_size=1, max_size=5))
def test_random_values_are_read_or_left_to_others(code: machinecode.MachineCode, bodies: list[bytes]) -> None:
    wanted = schema(
        "day DATE, at TIMESTAMP, amount DECIMAL(12, 2), rate DECIMAL(38, 8), blob BINARY, days ARRAY<DATE>, "
        "rates ARRAY<DECIMAL(20, 8)>, lines ARRAY<STRUCT<price: DECIMAL(9, 3), sold: TIMESTAMP>>"
    )
    with contextlib.suppress(NotConverted):
        read(code, pa.array(bodies, pa.binary()), wanted)
