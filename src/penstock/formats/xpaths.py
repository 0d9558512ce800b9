"""XPath 1.0 results as column values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from lxml import etree

from penstock.errors import BadSchema
from penstock.formats.base import Namespaces, XPathColumns
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Type

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*", re.ASCII)
_KINDS: tuple[Type, ...] = (BOOLEAN, STRING, DOUBLE, Array(STRING))
_MAY_BE_DOCUMENT = re.compile(r"\.\.|parent|ancestor|self|/\s*(?![\s\w@*/(])")
_STRING_VALUE = etree.XPath("string()", smart_strings=False)


@dataclass(frozen=True, slots=True)
class XPaths:
    """XPath columns of one body: paths and the types of their results.

    BOOLEAN, STRING and DOUBLE are XPath's own boolean(), string() and number(), except that an empty node-set
    has no string and what is not a finite number is missing. ARRAY<STRING> holds each node's string value.
    """

    paths: XPathColumns
    ready: tuple[tuple[Callable[[etree._Element], Any], Type], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = [column if len(column) == 3 else (*column, ()) for column in self.paths]
        for path, kind, _ in columns:
            if kind not in _KINDS:
                raise BadSchema(f"XPath {path!r} cannot give {kind}", fix=f"use {', '.join(map(str, _KINDS))}")
        ready = tuple((_compile(path, namespaces, kind == BOOLEAN), kind) for path, kind, namespaces in columns)
        object.__setattr__(self, "ready", ready)

    def evaluate(self, root: etree._Element) -> list[Any]:
        """One value per path; raises etree.XPathError for what only an evaluation can find."""
        return [_convert(evaluate(root), kind) for evaluate, kind in self.ready]


@lru_cache(maxsize=256)
def compiled(paths: XPathColumns) -> XPaths:
    return XPaths(paths)


@lru_cache(maxsize=4096)
def _compile(path: str, namespaces: Namespaces, only_whether: bool) -> Callable[[etree._Element], Any]:
    try:
        found = etree.XPath(path, namespaces=dict(namespaces), smart_strings=False, regexp=False)
        if not _MAY_BE_DOCUMENT.search(path):
            return found
        count: Any = etree.XPath(f"count({path})", namespaces=dict(namespaces), regexp=False)
    except etree.XPathSyntaxError as error:
        raise BadSchema(f"cannot read XPath {path!r}: {error}") from None

    def with_document(root: etree._Element) -> Any:
        """lxml leaves out the node of the document itself. It is the first, and has the text of the root element."""
        result: Any = found(root)
        if not isinstance(result, list) or (only_whether and result):
            return result
        return [root, *result] if count(root) > len(result) else result

    return with_document


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
        return _digits(value)
    if isinstance(value, tuple):
        return str(value[1])  # a namespace node: prefix and address
    if isinstance(value.tag, str):
        return str(_STRING_VALUE(value))
    return value.text or ""  # a comment or a processing instruction


def _digits(number: float) -> str:
    """XPath 1.0, section 4.2: no exponent, and as many digits as tell the number from all others."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        value = float(found[1]) if found else math.nan
    number = float(value)
    return number if math.isfinite(number) else None
