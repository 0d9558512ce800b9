"""The files of a log: after any damage it opens, says what it found, and never shows what nobody wrote."""

from __future__ import annotations

from pathlib import Path

from penstock.log.check import check
from penstock.log.errors import Damaged, LogError
from penstock.log.frame import Frame
from penstock.log.groups import Groups
from penstock.log.identities import Identities
from penstock.log.log import Log
from penstock.log.partition import Partition
from penstock.log.settings import Acknowledge, Settings
from penstock.log.store.disk import Disk
from penstock.log.store.index import Index
from penstock.log.store.mark import read_mark
from penstock.log.topics import Topics
from tests.fuzz.parser import Parser
from tests.log.simulated import Inode, SimulatedDisk
from tests.log.store.test_faults import ByHand, round_of

HERE = Path("/log")
SETTINGS = Settings(levels=(), segment_bytes=4096, index_every=256, flush_after=60.0)


def _written() -> tuple[SimulatedDisk, list[bytes]]:
    """Three segments, groups and producers, closed as a log should be."""
    disk, values = SimulatedDisk(), []
    with Log(HERE, SETTINGS, disk) as log:
        log.create("orders", 1)
        log.producer("mill")
        for number in range(24):
            some = [b"message %d.%d " % (number, place) + b"." * (number * 20 % 300) for place in range(number % 3 + 1)]
            frame = Frame.pack(some, times=[number] * len(some))
            if number % 4 == 0:
                some = some[:1]
                frame = Frame.pack(some, times=[number], producer=7, sequence=number // 4)
            log.append("orders", 0, frame, Acknowledge.FSYNCED).result(10)
            values += some
        log.commit("readers", "orders", 0, 5)
        log.commit("readers", "orders", 0, 7)
    return disk, values


DISK, VALUES = _written()
FILES = sorted(path for path, inode in DISK.names_seen.items() if path.name != "lock" and inode.seen)


def damaged_logs(data: bytes) -> None:
    """Changes of five bytes: which file, what is done, where (two bytes), and a byte for it."""
    disk = DISK.after_kill()
    for at in range(0, min(len(data), 100) - 4, 5):
        _damage(disk, FILES[data[at] % len(FILES)], data[at + 1] % 6, data[at + 2] * 256 + data[at + 3], data[at + 4])
    _live_on(disk)


def _damage(disk: SimulatedDisk, path: Path, what: int, place: int, byte: int) -> None:
    content = bytearray(disk.read(path) or b"")
    place %= len(content) + 1
    if what == 0:
        content[place : place + 1] = bytes([byte])
    elif what == 1:
        del content[place:]
    elif what == 2:
        content[place : place + byte] = bytes(byte)
    elif what == 3:
        content += content[place : place + 8 * byte]
    elif what == 4:
        del content[place : place + 8 * byte]
    else:
        disk.names_seen.pop(path, None)
        return
    disk.names_seen[path] = Inode(content, bytes(content))


def foreign_files(data: bytes) -> None:
    """The first byte chooses the file that has this content now."""
    if data:
        disk = DISK.after_kill()
        disk.names_seen[FILES[data[0] % len(FILES)]] = Inode(bytearray(data[1:]), data[1:])
        _live_on(disk)


def _live_on(disk: SimulatedDisk) -> None:
    try:
        check(HERE, disk)
        Topics(disk, HERE / "topics")
        Groups(disk, HERE).all()
        Identities(disk, HERE).producer("mill")
    except LogError:
        pass
    partition = _opened(disk)
    found = _read(partition)
    assert all(0 <= at < len(VALUES) and VALUES[at] == value for at, value in found.items()), partition.findings
    if partition.store.refused is not None:  # acknowledged messages are missing: that is said, and nothing is written
        return
    receipt = partition.append(Frame.pack([b"new"]), Acknowledge.FSYNCED)
    round_of(partition)
    first = receipt.result(0).first
    assert all(at < first for at in found)
    partition.close()
    assert _read(_opened(disk)) == found | {first: b"new"}


def _opened(disk: SimulatedDisk) -> Partition:
    return Partition("orders", 0, HERE / "topics/orders/0", SETTINGS, disk, ByHand(), lambda producer: 0)  # type: ignore[arg-type]


def _read(partition: Partition) -> dict[int, bytes]:
    """All that can be read, behind every damage again."""
    found: dict[int, bytes] = {}
    ends = partition.ends()
    offset = ends.first
    while offset < ends.next:
        try:
            reading = partition.read(offset, 700, None)
        except Damaged as damage:
            following = damage.next
        else:
            following = reading.next
            for frame in reading.frames:
                found |= zip(frame.offsets.tolist(), frame.values.to_pylist(), strict=True)
        if following is None:
            break
        assert following > offset
        offset = following
    assert 0 <= partition.offset_at(5) <= ends.next
    return found


def indexes(data: bytes) -> None:
    found = Index.parse(data, 0)
    if found is not None:
        assert found.pack() == data


def marks(data: bytes) -> None:
    disk: Disk = SimulatedDisk()
    disk.replace(HERE / "durable", data)
    read_mark(disk, HERE)


_INDEX = next(bytes(DISK.names_seen[path].seen) for path in FILES if path.suffix == ".index")
_MARK = next(bytes(DISK.names_seen[path].seen) for path in FILES if path.name == "durable")
_SOME = [bytes([file, what, 0, place, 37]) for file in range(len(FILES)) for what in range(6) for place in (8, 140)]
PARSERS = [
    Parser(damaged_logs, [b"", *_SOME, b"".join(_SOME[::7])]),
    Parser(foreign_files, [bytes([number]) + bytes(DISK.names_seen[path].seen) for number, path in enumerate(FILES)]),
    Parser(indexes, [_INDEX, b""]),
    Parser(marks, [_MARK, bytes(16)]),
]
