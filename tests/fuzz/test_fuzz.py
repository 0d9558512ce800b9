"""The targets themselves: every seed passes, and the runner tells what it found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import HOME, report
from tests.fuzz.targets import TARGETS

_SEEDS = """
import sys
from tests.fuzz.parser import run_one, seeds_of
from tests.fuzz.targets import parsers_of

parsers = parsers_of(sys.argv[1])
for seed in seeds_of(parsers):
    run_one(parsers, seed)
"""


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_of_a_target_passes(name: str) -> None:
    """In a process of its own: targets change what a fuzzer must not reach."""
    path = os.pathsep.join([str(HOME), *(path for path in sys.path if path)])
    done = subprocess.run([sys.executable, "-c", _SEEDS, name], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": path})  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_was_found_is_shown_with_how_to_see_it_again(tmp_path: Path) -> None:
    log = f"""\
#9\tNEW    cov: 12 ft: 34 corp: 5/6b lim: 4 exec/s: 0 rss: 9Mb
 === Uncaught Python exception: ===
ValueError: no
artifact_prefix='{tmp_path}/'; Test unit written to {tmp_path}/crash-1
stat::number_of_executed_units: 1234
"""
    said = report("json", 77, log)
    assert said.startswith("json: 1,234 executions, 12 branches, 34 features, 5 inputs kept, FOUND SOMETHING")
    assert "ValueError: no" in said
    assert said.endswith(f"again: python -m tests.fuzz json --input {tmp_path}/crash-1")
    assert report("json", 0, log).endswith("nothing found")


def test_an_unknown_target_is_refused_with_those_there_are() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.fuzz", "nope"], capture_output=True, text=True, cwd=HOME)
    assert done.returncode == 2
    assert "there is no target 'nope'; there are json, markup" in done.stderr
