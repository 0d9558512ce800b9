"""Tables on a PostgreSQL server: checked when a run starts, loaded in one transaction with the number of the batch."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from penstock.endpoints.postgres import Postgres
from penstock.errors import BadEndpoint, BadMachine, BadSchema
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Scalar
from penstock.spark.write.intent import KEPT_INTENTS, StagedFile
from penstock.spark.write.outlets import DEAD_LETTERS, POSITION, Target

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

PATIENCE_SECONDS = 10.0
MARKERS = "penstock_batches"
_STAGED, _ROW = "penstock_staged", "penstock_row"
_BIG, _TEXT, _JSON, _TIME = "bigint", "text", "jsonb", "timestamp with time zone"
_TYPES = {INTEGER: _BIG, DOUBLE: "double precision", BOOLEAN: "boolean", STRING: _TEXT}
# The types of a table's column that can hold every value of ours.
_HOLDS = {
    "integer": ("integer", _BIG, "numeric"), _BIG: (_BIG, "numeric"), _TEXT: (_TEXT, "character varying"),
    _JSON: (_JSON, "json", _TEXT),
}  # fmt: skip
_ADDED = {"_id": _TEXT, "_time": _TIME, "_parent": _TEXT, "_index": _BIG, "_count": _BIG, "_headers": _JSON}
_DEAD = {
    **dict.fromkeys(("route", "step", "error", "reason", "id", "topic", "parent", "encoding"), _TEXT),
    "attempt": "integer", "time": _TIME, "partition": "integer", "offset": _BIG, "index": _BIG, "count": _BIG,
    "headers": _JSON, "attachments": _JSON, "body": "bytea",
}  # fmt: skip
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef AND attidentity = ''
    FROM pg_attribute WHERE attrelid = to_regclass({name}) AND attnum > 0 AND NOT attisdropped
"""
_UNIQUE = """
    SELECT array_to_string(array(SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY(indkey)
                                 ORDER BY attname), ', ')
    FROM pg_index WHERE indrelid = to_regclass({name}) AND indisunique AND indpred IS NULL AND indexprs IS NULL
"""


def prepare(targets: Iterable[Target]) -> None:
    """Make the tables that are not there, and refuse those that messages do not fit into, before anything runs."""
    for target in targets:
        if target.table is not None:
            with _connected(target.table) as cursor:
                _prepare(cursor, target, target.table)


def load(files: list[StagedFile], target: Target, key: str) -> None:
    """The rows of a batch and its marker, in one transaction; nothing if the marker is there already."""
    if not files:
        return
    assert target.table is not None
    batch = _Batch.of(key)
    with _connected(target.table) as cursor:
        table = _Table.of(target.table)
        cursor.execute("SET LOCAL synchronous_commit = on")
        if not _marked(cursor, table, target.channel, batch, sum(file.rows for file in files)):
            return
        missing = [file.path for file in files if not os.path.exists(file.path)]
        if missing:
            raise BadEndpoint(f"batch {key} was computed for {target.table}, but {missing[0]} is not there",
                              fix="restore it, or start with a new checkpoint")  # fmt: skip
        _insert(cursor, table, files, _columns(target), target.table)


@dataclass(frozen=True)
class _Batch:
    """A batch of a stream, or the only one of a run."""

    stream: str
    number: int

    @classmethod
    def of(cls, key: str) -> _Batch:
        stream, _, number = key.rpartition("-")
        return cls(stream, int(number)) if number.isdecimal() and len(number) == 9 else cls(key, 0)


@dataclass(frozen=True)
class _Table:
    """Names as SQL has them."""

    name: str
    markers: str

    @classmethod
    def of(cls, sink: Postgres) -> _Table:
        *schema, _ = parts = sink.table.split(".")
        return cls(".".join(map(quoted, parts)), ".".join(map(quoted, [*schema, MARKERS])))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(target: Target) -> dict[str, str]:
    """The columns of a sink and their types, but for the position."""
    if target.dead:
        return _DEAD
    fields = target.format.schema.fields
    return {name: _TYPES.get(kind, _JSON) if isinstance(kind, Scalar) else _JSON for name, kind in fields} | _ADDED


def _prepare(cursor: Cursor, target: Target, sink: Postgres) -> None:
    table, wanted = _Table.of(sink), _columns(target)
    cursor.execute(
        f"CREATE TABLE IF NOT EXISTS {table.markers} (stream text, channel text, batch bigint, rows bigint, "
        "published timestamptz DEFAULT now(), PRIMARY KEY (stream, channel, batch))"
    )
    there = _there(cursor, table)
    if not there:
        columns = [f"{quoted(name)} {kind}" for name, kind in wanted.items()]
        columns.append(f"{quoted(POSITION)} bigint GENERATED BY DEFAULT AS IDENTITY")
        if sink.key:
            columns.append(f"UNIQUE ({', '.join(map(quoted, sink.key))})")
        cursor.execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        return
    fields = [name for name in wanted if target.dead or name not in _ADDED]
    for name in fields:
        if name not in there:
            raise BadSchema(f"table {sink.table!r} has no column {name!r} for {_called(target)}",
                            fix=f"add it: ALTER TABLE {table.name} ADD {quoted(name)} {wanted[name]}")  # fmt: skip
    for name, (kind, is_needed) in there.items():
        accepted = _HOLDS.get(wanted.get(name, kind), (wanted.get(name, kind),))
        if kind not in accepted:
            raise BadSchema(f"column {name!r} of table {sink.table!r} is {kind}, and {_called(target)} needs "
                            f"{wanted[name]}", fix=f"make it {' or '.join(accepted)}, or name another table",
                            )  # fmt: skip
        if is_needed and name not in wanted:
            raise BadSchema(f"column {name!r} of table {sink.table!r} must have a value, and messages have none for it",
                            fix="give it a default, or let it be null")  # fmt: skip
    cursor.execute(_UNIQUE.format(name=_literal(table.name)))
    if sink.key and ", ".join(sorted(sink.key)) not in [row[0] for row in cursor.fetchall()]:
        names = ", ".join(map(quoted, sink.key))
        raise BadSchema(f"table {sink.table!r} has no unique index on {', '.join(sink.key)}",
                        fix=f"make one: CREATE UNIQUE INDEX ON {table.name} ({names})")  # fmt: skip


