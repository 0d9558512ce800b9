"""The checker: what a log may never do, whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.log.records import Reading


def read_all(read: Callable[[int], Reading], first: int = 0) -> list[tuple[int, bytes]]:
    """Everything in a partition, with offsets."""
    found: list[tuple[int, bytes]] = []
    while True:
        reading = read(first)
        if not reading.frames:
            return found
        assert reading.first == first, f"asked for {first}, got {reading.first}"
        for frame in reading.frames:
            found.extend(zip(frame.offsets.tolist(), frame.values.to_pylist(), strict=True))
        assert reading.next == found[-1][0] + 1
        first = reading.next


def check(
    found: list[tuple[int, bytes]], acknowledged: Mapping[int, bytes], pushed: Iterable[bytes], first: int = 0
) -> None:
    """Offsets are gapless and unique, what was acknowledged is there, and nothing is invented.

    `acknowledged` is by offset, so it also says that the order is that of the answers.
    """
    offsets = [offset for offset, _ in found]
    assert offsets == list(range(first, first + len(offsets))), "offsets have gaps or doubles"
    there = dict(found)
    lost = {offset: value for offset, value in acknowledged.items() if there.get(offset) != value}
    assert not lost, f"acknowledged and not there: {sorted(lost.items())[:5]} of {len(lost)}; {len(found)} were read"
    invented = {value for _, value in found} - set(pushed)
    assert not invented, f"nobody pushed {sorted(invented)[:5]}"
