"""How messages look as rows: one row is one message, and `at` says where in the app it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.patterns.idempotent import Idempotent
from penstock.plan.failing import may_fail_after
from penstock.plan.plan import Plan, Scope, Stage
from penstock.plan.stopping import stopping_stages

ID, HEADERS, BODY, ATTACHMENTS = "id", "headers", "body", "attachments"
TOPIC, PARTITION, OFFSET, TIME = "topic", "partition", "offset", "time"
PARENT, INDEX, COUNT = "parent", "index", "count"
AT, SCOPE, ERROR, ORDER = "at", "scope", "error", "order"
BURIED = "buried"
"""The body of a dead letter as JSON text, where its scope is not carried any further."""

BAD_ERROR, BAD_REASON = "bad_error", "bad_reason"
PARTS = "parts"
"""The bodies of the parts of a message, where the decoder has written them."""

ERROR_TYPE = "struct<route: string, step: string, error: string, reason: string>"
DEAD = -1
_FIRST_FILTER = -2
NOTE = -1_000_000
"""A row that is no message: a task tells the driver something in its body."""

WAITING = -1_000_001
"""The place of messages that are tried again in a later batch."""

RESUME = "resume"
"""The column that has the step at which a waiting message goes on."""

VISITED = "visited"
BITS = 62
"""How many bits of a column with this name say where a row has been."""
FAMILY = "family"
IN, COPIED, BACK = "in", "copied", "back"


@dataclass(frozen=True)
class Places:
    """A number for every route, every sink, every step that may filter, and every step where messages may go on.

    Negative means: not going on. At `undecided` steps a message may have to wait for the fate of another. `marks` are
    the bits that say where a row has been: at a step, made by a step as a copy, or sent back to the start of a route.
    `families` are the columns of the steps that may stop what they have made. If `ordered`, every row has its ORDER.
    """

    routes: Mapping[str, int]
    sinks: Mapping[str, int]
    readers: Mapping[str, str]
    filters: Mapping[str, int]
    resumes: Mapping[str, int]
    undecided: frozenset[str]
    marks: Mapping[tuple[str, str], int]
    families: Mapping[str, str]
    ordered: bool

    @classmethod
    def of(cls, plan: Plan) -> Places:
        routes = {route.name: number for number, route in enumerate(plan.routes)}
        sinks = {outlet.channel: len(routes) + number for number, outlet in enumerate(plan.outlets)}
        titles = [stage.title for stage in plan.stages()]
        filters = {title: _FIRST_FILTER - number for number, title in enumerate(titles)}
        resumes = {title: len(routes) + len(sinks) + number for number, title in enumerate(titles)}
        undecided = frozenset(stage.title for stage in plan.stages() if _decides_later(plan, stage))
        kinds = [(IN, title) for title in titles]
        kinds += [(COPIED, stage.title) for stage in plan.stages() if stage.node.messages in ("1:2", "1:n")]
        kinds += [(BACK, route.name) for route in plan.routes if route.restarts]
        marks = {kind: number for number, kind in enumerate(kinds)}
        families = {stage.title: f"{FAMILY}_{number}" for number, stage in enumerate(stopping_stages(plan))}
        ordered = plan.remembers or bool(families)
        return cls(routes, sinks, plan.readers, filters, resumes, undecided, marks, families, ordered)

    @property
    def visited(self) -> tuple[str, ...]:
        """The columns that hold the marks."""
        return tuple(f"{VISITED}_{number}" for number in range(-(-len(self.marks) // BITS)))

    def channel(self, name: str) -> int:
        """Where a message in this channel is: at the route that reads it, or at its sink."""
        reader = self.readers.get(name)
        return self.routes[reader] if reader is not None else self.sinks[name]

    def filtered(self, stage: Stage) -> int:
        return self.filters[stage.title]

    def resume(self, stage: Stage) -> int:
        """Where a message is that goes on at this step."""
        return self.resumes[stage.title]


def _decides_later(plan: Plan, stage: Stage) -> bool:
    """A receiver that forgets the key of a message that fails, where one may fail."""
    return isinstance(stage.node, Idempotent) and not stage.node.remember_failed and may_fail_after(plan, stage)


def scope_column(scope: Scope) -> str:
    return f"s{scope.number}"


def field_column(index: int) -> str:
    """A decoded field on its way from the source to its scope."""
    return f"field_{index}"


def answer_column(number: int) -> str:
    """What a decoder found out for a step; it stays with the message and its copies."""
    return f"answer_{number}"


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


def never_null(column: Column, kind: spark.DataType | None) -> Column:
    """A map or an array that is empty instead of null: a run of nulls takes Spark quadratic time to send to Python."""
    if isinstance(kind, spark.MapType):
        return F.coalesce(column, F.create_map().cast(kind))
    return F.coalesce(column, F.array().cast(kind)) if isinstance(kind, spark.ArrayType) else column


def change(data: DataFrame, present: Column, columns: Mapping[str, Column]) -> DataFrame:
    """New values for the messages that are here; all others keep theirs, or have none in a new column."""
    return data.withColumns(
        {
            name: F.when(present, value).otherwise(F.col(name)) if name in data.columns else F.when(present, value)
            for name, value in columns.items()
        }
    )
