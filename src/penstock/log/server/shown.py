"""Messages as people read them."""

from __future__ import annotations

import base64
import json
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
        yield (json.dumps(record(*row), ensure_ascii=False) + "\n").encode()


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
        return found | {"value": json.loads(text, parse_constant=_refuse_constant)}
    except (ValueError, RecursionError):
        return found | {"text": text}


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
