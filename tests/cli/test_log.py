"""penstock log, as a user types it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
import tty
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log.frame import Frame
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
    ("push ordres x", "UnknownTopic: no topic 'ordres'\n  fix  did you mean 'orders'? known: orders"),
    ("pull ordres", "UnknownTopic: no topic 'ordres'\n  fix  did you mean 'orders'? known: orders"),
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
            2, "WrongToken: the server wants a token, and got no token\n"
               "  fix  give it: --token-file or PENSTOCK_LOG_TOKEN for commands, token=... in a program\n")  # fmt: skip
        assert penstock(f"penstock log topics {where} --token other", tmp_path)[0] == 2
        assert penstock(f"penstock log topics {where} --token secret", tmp_path)[0] == 0
        (tmp_path / "token").write_text("secret")
        (tmp_path / "token").chmod(0o600)
        pushed = penstock(f"penstock log push t --create 1 {where} --token-file token -- --token", tmp_path)
        assert (pushed[0], "with ps" in pushed[1]) == (0, False)
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


def test_a_log_that_would_be_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text("{}")
    ports = "--port 0 --http-port -1 --push-port -1 --pull-port -1"
    for given in ("orders.json", "orders.json/data"):
        assert penstock(f"penstock log serve {given} {ports}", tmp_path) == (
            2, f"BadSettings: there can be no log: Not a directory\n  at   {given}\n"
               "  fix  name a directory that you may write to; it is made if need be\n")  # fmt: skip
    assert penstock("penstock log check orders.json", tmp_path) == (
        2, "Damaged: orders.json holds no log\n  fix  give the directory that the log was opened with\n")  # fmt: skip
    assert file.read_text() == "{}"


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


def test_a_signal_is_heard_under_load_whichever_thread_gets_it(tmp_path: Path) -> None:
    """The kernel gives it to any thread that runs, and answers over HTTP have many."""
    script = Path(__file__).with_name("stopped_often.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script, tmp_path, "40"], env=environment, text=True, capture_output=True)
    ends = [(float(seconds), int(status)) for seconds, status in map(str.split, done.stdout.splitlines())]
    assert [status for _, status in ends] == [0] * 40, done.stderr
    assert max(seconds for seconds, _ in ends) < 3


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


def in_terminal(*arguments: str, here: Path, typed: bytes = b"", piped: bool = False) -> tuple[int, bytes]:
    """The command with a terminal, as a person has it; what it printed, or what a pipe behind it got."""
    mine, theirs = pty.openpty()
    tty.setraw(theirs)
    code = "from penstock.cli.main import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, "log", *arguments], cwd=here, stdin=theirs,
                               stdout=subprocess.PIPE if piped else theirs, stderr=theirs)  # fmt: skip
    os.close(theirs)
    os.write(mine, typed)
    found = process.stdout.read() if process.stdout is not None else b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while some := os.read(mine, 65536):
            found += some
    os.close(mine)
    return process.wait(60), found


def test_messages_do_not_steer_the_terminal(log: Here, server: Server, tmp_path: Path) -> None:
    log("topics --create orders")
    evil = "\x1b]0;owned\x07\x1b[2Jhidden\rshown\x9b31m\u202ereversed\ttab"
    server.log.append("orders", 0, Frame.pack([evil.encode(), b"\xff\x1b"])).result()
    for command in ("pull", "tail"):
        for more in ((), ("--json",)):
            status, out = in_terminal(command, "orders", "--server", server.address, *more, here=tmp_path)
            assert status == 0, out
            text = out.decode()
            assert not {one for one in text if not one.isprintable()} - {"\n", "\t"}, out
        assert "\\x1b]0;owned\\x07" in in_terminal(command, "orders", "--server", server.address,
                                                   here=tmp_path)[1].decode()  # fmt: skip
        piped = in_terminal(command, "orders", "--server", server.address, here=tmp_path, piped=True)
        assert piped == (0, evil.encode() + b"\n\xff\x1b\n")


def test_deleting_asks(log: Here, server: Server, tmp_path: Path) -> None:
    log("topics --create orders:2 --create other")
    log("push orders one two")
    said = "BadEndpoint: topic 'orders' has 2 messages, and nobody is here to confirm\n  fix  say --yes\n"
    process = start("delete", "orders", "--server", server.address, here=tmp_path)
    process.communicate("y\n", timeout=60)
    assert process.returncode == 2
    assert log("delete orders", 2) == said
    status, out = in_terminal("delete", "orders", "--server", server.address, here=tmp_path, typed=b"n\n")
    assert (status, b"Delete topic orders with 2 messages, for good?" in out) == (1, True), out
    assert "orders" in server.log.topics()
    status, out = in_terminal("delete", "orders", "--server", server.address, here=tmp_path, typed=b"y\n")
    assert (status, b"deleted orders: 2 messages" in out) == (0, True), out
    assert list(server.log.topics()) == ["other"]
    assert log("delete other --yes") == "deleted other: 0 messages\n"
    assert log("delete other --yes", 2).startswith("UnknownTopic: no topic 'other'")


def test_a_token_in_a_file_is_seen_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    file.chmod(0o600)
    ports = {"tcp": 0, "http": None, "push": None, "pull": None}
    with Log(tmp_path / "data") as made, Server(made, Listening(**ports, token="secret")) as server:
        ask = f"penstock log topics --server {server.address}"
        nothing = "no topics: penstock log topics --create NAME makes one\n"
        assert penstock(f"{ask} --token-file token", tmp_path) == (0, nothing)
        status, out = penstock(f"{ask} --token secret", tmp_path)
        said = "note: everybody on this machine can read a token on the command line, with ps:"
        assert (status, out) == (0, f"{said} give --token-file, or PENSTOCK_LOG_TOKEN\n{nothing}")
        monkeypatch.setenv("PENSTOCK_LOG_TOKEN_FILE", str(file))
        assert penstock(ask, tmp_path) == (0, nothing)
        monkeypatch.delenv("PENSTOCK_LOG_TOKEN_FILE")
        monkeypatch.setenv("PENSTOCK_LOG_TOKEN", "secret")
        assert penstock(ask, tmp_path) == (0, nothing)
        monkeypatch.delenv("PENSTOCK_LOG_TOKEN")
        file.chmod(0o644)
        assert penstock(f"{ask} --token-file token", tmp_path) == (
            0, f"note: others on this machine can read token: chmod 600 token\n{nothing}")  # fmt: skip
        file.write_text("\n")
        assert penstock(f"{ask} --token-file token", tmp_path)[1].startswith("BadEndpoint: token holds no token")
        assert penstock(f"{ask} --token-file nowhere", tmp_path) == (
            2, "BadEndpoint: cannot read a token in nowhere: No such file or directory\n"
               "  fix  write it there, in one line\n")  # fmt: skip
        both = penstock(f"{ask} --token-file token --token secret", tmp_path)
        assert (both[0], "BadEndpoint: a token and a file with one" in both[1]) == (2, True)
