"""Files of dead letters: read as they were written, and what is none is named by its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.dead.letter import Letter, stored_letter
from penstock.dead.store import Directory
from penstock.errors import BadEndpoint
from penstock.message import DeadLetter, Lineage, Message, Position

MESSAGE = Message("m", b"\xff", {"a": 1}, {"h": "v"}, {"file": b"\xfe"}, Position("t", 1, 2),
                  lineage=Lineage("p", 0, 2))  # fmt: skip
LETTER = Letter("l", DeadLetter(MESSAGE, "route", "step", "WrongType", "because"))


def test_a_letter_comes_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(LETTER.record()) + "\n")
    (found,) = Directory(str(tmp_path)).stored()
    assert found.record() == LETTER.record()


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda record: {key: value for key, value in record.items() if key != name}


def having(**other: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda record: record | other


@pytest.mark.parametrize("change", [
    lambda record: [], lambda record: 7, lambda record: {}, without("body"), without("step"), having(body=5),
    having(body="*", encoding="base64"), having(attachments={"a": "*"}), having(attachments="{"), having(headers=5),
    having(headers={"a": 1}), having(fields="["), having(fields="[]"), having(fields=5), having(time="yesterday"),
    having(time=5), having(id=None), having(offset="2"), having(attempt=None), having(index="x"), having(letter=[]),
])  # fmt: skip
def test_a_line_that_is_no_letter_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in (LETTER.record(), change(LETTER.record()))))
    with pytest.raises(BadEndpoint, match=f"line 2 of {file} is not a dead letter"):
        list(Directory(str(tmp_path)).stored())


@pytest.mark.parametrize("line", [b"[" * 100_000, b"\xff", b"{"])
def test_a_line_that_is_no_json_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(line)
    with pytest.raises(BadEndpoint, match="line 1 of"):
        list(Directory(str(tmp_path)).stored())


@pytest.mark.parametrize("content", [b"{}", b"\xff", b'{"key":"\xff"}', b"[" * 100_000])
def test_a_replay_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "_replays").mkdir()
    (tmp_path / "_replays" / "a.json").write_bytes(content)
    with pytest.raises(BadEndpoint, match="cannot read"):
        Directory(str(tmp_path)).replays()


def test_a_letter_of_any_year_can_be_read_again() -> None:
    message = Message("old", b"x", time=datetime(985, 1, 1, tzinfo=UTC))
    letter = Letter("l", DeadLetter(message, "r", "decode", "MalformedBody", "why", 1))
    assert stored_letter(json.loads(json.dumps(letter.record()))).dead.message.time == message.time
