"""What the commands of the log print."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from penstock.cli.output import aligned, say, visible

if TYPE_CHECKING:
    from penstock.log.client.cursors import Message


def show(message: Message, as_json: bool) -> None:
    """A message: its bytes as they are for a file or a pipe, and what can be read of them for a terminal."""
    from penstock.log.server.shown import json_line, record

    is_terminal = sys.stdout.isatty()
    if as_json:
        headers = json.dumps(message.headers).encode() if message.headers else None
        shown = record(message.offset, message.time, message.key, headers, message.value)
        line = json_line({"topic": message.topic, "partition": message.partition} | shown, message.value)
        say(visible(line) if is_terminal else line)
    elif is_terminal:
        say(visible(message.value.decode("utf-8", "backslashreplace")))
    elif (raw := getattr(sys.stdout, "buffer", None)) is not None:
        raw.write(message.value + b"\n")
    else:
        say(message.value.decode("utf-8", "backslashreplace"))


def statistics(values: dict[str, Any]) -> str:
    server = values["server"]
    shown = {name: count for name, count in server.items() if count or name in ("pushed_messages", "pulled_messages")}
    parts = [table([{"server": name.replace("_", " "), "": f"{count:,}"} for name, count in shown.items()])]
    rows, levels = [], []
    for one in values["partitions"]:
        place = {"topic": one["topic"], "partition": one["partition"]}
        counts = {name: one[name] for name in ("stored_bytes", "segments", "writes", "syncs")}
        rows.append(place | one["ends"] | counts | {"broken": one["broken"] or ""})
        for level in one["levels"]:
            names = ("level", "kind", "capacity", "hits", "misses", "batches", "mean_batch")
            times = {"available": _seconds(level["available"]), "computed": _seconds(level["available_computed"])}
            levels.append(place | {name: level[name] for name in names} | times)
    parts += [table(found) for found in (rows, levels) if found]
    return "\n\n".join(parts)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} s"


def table(rows: list[dict[str, Any]]) -> str:
    cells = [[name.replace("_", " ") for name in rows[0]], *([_cell(value) for value in row.values()] for row in rows)]
    return aligned(cells)


def _cell(value: Any) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)
