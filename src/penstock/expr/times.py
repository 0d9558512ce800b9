"""Calendar and clock: how dates and instants are written, taken apart, moved and cut off.

An instant is seen in UTC unless a zone is named. Where clocks are set back, a local time is the earlier of the two that
it may be; where they are set forward, a time that is skipped is as much later as was skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

DAY_UNITS = ("year", "quarter", "month", "week", "day")
_LENGTHS = {"week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1),
            "minute": timedelta(minutes=1), "second": timedelta(seconds=1)}  # fmt: skip
UNITS = (*DAY_UNITS, "hour", "minute", "second")
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_DAY_PARTS: dict[str, Callable[[Any], int]] = {
    "year": lambda value: value.year,
    "quarter": lambda value: (value.month + 2) // 3,
    "month": lambda value: value.month,
    "week": lambda value: value.isocalendar().week,
    "day": lambda value: value.day,
    "weekday": lambda value: value.isoweekday(),
    "yearday": lambda value: value.timetuple().tm_yday,
}
_PARTS: dict[str, Callable[[Any], int]] = {
    **_DAY_PARTS,
    "hour": lambda value: value.hour,
    "minute": lambda value: value.minute,
    "second": lambda value: value.second,
    "microsecond": lambda value: value.microsecond,
    "epoch": lambda value: (value - _EPOCH) // _LENGTHS["second"],
}
PARTS = tuple(_PARTS)

_DAY_WRITTEN: dict[str, Callable[[Any], str]] = {
    "Y": lambda value: f"{value.year:04d}",
    "m": lambda value: f"{value.month:02d}",
    "d": lambda value: f"{value.day:02d}",
    "%": lambda value: "%",
}
_WRITTEN: dict[str, Callable[[Any], str]] = {
    **_DAY_WRITTEN,
    "H": lambda value: f"{value.hour:02d}",
    "M": lambda value: f"{value.minute:02d}",
    "S": lambda value: f"{value.second:02d}",
    "f": lambda value: f"{value.microsecond:06d}",
    "z": lambda value: value.isoformat()[-6:],
}
_READ = {
    "Y": "[0-9]{4}", **dict.fromkeys("mdHMS", "[0-9]{2}"), "f": "[0-9]{1,6}",
    "z": "[Zz]|[+-][0-9]{2}:?[0-9]{2}",
}  # fmt: skip
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)


def shape_mistake(shape: str) -> str | None:
    """What is wrong with the way in which a date or time is to be written."""
    for letter in _letters(shape):
        if letter not in _WRITTEN:
            return f"%{letter} stands for nothing; there are {', '.join('%' + known for known in _WRITTEN)}"
    return None


def zone_mistake(name: str) -> str | None:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return f"there is no zone {name!r}"
    return None


def misuse(name: str, is_date: bool, literals: list[Any]) -> str | None:
    """What a function cannot do with a date, or without a zone."""
    if name in ("parse_date", "parse_timestamp"):
        letters = _letters(literals[1])
        if len(letters) != len(set(letters) - {"%"}) + letters.count("%"):
            return f"{literals[1]!r} has a part twice"
        if name == "parse_date" and set(letters) - set(_DAY_WRITTEN):
            return "a date has %Y, %m and %d only"
        if not {"Y", "m", "d"} <= set(letters):
            return f"{literals[1]!r} does not say which day it is: it needs %Y, %m and %d"
        if name == "parse_timestamp" and ("z" in letters) == (len(literals) == 3):
            return "a time needs a zone: either %z in the text, or the name of one"
    if not is_date:
        return None
    if name == "format_time" and set(_letters(literals[1])) - set(_DAY_WRITTEN):
        return "a date has %Y, %m and %d only"
    if name == "part" and literals[1] not in _DAY_PARTS:
        return f"a date has no {literals[1]}"
    if name in ("shift", "difference", "truncate"):
        unit = literals[1] if name == "truncate" else literals[2]
        if unit not in DAY_UNITS:
            return f"a date has no {unit}"
    zone = {"format_time": 2, "part": 2, "truncate": 2, "to_date": 1}.get(name)
    return "a date has no zone" if zone is not None and len(literals) > zone else None


def _letters(shape: str) -> list[str]:
    return _DIRECTIVE.findall(shape)


@lru_cache(maxsize=64)
def _zone(name: str | None) -> Any:
    return UTC if name is None else ZoneInfo(name)


def local(value: Any, zone: str | None) -> Any:
    """An instant as a clock in the zone shows it; None where there is no such day."""
    if zone is None or not isinstance(value, datetime):
        return value
    try:
        return value.astimezone(_zone(zone))
    except OverflowError:
        return None


@lru_cache(maxsize=256)
def _pattern(shape: str) -> re.Pattern[str]:
    parts, end = [], 0
    for found in _DIRECTIVE.finditer(shape):
        letter = found[1]
        parts += [re.escape(shape[end : found.start()]), "%" if letter == "%" else f"(?P<{letter}>{_READ[letter]})"]
        end = found.end()
    return re.compile("".join([*parts, re.escape(shape[end:])]))


def parse_date(text: str, shape: str) -> date | None:
    found = _pattern(shape).fullmatch(text)
    try:
        return None if found is None else date(int(found["Y"]), int(found["m"]), int(found["d"]))
    except ValueError:
        return None


def parse_timestamp(text: str, shape: str, zone: str | None = None) -> datetime | None:
    match = _pattern(shape).fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    year, month, day, hour, minute, second = (int(found.get(letter) or 0) for letter in "YmdHMS")
    try:
        micros = int((found.get("f") or "").ljust(6, "0"))
        read = datetime(year, month, day, hour, minute, second, micros, _zone(zone))
        if zone is not None:
            return read.astimezone(UTC)
        return read - _offset(found)
    except (ValueError, OverflowError):
        return None


def _offset(found: Mapping[str, str | None]) -> timedelta:
    text = found.get("z") or "Z"
    if text in "Zz":
        return timedelta()
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if text[0] == "-" else offset


def format_time(value: Any, shape: str, zone: str | None = None) -> str | None:
    seen = local(value, zone)
    return None if seen is None else _DIRECTIVE.sub(lambda found: _WRITTEN[found[1]](seen), shape)


def part(value: Any, name: str, zone: str | None = None) -> int | None:
    seen = value if name == "epoch" else local(value, zone)
    return None if seen is None else _PARTS[name](seen)


def shift(value: Any, amount: int, unit: str) -> Any:
    """Months end early: a month after the 31st of January is the 29th or the 28th of February."""
    try:
        if unit in _LENGTHS:
            return value + amount * _LENGTHS[unit]
        months = value.year * 12 + value.month - 1 + amount * _MONTHS[unit]
        first = value.replace(year=months // 12, month=months % 12 + 1, day=1)
        return first.replace(day=min(value.day, _days_of(first)))
    except (ValueError, OverflowError):
        return None


def _days_of(month: Any) -> int:
    if month.month == 12:
        return 31
    return int((date(month.year, month.month + 1, 1) - date(month.year, month.month, 1)).days)


def difference(left: Any, right: Any, unit: str) -> int:
    """How many whole units the right one has to be moved to come up to the left one, but not beyond it."""
    if unit in _LENGTHS:
        return _whole((left - right) // _MICROSECOND, _LENGTHS[unit] // _MICROSECOND)
    months = (left.year - right.year) * 12 + left.month - right.month
    moved = shift(right, months, "month")
    if months > 0 and moved > left:
        months -= 1
    elif months < 0 and moved < left:
        months += 1
    return _whole(months, _MONTHS[unit])


def _whole(passed: int, length: int) -> int:
    return passed // length if passed >= 0 else -(-passed // length)


def truncate(value: Any, unit: str, zone: str | None = None) -> Any:
    """The beginning of the unit that it lies in."""
    seen = local(value, zone)
    if seen is None:
        return None
    try:
        begun = _begun(seen, unit)
        return begun.astimezone(UTC) if isinstance(begun, datetime) else begun
    except (ValueError, OverflowError):
        return None


def _begun(value: Any, unit: str) -> Any:
    if isinstance(value, datetime):
        if unit not in DAY_UNITS:
            # Elapsed time: an hour that comes twice begins twice.
            smaller = {"hour": value.minute * 60 + value.second, "minute": value.second, "second": 0}[unit]
            return value.astimezone(UTC) - timedelta(seconds=smaller, microseconds=value.microsecond)
        value = value.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "week":
        return value - timedelta(days=value.weekday())
    if unit == "day":
        return value
    size = _MONTHS[unit]
    return value.replace(month=(value.month - 1) // size * size + 1, day=1)
