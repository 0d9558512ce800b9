"""Lengths of time, as people write them: seconds, or text like "500 ms" and "5 minutes"."""

from __future__ import annotations

import math
import re

from penstock.errors import BadRoute

_UNITS = {"day": 86_400.0, "hour": 3_600.0, "minute": 60.0, "s": 1.0, "ms": 0.001}
_OTHER_NAMES = {"second": "s", "sec": "s", "millisecond": "ms", "min": "minute", "h": "hour", "d": "day"}
_TEXT = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)\s*([a-z]+)\s*")
_FIX = "write seconds, or text like '500 ms', '5 s', '5 minutes', '1 hour', '2 days'"


def seconds(value: object, what: str, zero: bool = False) -> float:
    """A length of time in seconds; `what` names the setting in errors. It is never negative, and 0 only on request."""
    if isinstance(value, str):
        length = _from_text(value, what)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        length = float(value)
    else:
        raise BadRoute(f"{what}={value!r} is not a length of time", fix=_FIX)
    if not math.isfinite(length) or length < 0 or (length == 0 and not zero):
        raise BadRoute(f"{what}={value!r} is not a length of time {'from' if zero else 'above'} 0", fix=_FIX)
    return length


def optional_seconds(value: object, what: str) -> float | None:
    return None if value is None else seconds(value, what)


def _from_text(text: str, what: str) -> float:
    found = _TEXT.fullmatch(text.lower())
    unit = found[2] if found else ""
    for name in (unit, unit.removesuffix("s")):
        known = _OTHER_NAMES.get(name, name)
        if found and known in _UNITS:
            return float(found[1]) / 1000 if known == "ms" else float(found[1]) * _UNITS[known]
    raise BadRoute(f"{what}={text!r} is not a length of time", fix=_FIX)


def duration_text(length: float) -> str:
    """The shortest text that `seconds` reads back to the same length."""
    for unit, size in _UNITS.items():
        count = length / size
        if count == int(count) and count >= 1:
            text = f"{int(count)} {unit}" + ("s" if len(unit) > 2 and count != 1 else "")
            if _from_text(text, "") == length:
                return text
    return f"{length!r} s"
