"""One dead letter as it is stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.message import EPOCH, DeadLetter, Lineage, Message, Position
from penstock.values import as_json

BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter with its own name, how often it was replayed, and whether somebody has corrected its body."""

    name: str
    dead: DeadLetter
    replays: int = 0
    corrected: bool = False

    def record(self) -> dict[str, Any]:
        """Everything known, as JSON has it: the body is text, or base64 if it is not UTF-8."""
        message, part = self.dead.message, self.dead.message.lineage
        try:
            text, encoding = message.raw.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            text, encoding = base64.b64encode(message.raw).decode("ascii"), BASE64
        fields = None if message.fields is None else json.dumps(message.fields, ensure_ascii=False, default=as_json)
        attachments = {name: base64.b64encode(raw).decode("ascii") for name, raw in message.attachments.items()}
        return {
            "letter": self.name, "route": self.dead.route, "step": self.dead.step, "error": self.dead.error,
            "reason": self.dead.reason, "attempt": self.dead.attempt, "replays": self.replays,
            "time": _text(message.time), "id": message.id,
            "topic": message.position.topic, "partition": message.position.partition,
            "offset": message.position.offset, "parent": part.parent if part else None,
            "index": part.index if part else None, "count": part.count if part else None,
            "headers": dict(message.headers), "attachments": attachments,
            "fields": fields, "body": text, "encoding": encoding,
        }  # fmt: skip


def stored_letter(row: Mapping[str, Any]) -> Letter:
    """A letter from a row of a table, or from a line of JSON: there bytes may be base64, and maps are objects.

    Raises ValueError for what is none.
    """
    try:
        return _read(row)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _read(row: Mapping[str, Any]) -> Letter:
    body = row["body"]
    if isinstance(body, str):
        body = _bytes(body) if row["encoding"] == BASE64 else body.encode("utf-8", "surrogatepass")
    attachments = {
        name: _bytes(value) if isinstance(value, str) else value
        for name, value in _mapping(row["attachments"]).items()
    }
    headers = _mapping(row["headers"])
    parent, fields = row["parent"], None if row["fields"] is None else json.loads(row["fields"])
    lineage = None if parent is None else Lineage(parent, row["index"], row["count"])
    position = Position(row["topic"] or "", row["partition"] or 0, row["offset"] or 0)
    _check(bytes, body, *attachments.values())
    _check(str, row["id"], row["letter"], position.topic, *headers, *headers.values())
    _check(int, row["attempt"], position.partition, position.offset)
    if lineage is not None:
        _check(str, lineage.parent)
        _check(int, lineage.index, lineage.count)
    if fields is not None:
        _check(dict, fields)
    message = Message(
        row["id"], body, fields, headers, attachments, position, _time(row["time"]), lineage, fields is not None
    )
    return Letter(row["letter"], DeadLetter(
        message, row["route"], row["step"], row["error"], row["reason"], row["attempt"]
    ))  # fmt: skip


def _check(kind: type, *values: Any) -> None:
    for value in values:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r} is not {kind.__name__}")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _mapping(value: Any) -> dict[str, Any]:
    """A map as JSON text, as pairs, as an object, or none at all."""
    return dict(json.loads(value) if isinstance(value, str) else value or ())


def _text(time: datetime) -> str:
    """With four digits for every year, which `strftime` does not promise."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _time(value: Any) -> datetime:
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    if found is None:
        return EPOCH
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
