"""Bodies that are copied into a list are those that would be written."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.formats import Format, Json, Text, jsonsame
from penstock.formats.compiled.machinecode import MachineCode, Switch
from penstock.formats.written import Elements, NewBody
from penstock.schema import schema
from penstock.spark.direct.copies import Copier

FORMAT = Json("id BIGINT, total DOUBLE, note STRING")
MEMBER = NewBody(tuple((name, (name,)) for name in FORMAT.schema.names))
BODIES = st.sampled_from(
    [b'{"id":1,"total":2.5,"note":"a"}'] * 6
    + [b'{"id": 1,"total":2.5,"note":"b"}', b'{"total":2.5,"id":2,"note":"c"}', b'{"id":3,"note":"d"}', b"broken",
       b'{"id":4,"total":"much","note":"e"}', b'{"id":5,"total":2.50,"note":"f"}',
       b'{"id":6,"total":1.0,"note":"\\u0041"}',
       b'{"id":null,"total":1.0,"note":""}', b'{"id":7,"total":1.0,"note":"g","more":1}']
)  # fmt: skip


def copier(format: Format = FORMAT, member: NewBody = MEMBER, needed: str = "id BIGINT") -> Copier:
    return Copier(format, member, format.schema, schema(needed), format.schema)


SPLIT = Json("id BIGINT, items ARRAY<STRUCT<id: BIGINT, total: DOUBLE, note: STRING>>")


def splitter() -> Copier:
    return Copier(SPLIT, Elements(("items",), FORMAT.schema.names), SPLIT.schema, schema("id BIGINT"), SPLIT.schema)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BODIES, min_size=1, max_size=12))
def test_all_are_as_if_they_were_written(code: MachineCode, given: list[bytes]) -> None:
    check(code, copier, given)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([b"", b"", b" "]), st.lists(BODIES, max_size=3)), min_size=1, max_size=8))
def test_all_elements_are_as_if_they_were_written(code: MachineCode, given: list[tuple[bytes, list[bytes]]]) -> None:
    bodies = [b'{"id":%d,%s"items":[%s]}' % (n, space, b",".join(items)) for n, (space, items) in enumerate(given)]
    check(code, splitter, bodies)


def check(code: MachineCode, make: Callable[[], Copier], given: list[bytes]) -> None:
    bodies = pa.array(given, pa.binary())
    (whole, failures), written = make().made(bodies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
        (needed, found), members = make()(bodies)
    assert found == failures
    bad = {index for index, _ in failures}
    assert whole is not None
    assert needed is not None
    for index in set(range(len(given))) - bad:
        assert needed[index].as_py()["id"] == whole[index].as_py()["id"]
        assert members[index] == written[index]


def test_bodies_that_are_never_so_are_not_looked_at_again(code: MachineCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
    made = copier()
    for _ in range(3):
        made(pa.array([b'{"id": 1}'] * 3, pa.binary()))
        assert made.is_hopeless
    made = copier()
    made(pa.array([b'{"id":1,"total":2.5,"note":"a"}'] * 3, pa.binary()))
    assert not made.is_hopeless


def test_text_that_looks_like_what_is_written_of_it_is_written(
    code: MachineCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
    made = copier(Text(), NewBody((("value", ("value",)),)), "value STRING")
    for _ in range(3):
        _, members = made(pa.array([b'{"value":"a"}'] * 2, pa.binary()))
        assert members.to_pylist() == [b'{"value":"{\\"value\\":\\"a\\"}"}'] * 2
