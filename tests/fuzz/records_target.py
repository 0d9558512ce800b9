"""What other parts of Penstock left behind: dead letters, intents, notes, records in Kafka."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime

import msgspec
import numpy as np

from penstock.dead.letter import Letter, stored_letter
from penstock.dead.store import Directory, Replay
from penstock.errors import PenstockError
from penstock.log.kafka.note import Note
from penstock.log.kafka.records import Found, frame_of, records_of
from penstock.message import DeadLetter, Lineage, Message, Position
from penstock.spark.write.intent import BatchKey, Counts, Intent, Journal, StagedFile
from tests.fuzz.parser import Parser, pieces

HOME = tempfile.mkdtemp(prefix="penstock-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def _write(data: bytes, *path: str) -> str:
    file = os.path.join(HOME, *path)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as opened:
        opened.write(data)
    return file


def dead_letters(data: bytes) -> None:
    _write(data, "dead", "letters.jsonl")
    try:
        found = list(Directory(os.path.join(HOME, "dead")).stored())
    except PenstockError:
        return
    for letter in found:
        again = stored_letter(json.loads(json.dumps(letter.record())))
        assert again.dead.message.raw == letter.dead.message.raw


def replays(data: bytes) -> None:
    _write(data, "replayed", "_replays", "a.json")
    try:
        Directory(os.path.join(HOME, "replayed")).replays()
    except PenstockError:
        return


def intents(data: bytes) -> None:
    _write(data, "checkpoint", "penstock-batches", "000000003.json")
    journal = Journal(os.path.join(HOME, "checkpoint"))
    for read in (lambda: journal.find(3, "q"), lambda: journal.notes_after(1)):
        try:
            read()
        except PenstockError:
            continue


def batch_keys(data: bytes) -> None:
    key = BatchKey.of(data.decode("utf-8", "replace"))
    assert key.number >= 0


def notes(data: bytes) -> None:
    found = Note.parse(data)
    if found is not None:
        assert found.pack() == data


def kafka_records(data: bytes) -> None:
    """Each piece is a record: the first byte says what it has, the second how far it is from the one before it."""
    found, offset = [], 5
    for piece in pieces(data):
        kind, step, rest = (piece[0], piece[1] % 3, piece[2:]) if len(piece) > 1 else (0, 1, piece)
        mark, value = rest[: 36 if kind & 1 else 16], rest[36 if kind & 1 else 16 :]
        if kind & 2:
            mark = np.array([offset], "<i8").tobytes() + mark[8:]
        own = [("headers", value[:5])] if kind & 4 else []
        key, headers = value[:3] if kind & 16 else None, [("penstock", mark), *own]
        found.append(Found(offset, None if kind & 8 else value, key, headers))
        offset += step
    frame = frame_of(found)
    if frame is None:
        return
    assert frame.first == 5
    assert frame.values.to_pylist() == [one.value for one in found[: frame.count]]
    records = enumerate(records_of(frame, 0))
    again = [Found(5 + place, record.value, record.key, record.headers) for place, record in records]
    assert (rebuilt := frame_of(again)) is not None
    assert bytes(rebuilt.data) == bytes(frame.data)


_MESSAGE = Message("m", b'{"a":1}', {"a": 1}, {"h": "v"}, {"file": b"\xff"}, Position("t", 1, 2),
                   datetime(2024, 1, 1, tzinfo=UTC), Lineage("p", 0, 2))  # fmt: skip
_LETTERS = [Letter("l", DeadLetter(message, "route", "step", "WrongType", "because"))
            for message in (_MESSAGE, Message("n", b"\xff\xfe"))]  # fmt: skip
_LINES = [json.dumps(letter.record()).encode() for letter in _LETTERS]
_COUNTS = Counts({"a": 1}, {"b": 2}, 3, 0, times={"a": (1.0, 0.5)})
_INTENT = Intent("app-q-000000003", _COUNTS, (StagedFile("a", "/p", None, 1, 0),), ('{"n":1}',))
_MARKS = [np.array([offset, 7], "<i8").tobytes() for offset in (5, 6, 7)]
_RECORDS = b"\xfe".join(bytes([kind, 1]) + mark + b"value" for kind, mark in zip((0, 4, 16), _MARKS, strict=True))
_LONG = bytes([3, 1]) + _MARKS[0] + np.array([9, 3], "<i8").tobytes() + bytes(4) + b"value"
PARSERS = [
    Parser(dead_letters, [*_LINES, b"\n".join(_LINES), b"", b"[]", b"{}"]),
    Parser(replays, [msgspec.json.encode(Replay("k", "t", "a", ("l",))), b"{}"]),
    Parser(intents, [msgspec.json.encode(_INTENT), b"{}"]),
    Parser(batch_keys, [b"app-q-000000003", b"run", b"a-00000000x"]),
    Parser(notes, [Note(7, True, b"producers").pack(), b""]),
    Parser(kafka_records, [_RECORDS, _LONG, b""]),
]