def _called(target: Target) -> str:
    return f"channel {target.channel!r}" if target.channel != DEAD_LETTERS else "the dead-letter channel"


def _there(cursor: Cursor, table: _Table) -> dict[str, tuple[str, bool]]:
    """The columns of the table: their types, and whether they must be given a value."""
    cursor.execute(_COLUMNS.format(name=_literal(table.name)))
    return {name: (kind, is_needed) for name, kind, is_needed in cursor.fetchall()}


def _marked(cursor: Cursor, table: _Table, channel: str, batch: _Batch, rows: int) -> bool:
    """Whether the batch is new here. If another process is loading it, this waits for its end."""
    stream, where = _literal(batch.stream), _literal(channel)
    cursor.execute(
        f"INSERT INTO {table.markers} (stream, channel, batch, rows) VALUES ({stream}, {where}, {batch.number}, {rows})"
        " ON CONFLICT DO NOTHING RETURNING batch"
    )
    if cursor.fetchone() is None:
        return False
    cursor.execute(f"DELETE FROM {table.markers} WHERE stream = {stream} AND channel = {where} "
                   f"AND batch <= {batch.number - KEPT_INTENTS}")  # fmt: skip
    return True


def _insert(
    cursor: Cursor, table: _Table, files: list[StagedFile], columns: dict[str, str], sink: Postgres
) -> None:  # fmt: skip
    """Copy into a table of this transaction, then insert in order: so types are converted and keys may be replaced."""
    there = _there(cursor, table)
    carried = {name: _TEXT if kind == _JSON else kind for name, kind in columns.items()} | {_ROW: _BIG}
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in carried.items())
    cursor.execute(f"CREATE TEMPORARY TABLE {_STAGED} ({listed}) ON COMMIT DROP")
    cursor.adbc_ingest(_STAGED, _reader(files), mode="append", temporary=True)
    kept = [name for name in columns if name in there]
    names = ", ".join(map(quoted, kept))
    values = ", ".join(f"{quoted(name)}::{there[name][0]}" if columns[name] == _JSON else quoted(name) for name in kept)
    source, conflict = _STAGED, ""
    if sink.key:
        keys = ", ".join(map(quoted, sink.key))
        no_key = " OR ".join(f"{quoted(name)} IS NULL" for name in sink.key)
        # Of rows with one key the last wins; rows without a key are all different.
        apart = f"{keys}, CASE WHEN {no_key} THEN {_ROW} END"
        source = f"(SELECT DISTINCT ON ({apart}) * FROM {_STAGED} ORDER BY {apart}, {_ROW} DESC) AS latest"
        changed = [name for name in (*kept, POSITION) if name in there and name not in sink.key]
        changes = ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in changed)
        conflict = f" ON CONFLICT ({keys}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
    cursor.execute(f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {source} ORDER BY {_ROW}{conflict}")


def _reader(files: list[StagedFile]) -> pa.RecordBatchReader:
    """The rows of all files, numbered in the order of their tasks."""
    schema = pyarrow.parquet.read_schema(files[0].path).append(pa.field(_ROW, pa.int64()))

    def batches() -> Iterator[pa.RecordBatch]:
        row = 0
        for file in files:
            with pyarrow.parquet.ParquetFile(file.path) as opened:
                for batch in opened.iter_batches():
                    numbers = pa.array(range(row, row + len(batch)), pa.int64())
                    row += len(batch)
                    yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


@contextmanager
def _connected(sink: Postgres) -> Iterator[Cursor]:
    """A cursor in one transaction: kept if the block ends well, else undone."""
    driver = _driver()
    connection = _connect(driver, sink)
    try:
        with connection.cursor() as cursor:
            yield cursor
        connection.commit()
    except driver.Error as error:
        raise BadEndpoint(f"PostgreSQL refused table {sink.table!r} at {sink.address}: {_said(error, sink)}",
                          fix="mend the table or the server and start again: what was computed is not lost",
                          ) from None  # fmt: skip
    finally:
        connection.close()


def _connect(driver: Any, sink: Postgres) -> Connection:
    """A connection; a server that is just starting is waited for."""
    url, deadline, pause = sink.full_url(), time.monotonic() + PATIENCE_SECONDS, 0.1
    while True:
        try:
            return driver.connect(url)  # type: ignore[no-any-return]
        except driver.Error as error:
            said = _said(error, sink)
            # A wrong password or a missing database will not change by waiting.
            if time.monotonic() + pause > deadline or ("FATAL" in said and "starting up" not in said):
                raise BadEndpoint(f"no connection to PostgreSQL for table {sink.table!r} at {sink.address}: {said}",
                                  fix="check that the server runs, the url, and the user's password",
                                  ) from None  # fmt: skip
        time.sleep(pause)
        pause = min(pause * 2, 1.0)


def _said(error: Exception, sink: Postgres) -> str:
    """The server's words on one line, without the password."""
    return sink.hide(" ".join(str(error).removeprefix("IO: ").split()))


def _driver() -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise BadMachine("PostgreSQL sinks need the package adbc-driver-postgresql",
                         fix="pip install 'penstock[postgres]'") from None  # fmt: skip
    return dbapi
