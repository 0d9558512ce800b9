"""Environment variables that options name, as in `${NAME}`: their values are never shown."""

from __future__ import annotations

import os
import re

from penstock.errors import BadEndpoint

VARIABLE = re.compile(r"\$\{(\w+)\}")


def filled(text: str, naming: str) -> str:
    """The text with the values of the variables. `naming` is how an error begins: "the url of table 'x' names"."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise BadEndpoint(f"{naming} {found[0]}, which is not set", fix=f"set the environment variable {found[1]}")
        return os.environ[found[1]]

    return VARIABLE.sub(value, text)
