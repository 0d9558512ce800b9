"""Open the segments of a partition as a clean end, a kill or a power loss has left them."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.log.errors import NotAcknowledged
from penstock.log.frame import NOBODY, Frame, Run
from penstock.log.producers import Producers
from penstock.log.settings import Settings
from penstock.log.store.disk import Disk
from penstock.log.store.finding import Finding
from penstock.log.store.index import Index
from penstock.log.store.mark import read_mark
from penstock.log.store.recovery import Damage, scan
from penstock.log.store.segment import ENDING, Segment, segment_path
from penstock.log.store.store import Store, free_name

_NAME = re.compile(r"(\d{20})" + re.escape(ENDING))


def open_store(disk: Disk, directory: Path, settings: Settings, producers: Producers) -> tuple[Store, list[Finding]]:
    """The store of a partition, everything in it durable, and what was found on the way."""
    findings: list[Finding] = []
    marked = read_mark(disk, directory) or 0
    segments = segments_of(disk, directory, settings.index_every)
    gone = lost_file(directory, segments, marked)
    if gone is not None:
        return _refusing(disk, directory, settings, segments, producers, gone)
    if not segments:
        return _empty(disk, directory, settings, producers), findings
    _load_producers(segments, producers)
    last, begin, is_clean = segments[-1], None, True
    size, left = last.file.size(), last.stored_index()
    if left is not None and left.size == size:
        last.index = left
        producers.load(left.producers)
    elif left is None and size == 0:
        last.index = Index(last.base, last.every)
    else:
        last, begin = _recovered(last, left, marked, producers, findings)
        is_clean = False
    store = Store(disk, directory, settings, [*segments[:-1], last], producers.pack)
    store.is_sealed = is_clean  # and what was sealed had been fsynced
    if not is_clean:
        last.file.sync()
    if begin is not None:
        store.begin_after_damage(begin)
    if read_mark(disk, directory) != store.durable:
        store.show_durable()
    return store, findings


def lost_file(directory: Path, segments: list[Segment], marked: int) -> Finding | None:
    """The finding that the last file is gone or empty, although messages up to `marked` were durable in it."""
    if not segments:
        base, what = 0, "all segments are gone"
    else:
        last, index = segments[-1], segments[-1].stored_index()
        base, what = last.base, "the last segment is empty"
        if last.file.size():
            if index is None or index.size != last.file.size():
                return None
            base, what = index.end, "the last segment is gone"
        elif index is not None:
            marked = max(marked, index.end)
    if marked <= base:
        return None
    done = "nothing is written to this partition"
    return Finding(str(segment_path(directory, base)), 0, base, marked, what, done)


def _refusing(
    disk: Disk, directory: Path, settings: Settings, segments: list[Segment], producers: Producers, gone: Finding
) -> tuple[Store, list[Finding]]:
    """A store that is read and not written, since its next offsets were given to messages that are not there."""
    assert gone.next is not None
    end, every = gone.next, settings.index_every
    _load_producers(segments, producers)
    if segments:
        segments[-1].limit = end
    none = Segment(disk, segment_path(directory, end), end, every, Index(end, every))
    store = Store(disk, directory, settings, [*segments, none], producers.pack)
    store.remedy = f"restore {gone.path} from a copy; or, to go on without them, make an empty file {none.path.name}"
    what = f"{gone.what}: messages {gone.first} to {end - 1} were durable, and are not there"
    store.refused = NotAcknowledged(what, str(directory), store.remedy)
    return store, [gone]


def _empty(disk: Disk, directory: Path, settings: Settings, producers: Producers) -> Store:
    """A partition without messages: its first one makes the first file."""
    every = settings.index_every
    store = Store(disk, directory, settings, [Segment(disk, segment_path(directory, 0), 0, every, Index(0, every))],
                  producers.pack)  # fmt: skip
    store.is_begun, store.is_sealed = False, True
    return store


def segments_of(disk: Disk, directory: Path, every: int) -> list[Segment]:
    """The segments in a directory, each with the offset where the next begins."""
    bases = sorted(int(found[1]) for found in map(_NAME.fullmatch, disk.names(directory)) if found)
    segments = [Segment(disk, segment_path(directory, base), base, every) for base in bases]
    for segment, after in zip(segments, bases[1:], strict=False):
        segment.limit = after
    return segments


def is_torn(damage: Damage, durable: int) -> bool:
    """Whether the damaged bytes may be a write that never ended: nothing says that they were durable."""
    return damage.first >= durable


def _load_producers(segments: list[Segment], producers: Producers) -> None:
    """Load the producers of the sealed segments, from the last index; segments behind it are read."""
    unread: list[Segment] = []
    for segment in reversed(segments[:-1]):
        index = segment.stored_index()
        if index is not None:
            producers.load(index.producers)
            break
        unread.append(segment)
    for segment in reversed(unread):
        view = segment.file.map(segment.file.size())
        scan(view, segment.base, segment.every, limit=segment.limit, see=lambda frame: _see(frame, producers))
        segment.close()


def _see(frame: Frame, producers: Producers) -> None:
    producers.add(frame.runs, frame.first)


def _recovered(
    segment: Segment, left: Index | None, marked: int, producers: Producers, findings: list[Finding]
) -> tuple[Segment, int | None]:
    """The last segment, cut where a write did not end; and where to begin another if it has to stay as it is."""
    view = segment.file.map(segment.file.size())
    seen: list[tuple[int, list[Run]]] = []
    known = segment.base
    if left is not None:  # it says who wrote what before its end, also what retention has removed since
        producers.load(left.producers)
        known = left.end

    def see(frame: Frame) -> None:
        if frame.header.producer != NOBODY and frame.first >= known:
            seen.append((frame.first, frame.runs))

    found = scan(view, segment.base, segment.every, see=see)
    durable = max(found.durable, marked, segment.base if left is None else left.end)
    torn = next((damage for damage in found.damages if is_torn(damage, durable)), None)
    rotten = [damage for damage in found.damages if not is_torn(damage, durable)]
    findings.extend(_finding(segment, damage, durable) for damage in rotten)
    index = found.index
    if torn is not None:
        aside = _set_aside(segment, view, torn.position)
        findings.append(Finding(str(segment.path), torn.position, torn.first, None,
                                f"a write did not end: {torn.why}", f"its bytes are in {aside.name}"))  # fmt: skip
        index = scan(view[: torn.position], segment.base, segment.every).index
    for first, runs in seen:
        if first < index.end:
            producers.add(runs, first)
    end = max(index.end, durable)
    missing = index.end < durable and all(damage.next is not None for damage in rotten)
    if missing:
        findings.append(Finding(str(segment.path), index.size, index.end, durable, "the file ends too early", "kept"))
    segment.close()
    whole = Segment(segment.disk, segment.path, segment.base, segment.every, index)
    return whole, end if rotten or missing else None


def _finding(segment: Segment, damage: Damage, durable: int) -> Finding:
    after = durable if damage.next is None else damage.next
    return Finding(str(segment.path), damage.position, damage.first, after, damage.why, "kept as it is")


def _set_aside(segment: Segment, view: memoryview, position: int) -> Path:
    """Copy the bytes from `position` on to another file, then cut them off."""
    aside = free_name(segment.disk, segment.path, "torn")
    segment.disk.replace(aside, bytes(view[position:]))
    segment.file.truncate(position)
    segment.file.sync()
    return aside
