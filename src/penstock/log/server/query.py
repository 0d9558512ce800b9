"""The query of a URL: the part behind the question mark."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from penstock.log.wire.errors import BadRequest

_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


class Query:
    """The parameters of a URL; every name must be known."""

    def __init__(self, text: str) -> None:
        self.values = dict(parse_qsl(text, keep_blank_values=True))

    def text(self, name: str, default: str = "") -> str:
        return self.values.pop(name, default)

    def number(self, name: str, default: float, least: float = 0, most: float = 2**53) -> float:
        text = self.text(name, str(default))
        found = _NUMBER.fullmatch(text)
        value = -1.0 if found is None else float(text) if found[1] else int(text)
        if not least <= value <= most:
            raise BadRequest(f"{name}={text[:40]} is not a number from {least:,} to {most:,}")
        return value

    def integer(self, name: str, default: int, least: int = 0) -> int:
        value = self.number(name, default, least)
        if value != int(value):
            raise BadRequest(f"{name}={value:g} is not a whole number")
        return int(value)

    def flag(self, name: str) -> bool:
        return self.text(name, "0").lower() not in ("0", "false", "no")

    def end(self) -> None:
        if self.values:
            raise BadRequest(f"there is no parameter {next(iter(self.values))!r}", None, "GET / lists them")
