"""Settings of a log whose last level is the Kafka of the test run."""

from __future__ import annotations

import pytest

from penstock.log.settings import Settings
from tests.broker import Broker


@pytest.fixture
def settings(kafka: Broker) -> Settings:
    return kafka.settings()
