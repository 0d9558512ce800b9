"""Families of parts and copies on Spark: which messages belong together."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock import App, Files, Frame, Json, Memory, Route, body
from penstock.endpoints.base import Source
from penstock.spark.run import run_batch
from penstock.testing import REFERENCE, SPARK, replay, run
from tests.agreement.test_agreement import assert_same

LINES = Json("id BIGINT, lines ARRAY<STRUCT<n: BIGINT>>")
TEXT = '{"lines": [{"n": 1}, {}, {"n": 2}, {"n": 3}]}'


def app(source: Source, missing: str = "dead", budget: float = 0) -> App:
    route = Route("in", source).split(body.lines, error_budget=budget).filter(body.n > 0, missing=missing)
    return App("family", route.to("x"), sinks={"x": Memory()}, dead_letters=Memory())


def test_messages_of_one_id_and_place_are_families_of_their_own(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(TEXT, "same")] * 3, "value STRING, id STRING")
    result = run_batch(app(Frame(rows, LINES)))
    assert result.summary.conserved
    assert sorted(message.id for message in result.channels["x"]) == ["same.0"] * 3
    assert sorted((letter.message.id, letter.error) for letter in result.dead) == [
        *[("same.1", "MissingField")] * 3, *[("same.2", "Stopped")] * 3, *[("same.3", "Stopped")] * 3,
    ]  # fmt: skip


def test_files_are_counted_and_stopped_parts_replayed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(f"{TEXT}\n{TEXT}\nbroken\n")
    found = app(Files(str(tmp_path / "in.jsonl"), LINES))
    result = run_batch(found)
    assert (result.summary.received, result.summary.dead, result.summary.conserved) == (3, 7, True)
    letters = sorted(result.dead, key=lambda letter: letter.message.id)
    stopped = [letter for letter in letters if letter.error == "Stopped"]
    assert [letter.message.fields for letter in stopped] == [{"n": 2}, {"n": 3}] * 2
    again = replay(found, stopped, SPARK)
    assert_same(replay(found, stopped, REFERENCE), again)
    assert again.bodies("x") == [{"n": 2}, {"n": 3}] * 2


def test_a_text_with_percent_signs_is_told_as_it_is(spark: SparkSession) -> None:
    def fails(fields: dict[str, object]) -> bool:
        raise ValueError("100% wrong: %s %d")

    route = Route("50% in", Memory((), LINES)).split(body.lines, error_budget=0.25, name="%d").filter(fails).to("x")
    found = App("family", route, sinks={"x": Memory()}, dead_letters=Memory())
    assert_same(run(found, [TEXT]), run(found, [TEXT], SPARK))
