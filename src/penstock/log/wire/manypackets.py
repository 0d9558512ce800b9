"""Read many UDP packets at once: the packets of one recvmmsg call are the rows of a matrix, which NumPy reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from penstock.log.wire.errors import Number
from penstock.log.wire.udp import (
    ACKNOWLEDGEMENT,
    HAS_PASS,
    HEADER,
    LONGEST_NAME,
    MAGIC,
    MODE,
    MODES,
    PASS_BYTES,
    PUSH,
    VERSION,
)

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_START = np.dtype([
    ("magic", "<u2"), ("version", "u1"), ("kind", "u1"), ("flags", "u1"), ("name", "u1"), ("partition", "<u2"),
    ("number", "<u4"), ("count", "<u2"), ("status", "<u2"),
])  # fmt: skip
_ACKNOWLEDGEMENT = np.dtype([*_START.descr, ("first", "<u8")])
_MAGIC_NUMBER = int.from_bytes(MAGIC, "little")
_FACTORS = np.random.default_rng().integers(1, 2**63, LONGEST_NAME // 8 + 1, np.uint64) * np.uint64(2) + np.uint64(1)
"""Chosen anew by every process, so that nobody can make names that meet."""
_COLUMNS = np.arange(LONGEST_NAME, dtype=np.uint8)


def acknowledgements(
    numbers: Integers, partition: int, mode: str, firsts: Integers, counts: Integers, error: Number
) -> Bytes:
    """One packet in every row."""
    rows = np.zeros(len(numbers), _ACKNOWLEDGEMENT)
    rows["magic"], rows["version"], rows["kind"] = _MAGIC_NUMBER, VERSION, ACKNOWLEDGEMENT
    rows["flags"], rows["partition"], rows["status"] = MODES.index(mode), partition, error
    rows["number"], rows["count"], rows["first"] = numbers, counts, firsts
    return rows.view(np.uint8).reshape(len(rows), _ACKNOWLEDGEMENT.itemsize)


@dataclass(frozen=True, slots=True)
class Group:
    """Messages of one topic, partition and mode, in the order of their packets: as a frame needs them."""

    topic: bytes
    partition: int
    mode: str
    packets: Integers
    counts: Integers
    numbers: Integers
    offsets: np.ndarray[Any, np.dtype[np.int32]]
    values: Bytes


@dataclass(frozen=True, slots=True)
class Gathered:
    groups: list[Group]
    malformed: int
    unauthorised: int


def gather(matrix: Bytes, sizes: Integers, wanted_pass: bytes = b"") -> Gathered:
    """The pushes in these packets. Nothing here is done for one packet or message alone, but for the groups."""
    packets = _Packets(matrix, sizes)
    well_formed = packets.well_formed()
    allowed = well_formed
    if wanted_pass:
        allowed = well_formed & packets.has_pass & packets.passes(wanted_pass)
    rows = np.flatnonzero(allowed)
    malformed = len(sizes) - int(np.count_nonzero(well_formed))
    unauthorised = len(sizes) - malformed - len(rows)
    groups = [packets.group(chosen) for chosen in packets.grouped(rows)] if len(rows) else []
    return Gathered(groups, malformed, unauthorised)


class _Packets:
    def __init__(self, matrix: Bytes, sizes: Integers) -> None:
        self.matrix, self.sizes = matrix, sizes.astype(np.int64)
        self.width = matrix.shape[1]
        self.flat = matrix.reshape(-1)
        starts = np.ascontiguousarray(matrix[:, : HEADER.size]).view(_START).reshape(-1)
        self.start = starts
        self.has_pass: Flags = (starts["flags"] & HAS_PASS) != 0
        self.counts: Integers = starts["count"].astype(np.int64)
        self.name_at: Integers = HEADER.size + PASS_BYTES * self.has_pass.astype(np.int64)
        self.lengths_at: Integers = self.name_at + starts["name"]
        self.values_at: Integers = self.lengths_at + np.where(self.counts > 1, 2 * self.counts, 0)

    def well_formed(self) -> Flags:
        start = self.start
        good: Flags = (self.sizes >= HEADER.size) & (start["magic"] == _MAGIC_NUMBER) & (start["version"] == VERSION)
        good &= (start["kind"] == PUSH) & (self.counts > 0) & (start["status"] == 0)
        good &= (start["flags"] & ~np.uint8(HAS_PASS | MODE)) == 0
        good &= (start["name"] > 0) & (start["name"] <= LONGEST_NAME) & (self.values_at <= self.sizes)
        several = np.flatnonzero(good & (self.counts > 1))
        if len(several):
            spans = np.add.reduceat(self.lengths(several), _before(self.counts[several]))
            good[several[spans != (self.sizes - self.values_at)[several]]] = False
        return good

    def passes(self, wanted: bytes) -> Flags:
        found = self.matrix[:, HEADER.size : HEADER.size + PASS_BYTES]
        same: Flags = (found == np.frombuffer(wanted, np.uint8)).all(axis=1)
        return same

    def lengths(self, rows: Integers) -> Integers:
        """The length of every message in these packets."""
        counts = self.counts[rows]
        spans = (self.sizes - self.values_at)[rows]
        if not (counts > 1).any():
            return spans
        within = np.arange(counts.sum()) - np.repeat(_before(counts), counts)
        at = np.repeat(rows * self.width + self.lengths_at[rows], counts) + 2 * within
        at = np.minimum(at, len(self.flat) - 2)  # a packet of one message has no lengths there
        listed = self.flat[at].astype(np.int64) | (self.flat[at + 1].astype(np.int64) << 8)
        return np.where(np.repeat(counts > 1, counts), listed, np.repeat(spans, counts))

    def grouped(self, rows: Integers) -> list[Integers]:
        """The rows of each topic, partition and mode, in order."""
        keys = self._keys(rows)
        if (keys == keys[0]).all():
            return [rows]
        marks = (keys * _FACTORS).sum(axis=1, dtype=np.uint64)
        _, first, group = np.unique(marks, return_index=True, return_inverse=True)
        if not (keys == keys[first[group]]).all():
            _, group = np.unique(keys, axis=0, return_inverse=True)
            group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        borders = np.flatnonzero(np.diff(group[order])) + 1
        return np.split(rows[order], borders)

    def _keys(self, rows: Integers) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Name, partition and mode of each packet as numbers."""
        names = self._names(rows)
        names[self.start["name"][rows, None] <= _COLUMNS] = 0
        keys = np.empty((len(rows), LONGEST_NAME // 8 + 1), np.uint64)
        keys[:, 1:] = names.view(np.uint64)
        chosen = self.start[rows]
        keys[:, 0] = (
            chosen["partition"].astype(np.uint64) << np.uint64(16)
            | chosen["name"].astype(np.uint64) << np.uint64(8)
            | (chosen["flags"] & MODE)
        )
        return keys

    def _names(self, rows: Integers) -> Bytes:
        """What stands where the names are, and behind them."""
        has_pass = self.has_pass[rows]
        room = np.zeros((len(rows), LONGEST_NAME), np.uint8)
        for chosen, at in ((~has_pass, HEADER.size), (has_pass, HEADER.size + PASS_BYTES)):
            found = self.matrix[:, at : at + LONGEST_NAME]
            if chosen.all():
                room[:, : found.shape[1]] = found[rows]
            elif chosen.any():
                room[chosen, : found.shape[1]] = found[rows[chosen]]
        return room

    def group(self, rows: Integers) -> Group:
        first = int(rows[0])
        start = self.start[first]
        name_at = first * self.width + int(self.name_at[first])
        topic = self.flat[name_at : name_at + int(start["name"])].tobytes()
        lengths = self.lengths(rows)
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        spans = (self.sizes - self.values_at)[rows]
        at = np.repeat(rows * self.width + self.values_at[rows] - _before(spans), spans) + np.arange(int(offsets[-1]))
        return Group(
            topic, int(start["partition"]), MODES[int(start["flags"]) & MODE], rows, self.counts[rows],
            self.start["number"][rows].astype(np.int64), offsets, self.flat[at],
        )  # fmt: skip


def _before(counts: Integers) -> Integers:
    """The sum of what stands before each."""
    return np.cumsum(counts) - counts
