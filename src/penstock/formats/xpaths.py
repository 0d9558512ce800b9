"""XPath 1.0 results as column values."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lxml import etree

from penstock.errors import BadSchema
from penstock.formats.base import XPathColumns
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Type

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*", re.ASCII)
_KINDS: tuple[Type, ...] = (BOOLEAN, STRING, DOUBLE, Array(STRING))
_STRING_VALUE = etree.XPath("string()", smart_strings=False)


@dataclass(frozen=True, slots=True)
class XPaths:
    """XPath columns of one body: paths and the types of their results.

    BOOLEAN, STRING and DOUBLE are XPath's own boolean(), string() and number(), except that an empty node-set
    has no string and what is not a finite number is missing. ARRAY<STRING> holds each node's string value.
    """

    paths: XPathColumns

    def __post_init__(self) -> None:
        for path, kind in self.paths:
            if kind not in _KINDS:
                raise BadSchema(f"XPath {path!r} cannot give {kind}", fix=f"use {', '.join(map(str, _KINDS))}")
            _compile(path)

    def evaluate(self, root: etree._Element) -> list[Any]:
        """One value per path; raises etree.XPathError for what only an evaluation can find."""
        return [_convert(_compile(path)(root), kind) for path, kind in self.paths]


@lru_cache(maxsize=256)
def compiled(paths: XPathColumns) -> XPaths:
    return XPaths(paths)


@lru_cache(maxsize=4096)
def _compile(path: str) -> etree.XPath:
    try:
        return etree.XPath(path, smart_strings=False)
    except etree.XPathSyntaxError as error:
        raise BadSchema(f"cannot read XPath {path!r}: {error}") from None


def _convert(result: Any, kind: Type) -> Any:
    if kind == BOOLEAN:
        return bool(result) and result == result  # NaN is false
    if isinstance(kind, Array):
        return [_text(node) for node in result] if isinstance(result, list) else [_text(result)]
    if isinstance(result, list):
        if not result:
            return None
        result = _text(result[0])
    return _text(result) if kind == STRING else _number(result)


def _text(value: Any) -> str:
    """XPath's string()."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return str(int(value)) if value == int(value) else format(value, "f").rstrip("0")
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, tuple):
        return str(value[1])  # a namespace node: prefix and address
    return str(_STRING_VALUE(value))


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        value = float(found[1]) if found else math.nan
    number = float(value)
    return number if math.isfinite(number) else None
