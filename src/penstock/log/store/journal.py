"""Journal: a small mapping that survives: frames of changes in a file, the last one of a key counts."""

from __future__ import annotations

import threading
from pathlib import Path

from penstock.log.errors import Damaged, NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.store.disk import Disk, File
from penstock.log.store.finding import Finding
from penstock.log.store.recovery import scan
from penstock.log.store.store import free_name

_LONGEST = 1 << 20


class Journal:
    """Every change is fsynced before `set` returns. The file is written anew when it is much longer than need be."""

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
        with self._lock:
            frame = Frame.pack([value], keys=[key], base=self._next).at(self._next, self._next)
            try:
                if self._broken or self._size > max(_LONGEST, 8 * len(self._content) * frame.bytes):
                    self._rewrite()
                    frame = frame.at(self._next, self._next)
                self._file.write(self._size, [frame.data])
                self._file.sync()
            except OSError as error:
                self._broken = True  # whether the change is in the file is not known: write it anew before the next
                raise NotAcknowledged(f"a change is not stored: {error}", str(self._path), "mend the disk") from None
            self._size += frame.bytes
            self._next += 1
            self._content[key] = value

    def close(self) -> None:
        self._file.close()

    def _rewrite(self) -> None:
        content = b""
        if self._content:
            keys, values = list(self._content), list(self._content.values())
            content = bytes(Frame.pack(values, keys=keys).data)
        self._disk.replace(self._path, content)
        self._file.close()
        self._file = self._disk.open(self._path)
        self._size, self._next, self._broken = len(content), len(self._content), False

    def _see(self, frame: Frame) -> None:
        self._content.update(zip(frame.keys.to_pylist(), frame.values.to_pylist(), strict=True))
