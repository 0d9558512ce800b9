"""HTTP, as people use it: with curl."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.server.serve import Server
from penstock.log.settings import Acknowledge


def curl(server: Server, arguments: str) -> str:
    line = arguments.replace("HERE", f"localhost:{server.http}")
    done = subprocess.run(["curl", "-sS", *shlex.split(line)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_message_in_and_a_range_out(server: Server) -> None:
    receipt = {"topic": "orders", "partition": 0, "first": 0, "count": 1, "acknowledged": "fsynced"}
    assert json.loads(curl(server, "-d '{\"id\": 1}' HERE/topics/orders/messages")) == receipt
    curl(server, "-d hello HERE/topics/orders/messages")
    found = lines(curl(server, "HERE/topics/orders/messages"))
    assert [one | {"time": 0} for one in found] == [
        {"offset": 0, "time": 0, "value": {"id": 1}}, {"offset": 1, "time": 0, "text": "hello"}
    ]  # fmt: skip
    assert curl(server, "'HERE/topics/orders/messages?offset=1&raw=1'") == "hello\n"
    assert "Penstock-Next: 2" in curl(server, "-i HERE/topics/orders/messages")


def test_lines_modes_keys_and_partitions(server: Server, log: Log) -> None:
    page = "HERE/topics/orders/messages?lines=1&acknowledge=memory&partition=1"
    answer = curl(server, f"--data-binary 'a\nb\n\nc\n' '{page}'")
    assert json.loads(answer) == {"topic": "orders", "partition": 1, "first": 0, "count": 3, "acknowledged": "memory"}
    places = {json.loads(curl(server, "-d x 'HERE/topics/orders/messages?key=k1'"))["partition"] for _ in range(3)}
    assert len(places) == 1
    stored = log.read("orders", 1, 0).frames[0]
    assert stored.values.to_pylist()[:3] == [b"a", b"b", b"c"]


def test_bytes_that_are_no_text_come_as_base64(server: Server, log: Log) -> None:
    log.append("orders", 0, Frame.pack([b"\xff\xfe", b"NaN", b"[" * 100_000], keys=[b"\xff", None, None]),
               Acknowledge.MEMORY).result()  # fmt: skip
    first, second, third = lines(curl(server, "HERE/topics/orders/messages"))
    assert (first["base64"], first["key"]) == ("//4=", "\\xff")
    assert second["text"] == "NaN"
    assert third["text"].startswith("[[[")


def test_half_a_character_stops_no_range(server: Server, log: Log) -> None:
    log.append("orders", 0, Frame.pack([b'{"name": "\\ud800"}', b"1e999", b"next"]), Acknowledge.MEMORY).result()
    first, second, third = lines(curl(server, "HERE/topics/orders/messages"))
    assert (first["value"], second["text"], third["text"]) == ({"name": "\ud800"}, "1e999", "next")


@pytest.mark.parametrize("text", ["1e400", "[-1e999]", "9" * 5000])
def test_json_that_cannot_be_written_again_comes_as_text(server: Server, log: Log, text: str) -> None:
    log.append("orders", 0, Frame.pack([text.encode()]), Acknowledge.MEMORY).result()
    (found,) = lines(curl(server, "HERE/topics/orders/messages"))
    assert found["text"] == text


def test_topics_are_made_and_listed(server: Server) -> None:
    assert json.loads(curl(server, "-X PUT 'HERE/topics/cars?partitions=3'")) == {"topic": "cars", "partitions": 3}
    assert json.loads(curl(server, "HERE/topics")) == {"orders": {"partitions": 2}, "cars": {"partitions": 3}}
    found = json.loads(curl(server, "HERE/topics/cars"))
    assert found["partitions"][2] == {"partition": 2, "first": 0, "next": 0, "durable": 0}


def test_a_filter_runs_on_the_server(server: Server) -> None:
    for total in (5, 50, 7):
        curl(server, f"-d '{{\"total\": {total}}}' HERE/topics/orders/messages")
    found = lines(curl(server, "-G HERE/topics/orders/messages --data-urlencode 'where=total < 10'"))
    assert [(one["offset"], one["value"]["total"]) for one in found] == [(0, 5), (2, 7)]


def test_a_reader_waits_for_a_message(server: Server) -> None:
    timer = threading.Timer(0.3, lambda: curl(server, "-d late HERE/topics/orders/messages"))
    timer.start()
    began = time.monotonic()
    assert lines(curl(server, "'HERE/topics/orders/messages?offset=next&wait=20'"))[0]["text"] == "late"
    assert time.monotonic() - began < 10
    timer.join()
    assert curl(server, "'HERE/topics/orders/messages?offset=next&wait=0.1'") == ""


def test_numbers_for_people_and_for_prometheus(server: Server) -> None:
    curl(server, "-d x HERE/topics/orders/messages")
    assert json.loads(curl(server, "HERE/statistics"))["server"]["pushed_messages"] == 1
    text = curl(server, "HERE/metrics")
    name = "penstock_log_server_pushed_messages_total"
    assert f"# TYPE {name} counter\n{name} 1.0" in text
    assert 'penstock_log_partition_next{topic="orders",partition="0"} 1.0' in text
    assert 'penstock_log_level_hits_total{topic="orders",partition="0",level="1",kind="memory"}' in text
    assert curl(server, "HERE/").startswith("Penstock log")


@pytest.mark.parametrize(("arguments", "status", "error"), [
    ("HERE/topics/nope/messages", 404, "no topic 'nope'"),
    ("-d x HERE/topics/nope/messages", 404, "no topic 'nope'"),
    ("HERE/nothing", 404, "GET /nothing is nothing"),
    ("'HERE/topics/orders/messages?offset=7'", 416, "offset 7 is not there yet"),
    ("'HERE/topics/orders/messages?offset=-3'", 400, "offset=-3 is not a number"),
    ("'HERE/topics/orders/messages?wait=nan'", 400, "wait=nan is not a number from 0 to 60"),
    ("'HERE/topics/orders/messages?wait=inf'", 400, "wait=inf is not a number"),
    ("'HERE/topics/orders/messages?wait=1e400'", 400, "wait=1e400 is not a number"),
    ("'HERE/topics/orders/messages?most=0'", 400, "most=0 is not a number"),
    ("'HERE/topics/orders/messages?most=1.5'", 400, "most=1.5 is not a whole number"),
    ("'HERE/topics/orders/messages?most=1_0'", 400, "most=1_0 is not a number"),
    ("'HERE/topics/orders/messages?offset=99999999999999999999999999'", 400, "is not a number from 0"),
    ("'HERE/topics/orders/messages?partition=99999'", 404, "has no partition 99999"),
    ("-X PUT 'HERE/topics/huge?partitions=9007199254740992'", 400, "with 9007199254740992 partitions"),
    ("'HERE/topics/orders/messages?ofset=7'", 400, "there is no parameter 'ofset'"),
    ("'HERE/topics/orders/messages?where=total+%3C'", 400, "expected a value"),
    ("'HERE/topics/orders/messages?where=python(%27os:getcwd%27,%27STRING%27)=1'", 400, "does not run Python"),
    ("-X PUT HERE/topics/..%2Fup", 400, "a topic named '../up'"),
    ("-d x 'HERE/topics/orders/messages?acknowledge=maybe'", 400, "an acknowledgement 'maybe'"),
    ("-H 'Transfer-Encoding: chunked' -d x HERE/topics/orders/messages", 411, "how long its body is"),
    ("-H 'Content-Length: 99999999999' -d x HERE/topics/orders/messages", 413, "a body of 99,999,999,999 bytes"),
    (f"-H 'Content-Length: {'9' * 5000}' -d x HERE/topics/orders/messages", 413, "99,999,999,999,999,999,999 bytes"),
    ("-H 'Host: [' HERE/topics", 403, "programs of its own machine only"),
    ("-H 'Origin: http://[' HERE/topics", 403, "programs of its own machine only"),
    ("--request-target 'http://[/' HERE", 400, "is not an address"),
    ("-H 'Host: evil.example' HERE/topics", 403, "programs of its own machine only"),
    ("-H 'Origin: http://evil.example' -d x HERE/topics/orders/messages", 403, "programs of its own machine only"),
])  # fmt: skip
def test_mistakes_are_told(server: Server, arguments: str, status: int, error: str) -> None:
    answer, _, found = curl(server, f"-w '\\n%{{http_code}}' {arguments}").rpartition("\n")
    assert (int(found), error in json.loads(answer)["what"]) == (status, True), answer


def test_the_token_is_wanted_everywhere(serving: Callable[..., Server]) -> None:
    server = serving(token="secret")
    for path in ("/", "/topics", "/metrics", "/statistics"):
        assert curl(server, f"-o /dev/null -w '%{{http_code}}' HERE{path}") == "401"
        assert curl(server, f"-o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer wrong' HERE{path}") == "401"
        assert curl(server, f"-o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer secret' HERE{path}") == "200"


def test_a_large_message_waits_for_100_continue(server: Server, log: Log, tmp_path: Any) -> None:
    (tmp_path / "large").write_bytes(bytes(5_000_000))
    answer = curl(server, f"--data-binary @{tmp_path}/large HERE/topics/orders/messages")
    assert json.loads(answer)["first"] == 0
    assert len(log.read("orders", 0, 0).frames[0].values[0].as_py()) == 5_000_000
    (tmp_path / "large").write_bytes(bytes(17 << 20))
    answer = curl(server, f"--data-binary @{tmp_path}/large HERE/topics/orders/messages")
    assert json.loads(answer)["error"]


@pytest.mark.parametrize("noise", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70_000,
    b"POST /topics/orders/messages HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
    b"POST /topics HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: \xb2\r\n\r\n",
])  # fmt: skip
def test_noise_does_not_stop_the_server(server: Server, noise: bytes) -> None:
    with socket.create_connection(("localhost", server.http), 5) as raw:
        raw.sendall(noise)
        raw.shutdown(socket.SHUT_WR)
        try:
            while raw.recv(1000):
                pass
        except ConnectionError:
            pass
    assert curl(server, "-o /dev/null -w '%{http_code}' HERE/topics") == "200"
