"""The same apps on a master and two workers, through spark-submit, and while an executor is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
import pytest

import penstock
from penstock.endpoints.files import ADDED, Files, Table
from penstock.errors import BadMachine
from penstock.formats.compiled import machinecode
from penstock.route.app import App
from penstock.route.load import load
from penstock.spark.archive import archive_options
from penstock.spark.cluster import Cluster, processes, start, status, stop
from penstock.spark.gateway import spark_environment
from penstock.spark.java import find_java
from penstock.testing import Result, run

ROUTED = """\
from penstock import App, Files, Json, Route, Table, body

app = App(
    "routed",
    Route("intake", Files("in", format=Json("id BIGINT, total DOUBLE, items ARRAY<STRING>")))
    .filter(body.total > 0)
    .multicast("all", "parts"),
    Route("all", "all").choice({"large": body.total >= 500}, otherwise="small"),
    Route("parts", "parts").split(body["items"]).to("items"),
    sinks={"large": Files("out/large"), "small": Table("small"), "items": Files("out/items")},
)
"""

# The worker has neither this file nor its directory, and reads nothing relative to it.
COMPUTED = """\
from pathlib import Path

import names
from penstock import App, Files, Json, Route, Table, body, function, lookup_table

SCHEMA = Path("schema.ddl").read_text()
DESKS = lookup_table([{"id": n, "desk": f"desk {n % 3}"} for n in range(400)], key="id")


def named(number):
    if number % 10 == 7:
        raise ValueError("no sevens")
    return names.of(number)


app = App(
    "computed",
    Route("intake", Files("in", format=Json(SCHEMA)))
    .translate({"id": body.id, "name": function(named, body.id), "total": body.total})
    .enrich_from(DESKS, on=body.id, missing="dead")
    .to("named", Table("named")),
)
"""

# State of two steps, a failing function with a second try, and sinks that promise everything once.
REMEMBERED = """\
from penstock import App, Files, Json, Route, Table, body, call, collect, function


def checked(number):
    if number % 40 == 21:
        raise ValueError("no such order")
    return number


app = App(
    "remembered",
    Route("intake", Files("in", format=Json("id BIGINT, total DOUBLE, items ARRAY<STRING>")), delivery="exactly once")
    .idempotent(call("modulo", body.id, 300), keep="1 hour", remember_failed=True, duplicates="again")
    .translate({"id": function(checked, body.id, returns="BIGINT"), "customer": call("modulo", body.id, 23)})
    .on_error(attempts=1, delay=0)
    .to("checked"),
    Route("grouping", "checked").aggregate(collect("orders", of="id"), by=body.customer, size=7).to("groups"),
    sinks={"groups": Files("out/groups"), "again": Table("again")},
)
"""

# Waits in its last stage, and tells who waits there; what ran before is noted too.
WAITING = """\
import os
import time
from pathlib import Path

from penstock import App, Files, Json, Route, Table, body, function, lookup_table

HERE = Path.cwd()
DESKS = lookup_table([{"id": n, "desk": f"desk {n % 3}"} for n in range(400)], key="id")


def noted(number):
    with open(HERE / "noted", "a") as file:
        file.write(f"{number}\\n")
    return number


def waited(number):
    if not (HERE / "go").exists():
        (HERE / "waiting" / Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]).touch()
        while not (HERE / "go").exists():
            time.sleep(0.05)
    return number


app = App(
    "waiting",
    Route("intake", Files("in", format=Json("id BIGINT, total DOUBLE")))
    .filter(body.total > 0)
    .translate({"id": function(noted, body.id, returns="BIGINT"), "total": body.total})
    .enrich_from(DESKS, on=body.id, missing="dead")
    .translate({"id": function(waited, body.id, returns="BIGINT"), "desk": body.desk, "total": body.total})
    .choice({"large": body.total >= 500}, otherwise="small"),
    sinks={"large": Files("out/large"), "small": Table("small")},
)
"""

# Says of some messages where the package of the process is that has read them, and whether machine code did it.
COMPILED = """\
import penstock
from penstock import App, Files, Json, Route, body, call, function
from penstock.formats.compiled import machinecode


