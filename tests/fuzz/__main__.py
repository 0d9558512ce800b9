"""Fuzz targets: `python -m tests.fuzz json --seconds 1200`, or all of them, some at once.

A finding is an exception that the parser does not promise, a disagreement of two implementations, an input that takes
longer than a minute or more than two gigabytes. Inputs that reach new code stay in target/fuzz, for the next run; from
an empty folder, the same code and seed give the same inputs, so a longer run begins with those of a shorter one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tests.fuzz.parser import seeds_of
from tests.fuzz.targets import TARGETS, parsers_of

HOME = Path(__file__).parents[2]
SEED = 20_240_117
SECONDS_PER_INPUT = 60
MEGABYTES = 2048
LONGEST_INPUT = 4096
_PROGRESS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_FOUND = re.compile(r"Test unit written to (\S+)")


def main() -> int:
    options = _options()
    if not options.names:
        print("\n".join(TARGETS))
        return 0
    if options.input is not None:
        return subprocess.call(_command(options.names[0], str(options.input)), cwd=HOME, env=_environment())
    print(f"seed {options.seed}, {options.seconds} seconds for each target", flush=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        sound = list(pool.map(lambda name: fuzz(name, options.seconds, options.seed), options.names))
    return 0 if all(sound) else 1


def _options() -> argparse.Namespace:
    usual = int(os.environ.get("PENSTOCK_FUZZ_SECONDS", "1200"))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Without a name: list the targets.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(TARGETS)} or all")
    parser.add_argument("--seconds", type=int, default=usual, help="for each target (%(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="how many processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random numbers (%(default)s)")
    parser.add_argument("--input", type=Path, help="run this one input only, as after a finding")
    options = parser.parse_args()
    if options.names == ["all"]:
        options.names = list(TARGETS)
    unknown = [name for name in options.names if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if options.input is not None:
        options.input = options.input.resolve()
    return options


def fuzz(name: str, seconds: int, seed: int) -> bool:
    """Whether nothing was found."""
    home = HOME / "target" / "fuzz" / name
    corpus = home / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds_of(parsers_of(name))):
        (corpus / f"seed-{number}").write_bytes(content)
    log = home / "log.txt"
    with log.open("wb") as output:
        status = subprocess.call(
            _command(
                name, str(corpus), f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={SECONDS_PER_INPUT}",
                f"-rss_limit_mb={MEGABYTES}", f"-max_len={LONGEST_INPUT}", "-print_final_stats=1", "-reload=0",
                f"-artifact_prefix={home}/",
            ),
            cwd=HOME, env=_environment(), stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    print(report(name, status, log.read_text(errors="replace")), flush=True)
    return status == 0


def _command(name: str, *options: str) -> list[str]:
    return [*_at_the_same_addresses(), sys.executable, "-m", "tests.fuzz.guided", name, *options]


@cache
def _at_the_same_addresses() -> tuple[str, ...]:
    """libFuzzer tells comparisons apart by where they are in memory: elsewhere, the same seed gives other inputs."""
    command = ("setarch", "-R")
    can = shutil.which("setarch") and subprocess.call([*command, "true"], stderr=subprocess.DEVNULL) == 0
    return command if can else ()


def _environment() -> dict[str, str]:
    path = os.pathsep.join(path for path in sys.path if path)
    return os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1",
                         "OMP_NUM_THREADS": "1"}  # fmt: skip


def report(name: str, status: int, log: str) -> str:
    """One line of what was done, and what was found."""
    executed, progress = _EXECUTED.search(log), _PROGRESS.findall(log)
    covered, features, inputs = progress[-1] if progress else ("0", "0", "0")
    said = f"{name}: {int(executed[1]) if executed else 0:,} executions, {covered} branches, {features} features"
    said += f", {inputs} inputs kept"
    if status == 0:
        return f"{said}, nothing found"
    found = _FOUND.search(log)
    again = f"\n  again: python -m tests.fuzz {name} --input {found[1]}" if found else ""
    return f"{said}, FOUND SOMETHING:\n{_shown(log)}{again}"


def _shown(log: str) -> str:
    lines = log.splitlines()
    starts = [number for number, line in enumerate(lines) if "Uncaught Python exception" in line or "ERROR:" in line]
    begin = starts[0] if starts else max(len(lines) - 40, 0)
    return "\n".join(f"  {line}" for line in lines[begin : begin + 40])


if __name__ == "__main__":
    sys.exit(main())
