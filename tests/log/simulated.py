"""A disk in memory that loses power, tears writes and refuses them: what is fsynced stays, and nothing else must."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.log.errors import LogInUse
from penstock.log.store.disk import Buffers

SECTOR = 512


class PowerLoss(BaseException):
    """Nothing that comes after this happens."""


@dataclass
class Inode:
    seen: bytearray = field(default_factory=bytearray)
    """What a process sees."""
    stable: bytes = b""
    """What is on the disk whatever happens."""
    writes: list[tuple[int, bytes]] = field(default_factory=list)
    """What may or may not be there, since the last fsync; -1 stands for a truncation to len(bytes)."""
    modified: float = 0.0

    def after(self, chance: random.Random | None) -> bytes:
        """The content after a power loss; without `chance` nothing that was not fsynced is there."""
        content = bytearray(self.stable)
        for position, data in self.writes if chance is not None else ():
            assert chance is not None
            fate = chance.choice(("lost", "there", "torn", "sectors"))
            if position < 0:
                if fate == "there":
                    del content[len(data) :]
                continue
            if fate == "lost":
                continue
            pieces = [(0, len(data))]
            if fate == "torn":
                pieces = [(0, chance.randrange(len(data) + 1))]
            elif fate == "sectors":
                starts = [at for at in range(0, len(data), SECTOR) if chance.random() < 0.5]
                pieces = [(at, min(at + SECTOR, len(data))) for at in starts]
            for begin, end in pieces:
                _put(content, position + begin, data[begin:end])
        return bytes(content)


def _put(content: bytearray, position: int, data: bytes) -> None:
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


class SimulatedFile:
    def __init__(self, disk: SimulatedDisk, path: Path, inode: Inode) -> None:
        self.disk, self.path, self.inode = disk, path, inode

    def write(self, position: int, buffers: Buffers) -> None:
        self.disk.step("write", self.path)
        self.inode.modified = time.time()
        data = b"".join(bytes(buffer) for buffer in buffers)
        room = self.disk.room
        if room is not None:
            grows = max(0, position + len(data) - len(self.inode.seen))
            if grows > room:
                short = data[: max(0, len(data) - (grows - room))]
                _put(self.inode.seen, position, short)
                self.inode.writes.append((position, short))
                raise OSError(errno.ENOSPC, "No space left on device", str(self.path))
            self.disk.room = room - grows
        _put(self.inode.seen, position, data)
        self.inode.writes.append((position, data))

    def sync(self) -> None:
        self.disk.step("sync", self.path)
        if self.disk.failing_syncs > 0:
            self.disk.failing_syncs -= 1
            # As Linux does it: the pages count as clean from now on, but are not on the disk.
            self.inode.writes.clear()
            raise OSError(errno.EIO, "Input/output error", str(self.path))
        self.inode.stable = bytes(self.inode.seen)
        self.inode.writes.clear()

    def size(self) -> int:
        return len(self.inode.seen)

    def truncate(self, size: int) -> None:
        self.disk.step("truncate", self.path)
        if size != len(self.inode.seen):
            del self.inode.seen[size:]
            self.inode.writes.append((-1, bytes(size)))

    def map(self, size: int) -> memoryview:
        return memoryview(bytes(self.inode.seen[:size]))

    def close(self) -> None:
        self.disk.locks.discard(self.path)


class SimulatedDisk:
    """`crash_at` is the number of the step that does not happen. Renames and new names last from the fsync of their
    directory on; before it, some first of them may."""

    def __init__(self) -> None:
        self.names_seen: dict[Path, Inode] = {}
        self.names_stable: dict[Path, Inode] = {}
        self.directories: set[Path] = {Path("/")}
        self.unsynced: list[list[tuple[Path, Inode | None]]] = []
        self.locks: set[Path] = set()
        self.steps = 0
        self.crash_at: int | None = None
        self.crashed = False
        self.failing_syncs = 0
        self.room: int | None = None
        self.log: list[str] = []

    def step(self, what: str, path: Path) -> None:
        if self.crashed or self.steps == self.crash_at:
            self.crashed = True
            raise PowerLoss
        self.steps += 1
        self.log.append(f"{what} {path.name}")

    def after_power_loss(self, chance: random.Random | None = None) -> SimulatedDisk:
        """The disk as it is found when the power is back."""
        names = dict(self.names_stable)
        kept = 0 if chance is None else chance.randrange(len(self.unsynced) + 1)
        for path, inode in (change for changes in self.unsynced[:kept] for change in changes):
            if inode is None:
                names.pop(path, None)
            else:
                names[path] = inode
        return self._new(names, {path: inode.after(chance) for path, inode in names.items()})

    def after_kill(self) -> SimulatedDisk:
        """The disk as the next process finds it: the kernel lived on."""
        return self._new(self.names_seen, {path: bytes(inode.seen) for path, inode in self.names_seen.items()})

    def _new(self, names: dict[Path, Inode], contents: dict[Path, bytes]) -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.directories = set(self.directories)
        for path, content in contents.items():
            inode = Inode(bytearray(content), content, modified=names[path].modified)
            disk.names_seen[path] = disk.names_stable[path] = inode
        return disk

    # ---- what `Disk` asks for

    def open(self, path: Path, *, create: bool = False, lasting: bool = True) -> SimulatedFile:
        if path not in self.names_seen:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
            self.step("create", path)
            self._name(path, Inode())
        return SimulatedFile(self, path, self.names_seen[path])

    def read(self, path: Path) -> bytes | None:
        inode = self.names_seen.get(path)
        return None if inode is None else bytes(inode.seen)

    def replace(self, path: Path, content: bytes) -> None:
        inode = Inode()
        file = SimulatedFile(self, path, inode)
        file.write(0, [content])
        file.sync()
        self.step("rename", path)
        self._name(path, inode)
        self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        start = f"{directory}/"
        paths = map(str, (*self.names_seen, *self.directories))
        return sorted({path[len(start) :].partition("/")[0] for path in paths if path.startswith(start)})

    def make_directory(self, path: Path) -> None:
        self.directories |= {path, *path.parents}

    def make_private(self, directory: Path) -> None:
        """There are no other users."""

    def make_directories(self, parent: Path, names: Iterable[str]) -> None:
        for name in names:
            self.make_directory(parent / name)

    def sync_directory(self, path: Path) -> None:
        self.step("sync directory", path)
        for name, inode in (change for changes in self.unsynced for change in changes):
            if inode is None:
                self.names_stable.pop(name, None)
            else:
                self.names_stable[name] = inode
        self.unsynced.clear()

    def remove(self, path: Path) -> None:
        self.step("remove", path)
        if self.names_seen.pop(path, None) is not None:
            self.unsynced.append([(path, None)])

    def modified(self, path: Path) -> float:
        return self.names_seen[path].modified

    def rename(self, path: Path, other: Path) -> None:
        self.step("rename", path)
        if path in self.directories:
            self._rename_directory(path, other)
            return
        inode = self.names_seen.pop(path)
        self.names_seen[other] = inode
        self.unsynced.append([(path, None), (other, inode)])
        self.sync_directory(path.parent)

    def _rename_directory(self, path: Path, other: Path) -> None:
        changes: list[tuple[Path, Inode | None]] = []
        for name in [name for name in self.names_seen if path in name.parents]:
            inode = self.names_seen.pop(name)
            self.names_seen[other / name.relative_to(path)] = inode
            changes += [(name, None), (other / name.relative_to(path), inode)]
        self.directories = {other / name.relative_to(path) if path in (name, *name.parents) else name
                            for name in self.directories}  # fmt: skip
        self.unsynced.append(changes)
        self.sync_directory(path.parent)

    def remove_directory(self, path: Path) -> None:
        for name in [name for name in self.names_seen if path in name.parents]:
            self.remove(name)
        self.directories = {name for name in self.directories if path not in (name, *name.parents)}

    def link(self, path: Path, other: Path) -> None:
        self.step("link", path)
        self._name(other, self.names_seen[path])

    def lock(self, path: Path) -> SimulatedFile:
        if path in self.locks:
            raise LogInUse(f"{path} is locked")
        self.locks.add(path)
        return SimulatedFile(self, path, self.names_seen.setdefault(path, Inode()))

    def _name(self, path: Path, inode: Inode) -> None:
        self.names_seen[path] = inode
        self.unsynced.append([(path, inode)])