def reader(number):
    return f"{penstock.__file__} {machinecode.SWITCH.code is not None}"


app = App(
    "compiled",
    Route("intake", Files("large", format=Json("id BIGINT")))
    .filter(call("modulo", body.id, 1000) == 999)
    .translate({"id": body.id, "reader": function(reader, body.id)})
    .to("readers", Files("out/readers")),
)
"""

APPS = {"routed": ROUTED, "computed": COMPUTED, "remembered": REMEMBERED}
FILES, LINES = 4, 125


def message(number: int) -> str:
    if number % 50 == 13:
        return "not a message"
    return json.dumps({"id": number, "total": (number * 37) % 1000, "items": [f"{number}-{part}" for part in "ab"]})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    try:
        yield start(directory)
    finally:
        stop(directory)
    assert processes(directory) == {}
    # The Python workers notice that their executor has gone.
    deadline = time.monotonic() + 30
    while inside(directory) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert inside(directory) == []


def inside(directory: Path) -> list[str]:
    """The processes whose working directory is in the directory, as far as the machine tells."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(directory):
                found.append(process.name)
    return found


class Driver:
    """The process of tests/spark/driver.py."""

    def __init__(self, master: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), master]
        self.process = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, directory: Path, stream: bool = False) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"directory": str(directory), "stream": stream}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the driver ended"
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture(scope="module")
def driver(running: Cluster) -> Iterator[Driver]:
    begun = Driver(running.master)
    watch = threading.Timer(900, begun.process.kill)
    watch.start()
    yield begun
    watch.cancel()
    begun.process.communicate(timeout=60)


