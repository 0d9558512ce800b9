"""The command line: which parts to measure, and how long."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from penstock.bench.log import comparing, reading, writing
from penstock.bench.log.peers import PEERS
from penstock.bench.log.peers.base import MODES
from penstock.bench.log.report import show, write_page
from penstock.bench.log.samples import Samples
from penstock.errors import PenstockError

_FULL = {"rounds": 5, "seconds": 1.0, "messages": 10_000, "reads": 150}
_QUICK = {"rounds": 1, "seconds": 0.2, "messages": 500, "reads": 20}


@contextmanager
def _removed(directory: Path) -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measured(options: argparse.Namespace, console: Console) -> Samples:
    settings = {name: getattr(options, name) or known for name, known in (_QUICK if options.quick else _FULL).items()}
    directory = Path(options.directory).absolute() / time.strftime("%Y%m%dT%H%M%S")
    samples, work = Samples(directory / "samples.jsonl"), directory / "work"
    rounds = int(settings["rounds"])
    with console.status("") as status, _removed(work):

        def say(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            else:
                console.print(text, soft_wrap=True)

        if options.part in ("figures", "all"):
            writing.measure(samples, work / "write", rounds, int(settings["messages"]), say)
            reading.measure(samples, work / "read", rounds, int(settings["reads"]), say)
        if options.part in ("peers", "all"):
            comparing.measure(samples, work / "peers", options.peers, options.modes, rounds, settings["seconds"], say)
    return samples


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["spark"]:
        from penstock.bench.log import spark

        spark.main(given[1:])
        return 0
    parser = argparse.ArgumentParser(prog="penstock.bench.log", description="Measure the message log.")
    parser.add_argument("part", choices=("figures", "peers", "all", "report", "spark"), nargs="?", default="all",
                        help="the paper's figures, other systems, or both; report of samples; spark")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a minute or two; its numbers are rough")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=list(PEERS), help="only these systems")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), help="only these acknowledgements")
    parser.add_argument("--rounds", type=int, help="how often everything is timed")
    parser.add_argument("--seconds", type=float, help="how long each peer publishes in a round")
    parser.add_argument("--messages", type=int, help="messages of a point of the figures on writing")
    parser.add_argument("--reads", type=int, help="reads of a point of the figures on reading")
    parser.add_argument("--samples", type=Path, help="report: the file of samples")
    parser.add_argument("--directory", default="build/bench/log", help="where samples, page and pictures are kept")
    options = parser.parse_args(given)
    console = Console()
    if options.part == "report" and options.samples is None:
        parser.error("report needs --samples FILE")
    try:
        samples = Samples.read(options.samples) if options.part == "report" else measured(options, console)
        show(samples, console)
        console.print(f"page and pictures: {write_page(samples)}", soft_wrap=True)
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; its servers are ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
