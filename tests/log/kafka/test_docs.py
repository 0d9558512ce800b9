"""The example of docs/log.md that needs a Kafka."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broker import ROOT, Broker


def test_the_example_of_the_page_runs(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "log.md").read_text()
    example = next(block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "Kafka(" in block)
    monkeypatch.chdir(tmp_path)
    first = "from pathlib import Path\nfrom penstock.log import Frame, Log, Settings\n"
    exec(first + example.replace("127.0.0.1:9092", kafka.address), {})
    assert capsys.readouterr().out == "fsynced\n"
