"""Where a workload reads and writes: what differs between a check and a measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.json

from penstock import App, Files, Json, Route, Void, lookup_table
from penstock.bench.models import SCHEMAS
from penstock.endpoints.base import Sink, Source
from penstock.endpoints.lookup import LookupTable


@dataclass(frozen=True)
class Ends:
    """The files of a message model, the tables beside them, and a directory for the output or nothing."""

    model: str
    pattern: str
    tables: dict[str, list[str]] = field(default_factory=dict)
    out: Path | None = None

    def source(self) -> Source:
        return Files(self.pattern, Json(SCHEMAS[self.model]))

    def sink(self, channel: str) -> Sink:
        return Void() if self.out is None else Files(str(self.out / channel))

    def table(self, name: str, key: str, columns: Iterable[str]) -> LookupTable:
        parts = [pyarrow.json.read_json(path) for path in self.tables[name]]
        return lookup_table(pa.concat_tables(parts).select([key, *columns]), key=key)

    def app(self, name: str, *routes: Route, channels: Iterable[str] = ("out",)) -> App:
        return App(name, *routes, sinks={channel: self.sink(channel) for channel in channels},
                   dead_letters=self.sink("dead"))  # fmt: skip
