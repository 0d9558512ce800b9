"""Where a third-party suite is missing, the run says so at its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import penstock

TESTS = Path(__file__).parents[1]


def test_a_clone_without_the_suites_says_which_tests_did_not_run(tmp_path: Path) -> None:
    clone = tmp_path / "clone" / "tests"
    (clone / "suites").mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "broker.py", "database.py", "suites/__init__.py",
                 "suites/test_jsonpath_cts.py", "suites/test_yfilter.py"):  # fmt: skip
        shutil.copy(TESTS / name, clone / name)

    def last_lines(*asked: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *asked]
        # What a session of Spark in this process has put into the environment is not for another one.
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
        ran = subprocess.run(command, cwd=clone.parent, env=environment, capture_output=True, text=True)
        return (ran.stderr + ran.stdout).splitlines()[-5:]

    shown = "\n".join(last_lines("tests"))
    for name in ("jsonpath", "yfilter"):
        assert f"SKIPPED: the third-party suite {name!r} is not at {tmp_path.parent}" in shown, shown
    assert "SKIPPED: the third-party suite" not in "\n".join(last_lines("tests/broker.py"))
