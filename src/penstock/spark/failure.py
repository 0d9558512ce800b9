"""Put the failure of a Spark job into one line that a person can use."""

from __future__ import annotations

import itertools
import re

from penstock.errors import BadEndpoint

_FIX = "  fix  "


def stopped(what: str, error: BaseException, fix: str) -> BadEndpoint:
    """The error to raise instead of Spark's, which stays its cause. What it says to do counts more than `fix`."""
    return BadEndpoint(f"the {what} stopped: {reason(error)}", fix=_own_fix(error) or fix)


def reason(error: BaseException) -> str:
    """The line of the innermost Python exception where there is one, else the first line that says something."""
    raised = _raised(error)
    if raised:
        return re.sub(r"^penstock\.[\w.]*errors\.(\w+): \1: ", "", raised[0])
    said = (line for line in _lines(error) if not line.startswith("An error occurred while calling"))
    return re.sub(r"^: [\w.$]+: ", "", next(said, type(error).__name__))


def _own_fix(error: BaseException) -> str | None:
    """The fix of a Penstock error in the text of Spark's error."""
    following = itertools.takewhile(lambda line: line.startswith(" "), _raised(error)[1:])
    return next((line.removeprefix(_FIX) for line in following if line.startswith(_FIX)), None)


def _raised(error: BaseException) -> list[str]:
    """The lines from that of the innermost Python exception on."""
    lines = _lines(error)
    frames = [number for number, line in enumerate(lines) if re.match(r'\s*File ".*", line \d+', line)]
    if not frames:
        return []
    return list(itertools.dropwhile(lambda line: line.startswith(" "), lines[frames[-1] + 1 :])) or lines[:1]


def _lines(error: BaseException) -> list[str]:
    return [line for line in str(error).splitlines() if line.strip()]
