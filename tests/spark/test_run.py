"""A batch run: what it answers, and what it leaves when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, Void, body
from penstock.errors import BadEndpoint, PenstockError
from penstock.spark.failure import reason, stopped
from penstock.spark.run import run_batch
from penstock.summary import Summary
from tests.spark.files import contents

ORDER = Json("id BIGINT")


def test_a_run_answers_with_numbers_and_messages(spark: SparkSession) -> None:
    seen: list[Summary] = []
    given = [{"id": number} for number in range(20)]
    app = App(
        "two-sources",
        Route("one", Memory(given, ORDER, partitions=3)).filter(body.id > 4).choice({"x": body.id < 9}, otherwise="y"),
        Route("two", Memory([{"id": 100}, "broken"], ORDER)).filter(body.id > 0).to("x"),
        sinks={"x": Memory(), "y": Void()},
        dead_letters=Memory(),
    )
    result = run_batch(app, spark, progress=seen.append)
    assert sorted(int(message.raw[7:-1]) for message in result.channels["x"]) == [5, 6, 7, 8, 100]
    assert result.channels["y"] == []
    assert [letter.message.raw for letter in result.dead] == [b"broken"]
    assert result.summary.delivered == {"x": 5, "y": 11}
    assert (result.summary.received, result.summary.filtered, result.summary.dead) == (22, {"one.filter": 5}, 1)
    assert result.summary.conserved
    assert seen == [result.summary]


def test_a_run_without_messages_answers_zeros(spark: SparkSession, tmp_path: Path) -> None:
    sinks = {"x": Files(tmp_path / "x"), "y": Memory()}
    route = Route("r", Memory((), ORDER)).filter(body.id > 0).multicast("x", "y")
    result = run_batch(App("empty", route, sinks=sinks, dead_letters=Void()), spark)
    assert result.summary.delivered == {"x": 0, "y": 0}
    assert result.summary.conserved
    assert contents(tmp_path) == {}


def test_a_failing_run_says_why_and_leaves_no_partial_output(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(b'{"id": 1}\n' * 1000)
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(b"not packed")
    app = App("fails", Route("r", Files(tmp_path / "in", ORDER)).to("x", Files(tmp_path / "out")),
              dead_letters=Files(tmp_path / "dead"))  # fmt: skip
    with pytest.raises(BadEndpoint) as caught:
        run_batch(app, spark)
    assert str(caught.value) == (
        f"BadEndpoint: the run stopped: cannot read {tmp_path}/in/b.jsonl.gz: Not a gzipped file (b'no')\n"
        "  fix  nothing was written: mend the cause and run it again"
    )
    assert isinstance(caught.value.__cause__, PythonException)
    assert [name for name in contents(tmp_path) if not name.startswith("in/")] == []
    assert not list(tmp_path.rglob("_staging"))


def test_a_mistake_in_a_route_is_found_before_anything_else() -> None:
    app = App("wrong", Route("r", Files("no/such/place", ORDER)).filter(body.ip > 1).to("x", Void()))
    with pytest.raises(PenstockError, match="UnknownField: route 'r', step 'filter': the body has no field 'ip'"):
        run_batch(app)


def test_the_reason_is_the_innermost_python_exception_or_the_first_line() -> None:
    python = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in read\n    open(x)\n    ^^^^\nFileNotFoundError: no such file: x\n\n\tat org.apache'
    )
    assert reason(RuntimeError(python)) == "FileNotFoundError: no such file: x"
    ours = python.replace("FileNotFoundError:", "penstock.errors.BadEndpoint: BadEndpoint:")
    assert reason(RuntimeError(ours)) == "no such file: x"
    advised = ours.replace("file: x\n", "file: x\n  at   here\n  fix  make x\n")
    assert str(stopped("run", RuntimeError(advised), "mend it")) == (
        "BadEndpoint: the run stopped: no such file: x\n  fix  make x"
    )
    assert stopped("run", RuntimeError(ours), "mend it").fix == "mend it"
    java = "An error occurred while calling o7.collect.\n: org.apache.spark.SparkException: [CODE] it broke\n\tat x"
    assert reason(RuntimeError(java)) == "[CODE] it broke"
    assert reason(RuntimeError()) == "RuntimeError"
