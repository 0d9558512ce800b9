"""The functions of an app find their way into tasks, wherever its files are."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.route.load import load
from penstock.spark.run import run_batch
from penstock.spark.ship import _not_installed

APP = """\
from penstock import App, Json, Memory, Route, body, function

import beside_{name}


def shown(number):
    return beside_{name}.shown(number)


app = App(
    "{name}",
    Route("in", Memory([{{"id": 1}}], Json("id BIGINT")))
    .translate({{"name": function(shown, body.id)}})
    .to("out", Memory()),
    dead_letters=Memory(),
)
"""


@pytest.mark.parametrize("name", ["first", "second"])
def test_functions_of_an_app_in_another_directory_run(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice under the same name: a worker must not keep the module that it met first."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shipped.py").write_text(APP.format(name=name))
    (tmp_path / f"beside_{name}.py").write_text(f'def shown(number):\n    return f"{name} {{number}}"\n')
    result = run_batch(load(str(tmp_path / "shipped.py")), spark)
    assert [message.raw for message in result.channels["out"]] == [f'{{"name":"{name} 1"}}'.encode()]
    assert not result.dead


def archive(tmp_path: Path, *loaded: str) -> Path:
    """The archive that a driver would send which has loaded these modules, and nothing else."""
    made = tmp_path / "sent.zip"
    imports = "".join(f"import {name}\n" for name in loaded)
    program = f"from penstock.spark.ship import _package, _zipped\n{imports}_zipped(dict(_package()), {str(made)!r})"
    subprocess.run([sys.executable, "-c", program], check=True, env=importing(Path(penstock.__file__).parents[1]))
    return made


def importing(place: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(place)}


def test_what_is_sent_is_what_tasks_need(tmp_path: Path) -> None:
    names = zipfile.ZipFile(archive(tmp_path, "penstock.cli.main")).namelist()
    folders = {name.split("/")[1] for name in names if name.count("/") > 1}
    engine = {"expr", "formats", "kernel", "patterns", "plan", "reference", "route", "spark", "yaml"}
    assert folders == engine | {"dead", "endpoints", "kafka", "log"}
    assert {"penstock/__init__.py", "penstock/spark/write/staging_files.py"} <= set(names)


def test_an_app_of_the_benchmark_is_sent_when_it_runs(tmp_path: Path) -> None:
    names = zipfile.ZipFile(archive(tmp_path, "penstock.bench.workloads.delivery")).namelist()
    assert {"penstock/bench/__init__.py", "penstock/bench/workloads/delivery.py"} <= set(names)
    assert "penstock/bench/harness.py" not in names


def test_what_is_sent_needs_nothing_of_what_is_not(tmp_path: Path) -> None:
    sent = archive(tmp_path)
    names = [name.removesuffix(".py").replace("/", ".") for name in zipfile.ZipFile(sent).namelist()]
    modules = [name.removesuffix(".__init__") for name in names]
    program = f"""\
import importlib, sys
for name in {modules}:
    importlib.import_module(name)
found = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "penstock"]
assert all(file.startswith({str(sent)!r}) for file in found), found
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=importing(sent), cwd=tmp_path)


def test_machine_code_runs_where_the_package_is_an_archive(tmp_path: Path) -> None:
    """On a machine that has none yet: it is ordered, compiled out of the archive, loaded and used."""
    pytest.importorskip("numba")
    sent = archive(tmp_path)
    program = f"""\
import penstock
import pyarrow as pa
from penstock import Json
from penstock.formats.compiled import columns, machinecode

assert penstock.__file__.startswith({str(sent)!r}), penstock.__file__
switch = machinecode.SWITCH
assert switch.after(machinecode.SWITCH_AFTER_BYTES + 1) is None
assert [order.wait() for order in switch.orders] == [0]
code = switch.after(1)
assert code is not None
plan = columns.plan_of(Json("n BIGINT, s STRING").schema)
found, refused = columns.read_with(code, pa.array([b'{{"n": 1, "s": "a"}}']), plan)
assert found.to_pylist() == [{{"n": 1, "s": "a"}}], found
assert not len(refused)
"""
    environment = importing(sent) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=tmp_path)
    assert [file.suffix for file in (tmp_path / "cache").rglob("json-*")] == [".o"]


def test_modules_that_nobody_installed_are_sent() -> None:
    own = dict(_not_installed())
    assert own["tests/spark/test_ship.py"] == Path(__file__)
    assert not [name for name in own if name.startswith(("penstock/", "pyarrow/", "pytest", "json/"))]
    assert penstock.__name__ not in own
