"""The first app that `penstock new` makes: it loads, its tests pass, nothing is overwritten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import BadFile


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_new_app_works_and_its_tests_pass(here: Path) -> None:
    result = CliRunner().invoke(app, ["new", "my-orders"])
    assert result.exit_code == 0
    assert result.output.startswith("made my-orders/: app.py, test_app.py, messages.jsonl, README.md\n")
    made = here / "my-orders"
    assert sorted(file.name for file in made.iterdir()) == ["README.md", "app.py", "messages.jsonl", "test_app.py"]
    assert 'App("my-orders"' in (made / "app.py").read_text()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made)]
    tested = subprocess.run(command, cwd=made, capture_output=True, text=True)
    assert "4 passed" in tested.stdout, tested.stdout + tested.stderr


def test_nothing_is_overwritten(here: Path) -> None:
    (here / "orders").mkdir()
    (here / "orders" / "app.py").write_text("mine")
    result = CliRunner().invoke(app, ["new", "orders"])
    assert isinstance(result.exception, BadFile)
    assert str(result.exception) == (
        "BadFile: orders exists already\n  fix  choose another name: nothing is overwritten"
    )
    assert (here / "orders" / "app.py").read_text() == "mine"


def test_a_name_is_a_name(here: Path) -> None:
    result = CliRunner().invoke(app, ["new", "a b"])
    assert str(result.exception) == "BadFile: 'a b' is not a name for an app\n  fix  use letters, digits, - and _"
    assert not list(here.iterdir())
