"""Journal: a small mapping that survives: frames of changes in a file, the last one of a key counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.log.errors import Damaged, NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.store.disk import Disk, File
from penstock.log.store.finding import Finding
from penstock.log.store.recovery import scan
from penstock.log.store.store import free_name

_LONGEST = 1 << 20
_FRAME = 1 << 20
"""Bytes of one frame of a file that is written anew."""
_GONE = b""
"""The value of a key that was taken away."""


class Journal:
    """Every change is fsynced before `set` or `remove` returns. No value is empty.

    The file is written anew when it is much longer than need be.
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk, self._path = disk, path
        self._lock = threading.Lock()
        self._content: dict[bytes, bytes] = {}
        self._broken = False
        if disk.read(path) is None:
            disk.replace(path, b"")
        self._file: File = disk.open(path)
        view = self._file.map(self._file.size())
        found = scan(view, 0, 1 << 30, see=self._see)
        if any(damage.next is not None or damage.first < found.durable for damage in found.damages):
            self._file.close()
            first = found.damages[0]
            raise Damaged(f"{path.name} has been changed: {first.why}", f"{path} byte {first.position}",
                          "restore it from a copy, or remove it: then its content is forgotten")  # fmt: skip
        self._size, self._next = found.index.size, found.index.end
        self.findings: list[Finding] = []
        if found.damages:
            aside = free_name(disk, path, "torn")
            disk.replace(aside, bytes(view[self._size :]))
            self.findings.append(Finding(str(path), self._size, self._next, None, "a change was not finished",
                                         f"its bytes are in {aside.name}"))  # fmt: skip
        del view
        self._file.truncate(self._size)
        self._file.sync()

    def get(self, key: bytes) -> bytes | None:
        return self._content.get(key)

    def items(self) -> list[tuple[bytes, bytes]]:
        return list(self._content.items())

    def set(self, key: bytes, value: bytes) -> None:
        assert value != _GONE
        self._change({key: value})

    def remove(self, keys: Sequence[bytes]) -> None:
        if keys:
            self._change(dict.fromkeys(keys, _GONE))

    def _change(self, changes: dict[bytes, bytes]) -> None:
        with self._lock:
            try:
                frames = list(_frames(changes, self._next))
                size = sum(frame.bytes for frame in frames)
                if self._broken or self._size > max(_LONGEST, 8 * len(self._content) * size // len(changes)):
                    self._rewrite()
                    frames = list(_frames(changes, self._next))
                for frame in frames:  # each says that those before it are durable
                    self._file.write(self._size, [frame.data])
                    self._file.sync()
                    self._size, self._next = self._size + frame.bytes, frame.next
            except OSError as error:
                self._broken = True  # whether the change is in the file is not known: write it anew before the next
                raise NotAcknowledged(f"a change is not stored: {error}", str(self._path), "mend the disk") from None
            self._apply(changes)

    def close(self) -> None:
        self._file.close()

    def _rewrite(self) -> None:
        frames = [frame.at(frame.first, len(self._content)) for frame in _frames(self._content, 0)]
        content = b"".join([frame.data for frame in frames])
        self._disk.replace(self._path, content)
        self._file.close()
        self._file = self._disk.open(self._path)
        self._size, self._next, self._broken = len(content), len(self._content), False

    def _see(self, frame: Frame) -> None:
        self._apply(dict(zip(frame.keys.to_pylist(), frame.values.to_pylist(), strict=True)))

    def _apply(self, changes: Mapping[bytes, bytes]) -> None:
        self._content.update(changes)
        for key in [key for key, value in changes.items() if value == _GONE]:
            del self._content[key]


def _frames(changes: Mapping[bytes, bytes], base: int) -> Iterator[Frame]:
    """Changes as frames of a size that any frame may have, however many they are."""
    keys: list[bytes] = []
    size = 0
    for key, value in changes.items():
        keys.append(key)
        size += len(key) + len(value)
        if size >= _FRAME:
            yield _frame(changes, keys, base)
            base, keys, size = base + len(keys), [], 0
    if keys:
        yield _frame(changes, keys, base)


def _frame(changes: Mapping[bytes, bytes], keys: Sequence[bytes], base: int) -> Frame:
    return Frame.pack([changes[key] for key in keys], keys=keys, base=base).at(base, base)
