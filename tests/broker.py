"""A real Kafka for tests, started by the project's script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.kafka_broker import process
from penstock.log.settings import Kafka, Settings

ROOT = Path(__file__).resolve().parents[1]


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

    def warm_up(self) -> None:
        """The first transaction of a new broker makes Kafka's own topic for them, which takes a busy machine long."""
        from confluent_kafka import Producer

        Producer({"bootstrap.servers": self.address, "transactional.id": "warm-up"}).init_transactions(120)

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
