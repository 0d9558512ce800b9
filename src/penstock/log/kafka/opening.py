"""Open partitions that are in Kafka: find where each ends, whether all its records are ours, and who wrote last."""

from __future__ import annotations

from pathlib import Path

from penstock.log.errors import BadSettings, ForeignWriter
from penstock.log.kafka.connection import Connection
from penstock.log.kafka.note import Note
from penstock.log.kafka.store import NOTE_EVERY, KafkaStore
from penstock.log.producers import Producers
from penstock.log.store.disk import Disk
from penstock.log.store.finding import Finding
from penstock.log.store.segment import ENDING

_FRAME = 4 << 20


class Opening:
    """The partitions of one topic, opened one after the other."""

    def __init__(self, connection: Connection, disk: Disk, topic: str, directories: list[Path]) -> None:
        self._connection, self._disk, self._topic = connection, disk, topic
        self._directories = directories
        self._notes = [Note.parse(disk.read(directory / "kafka.note")) for directory in directories]
        numbers = list(range(len(directories)))
        ends = connection.ends(topic, numbers)
        killed = any((note is None and next > 0) or (note is not None and not note.clean)
                     for note, (_, next) in zip(self._notes, ends, strict=True))  # fmt: skip
        # A process that was killed may have sent what Kafka has not yet got.
        self._ends = connection.steady_ends(topic, numbers) if killed else ends

    def open(self, number: int, producers: Producers) -> tuple[KafkaStore, list[Finding]]:
        """The store of a partition, and what was found on the way."""
        directory, note = self._directories[number], self._notes[number]
        if any(name.endswith(ENDING) for name in self._disk.names(directory)):
            raise BadSettings("the messages of this topic are in files, not in Kafka", str(directory),
                              "open the log without last=Kafka(...), or another directory")  # fmt: skip
        first, next = self._ends[number]
        known = None if note is None else note.end
        begin = max(first, known if known is not None else next - NOTE_EVERY, 0)
        if note is not None:
            producers.load(note.producers)
        store = KafkaStore(self._connection, self._topic, number, first, next, begin, self._disk,
                           directory / "kafka.note", producers.pack)  # fmt: skip
        findings: list[Finding] = []
        if known is not None and next < known:
            store.refuse(store.missing(next, known))
        self._read_on(store, producers, min(begin, next), next)
        if store.refused is not None:
            findings.append(Finding(f"Kafka topic {self._topic!r} partition {number}", 0, store.end, None,
                                    store.refused.what, "nothing is written to it"))  # fmt: skip
        else:
            store.write_note(clean=False)
        self._connection.serve(store)
        return store, findings

    def _read_on(self, store: KafkaStore, producers: Producers, place: int, next: int) -> None:
        """Read the records since the note, to know their producers; stop at a record that is not ours."""
        while place < next:
            try:
                frames = store.read(place, _FRAME, next - place)
            except ForeignWriter as error:
                store.refuse(error)
                store.end = store.taken = place
                return
            for frame in frames:
                producers.add(frame.runs, frame.first)
                place = frame.next
