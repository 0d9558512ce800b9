"""Staged frames become messages of a topic, once, whatever interrupts the driver. No Spark here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import Json
from penstock.delivery import EXACTLY_ONCE, IN_ORDER
from penstock.endpoints.log import Log as Topic
from penstock.errors import BadEndpoint
from penstock.log import Frame, Log, Settings
from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.reader import FileReader
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server
from penstock.spark.read.offsets import limited, ranges
from penstock.spark.write import logs
from penstock.spark.write.intent import StagedFile
from penstock.spark.write.logs import append, prepared
from penstock.spark.write.outlets import FRAMES, Target
from penstock.spark.write.staging_files import FrameWriter
from tests.log.checker import read_all
from tests.log.simulated import SimulatedDisk

BODIES = [b'{"id": %d, "car": "%s"}' % (number, b"ABC"[number % 3 : number % 3 + 1]) for number in range(100)]


ONLY_TCP = Listening(tcp=0, http=None, push=None, pull=None)


def target(end: Topic, delivery: str = EXACTLY_ONCE) -> Target:
    made = Target(0, "paid", FRAMES, None, Json("id BIGINT, car STRING"), delivery=delivery, topic=end)
    return prepared({0: made})[0]


def staged(directory: Path, to: Target, bodies: list[bytes], number: int = 0) -> StagedFile:
    path = str(directory / f"{number}.frames")
    writer = FrameWriter(path, to)
    for start in range(0, len(bodies), 10):
        some = pa.array(bodies[start : start + 10], pa.binary())
        writer.write(some, pa.array([False] * len(some)), pa.nulls(len(some), pa.struct([])))
    writer.close()
    return StagedFile(to.name, path, None, len(bodies), number)


def stored(directory: Path, topic: str = "paid") -> list[list[bytes]]:
    reader = FileReader(directory, topic)
    return [[value for piece in reader.pieces(number, 0, reader.ends(number).next)
             for value in piece.frame.values[piece.start : piece.stop].to_pylist()]
            for number in range(reader.found().partitions)]  # fmt: skip


class Interrupted(Exception):
    pass


def stopping(after: int, push: Callable[..., None]) -> Callable[..., None]:
    """A push that ends after so many frames."""

    def cut(frames: Iterable[Any]) -> Iterator[Any]:
        for number, frame in enumerate(frames):
            if number == after:
                raise Interrupted
            yield frame

    return lambda self, topic, frames, mode: push(self, topic, cut(frames), mode)


@pytest.mark.parametrize("key", [None, "car"])
def test_a_batch_that_is_interrupted_anywhere_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log"), key=key, partitions=2))
    files = [staged(tmp_path, to, BODIES[:50], 0), staged(tmp_path, to, BODIES[50:], 1)]
    expected: list[bytes] = []
    for after in range(0, 12, 3):
        with monkeypatch.context() as patch:
            patch.setattr(logs.DirectoryAppender, "push", stopping(after, logs.DirectoryAppender.push))
            with pytest.raises(Interrupted):
                append(files, to, f"shop-12345678-{after:09d}")
        for _ in range(2):
            append(files, to, f"shop-12345678-{after:09d}")
        expected += BODIES
        assert sorted(body for part in stored(tmp_path / "log") for body in part) == sorted(expected)


def test_messages_of_a_key_are_in_one_partition_in_order(tmp_path: Path) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log"), key="car", partitions=4))
    append([staged(tmp_path, to, BODIES)], to, "shop-run")
    for car in (b'"A"', b'"B"', b'"C"'):
        found = [[body for body in part if car in body] for part in stored(tmp_path / "log")]
        assert [part for part in found if part] == [[body for body in BODIES if car in body]]


def test_order_is_kept_where_it_is_promised(tmp_path: Path) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log"), partitions=2), IN_ORDER)
    append([staged(tmp_path, to, BODIES[:50], 0), staged(tmp_path, to, BODIES[50:], 1)], to, "shop-12345678-000000000")
    assert stored(tmp_path / "log") == [BODIES, []]


def test_files_that_are_gone_were_published_or_are_missed(tmp_path: Path) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log")))
    file = staged(tmp_path, to, BODIES)
    append([file], to, "shop-12345678-000000007")
    Path(file.path).unlink()
    append([file], to, "shop-12345678-000000007")
    assert stored(tmp_path / "log") == [BODIES]
    with pytest.raises(BadEndpoint, match=r"batch shop-12345678-8 was computed .* is gone"):
        append([file], to, "shop-12345678-000000008")


def test_a_server_takes_the_same(tmp_path: Path, log: Log, serving: Callable[..., Server]) -> None:
    server = serving(credit=4096)
    to = target(Topic("paid", at=server.address, partitions=2))
    files = [staged(tmp_path, to, BODIES[:50], 0), staged(tmp_path, to, BODIES[50:], 1)]
    for _ in range(2):
        append(files, to, "shop-12345678-000000000")
    for file in files:
        Path(file.path).unlink()
    append(files, to, "shop-12345678-000000000")
    assert stored(log.directory) == [BODIES[:50], BODIES[50:]]


def among_others(push: Callable[..., None]) -> Callable[..., None]:
    """A push during which somebody else writes, too: a log remembers only the last of such stretches."""

    def mixed(frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            yield frame
            yield 0, Frame.pack([b"other"])

    return lambda self, topic, frames, mode: push(self, topic, mixed(frames), mode)


def test_a_batch_of_which_the_log_has_forgotten_where_it_is_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log")))
    files = [staged(tmp_path, to, BODIES, number) for number in range(3)]
    for after in (None, 15, 30):
        key = f"shop-12345678-{after or 0:09d}"
        whole = logs.DirectoryAppender.push
        push = among_others(whole if after is None else stopping(after, whole))
        with monkeypatch.context() as patch:
            patch.setattr(logs.DirectoryAppender, "push", push)
            with suppress(Interrupted):
                append(files, to, key)
        for _ in range(2):
            append(files, to, key)
        [found] = stored(tmp_path / "log")
        assert [body for body in found if body != b"other"][-300:] == 3 * BODIES
        assert len(found) - found.count(b"other") == 300 * (1 + [None, 15, 30].index(after))


def test_a_batch_that_a_full_disk_refused_is_there_once_when_there_is_room(tmp_path: Path) -> None:
    for room in range(0, 12_000, 1500):
        disk = SimulatedDisk()
        settings = Settings(levels=(), flush_after=60)
        with Log(Path("/log"), settings, disk) as log, Server(log, ONLY_TCP) as server:
            to = target(Topic("paid", at=server.address, partitions=2))
            files = [staged(tmp_path, to, BODIES, number) for number in range(4)]
            append(files, to, "shop-12345678-000000006")
            disk.room = room
            with pytest.raises(BadEndpoint, match="No space left on device"):
                append(files, to, "shop-12345678-000000007")
            disk.room = None
            _make_writable(log)
            append(files, to, "shop-12345678-000000007")
            for number in range(2):
                found = [value for _, value in read_all(lambda offset, at=number: log.read("paid", at, offset))]
                assert found == 4 * BODIES, f"room {room}"


def _make_writable(log: Log) -> None:
    for number in range(2):
        partition = log._partition("paid", number)
        partition._healed = 0.0
        partition.write_pending()
        assert partition.broken is None


def test_what_cannot_be_written_to(tmp_path: Path, log: Log, serving: Callable[..., Server]) -> None:
    with pytest.raises(BadEndpoint, match=r"channel 'paid' writes to log paid at .*has the log of .* open"):
        target(Topic("paid", at=str(log.directory)))
    with pytest.raises(BadEndpoint, match=r"no log server answers at 127.0.0.1:1"):
        target(Topic("paid", at="127.0.0.1:1"))
    server = serving(token="right")
    with pytest.raises(BadEndpoint, match="token"):
        target(Topic("paid", at=server.address, token="wrong"))
    with pytest.raises(BadEndpoint, match="has 2 partitions, not 3"):
        target(Topic("orders", at=server.address, token="right", partitions=3))
    assert target(Topic("orders", at=server.address, token="right")).partitions == 2


def test_an_older_batch_is_refused(tmp_path: Path) -> None:
    to = target(Topic("paid", at=str(tmp_path / "log")))
    file = staged(tmp_path, to, BODIES)
    append([file], to, "shop-12345678-000000007")
    with pytest.raises(BadEndpoint, match="7 is the newest"):
        append([file], to, "shop-12345678-000000006")


def test_ranges_cover_everything_once() -> None:
    start, end = {"0": 5, "1": 0, "2": 7}, {"0": 5005, "1": 0, "2": 2007}
    for parts in (1, 2, 3, 10):
        found = ranges(start, end, parts)
        assert [(one.partition, offset) for one in found for offset in range(one.first, one.stop)] == [
            *((0, offset) for offset in range(5, 5005)), *((2, offset) for offset in range(7, 2007)),
        ]  # fmt: skip
        assert len(found) >= min(parts, 7)


def test_a_limit_is_shared_between_partitions() -> None:
    assert limited({"0": 0, "1": 10, "2": 0}, {"0": 3, "1": 1000, "2": 500}, 100) == {"0": 3, "1": 59, "2": 48}
    assert limited({"0": 0}, {"0": 3}, 100) == {"0": 3}
    assert Frame.pack([b"x"]).numbered(7, 2, 9).runs[0][:3] == (7, 9, 2)


def test_a_batch_waits_for_a_place_at_a_server_that_has_none(
    tmp_path: Path, log: Log, serving: Callable[..., Server]
) -> None:
    roomy, crowded = serving(), serving(most_connections=1)
    to = target(Topic("paid", at=roomy.address, key="car"))
    files = [staged(tmp_path, to, BODIES)]
    before = Connection(Address.of(crowded.address))
    leaving = threading.Timer(0.5, before.close)
    leaving.start()
    append(files, replace(to, topic=Topic("paid", at=crowded.address, key="car")), "shop-12345678-000000000")
    leaving.join()
    assert stored(log.directory) == [BODIES]
