"""Files of a log that another process reads while they are written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.log import Acknowledge, Frame, Log, Retention, Settings
from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.errors import Damaged, OffsetOutOfRange, UnknownTopic
from penstock.log.reader import FileReader, Reader, ServerReader
from penstock.log.server.serve import Server
from penstock.log.store.disk import RealDisk
from penstock.log.store.mark import read_mark
from penstock.log.store.store import Store


def values(reader: Reader, first: int, stop: int, partition: int = 0) -> list[bytes]:
    pieces = reader.pieces(partition, first, stop)
    return [value for piece in pieces for value in piece.frame.values[piece.start : piece.stop].to_pylist()]


def push(log: Log, *texts: bytes, mode: Acknowledge = Acknowledge.FSYNCED) -> None:
    log.append("orders", 0, Frame.pack(list(texts)), mode).result()


def test_what_is_durable_is_read_while_the_log_is_open(log: Log) -> None:
    reader = FileReader(log.directory, "orders")
    assert reader.ends(0).next == 0
    for number in range(40):
        push(log, b"%d" % (2 * number), b"%d" % (2 * number + 1))
        assert reader.ends(0).next == 2 * number + 2
    assert values(reader, 5, 75) == [b"%d" % number for number in range(5, 75)]
    assert values(FileReader(log.directory, "orders"), 79, 80) == [b"79"]
    assert reader.found().partitions == 2


def test_what_could_be_lost_is_not_there_yet(log: Log) -> None:
    push(log, b"safe")
    push(log, b"not yet", mode=Acknowledge.MEMORY)
    reader = FileReader(log.directory, "orders")
    assert reader.ends(0).next == 1
    with pytest.raises(OffsetOutOfRange):
        values(reader, 0, 2)


def test_segments_follow_each_other_and_may_go(tmp_path: Path) -> None:
    settings = Settings(segment_bytes=4096, levels=(), retention=Retention(bytes=1 << 20))
    texts = [b"%03d" % number * 100 for number in range(100)]
    with Log(tmp_path, settings) as log:
        log.create("orders")
        reader = FileReader(tmp_path, "orders")
        for text in texts:
            push(log, text)
        assert values(reader, 0, 100) == texts
        assert values(FileReader(tmp_path, "orders"), 37, 58) == texts[37:58]
    assert values(reader, 0, 100) == texts
    with Log(tmp_path, Settings(segment_bytes=4096, levels=(), retention=Retention(bytes=8192))) as log:
        push(log, b"one more")
    first = reader.ends(0).first
    assert first > 0
    assert values(reader, first, 101) == [*texts[first:], b"one more"]
    with pytest.raises(OffsetOutOfRange, match=f"read from {first}"):
        values(reader, 0, 101)


def test_damage_is_named(log: Log) -> None:
    push(log, b"first" * 100)
    push(log, b"second")
    file = next((log.directory / "topics" / "orders" / "0").glob("*.log"))
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    with pytest.raises(Damaged, match="offset 0 cannot be read"):
        values(FileReader(log.directory, "orders"), 0, 2)


def test_topics_that_are_not_there(log: Log, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopic, match="did you mean 'orders'"):
        FileReader(log.directory, "ordres").found()
    with pytest.raises(Damaged, match="holds no log"):
        FileReader(tmp_path / "nowhere", "orders").found()


def test_a_mark_that_is_half_written_says_nothing(log: Log) -> None:
    push(log, b"one")
    place = log.directory / "topics" / "orders" / "0"
    assert read_mark(RealDisk(), place) == 1
    (place / "durable").write_bytes((place / "durable").read_bytes()[:-1] + b"\0")
    assert read_mark(RealDisk(), place) is None


def test_a_server_gives_the_same(log: Log, server: Server) -> None:
    for number in range(10):
        push(log, *(b"%d" % (number * 100 + place) for place in range(100)))
    served, stored = ServerReader(Address.of(server.address), "orders"), FileReader(log.directory, "orders")
    assert served.found() == stored.found()
    assert served.ends(0) == stored.ends(0)
    assert values(served, 150, 850) == values(stored, 150, 850) == [b"%d" % number for number in range(150, 850)]
    served.close()


def test_messages_behind_damaged_ones_can_be_read(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(levels=())) as log:
        log.create("orders")
        push(log, b"one", b"two")
        push(log, b"three")
        push(log, b"four", b"five")
    (segment,) = (tmp_path / "topics" / "orders" / "0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[8] ^= 1
    segment.write_bytes(content)
    assert values(FileReader(tmp_path, "orders"), 2, 5) == [b"three", b"four", b"five"]
    assert values(FileReader(tmp_path, "orders"), 4, 5) == [b"five"]
    with pytest.raises(Damaged, match="offset 1 cannot be read"):
        values(FileReader(tmp_path, "orders"), 1, 5)


@pytest.mark.parametrize("content", [b"\xff" * 16, b"\xff" * 15, bytes(16), b""])
def test_a_mark_that_is_damaged_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "durable").write_bytes(content)
    assert read_mark(RealDisk(), tmp_path) is None


def test_a_file_that_one_reader_has_is_not_closed_by_another(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(segment_bytes=4096, levels=())) as log:
        log.create("orders")
        for number in range(30):
            push(log, b"%03d" % number * 100)
    with Log(tmp_path) as log:
        partition = log._partitions["orders", 0].store
        assert isinstance(partition, Store)
        sealed = partition.segments[0]
        file = sealed.file
        log.read("orders", 0, 0)
        assert file.size() == sealed.size


def test_a_reader_waits_for_a_place_at_a_server_that_has_none(log: Log, serving: Callable[..., Server]) -> None:
    push(log, b"a")
    server = serving(most_connections=1)
    before = Connection(Address.of(server.address))
    leaving = threading.Timer(0.5, before.close)
    leaving.start()
    reader = ServerReader(Address.of(server.address), "orders")
    assert reader.ends(0).next == 1
    reader.close()
    leaving.join()