def environment() -> dict[str, str]:
    """Where the package is found, as if it were installed; the workers do not get it."""
    source = str(Path(penstock.__file__).parents[1])
    return os.environ | {"PYTHONPATH": source, "PENSTOCK_QUICK": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        lines = [message(number) for number in range(file * LINES, (file + 1) * LINES)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "waiting").mkdir()
    (tmp_path / "schema.ddl").write_text("id BIGINT, total DOUBLE")
    (tmp_path / "names.py").write_text('def of(number):\n    return f"number {number}"\n')
    return tmp_path


def expected(project: Path, monkeypatch: pytest.MonkeyPatch, stop: bool = True) -> tuple[App, Result]:
    """What the reference says about the app and the files of the project."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", list(sys.path))
    app = load(str(project / "app.py"))
    monkeypatch.delitem(sys.modules, "names", raising=False)
    return app, run(app, [message(number) for number in range(FILES * LINES)], stop=stop)


def written(sink: object) -> list[Any]:
    """The bodies that a sink holds, in an order that does not depend on who wrote them."""
    if isinstance(sink, Table):
        bodies = pyarrow.parquet.read_table(sink.path).drop_columns(list(ADDED)).to_pylist()
    else:
        assert isinstance(sink, Files)
        lines = [line for file in Path(sink.path).glob("*.jsonl") for line in file.read_text().splitlines()]
        bodies = [json.loads(line) for line in lines]
    return sorted(bodies, key=json.dumps)


def agree(app: App, right: Result, numbers: dict[str, Any]) -> None:
    for channel, sink in app.sinks.items():
        assert written(sink) == sorted(right.bodies(channel), key=json.dumps), channel
    assert len(written(app.dead_letters)) == len(right.dead)
    for number in ("received", "copied", "delivered", "filtered", "dead", "held"):
        assert numbers[number] == getattr(right.summary, number), number
    assert numbers["conserved"]
    assert not list(Path.cwd().rglob("_staging"))


# Before the others: their driver keeps the cores of the cluster until it ends.
def test_spark_submit_runs_an_app_with_its_own_settings(
    running: Cluster, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "app.py").write_text(ROUTED)
    (project / "submit.py").write_text("from penstock.cli.main import main\n\nmain()\n")
    script = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-submit")
    command = [script, "--master", running.master, "--conf", "spark.log.level=INFO", "--name", "nightly",
               "submit.py", "run", "app.py", "--summary", "numbers.json"]  # fmt: skip
    found = environment() | spark_environment(find_java()) | {
        "PYSPARK_PYTHON": sys.executable,
        # Nobody is there: what spark-submit says comes first.
        "PENSTOCK_MASTER": "spark://127.0.0.1:1",
        "SPARK_SUBMIT_OPTS": " ".join(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive_options(find_java())]),
    }  # fmt: skip
    done = subprocess.run(command, cwd=project, env=found, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Submitted application: nightly" in done.stderr
    assert f"Connecting to master {running.master}" in done.stderr
    numbers = json.loads((project / "numbers.json").read_text())
    agree(*expected(project, monkeypatch), numbers)


@pytest.mark.parametrize("stream", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("name", APPS)
def test_an_app_answers_as_the_reference_does(
    name: str, stream: bool, driver: Driver, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "app.py").write_text(APPS[name])
    driver.ask(project, stream)
    numbers = driver.answer()
    agree(*expected(project, monkeypatch, stop=not stream), numbers)


def test_executors_read_with_machine_code(driver: Driver, project: Path) -> None:
    """They have the package as an archive only."""
    pytest.importorskip("numba")
    if not machinecode.code_file().is_file():
        machinecode.compile_in_background().wait()
    (project / "app.py").write_text(COMPILED)
    (project / "large").mkdir()
    filling = "x" * 10_000
    for file in range(2):
        lines = (f'{{"id": {file * 5000 + number}, "filling": "{filling}"}}\n' for number in range(5000))
        (project / "large" / f"{file}.jsonl").write_text("".join(lines))
    driver.ask(project)
    assert driver.answer()["delivered"] == {"readers": 10}
    said = {line["id"]: line["reader"] for line in written(Files(str(project / "out/readers")))}
    assert all(".zip/penstock/" in one for one in said.values())
    assert {said[number].split()[-1] for number in (4999, 9999)} == {"True"}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells who the executor is")
def test_a_killed_executor_changes_neither_the_files_nor_the_numbers(
    driver: Driver, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "app.py").write_text(WAITING)
    driver.ask(project)
    while len(waiting := list((project / "waiting").iterdir())) < 2:
        assert driver.process.poll() is None
        time.sleep(0.05)
    os.kill(int(waiting[0].name), signal.SIGKILL)
    (project / "go").touch()
    numbers = driver.answer()
    app, right = expected(project, monkeypatch)
    noted = (project / "noted").read_text().split()
    assert len(noted) > len(set(noted)), "nothing of the first stage was computed again"
    agree(app, right, numbers)


def test_a_cluster_that_cannot_start_leaves_no_process(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadMachine) as caught:
            start(tmp_path, port=taken.getsockname()[1])
    assert str(caught.value).startswith("BadMachine: the master of the cluster ended while it started: ")
    assert "Address already in use" in str(caught.value)
    assert str(caught.value).endswith(f"\n  fix  see {tmp_path}/master.log")
    assert processes(tmp_path) == {}
    assert list(tmp_path.glob("*.pid")) == []
    assert stop(tmp_path) == 0


def test_a_cluster_is_known_by_its_directory(running: Cluster, tmp_path: Path) -> None:
    assert status(running.directory) == running
    assert [worker.cores for worker in running.workers] == [1, 1]
    assert set(processes(running.directory)) == {"master", "worker-1", "worker-2"}
    assert status(tmp_path) is None
    with pytest.raises(BadMachine, match=f"a cluster runs in {running.directory}\n  fix  stop it first"):
        start(running.directory)
