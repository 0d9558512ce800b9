"""A real Kafka for the tests of this directory, started by the project's script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.bench.kafka_broker import missing, process
from penstock.log.settings import Kafka, Settings

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Broker:
    directory: Path
    address: str

    @property
    def pid(self) -> int:
        found = process(self.directory)
        assert found is not None
        return found

    def settings(self, **other: object) -> Settings:
        """A log in this Kafka, in topics that nobody else uses."""
        known = {"prefix": f"{uuid.uuid4().hex[:12]}-", "timeout": 20.0}
        return Settings(last=Kafka(self.address, **(known | other)))  # type: ignore[arg-type]

    def halt(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        script("stop", "--directory", str(self.directory))

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        assert script("start", "--directory", str(self.directory), "--port", port).strip() == self.address


def script(*arguments: str) -> str:
    environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([ROOT / "scripts" / "kafka", *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    pytest.importorskip("confluent_kafka")
    if lacking := missing():
        pytest.skip(lacking)
    directory = tmp_path_factory.mktemp("kafka")
    address = script("start", "--directory", str(directory), "--port", "0").strip()
    yield Broker(directory, address)
    script("stop", "--directory", str(directory))


@pytest.fixture
def settings(kafka: Broker) -> Settings:
    return kafka.settings()
