"""One dead letter as it is stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.message import EPOCH, DeadLetter, Lineage, Message, Position

BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter with its own name, and how often it was replayed."""

    name: str
    dead: DeadLetter
    replays: int = 0

    def record(self) -> dict[str, Any]:
        """Everything known, as JSON has it: the body is text, or base64 if it is not UTF-8."""
        message, part = self.dead.message, self.dead.message.lineage
        try:
            text, encoding = message.raw.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            text, encoding = base64.b64encode(message.raw).decode("ascii"), BASE64
        fields = None if message.fields is None else json.dumps(message.fields, ensure_ascii=False)
        attachments = {name: base64.b64encode(raw).decode("ascii") for name, raw in message.attachments.items()}
        return {
            "letter": self.name, "route": self.dead.route, "step": self.dead.step, "error": self.dead.error,
            "reason": self.dead.reason, "attempt": self.dead.attempt, "replays": self.replays,
            "time": message.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "id": message.id,
            "topic": message.position.topic, "partition": message.position.partition,
            "offset": message.position.offset, "parent": part.parent if part else None,
            "index": part.index if part else None, "count": part.count if part else None,
            "headers": dict(message.headers), "attachments": attachments,
            "fields": fields, "body": text, "encoding": encoding,
        }  # fmt: skip


def stored_letter(row: Mapping[str, Any]) -> Letter:
    """A letter from a row of a table, or from a line of JSON: there bytes may be base64, and maps are objects."""
    body = row["body"]
    if isinstance(body, str):
        body = base64.b64decode(body) if row["encoding"] == BASE64 else body.encode("utf-8", "surrogatepass")
    attachments = {
        name: base64.b64decode(value) if isinstance(value, str) else value
        for name, value in _mapping(row["attachments"]).items()
    }
    parent, fields = row["parent"], row["fields"]
    message = Message(
        row["id"], body, None if fields is None else json.loads(fields), _mapping(row["headers"]), attachments,
        Position(row["topic"] or "", row["partition"] or 0, row["offset"] or 0), _time(row["time"]),
        None if parent is None else Lineage(parent, row["index"], row["count"]), fields is not None,
    )  # fmt: skip
    dead = DeadLetter(message, row["route"], row["step"], row["error"], row["reason"], row["attempt"])
    return Letter(row["letter"], dead)


def _mapping(value: Any) -> dict[str, Any]:
    """A map as JSON text, as pairs, as an object, or none at all."""
    return dict(json.loads(value) if isinstance(value, str) else value or ())


def _time(value: Any) -> datetime:
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    if found is None:
        return EPOCH
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
