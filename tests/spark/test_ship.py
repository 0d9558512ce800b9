"""The functions of an app find their way into tasks, wherever its files are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.route.load import load
from penstock.spark.run import run_batch
from penstock.spark.ship import _not_installed, _package, _zipped

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


def test_what_is_sent_is_the_package_and_what_nobody_installed(tmp_path: Path) -> None:
    archive = _zipped(dict(_package()), str(tmp_path / "sent.zip"))
    names = zipfile.ZipFile(archive).namelist()
    assert "penstock/__init__.py" in names
    assert "penstock/spark/write/task.py" in names
    own = dict(_not_installed())
    assert own["tests/spark/test_ship.py"] == Path(__file__)
    assert not [name for name in own if name.startswith(("penstock/", "pyarrow/", "pytest", "json/"))]
    assert penstock.__name__ not in own
