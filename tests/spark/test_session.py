from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyspark.sql import SparkSession

from penstock.errors import BadMachine
from penstock.spark.archive import archive_file, archive_options
from penstock.spark.java import find_java
from penstock.spark.session import _settings, _sockets, driver_memory, session

INTERRUPTED = """
import os, signal, sys, threading, time
from penstock.spark.session import session

spark = session(quick=True)
stream = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
stream = stream.mapInArrow(lambda batches: batches, stream.schema)
query = stream.writeStream.format("noop").option("checkpointLocation", sys.argv[1]).start()
while not query.recentProgress:
    time.sleep(0.1)
# As a terminal does it: the signal goes to every process of the group.
asked = threading.Event()
signal.signal(signal.SIGINT, lambda *_: asked.set())
os.killpg(0, signal.SIGINT)
while not asked.is_set():
    query.awaitTermination(0.1)
query.awaitTermination(0.5)
print("running" if query.isActive else "dead")
query.stop()
print(query.exception(), spark.range(7).count())
spark.stop()
"""


def test_results_do_not_depend_on_the_machine(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.caseSensitive") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_the_running_session_is_used_again(spark: SparkSession) -> None:
    assert session(conf={"spark.penstock.test": "yes"}) is spark
    assert spark.conf.get("spark.penstock.test") == "yes"


def test_a_running_session_is_made_to_mean_the_same(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session()
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_running_session_does_not_move_to_another_master(spark: SparkSession) -> None:
    assert session(master=spark.sparkContext.master) is spark
    with pytest.raises(BadMachine, match=r"Spark runs already, on local\[\*\] and not on spark://elsewhere:7077\n"):
        session(master="spark://elsewhere:7077")


def test_a_cluster_gets_what_is_right_for_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.session.check", lambda master: None)
    monkeypatch.setenv("PENSTOCK_MASTER", "spark://127.0.0.1:7077")
    here, away = _settings("x", None, {}, quick=True), _settings("x", "spark://host:7077", {}, quick=False)
    local = _settings("x", "local[2]", {}, quick=False)
    masters = ["spark://127.0.0.1:7077", "spark://host:7077", "local[2]"]
    assert [settings["spark.master"] for settings in (here, away, local)] == masters
    assert [settings.get("spark.driver.host") for settings in (here, away, local)] == ["127.0.0.1", None, "127.0.0.1"]
    assert [settings.get("spark.sql.adaptive.enabled") for settings in (here, away, local)] == [None, None, "false"]
    assert away["spark.executor.defaultJavaOptions"] == "-XX:-DontCompileHugeMethods -Xss8m"
    assert "spark.executor.defaultJavaOptions" not in local


def test_there_are_as_many_shuffle_partitions_as_cores(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == str(spark.sparkContext.defaultParallelism)


def test_workers_run_this_python(spark: SparkSession) -> None:
    def executable(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"executable": [sys.executable]})

    rows = spark.range(1).mapInArrow(executable, "executable string").collect()
    assert [row.executable for row in rows] == [sys.executable]


def test_ctrl_c_stays_with_python(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_checkpoints_have_no_checksum_twins(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.json(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").json(str(tmp_path / "in")).dropDuplicates(["id"])
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert (tmp_path / "checkpoint" / "commits" / "0").is_file()
    assert not list((tmp_path / "checkpoint").rglob("*.crc"))
    assert list((tmp_path / "checkpoint" / "state").rglob("*.delta"))


def test_driver_memory_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DRIVER_MEMORY", "700m")
    assert driver_memory() == "700m"


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(1, 1024), (8, 2048), (64, 4096)])
def test_driver_memory_is_a_quarter_within_limits(
    gigabytes: int, megabytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_DRIVER_MEMORY", raising=False)
    monkeypatch.setattr("penstock.spark.session.memory", lambda: gigabytes << 30)
    assert driver_memory() == f"{megabytes}m"


def test_an_archive_of_classes_is_used_when_it_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    registered: list[object] = []
    monkeypatch.setattr("atexit.register", registered.append)
    assert archive_options(find_java()) == []
    assert len(registered) == 1
    file = archive_file(find_java())
    file.touch()
    assert archive_options(find_java()) == ["-Xshare:auto", f"-XX:SharedArchiveFile={file}"]
    monkeypatch.setenv("PENSTOCK_ARCHIVE", "off")
    assert archive_options(find_java()) == []


def test_two_processes_at_once_stop_silently_on_ctrl_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of them finds a broken archive, and both another Spark in SPARK_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive_file(find_java()).write_bytes(b"no archive")
    broken = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    monkeypatch.undo()
    processes = [start_interrupted(tmp_path / name, extra) for name, extra in (("a", {}), ("b", broken))]
    for process in processes:
        assert process.communicate(timeout=300) == ("running\nNone 7\n", "")
        assert process.returncode == 0
    assert [list((tmp_path / name).iterdir()) for name in ("a", "b")] == [[], []]


def start_interrupted(directory: Path, extra: dict[str, str]) -> subprocess.Popen[str]:
    directory.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, f"{directory}-checkpoint"],
        cwd=directory,
        env=os.environ | {"SPARK_HOME": "/nowhere"} | extra,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_sockets_are_files_only_where_their_names_fit() -> None:
    assert _sockets("/tmp/penstock-a")["spark.python.unix.domain.socket.dir"] == "/tmp/penstock-a"
    assert _sockets("/tmp/" + "a" * 60) == {}
    assert "spark.python.unix.domain.socket.enabled" not in _settings("a", "yarn", {}, False)
