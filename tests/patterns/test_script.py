from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock import Json, Memory, Route
from penstock.errors import PenstockError
from penstock.message import Lineage
from penstock.testing import Result
from tests.patterns.apps import app, through, why


def scripted(function: Any, messages: list[object], returns: str = "id BIGINT") -> Result:
    source = Memory((), Json("id BIGINT, tags ARRAY<STRING>"))
    return through(Route("r", source).script(function, returns).to("x"), messages)


def test_a_script_makes_one_message_of_one() -> None:
    result = scripted(lambda table: pa.table({"id": pc.add(table["id"], 1)}), [{"id": 1}, {"id": 2}])
    assert result.bodies("x") == [{"id": 2}, {"id": 3}]
    assert [message.id for message in result.messages("x")] == ["r/0/0", "r/0/1"]
    assert [message.lineage for message in result.messages("x")] == [None, None]


def test_a_script_drops_what_it_does_not_return() -> None:
    def odd(table: pa.Table) -> pa.Table:
        kept = pa.array([row for row, number in enumerate(table["id"].to_pylist()) if number % 2], pa.int64())
        return table.select(["id"]).take(kept).append_column("_row", kept)

    result = scripted(odd, [{"id": 1}, {"id": 2}, {"id": 3}])
    assert result.bodies("x") == [{"id": 1}, {"id": 3}]
    assert result.filtered == {"r.script": 1}


def test_a_script_multiplies_into_parts() -> None:
    def each(table: pa.Table) -> pa.Table:
        pairs = [(row, tag) for row, tags in enumerate(table["tags"].to_pylist()) for tag in tags]
        rows, tags = [row for row, _ in pairs], [tag for _, tag in pairs]
        return pa.table({"tag": pa.array(tags, pa.string()), "_row": pa.array(rows, pa.int64())})

    result = scripted(each, [{"tags": ["a", "b"]}, {"tags": ["c"]}, {"tags": []}], "tag STRING")
    assert result.bodies("x") == [{"tag": "a"}, {"tag": "b"}, {"tag": "c"}]
    assert [message.lineage for message in result.messages("x")] == [
        Lineage("r/0/0", 0, 2), Lineage("r/0/0", 1, 2), None,
    ]  # fmt: skip
    assert (result.summary.copied, result.filtered) == (1, {"r.script": 1})


def test_a_failure_kills_only_its_message() -> None:
    def strict(table: pa.Table) -> pa.Table:
        if 2 in table["id"].to_pylist():
            raise ValueError("two")
        return table.select(["id"])

    result = scripted(strict, [{"id": 1}, {"id": 2}, {"id": 3}])
    assert result.bodies("x") == [{"id": 1}, {"id": 3}]
    assert why(result) == [("script", "ScriptFailed", "ValueError: two")]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda table: table.slice(0, 0), "ValueError: 1 rows went in and 0 came out without a '_row' column"),
        (lambda table: pa.table({"id": [1], "_row": [5]}), "ValueError: the '_row' column names a row that did not"),
        (lambda table: pa.table({"other": [1]}), "KeyError: "),
        (lambda table: pa.table({"id": ["text"]}), "ArrowInvalid: "),
        (lambda table: None, "AttributeError: "),
    ],
)
def test_a_result_that_was_not_promised_is_a_dead_letter(function: Any, reason: str) -> None:
    ((step, error, found),) = why(scripted(function, [{"id": 1}]))
    assert (step, error) == ("script", "ScriptFailed")
    assert found.startswith(reason)


def test_a_script_is_a_function_and_knows_all_types() -> None:
    with pytest.raises(PenstockError, match="'text' is not a function"):
        Route("r", Memory()).script("text", "id BIGINT")  # type: ignore[arg-type]
    with pytest.raises(PenstockError, match="a script needs the types of all fields"):
        _ = app(Route("r", Memory((), Json("v VARIANT"))).script(lambda table: table, "id BIGINT").to("x")).plan
