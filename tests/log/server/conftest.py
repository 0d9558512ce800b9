"""A certificate for servers that use TLS, and a disk that waits."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from penstock.log.log import Log


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    here = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", here / "key.pem", "-out", here / "certificate.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True,
    )  # fmt: skip
    return str(here / "certificate.pem"), str(here / "key.pem")


@pytest.fixture
def stuck(log: Log, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No fsync ends before this is set."""
    store = log._partition("orders", 0).store
    sync, may_go = store.sync, threading.Event()
    monkeypatch.setattr(store, "sync", lambda: may_go.wait(20) and sync())
    yield may_go
    may_go.set()
