"""penstock log, as a user types it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log.log import Log
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server
from tests.broker import Broker
from tests.docs.pages import penstock


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Log(tmp_path / "data") as log, Server(log, Listening(tcp=0, http=0, push=0, pull=0)) as made:
        yield made


class Here:
    def __init__(self, server: Server, directory: Path) -> None:
        self.server, self.directory = server, directory

    def __call__(self, command: str, status: int = 0) -> str:
        name, _, rest = command.partition(" ")
        found, out = penstock(f"penstock log {name} --server {self.server.address} {rest}", self.directory)
        assert found == status, out
        return out


@pytest.fixture
def log(server: Server, tmp_path: Path) -> Here:
    return Here(server, tmp_path)


def test_topics_push_pull_and_tail(log: Here) -> None:
    assert log("topics") == "no topics: penstock log topics --create NAME makes one\n"
    assert log("topics --create orders --create cars:2").splitlines() == [
        "topic   partition  first  next  durable",
        "cars    0          0      0     0",
        "cars    1          0      0     0",
        "orders  0          0      0     0",
    ]
    assert log("push orders one two three") == "pushed 3 messages to orders: fsynced\n"
    assert log("push orders --acknowledge memory four") == "pushed 1 message to orders: memory\n"
    assert log("pull orders") == "one\ntwo\nthree\nfour\n"
    assert log("pull orders --offset 1 --most 2") == "two\nthree\n"
    assert log("pull orders --offset next") == ""
    assert log("pull cars") == ""
    assert log("tail orders -n 2") == "three\nfour\n"
    assert log("tail orders -n 0") == ""
    first = json.loads(log("pull orders --most 1 --json"))
    assert first | {"time": 0} == {"topic": "orders", "partition": 0, "offset": 0, "time": 0, "text": "one"}
    assert json.loads(log("topics --json").splitlines()[-1])["next"] == 4


def test_filters_and_transformations_run_on_the_server(log: Here) -> None:
    messages = ('{"id": 1, "total": 5}', "broken", '{"id": 2, "total": 5000}', '{"id": 3, "total": 7}')
    log(f"push orders --create 1 {shlex.join(messages)}")
    assert log("pull orders --where 'total < 1000'") == '{"id": 1, "total": 5}\n{"id": 3, "total": 7}\n'
    made = log("tail orders -n 1 --where 'total < 1000' --select id=id --select twice='total * 2'")
    assert made == '{"id":3,"twice":14.0}\n'


def test_keys_keep_their_partition(log: Here) -> None:
    log("topics --create cars:4")
    for number in range(3):
        log(f"push cars --key audi {number}")
    found = [json.loads(line) for line in log("pull cars --json").splitlines()]
    assert len({one["partition"] for one in found}) == 1
    assert [(one["key"], one["value"]) for one in found] == [("audi", 0), ("audi", 1), ("audi", 2)]
    assert log(f"pull cars --partition {found[0]['partition']} --most 1") == "0\n"


def test_stats_for_people_programs_and_prometheus(log: Here) -> None:
    log("push orders --create 1 hello")
    shown = log("stats")
    assert re.search(r"pushed messages +1\n", shown)
    assert re.search(r"topic +partition +level +kind +capacity +hits", shown)
    assert json.loads(log("stats --json"))["server"]["pushed_messages"] == 1
    assert "penstock_log_server_pushed_messages_total 1.0" in log("stats --prometheus")


@pytest.mark.parametrize(("command", "error"), [
    ("push ordres x", "UnknownTopic: no topic 'ordres'\n  fix  create it first; known: orders"),
    ("pull ordres", "UnknownTopic: no topic 'ordres'\n  fix  known: orders"),
    ("pull orders --partition 3", "UnknownTopic: topic 'orders' has no partition 3\n  fix  0 to 0"),
    ("pull orders --offset soon", "BadEndpoint: 'soon' is not an offset\n  fix  give a number, first or next"),
    ("tail orders --where 'total <'", "BadExpression: expected a value, found the end\n  at   line 1, column 8"),
    ("pull orders --select total", "BadExpression: 'total' does not say what to make\n  fix  write name=expression"),
    ("topics --create orders:3", "BadTopic: topic 'orders' has 1 partitions, not 3"),
    ("topics --create a:b", "BadEndpoint: 'a:b' is not a topic\n  fix  write name or name:partitions"),
])  # fmt: skip
def test_mistakes_are_told_without_a_traceback(log: Here, command: str, error: str) -> None:
    log("topics --create orders")
    assert log(command, status=2).startswith(error)


def test_no_server(tmp_path: Path) -> None:
    for command in ("push orders x", "pull orders", "tail -f orders", "topics", "stats"):
        status, out = penstock(f"penstock log {command} --server 127.0.0.1:1", tmp_path)
        assert (status, out) == (2, "NoServer: no log server answers at 127.0.0.1:1: Connection refused\n"
                                    "  fix  start one: penstock log serve DIRECTORY\n")  # fmt: skip


def test_a_wrong_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = {"tcp": 0, "http": 0, "push": 0, "pull": 0}
    with Log(tmp_path / "data") as log, Server(log, Listening(**ports, token="secret")) as server:
        where = f"--server {server.address}"
        assert penstock(f"penstock log topics {where}", tmp_path) == (
            2, "WrongToken: the server wants a token, and got no token\n  fix  give the server's token\n")  # fmt: skip
        assert penstock(f"penstock log topics {where} --token other", tmp_path)[0] == 2
        assert penstock(f"penstock log topics {where} --token secret", tmp_path)[0] == 0
        monkeypatch.setenv("PENSTOCK_LOG_TOKEN", "secret")
        assert penstock(f"penstock log topics {where}", tmp_path)[0] == 0


def test_a_server_that_cannot_start_says_why(server: Server, tmp_path: Path) -> None:
    status, out = penstock(f"penstock log serve other --port {server.tcp}", tmp_path)
    assert (status, out.splitlines()[0]) == (
        2, f"CannotListen: cannot listen at 127.0.0.1:{server.tcp}: Address already in use")  # fmt: skip
    status, out = penstock("penstock log serve other --host 0.0.0.0", tmp_path)
    assert (status, out.splitlines()[1]) == (2, "  fix  give a token, or listen at 127.0.0.1")
    status, out = penstock("penstock log serve data --port 0 --http-port -1 --push-port -1 --pull-port -1", tmp_path)
    assert (status, out.startswith("LogInUse: ")) == (2, True), out


def test_check(tmp_path: Path) -> None:
    with Log(tmp_path / "data") as log:
        log.create("orders")
        from penstock.log.frame import Frame

        log.append("orders", 0, Frame.pack([b"one", b"two"])).result()
    status, out = penstock("penstock log check data", tmp_path)
    assert (status, out.startswith("sound: 1 topic, 1 partition, 1 segment, 2 messages, ")) == (0, True), out
    segment = max((tmp_path / "data" / "topics" / "orders" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[-9] ^= 1
    segment.write_bytes(data)
    status, out = penstock("penstock log check data", tmp_path)
    assert status == 1
    assert "1 place damaged" in out
    assert json.loads(penstock("penstock log check data --json", tmp_path)[1])["is_sound"] is False
    assert penstock("penstock log check nothing", tmp_path)[0] == 2


def test_help_teaches(tmp_path: Path) -> None:
    status, out = penstock("penstock log --help", tmp_path)
    assert status == 0
    for word in ("serve", "push", "pull", "tail", "topics", "stats", "check", "PENSTOCK_LOG_TOKEN", "curl"):
        assert word in out
    for command in ("serve", "push", "pull", "tail", "topics", "stats", "check"):
        assert penstock(f"penstock log {command} --help", tmp_path)[0] == 0


def start(*arguments: str, here: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-c", "from penstock.cli.main import main; main()", "log", *arguments],
                            cwd=here, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serving_until_a_signal(tmp_path: Path, number: int) -> None:
    serving = start("serve", "data", "--port", "0", "--http-port", "0", "--push-port", "-1", "--pull-port", "-1",
                    "--create", "orders:2", here=tmp_path)  # fmt: skip
    assert serving.stdout is not None
    assert serving.stdout.readline() == "serving the log in data; Ctrl-C stops\n"
    address = serving.stdout.readline().split()[1]
    page = serving.stdout.readline().split()[1]
    assert subprocess.run(["curl", "-sS", "-d", "hello", f"{page}/topics/orders/messages"], capture_output=True).stdout
    tailing = start("tail", "-f", "orders", "--where", "total < 10", "--server", address, here=tmp_path)
    pushing = start("push", "orders", "--acknowledge", "memory", "--server", address, here=tmp_path)
    time.sleep(0.2)
    out, _ = pushing.communicate('{"total": 50}\n{"total": 5}\n', timeout=30)
    assert out == "pushed 2 messages to orders: memory\n"
    assert tailing.stdout is not None
    assert tailing.stdout.readline() == '{"total": 5}\n'
    tailing.send_signal(signal.SIGINT)
    assert tailing.wait(20) in (0, 130)
    serving.send_signal(number)
    out, _ = serving.communicate(timeout=30)
    assert out.splitlines() == ["stopping: what has begun is finished, what is new is refused",
                                "stopped: everything is fsynced"]  # fmt: skip
    assert serving.returncode == 0
    with Log(tmp_path / "data") as log:
        assert sum(log.ends("orders", partition).next for partition in (0, 1)) == 3


def test_serving_with_the_messages_in_kafka(kafka: Broker, tmp_path: Path) -> None:
    from tests.kafka.topics import bodies

    prefix = f"{uuid.uuid4().hex[:12]}-"
    ports = ["--port", "0", "--http-port", "-1", "--push-port", "-1", "--pull-port", "-1"]
    given = ["--kafka", kafka.address, "--kafka-prefix", prefix, "--kafka-option", "client.id=tests"]

    def serve(*more: str) -> tuple[subprocess.Popen[str], str]:
        serving = start("serve", "data", *ports, *given, *more, here=tmp_path)
        assert serving.stdout is not None
        first = f"serving the log in data, its messages in Kafka at {kafka.address}; Ctrl-C stops\n"
        assert serving.stdout.readline() == first
        return serving, serving.stdout.readline().split()[1]

    def stop(serving: subprocess.Popen[str]) -> str:
        serving.terminate()
        return serving.communicate(timeout=30)[0]

    serving, address = serve("--create", "orders:2")
    pushed = "pushed 2 messages to orders: fsynced\n"
    assert penstock(f"penstock log push orders -p 1 one two --server {address}", tmp_path) == (0, pushed)
    assert stop(serving).endswith("stopped: everything is in Kafka\n")
    serving, address = serve()
    assert penstock(f"penstock log pull orders --server {address}", tmp_path) == (0, "one\ntwo\n")
    stop(serving)
    assert bodies(kafka.address, f"{prefix}orders") == [[], [b"one", b"two"]]
    status, out = penstock("penstock log serve data --port 0 --http-port -1 --push-port -1 --pull-port -1", tmp_path)
    assert (status, out.splitlines()[0]) == (2, "BadSettings: the messages of topic 'orders' are in Kafka")


def test_settings_of_kafka_that_cannot_be(tmp_path: Path) -> None:
    for given, said in (
        ("--kafka-prefix x-", "settings of Kafka, and no Kafka"),
        ("--kafka 127.0.0.1:1 --kafka-option password", "'password' is not a setting with its value"),
        ("--kafka 127.0.0.1:1 --keep-bytes 100", "a retention for messages that are in Kafka"),
    ):
        status, out = penstock(f"penstock log serve other {given}", tmp_path)
        assert (status, said in out) == (2, True), out
