"""The columns that every message has beside its body, wherever messages are a table."""

from __future__ import annotations

import pyarrow as pa

ID, HEADERS, BODY, ATTACHMENTS = "id", "headers", "body", "attachments"
TOPIC, PARTITION, OFFSET, TIME = "topic", "partition", "offset", "time"
PARENT, INDEX, COUNT = "parent", "index", "count"
AT, SCOPE, ERROR, ORDER, ATTEMPT = "at", "scope", "error", "order", "attempt"
TRIED, ADMITTED, FIRST = "tries", "admitted", "first_form"

DEAD = -1
"""The place of messages that cannot go on; `AT` says where in the app a message is."""

NOTE = -1_000_000
"""The place of rows that are no messages: a task tells the driver something in their body."""

WAITING = -1_000_001
"""The place of messages that go on in a later batch."""

ERRORS = pa.struct([(name, pa.string()) for name in ("route", "step", "error", "reason")])
"""Why a message is a dead letter."""

PATH = pa.list_(pa.field("element", pa.int32()))
ORDERS = pa.struct([("source", pa.int32()), (TOPIC, pa.string()), (PARTITION, pa.int32()), (OFFSET, pa.int64()),
                    ("path", PATH)])  # fmt: skip
"""The place of a message among those of its batch: the path has its number at every step that made several of one."""

TRIES = pa.struct([("route", pa.string()), ("count", pa.int32())])
"""The number of the try that a message is at, in which route."""

ADMISSIONS = pa.list_(pa.field("element", pa.struct([
    ("step", pa.int32()), ("high", pa.int64()), ("low", pa.int64()), ("batch", pa.int64()),
])))  # fmt: skip
"""The receivers that let a message through, by their number in the plan, with its key there and the batch."""

ENVELOPE = pa.schema([
    (ID, pa.string()), (HEADERS, pa.map_(pa.string(), pa.string())), (ATTACHMENTS, pa.map_(pa.string(), pa.binary())),
    (TOPIC, pa.string()), (PARTITION, pa.int32()), (OFFSET, pa.int64()), (TIME, pa.timestamp("us", "UTC")),
    (PARENT, pa.string()), (INDEX, pa.int64()), (COUNT, pa.int64()), (SCOPE, pa.int32()), (ORDER, ORDERS),
    (BODY, pa.binary()),
])  # fmt: skip


def body_column(scope: int) -> str:
    """The column with the fields of bodies of a scope, by its number."""
    return f"s{scope}"
