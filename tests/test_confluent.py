"""The one way to Kafka: what happens without its client, and whose settings win."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.errors import BadMachine
from penstock.log import Kafka, Log, Settings

WITHOUT = (
    "BadMachine: Kafka needs the package confluent-kafka: import of confluent_kafka halted; None in sys.modules\n"
    '  fix  pip install "penstock[kafka]", on all machines of a cluster'
)


def routes(_: Path) -> object:
    return importlib.import_module("penstock.kafka.client")


def last_level(directory: Path) -> object:
    return Log(directory, Settings(last=Kafka("127.0.0.1:1")))


@pytest.mark.parametrize("use", [routes, last_level])
def test_without_the_client_it_says_what_to_install(
    use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = ("penstock.confluent", "penstock.kafka.", "penstock.log.kafka.client")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(BadMachine) as caught:
        use(tmp_path)
    assert str(caught.value) == WITHOUT


def test_nobody_else_imports_the_client() -> None:
    root = Path(penstock.__file__).parent
    users = [file for file in root.rglob("*.py") if "from confluent_kafka" in file.read_text()]
    assert [str(file.relative_to(root)) for file in users] == ["confluent.py"]


def test_options_replace_what_we_want_and_not_what_we_need() -> None:
    pytest.importorskip("confluent_kafka")
    from penstock.kafka.client import Place

    place = Place("t", "127.0.0.1:1", (("linger.ms", "7"), ("acks", "1")))
    settings = place._made(dict, print, {"linger.ms": 1, "client.id": "x"}, {"acks": "all"})
    assert (settings["linger.ms"], settings["acks"], settings["client.id"]) == ("7", "all", "x")
    assert settings["bootstrap.servers"] == "127.0.0.1:1"
