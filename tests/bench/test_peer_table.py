"""The table of peers: how each is started, and why it cannot be."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from penstock.bench.peers import PEERS, camel
from penstock.bench.peers.base import PythonPeer
from penstock.bench.peers.camel import CamelPeer


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with a Camel project that is not built."""
    project = tmp_path / "bench" / "peers" / "camel"
    (project / "src").mkdir(parents=True)
    (project / "pom.xml").write_text("<project/>")
    (project / "src" / "Main.java").write_text("class Main {}")
    monkeypatch.setattr(camel, "source_tree", lambda: tmp_path)
    return project


def build(project: Path) -> None:
    (project / "target").mkdir()
    (project / "target" / "camel-peer.jar").write_bytes(b"")


def test_the_peers_of_the_benchmark() -> None:
    assert list(PEERS) == ["penstock", "camel", "pyspark", "python", "duckdb", "polars"]
    assert all(peer.name == name for name, peer in PEERS.items())


def test_a_python_peer_is_a_module() -> None:
    peer = PythonPeer("json", "JSON", "base", "json")
    assert peer.command(Path("/x/arguments.json")) == [
        sys.executable, "-m", "penstock.bench.peers.base", "/x/arguments.json",
    ]  # fmt: skip
    assert peer.availability() is None
    assert peer.environment(2)["POLARS_MAX_THREADS"] == "2"


def test_a_python_peer_needs_its_module_and_its_package() -> None:
    assert PythonPeer("x", "X", "nothing", "json").availability() == "there is no module penstock.bench.peers.nothing"
    assert PythonPeer("x", "X", "base", "nothing_like_it").availability() == (
        'nothing_like_it is not installed: pip install "penstock[bench]"'
    )


def test_camel_needs_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camel, "source_tree", lambda: None)
    assert CamelPeer().availability() == "its project bench/peers/camel is only in the source tree of Penstock"


def test_camel_needs_maven_only_to_be_built(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **options: None if name == "mvn" else which(name, **options))
    assert CamelPeer().availability() == "it is not built, and there is no mvn (Maven) to build it"
    build(project)
    assert CamelPeer().availability() is None
    assert CamelPeer().prepare(print) is None


def test_camel_is_built_again_when_a_source_is_younger(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(project)
    os.utime(project / "src" / "Main.java", (2e9, 2e9))
    maven = project / "mvn"
    maven.write_text("#!/bin/sh\necho '[ERROR] no such plugin'\nexit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(project) + os.pathsep + os.environ["PATH"])
    said: list[str] = []
    assert CamelPeer().prepare(said.append) == "it cannot be built: [ERROR] no such plugin"
    assert said == ["building the Camel peer: mvn package; the first time it loads Camel"]


def test_camel_is_a_java_program(project: Path) -> None:
    build(project)
    command = CamelPeer().command(Path("/x/arguments.json"))
    assert command[0].endswith("java")
    assert command[-2:] == ["penstock.camel.Main", "/x/arguments.json"]
    assert f"{project}/target/camel-peer.jar{os.pathsep}{project}/target/lib/*" in command
