"""penstock run, on Spark: the numbers, the files, and the way a stream is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.cli.progress import Progress
from penstock.cli.run import _stop_at_interrupt

APP = """\
from penstock import App, Files, Json, Route, body

app = App(
    "orders",
    Route("intake", Files("orders.jsonl", format=Json("id BIGINT, total DOUBLE")))
    .filter(body.id > 0)
    .choice({"cheap": body.total < 100}, otherwise="rest"),
    sinks={"cheap": Files("out/cheap"), "rest": Files("out/rest")},
)
"""


def test_a_batch_prints_its_numbers_and_writes_its_files(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    lines = ['{"id": 1, "total": 5}', '{"id": 2, "total": 500}', '{"id": 0, "total": 1}', "broken"]
    (tmp_path / "orders.jsonl").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", "from penstock.cli.main import main; main()",
         "run", "app.py", "--summary", "run.json", "--diagram", "run.svg"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, env={**os.environ, "PENSTOCK_QUICK": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "  4 in = 2 out + 1 filtered + 1 dead"
    numbers = json.loads((tmp_path / "run.json").read_text())
    assert numbers["delivered"] == {"cheap": 1, "rest": 1}
    assert numbers["filtered"] == {"intake.filter": 1}
    assert "cheap · 1" in (tmp_path / "run.svg").read_text()


def test_the_first_interrupt_asks_and_the_second_insists() -> None:
    assert threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    with _stop_at_interrupt(Progress("")) as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
