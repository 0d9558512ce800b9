"""Error budgets: a batch that has more failures than its app allows changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Parquet, Postgres, Route, Void, body, fold, function, sum_of
from penstock.endpoints.base import Sink
from penstock.errors import BudgetExceeded, PenstockError
from penstock.route.yaml import from_yaml, to_yaml
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.testing import REFERENCE, SPARK, replay, run
from tests.database import Database
from tests.spark.files import contents, records

ORDER = Json("id BIGINT, total DOUBLE")


def positive(total: float) -> float:
    if total < 0:
        raise ValueError("negative")
    return total


def priced(source: Any, *more: Any) -> Route:
    cost = function(positive, body.total, returns="DOUBLE")
    return Route("intake", source).filter(body.id > 0, missing="dead").enrich({"cost": cost}, name="cost")


def shop(budget: Any) -> App:
    return App("shop", priced(Memory((), ORDER)).to("out", Memory()), dead_letters=Memory(), error_budget=budget)


GIVEN = [{"id": n, "total": -1.0 if n % 4 == 1 else 1.0} for n in range(1, 9)] + [{"total": 1.0}, b"broken"]


def said(action: Any) -> str:
    with pytest.raises(PenstockError) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize("engine", [REFERENCE, SPARK])
def test_a_batch_over_its_budget_stops_with_the_errors_that_did_it(spark: SparkSession, engine: str) -> None:
    assert len(run(shop(4), GIVEN, engine).dead) == 4
    assert len(run(shop(0.4), GIVEN, engine).dead) == 4
    text = said(lambda: run(shop(3), GIVEN, engine))
    assert text == (
        "BudgetExceeded: 4 dead letters from 10 messages, and the error budget of app 'shop' is 3: 2 FunctionFailed at "
        "intake.cost, 1 MissingField at intake.filter, 1 MalformedBody at intake.decode\n"
        "  fix  nothing of the batch was published: mend the cause and run it again, or raise error_budget"
    )
    assert "the error budget of app 'shop' is 39%" in said(lambda: run(shop(0.39), GIVEN, engine))
    assert "is 0: 1 MalformedBody" in said(lambda: run(shop(0), [b"broken"], engine))


def test_batches_of_the_reference_are_checked_one_by_one() -> None:
    assert len(run(shop(3), GIVEN, batches=[5, 5]).dead) == 4
    assert "2 dead letters from 5 messages" in said(lambda: run(shop(1), GIVEN, batches=[5, 5]))


def test_a_run_over_its_budget_leaves_every_sink_as_it_was(
    spark: SparkSession, tmp_path: Path, postgres: Database
) -> None:
    dead: Sink
    for dead in (Files(tmp_path / "dead"), Parquet(tmp_path / "columns"), Postgres(postgres.url, "dead"), Void()):

        def app(budget: int, dead: Sink = dead) -> App:
            route = priced(Memory(GIVEN, ORDER)).multicast("lines", "rows")
            sinks = {"lines": Files(tmp_path / "lines", mode="overwrite"), "rows": Postgres(postgres.url, "orders")}
            return App("shop", route, sinks=sinks, dead_letters=dead, error_budget=budget)

        run_batch(app(4), spark)
        before = contents(tmp_path), postgres.rows("orders")
        text = said(lambda app=app: run_batch(app(3), spark))
        assert text.startswith("BudgetExceeded: 4 dead letters from 10 messages")
        assert ("2 FunctionFailed at intake.cost" in text) == (not isinstance(dead, Void))
        assert (contents(tmp_path), postgres.rows("orders")) == before


@pytest.mark.parametrize("delay", ["0 s", "1 ms"])
def test_a_run_that_tries_again_is_checked_at_its_end(spark: SparkSession, tmp_path: Path, delay: str) -> None:
    def app(budget: int) -> App:
        route = priced(Memory(GIVEN, ORDER)).to("out", Files(tmp_path / "out")).on_error(2, delay=delay)
        return App("shop", route, dead_letters=Files(tmp_path / "dead"), error_budget=budget)

    assert "4 dead letters from 10 messages" in said(lambda: run_batch(app(3), spark))
    assert contents(tmp_path) == {}
    result = run_batch(app(4), spark)
    assert (result.summary.dead, result.summary.delivered, result.summary.conserved) == (4, {"out": 6}, True)
    assert (len(records(tmp_path / "out")), len(records(tmp_path / "dead"))) == (6, 4)


@pytest.mark.parametrize("remembers", [False, True])
def test_a_stream_over_its_budget_stops_and_tries_the_batch_again(
    spark: SparkSession, tmp_path: Path, remembers: bool
) -> None:
    def app(budget: int) -> App:
        route = priced(Files(tmp_path / "in", ORDER))
        if remembers:
            route = route.aggregate(fold(sum=sum_of(body.cost)), by=body.id, size=2)
        sinks = {"out": Files(tmp_path / "out")}
        return App("shop", route.to("out"), sinks=sinks, dead_letters=Files(tmp_path / "dead"), error_budget=budget)

    def write(name: str, *totals: float) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text("".join(json.dumps({"id": 1, "total": n}) + "\n" for n in totals))

    def stream(budget: int) -> Any:
        return run_stream(app(budget), str(tmp_path / "position"), once=True, spark=spark).summary

    def visible() -> dict[str, bytes]:
        return {name: raw for name, raw in contents(tmp_path).items() if name.startswith(("out", "dead"))}

    write("a.jsonl", 1.0)
    stream(1)
    before = visible()
    write("b.jsonl", 2.0, -1.0, -1.0)
    for _ in range(2):
        with pytest.raises(BudgetExceeded) as caught:
            stream(1)
        # The one that waits in the aggregator leaves it in this batch.
        messages = 4 if remembers else 3
        assert str(caught.value).startswith(f"BudgetExceeded: 2 dead letters from {messages} messages, and the error")
        assert visible() == before
    summary = stream(2)
    assert (summary.received, summary.dead, summary.conserved) == (3, 2, True)
    assert len(records(tmp_path / "dead")) == 2
    assert [record.get("sum") for record in records(tmp_path / "out")] == ([3.0] if remembers else [None, None])


@pytest.mark.parametrize("engine", [REFERENCE, SPARK])
def test_a_replay_has_the_budget_too(spark: SparkSession, engine: str) -> None:
    letters = run(shop(None), GIVEN, engine).dead
    assert "4 dead letters from 4 messages" in said(lambda: replay(shop(3), letters, engine))


def test_budgets_are_numbers_or_shares() -> None:
    for wrong in (-1, 1.5, -0.1, True, "5", float("nan")):
        text = said(lambda wrong=wrong: shop(wrong))
        assert text.startswith(f"BadRoute: app 'shop': error_budget={wrong!r} is no budget\n  at ")
        assert text.endswith("\n  fix  write error_budget=10 for ten failures, or 0.01 for one in a hundred")


def test_yaml_and_explain_have_the_budget() -> None:
    text = (
        "app: a\n"
        "routes:\n"
        "  - route: r\n"
        "    from: {rate: 1}\n"
        "    steps:\n"
        "      - to: {channel: x, sink: void}\n"
        "error_budget: 0.01\n"
    )
    app = from_yaml(text)
    assert app.error_budget == 0.01
    assert from_yaml(to_yaml(app)).error_budget == 0.01
    assert "error budget := 1% of a batch, or nothing of it is published\n" in app.explain()
    assert "error_budget='x' is no budget" in said(lambda: from_yaml(text.replace("0.01", "x")))
