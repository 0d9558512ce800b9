"""Routes that read and write topics of the log, on Spark."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Log, Memory, Route, Void, body, header
from penstock.errors import BadEndpoint
from penstock.log import Frame
from penstock.log import Log as OpenLog
from penstock.log.server.serve import Server
from penstock.message import Message
from penstock.reference.run import run
from penstock.spark.run import RunResult, run_batch
from penstock.spark.stream import run_stream
from tests.log.spark.test_appending import stored

ORDER = Json("id BIGINT, total DOUBLE")


def orders(first: int, stop: int) -> list[bytes]:
    return [json.dumps({"id": number, "total": number * 10.0}).encode() for number in range(first, stop)]


def push(log: OpenLog, partition: int, bodies: Sequence[bytes], topic: str = "orders", **columns: object) -> None:
    log.append(topic, partition, Frame.pack(bodies, **columns)).result()  # type: ignore[arg-type]


def routed(source: Log, **sinks: Log | Memory) -> App:
    route = Route("in", source).choice({"large": body.total >= 50}, otherwise="small")
    return App("shop", route, sinks=sinks, dead_letters=Memory())


def ids(messages: Sequence[Message]) -> list[tuple[str, bytes]]:
    return sorted((message.id, message.raw) for message in messages)


def test_batch_and_stream_give_what_the_reference_gives(spark: SparkSession, log: OpenLog, tmp_path: Path) -> None:
    push(log, 0, orders(0, 8), times=range(1_000_000, 9_000_000, 1_000_000))
    push(log, 1, [b"not JSON", *orders(8, 11)], keys=[None, b"A", b"B", None],
         headers=[None, b'{"from": "x"}', None, None])  # fmt: skip
    push(log, 0, orders(11, 13))
    source = Log("orders", ORDER, at=str(log.directory))
    app = routed(source, large=Memory(), small=Memory())
    right = run(app.plan, [*orders(0, 8), b"not JSON", *orders(8, 13)])
    batch = run_batch(app, spark)
    stream = run_stream(app, str(tmp_path / "position"), once=True, spark=spark, rows_per_batch=5)
    for result in (batch, stream):
        assert result.summary.received == 14
        assert result.summary.conserved
        for channel in ("large", "small"):
            found = sorted(message.raw for message in result.channels[channel])
            assert found == sorted(message.raw for message in right.channels[channel])
        assert [letter.message.id for letter in result.dead] == ["orders/1/0"]
    assert ids(batch.channels["large"]) == ids(stream.channels["large"])
    assert stream.summary.batches == 3
    known = {message.id: message for message in batch.channels["large"]}
    assert known["orders/0/5"].time == datetime.fromtimestamp(6, UTC)
    assert known["orders/1/1"].headers == {"from": "x", "key": "A"}
    assert known["orders/1/2"].headers == {"key": "B"}
    assert known["orders/1/3"].headers == {}


def test_from_log_to_log_everything_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "log")
    with OpenLog(tmp_path / "log") as log:
        log.create("orders", 2)
        push(log, 0, orders(0, 10))
        push(log, 1, orders(10, 20))
    app = routed(Log("orders", ORDER, at=place), large=Log("large", at=place, key="id", partitions=2),
                 small=Log("small", at=place))  # fmt: skip
    checkpoint = tmp_path / "position"

    def go() -> tuple[list[bytes], list[bytes]]:
        run_stream(app, str(checkpoint), once=True, spark=spark, rows_per_batch=8)
        return sorted(stored(tmp_path / "log", "large")[0] + stored(tmp_path / "log", "large")[1]), stored(
            tmp_path / "log", "small"
        )[0]

    assert go() == (sorted(orders(5, 20)), orders(0, 5))
    with OpenLog(tmp_path / "log") as log:
        push(log, 1, orders(1, 3))
    again = sorted(orders(5, 20)), [*orders(0, 5), *orders(1, 3)]
    assert go() == again
    newest = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    (checkpoint / "commits" / str(newest)).unlink()  # as if the process had died before Spark noted the last batch
    assert go() == again
    assert go() == again


def test_through_a_server(
    spark: SparkSession, log: OpenLog, serving: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = serving(token="secret").address
    monkeypatch.setenv("LOG_TOKEN", "secret")
    push(log, 0, orders(0, 5), keys=[b"%d" % number for number in range(5)])
    push(log, 1, orders(5, 10))
    source = Log("orders", ORDER, at=address, token="${LOG_TOKEN}")
    sink = Log("even", at=address, token="${LOG_TOKEN}", headers=True)
    app = App("shop", Route("in", source).filter(~header.key.is_present() | (body.id < 3)).to("even", sink),
              dead_letters=Files(str(tmp_path / "dead")))  # fmt: skip
    result = run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
    assert result.summary.delivered == {"even": 8}
    reading = log.read("even", 0, 0)
    assert [value for frame in reading.frames for value in frame.values.to_pylist()] == orders(0, 3) + orders(5, 10)
    assert [key for frame in reading.frames for key in frame.keys.to_pylist()] == [b"0", b"1", b"2", *[None] * 5]
    assert sorted(message.raw for message in run_batch(
        App("look", Route("in", source).to("all", Memory()), dead_letters=Void()), spark
    ).channels["all"]) == sorted(orders(0, 10))  # fmt: skip


@pytest.mark.parametrize(
    ("running", "served", "waits"),
    [(False, False, True), (False, True, False), (True, False, False), (True, True, True)],
)
def test_a_topic_that_was_deleted_and_made_again_is_not_read_on(
    spark: SparkSession, log: OpenLog, serving: Callable[..., Server], tmp_path: Path, running: bool, served: bool,
    waits: bool,
) -> None:  # fmt: skip
    """The new one has more messages than the old one, so that its offsets alone give nothing away."""
    push(log, 0, orders(0, 5))
    push(log, 1, orders(5, 10))
    source = Log("orders", ORDER, at=serving().address if served else str(log.directory))
    route = Route("in", source).on_error(attempts=1, delay=1) if waits else Route("in", source)
    app = App("shop", route.to("out", Files(str(tmp_path / "out"))), dead_letters=Void())

    def make_again() -> None:
        while not list((tmp_path / "out").glob("[!_.]*")):  # until the old one was read
            time.sleep(0.1)
        log.delete("orders")
        log.create("orders", 2)
        push(log, 0, orders(100, 110))
        push(log, 1, orders(110, 120))

    def go(place: str, **options: Any) -> RunResult:
        return run_stream(app, str(tmp_path / place), spark=spark, **options)

    again, stop = threading.Thread(target=make_again), threading.Event()
    again.start()
    if running:
        deadline = threading.Timer(60, stop.set)
        deadline.start()
        with pytest.raises(BadEndpoint, match=r"stopped: (no topic 'orders'|.* that was deleted)"):
            go("position", stop=stop)
        deadline.cancel()
    else:
        assert go("position", once=True).summary.delivered == {"out": 10}
    again.join()
    with pytest.raises(BadEndpoint) as caught:
        go("position", once=True)
    assert "the stream has read a topic 'orders' that was deleted; another has its name now" in str(caught.value)
    assert "start with a new checkpoint, to read the new one from its beginning" in str(caught.value)
    assert go("anew", once=True).summary.delivered == {"out": 20}


def test_what_cannot_be_read_is_said_before_spark_starts(log: OpenLog, serving: Callable[..., Server]) -> None:
    def reading(**options: str) -> None:
        route = Route("in", Log(options.pop("topic", "orders"), **options))  # type: ignore[arg-type]
        run_batch(App("shop", route.to("out", Void()), dead_letters=Void()), spark=None)

    with pytest.raises(BadEndpoint, match=r"route 'in' reads log ordres at .*: no topic 'ordres'"):
        reading(topic="ordres", at=str(log.directory))
    with pytest.raises(BadEndpoint, match="holds no log"):
        reading(at=str(log.directory.parent))
    with pytest.raises(BadEndpoint, match=r"no log server answers at 127.0.0.1:1"):
        reading(at="127.0.0.1:1")
    server = serving(token="right")
    with pytest.raises(BadEndpoint, match="token"):
        reading(at=server.address, token="wrong")
    with pytest.raises(BadEndpoint, match="LOG_NO_TOKEN"):
        reading(at=server.address, token="${LOG_NO_TOKEN}")
    place = str(log.directory)
    with pytest.raises(BadEndpoint, match=r"reads log orders .*writes to it too"):
        run_batch(App("shop", Route("in", Log("orders", at=place)).to("out", Log("orders", at=place))))
