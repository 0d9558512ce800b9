"""The tables of the report, as data: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.bench.log.comparing import STREAM, WAITING
from penstock.bench.log.goals import goals
from penstock.bench.log.peers import PEERS
from penstock.bench.log.reading import PAYLOADS as READ_PAYLOADS
from penstock.bench.log.reading import READ, ROUND_TRIP, SIDES
from penstock.bench.log.samples import Samples
from penstock.bench.log.serving import SETTINGS
from penstock.bench.log.writing import ALONE, BATCH_1, BATCH_2, BATCH_PAYLOADS, LAST_LEVEL, LEVELS, PAYLOADS, WRITE
from penstock.bench.report.tables import ABSENT, HEAD, NUMBER, TEXT, Field, Table
from penstock.log.settings import available_times

_NOTHING = Field("–", ABSENT)
PAPER_WRITE = {4: 183.0, 32: 51.0, 512: 3.0}
"""How many times faster the paper's last level took messages of so many bytes with the levels before it."""
THROUGHPUTS = (1e6, 100e6, 300e6)


def every_table(samples: Samples) -> Iterator[tuple[str, Table]]:
    """Those of which something was measured, with their titles."""
    for title, table in (
        ("Goals", goal_table(samples)),
        ("Writing, figure 12", write_table(samples)),
        ("Batches, figure 13", batch_table(samples)),
        ("Reading, figures 14 and 15", read_table(samples)),
        ("How long a message stays, table II", stay_table()),
        ("Peers", peer_table(samples)),
        ("What was not measured", absent_table(samples)),
    ):
        if table.rows and (title[:3] != "How" or any(samples.matching(what=READ))):
            yield title, table


def goal_table(samples: Samples) -> Table:
    rows = tuple(
        (Field(goal.text, HEAD), Field(f"x{goal.ratio:,.2f}"),
         Field("" if goal.wanted is None else f"x{goal.wanted:g}"), Field(goal.status, goal.status or TEXT))
        for goal in goals(samples)
    )  # fmt: skip
    return Table(("", "measured", "wanted", ""), rows, "Ratios of medians within this run.")


def write_table(samples: Samples) -> Table:
    rows = []
    for mode in samples.values("mode", what=WRITE):
        for payload in PAYLOADS:
            cells = [Field(f"{payload} B, {mode}", HEAD)]
            for what in (LAST_LEVEL, WRITE):
                pair = [samples.rate(what=what, side=side, mode=mode, payload=payload) for side in (LEVELS, ALONE)]
                cells += [_rate(pair[0]), _rate(pair[1]), _times(pair[0], pair[1])]
            paper = PAPER_WRITE.get(payload)
            cells.append(_NOTHING if paper is None else Field(f"x{paper:g}"))
            if any(samples.matching(what=WRITE, mode=mode, payload=payload)):
                rows.append(tuple(cells))
    header = ("messages/s", "last level, levels", "alone", "ratio", "whole way, levels", "alone", "ratio", "paper")
    return Table(header, tuple(rows), "The last level alone is given again what it was given on the whole way; the "
                 "whole way is from the first message, in one process, until all are written or fsynced.")  # fmt: skip


def batch_table(samples: Samples) -> Table:
    rows = []
    for what in (BATCH_1, BATCH_2):
        for size in samples.values("setting", what=what):
            cells = [Field(f"{what}, {size:,} B", HEAD)]
            for mode in (LAST_LEVEL, WRITE):
                cells += [_rate(samples.rate(what=what, mode=mode, payload=payload, setting=size))
                          for payload in BATCH_PAYLOADS]  # fmt: skip
            rows.append(tuple(cells))
    names = [f"{name}, {payload} B" for name in ("last level", "whole way") for payload in BATCH_PAYLOADS]
    return Table(("messages/s", *names), tuple(rows))


def read_table(samples: Samples) -> Table:
    rows = []
    for side in SIDES:
        cells = [Field(side, HEAD)]
        for payload in READ_PAYLOADS:
            cells.append(_rate(samples.rate(what=READ, side=side, payload=payload)))
            wanted = {"what": ROUND_TRIP, "side": side, "payload": payload}
            cells.append(_wait(samples.wait("median_wait", **wanted), samples.wait("p99_wait", **wanted)))
        if any(samples.matching(what=READ, side=side)):
            rows.append(tuple(cells))
    names = [name for payload in READ_PAYLOADS for name in (f"reads/s, {payload} B", "round trip")]
    return Table(("", *names), tuple(rows), "Round trips: median and p99.")


def stay_table() -> Table:
    """Of the levels that the figures on reading use."""
    rows = tuple(
        (Field(f"level {number}, {level.kind.value}, {level.capacity >> 20} MB", HEAD),
         *(Field(f"{time:,.3g} s") for time in times))
        for number, (level, times) in enumerate(
            zip(SETTINGS.levels, available_times(SETTINGS, THROUGHPUTS), strict=True), 1
        )
    )  # fmt: skip
    return Table(("", *(f"{rate / 1e6:g} MB/s" for rate in THROUGHPUTS)), rows)


def peer_table(samples: Samples) -> Table:
    rows = []
    for mode in samples.values("mode", what=WAITING):
        for payload in samples.values("payload", what=WAITING, mode=mode):
            for name in samples.values("side", what=WAITING, mode=mode):
                cells = [Field(mode, HEAD), Field(f"{payload} B"),
                         Field(PEERS[name].title, HEAD, PEERS[name].modes[mode])]  # fmt: skip
                for what, publishers in ((WAITING, 1), (WAITING, 64), (STREAM, 1)):
                    wanted = {"what": what, "side": name, "mode": mode, "payload": payload, "setting": publishers}
                    waits = (samples.wait(part, **wanted) for part in ("median_wait", "p99_wait"))
                    cells += [_rate(samples.rate(**wanted)), _wait(*waits)]
                rows.append(tuple(cells))
    header = ("", "", "messages/s", "1 publisher", "waits", "64 publishers", "waits", "stream", "waits")
    note = (
        "Publishers wait for the acknowledgement of every message. A stream has 8 chunks of 1,000 messages on the way; "
        "its waits are those for a chunk. Waits: median and p99."
    )
    return Table(header, tuple(rows), note)


def absent_table(samples: Samples) -> Table:
    rows = tuple((Field(PEERS[one.side].title, HEAD), Field(one.mode, TEXT), Field(one.reason, TEXT))
                 for one in samples.absent)  # fmt: skip
    return Table(("", "mode", "why"), rows)


def _rate(rate: float | None) -> Field:
    return _NOTHING if rate is None else Field(f"{rate:,.0f}", NUMBER)


def _times(mine: float | None, other: float | None) -> Field:
    return _NOTHING if mine is None or other is None else Field(f"x{mine / other:,.1f}")


def _wait(middle: float | None, late: float | None) -> Field:
    if middle is None or late is None:
        return _NOTHING
    return Field(_duration(middle), NUMBER, _duration(late))


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"
