"""One target under Atheris, in a process of its own: `python -m tests.fuzz.guided NAME [options of libFuzzer]`."""

from __future__ import annotations

import contextlib
import io
import sys

import atheris

from tests.fuzz.parser import run_one
from tests.fuzz.targets import TARGETS, parsers_of


def main(name: str, *options: str) -> None:
    with (
        contextlib.redirect_stderr(io.StringIO()),
        atheris.instrument_imports(include=["penstock", *TARGETS[name]], enable_loader_override=False),
    ):
        parsers = parsers_of(name)
    atheris.Setup([sys.argv[0], *options], lambda data: run_one(parsers, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
