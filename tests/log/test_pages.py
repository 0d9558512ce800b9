"""Thousands of topics: lists and numbers in pages, and every client still works."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.log.client import Catalogue, Consumer, Producer
from penstock.log.log import Log
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server
from penstock.log.settings import Settings
from tests.docs.pages import penstock
from tests.log.server.test_http import curl

COUNT = 5000


def test_a_server_with_thousands_of_topics_serves_every_client(tmp_path: Path) -> None:
    names = [f"the-topic-of-customer-{number:05d}" for number in range(COUNT)]
    with Log(tmp_path / "log", Settings(levels=())) as log:
        for name in names:
            log.create(name)
        with Server(log, Listening(tcp=0, http=0, push=None, pull=None)) as server:
            with Catalogue(server.address) as catalogue:
                assert [topic.name for topic in catalogue.topics()] == names
                assert [topic.name for topic in catalogue.topics(names[10], 3)] == names[11:14]
                found = catalogue.statistics()
                assert [one["topic"] for one in found["partitions"]] == names
                assert found["server"]["connections"] == 1
                some = catalogue.statistics((names[4], 0), 2)["partitions"]
                assert [one["topic"] for one in some] == names[5:7]
            with Producer(server.address) as producer:
                producer.send(names[-1], b"a").result()
            with Consumer(names[-1], server=server.address) as consumer:
                assert consumer.poll(10)[0].values == [b"a"]
            _check_http(server, names)
            _check_commands(server, names, tmp_path)


def _check_http(server: Server, names: list[str]) -> None:
    seen: list[str] = []
    after = ""
    while True:
        head, _, body = curl(server, f"-i 'HERE/topics?after={after}'").partition("\n\n")
        seen += json.loads(body)
        more = [line for line in head.splitlines() if line.startswith("Penstock-Next")]
        if not more:
            break
        after = more[0].partition(": ")[2]
    assert seen == names
    head, _, body = curl(server, f"-i 'HERE/statistics?after={names[0]}/0&most=2'").partition("\n\n")
    assert [one["topic"] for one in json.loads(body)["partitions"]] == names[1:3]
    assert f"Penstock-Next: {names[2]}/0" in head
    assert len(json.loads(curl(server, "HERE/statistics"))["partitions"]) == COUNT


def _check_commands(server: Server, names: list[str], directory: Path) -> None:
    status, out = penstock(f"penstock log topics --server {server.address} --after {names[2]} --most 2", directory)
    assert (status, [line.split()[0] for line in out.splitlines()]) == (0, ["topic", *names[3:5]])
    status, out = penstock(f"penstock log stats --server {server.address} --json", directory)
    assert (status, len(json.loads(out)["partitions"])) == (0, COUNT)
    status, out = penstock(f"penstock log topics --server {server.address} --json", directory)
    assert (status, len(out.splitlines())) == (0, COUNT)
