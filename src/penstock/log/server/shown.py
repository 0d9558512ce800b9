"""Messages as people read them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

from penstock.log.frame import Frame
from penstock.log.headers import read_headers


def lines(frame: Frame) -> Iterator[bytes]:
    for value in frame.values.to_pylist():
        yield value
        yield b"\n"


def json_lines(frame: Frame) -> Iterator[bytes]:
    columns = (frame.offsets.tolist(), frame.times.tolist(), frame.keys.to_pylist(), frame.headers.to_pylist(),
               frame.values.to_pylist())  # fmt: skip
    for row in zip(*columns, strict=True):
        yield (json_line(record(*row), row[-1]) + "\n").encode()


def json_line(shown: dict[str, Any], value: bytes) -> str:
    """A message that is shown so, as text that can be encoded, whatever is in it."""
    try:
        line = json.dumps(shown, ensure_ascii=False)
    except RecursionError:  # it could just be read
        rest = {name: part for name, part in shown.items() if name != "value"}
        return json.dumps(rest | {"text": value.decode()})
    try:
        line.encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        return json.dumps(shown)
    return line


def record(offset: int, moment: int, key: bytes | None, headers: bytes | None, value: bytes) -> dict[str, Any]:
    """A message as people read it: the value is JSON if it is, else text, else base64."""
    found: dict[str, Any] = {"offset": offset, "time": moment}
    if key is not None:
        found["key"] = key.decode("utf-8", "backslashreplace")
    if headers is not None:
        found["headers"] = read_headers(headers)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return found | {"base64": base64.b64encode(value).decode()}
    try:
        return found | {"value": json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)}
    except (ValueError, RecursionError):
        return found | {"text": text}


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _finite(text: str) -> float:
    """JSON has no word for what is too large for a number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
