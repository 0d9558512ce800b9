"""How messages look as rows: one row is one message, and `at` says where in the app it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.plan.plan import Plan, Scope, Stage

ID, HEADERS, BODY, ATTACHMENTS = "id", "headers", "body", "attachments"
TOPIC, PARTITION, OFFSET, TIME = "topic", "partition", "offset", "time"
PARENT, INDEX, COUNT = "parent", "index", "count"
AT, SCOPE, ERROR, COPIES, ORDER = "at", "scope", "error", "copies", "order"
BURIED = "buried"
"""The body of a dead letter as JSON text, where its scope is not carried any further."""

BAD_ERROR, BAD_REASON = "bad_error", "bad_reason"

ERROR_TYPE = "struct<route: string, step: string, error: string, reason: string>"
DEAD = -1
_FIRST_FILTER = -2
NOTE = -1_000_000
"""A row that is no message: a task tells the driver something in its body."""

WAITING = -1_000_001
"""The place of messages that are tried again in a later batch."""


@dataclass(frozen=True)
class Places:
    """A number for every route, every sink, every step that may filter, and every step where messages may go on.

    Negative means: not going on.
    """

    routes: Mapping[str, int]
    sinks: Mapping[str, int]
    readers: Mapping[str, str]
    filters: Mapping[str, int]
    resumes: Mapping[str, int]

    @classmethod
    def of(cls, plan: Plan) -> Places:
        routes = {route.name: number for number, route in enumerate(plan.routes)}
        sinks = {outlet.channel: len(routes) + number for number, outlet in enumerate(plan.outlets)}
        titles = [stage.title for stage in plan.stages()]
        filters = {title: _FIRST_FILTER - number for number, title in enumerate(titles)}
        resumes = {title: len(routes) + len(sinks) + number for number, title in enumerate(titles)}
        return cls(routes, sinks, plan.readers, filters, resumes)

    def channel(self, name: str) -> int:
        """Where a message in this channel is: at the route that reads it, or at its sink."""
        reader = self.readers.get(name)
        return self.routes[reader] if reader is not None else self.sinks[name]

    def filtered(self, stage: Stage) -> int:
        return self.filters[stage.title]

    def resume(self, stage: Stage) -> int:
        """Where a message is that goes on at this step."""
        return self.resumes[stage.title]


def scope_column(scope: Scope) -> str:
    return f"s{scope.number}"


def field_column(index: int) -> str:
    """A decoded field on its way from the source to its scope."""
    return f"field_{index}"


def here(stage: Stage, places: Places) -> Column:
    return F.col(AT) == F.lit(places.routes[stage.route])


def error(stage: Stage, kind: Column | str, reason: Column | str) -> Column:
    """The error column of a message that dies at this step."""
    return F.struct(
        F.lit(stage.route).alias("route"),
        F.lit(stage.node.name).alias("step"),
        _column(kind).alias("error"),
        _column(reason).alias("reason"),
    )


def _column(value: Column | str) -> Column:
    return F.lit(value) if isinstance(value, str) else value


def change(data: DataFrame, present: Column, columns: Mapping[str, Column]) -> DataFrame:
    """New values for the messages that are here; all others keep theirs, or have none in a new column."""
    return data.withColumns(
        {
            name: F.when(present, value).otherwise(F.col(name)) if name in data.columns else F.when(present, value)
            for name, value in columns.items()
        }
    )
