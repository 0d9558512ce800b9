from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of TPC-H and the models made of them are kept during the tests."""
    return tmp_path_factory.mktemp("eipbench")
