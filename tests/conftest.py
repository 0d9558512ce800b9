"""What every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

os.environ["PENSTOCK_QUICK"] = "1"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run: do not stop it, and undo what you set on it."""
    from penstock.spark.session import session

    running = session("penstock-tests", quick=True)
    yield running
    running.stop()
