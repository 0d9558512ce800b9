"""The example of docs/endpoints.md that needs a Kafka."""

from __future__ import annotations

import re
from functools import partial

import pytest
from pyspark.sql import SparkSession

from penstock import App, Json, KafkaTopic, Memory, Route, body
from penstock.spark.run import run_batch
from tests.broker import ROOT, Broker
from tests.kafka.topics import fill, new_topic


def test_the_example_of_the_page_runs(spark: SparkSession, kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "endpoints.md").read_text()
    example = next(block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "KafkaTopic(" in block)
    orders = new_topic(kafka.address)
    fill(kafka.address, orders, [b'{"id": 1}', b'{"id": 2}', b'{"id": 3}'])
    names = {"KafkaTopic": partial(KafkaTopic, servers=kafka.address), "run_batch": partial(run_batch, spark=spark),
             "App": App, "Json": Json, "Memory": Memory, "Route": Route, "body": body}  # fmt: skip
    exec(example.replace('"orders"', f'"{orders}"'), names)
    assert capsys.readouterr().out.strip() == example.rpartition("  # ")[2].strip()
