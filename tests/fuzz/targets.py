"""The targets: a module each, with its `PARSERS`, and the packages besides ours whose branches guide the fuzzer."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from tests.fuzz.parser import Parser

TARGETS: dict[str, tuple[str, ...]] = {
    "json": (),
    "markup": (),
    "expressions": (),
    "paths": ("jsonpath_rfc9535",),
    "routes": ("yaml",),
    "frames": (),
    "wire": (),
    "server": (),
    "store": (),
    "records": (),
}


def parsers_of(name: str) -> Sequence[Parser]:
    parsers: Sequence[Parser] = importlib.import_module(f"tests.fuzz.{name}_target").PARSERS
    return parsers
