"""What a failed Spark job says, in one line that a person can use."""

from __future__ import annotations

import re

from penstock.errors import BadEndpoint


def stopped(what: str, error: BaseException, fix: str) -> BadEndpoint:
    """The error to raise instead of Spark's, which stays its cause."""
    return BadEndpoint(f"the {what} stopped: {reason(error)}", fix=fix)


def reason(error: BaseException) -> str:
    """The line of the innermost Python exception where there is one, else the first line that says something."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if re.match(r'\s*File ".*", line \d+', line)]
    if frames:
        raised = (line for line in lines[frames[-1] + 1 :] if not line.startswith(" "))
        return re.sub(r"^penstock\.errors\.(\w+): \1: ", "", next(raised, lines[0]))
    said = (line for line in lines if not line.startswith("An error occurred while calling"))
    return re.sub(r"^: [\w.$]+: ", "", next(said, type(error).__name__))
