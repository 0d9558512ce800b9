"""Bring large lookup tables to the machines of tasks: once, as files that tasks map into their memory."""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

from penstock.endpoints.lookup import LookupTable
from penstock.errors import BadMachine
from penstock.patterns.enrich import EnrichFromTable
from penstock.plan.plan import Plan, Stage
from penstock.spark.master import is_local
from penstock.spark.ship import kept_directory

_files: weakref.WeakKeyDictionary[SparkContext, weakref.WeakKeyDictionary[LookupTable, str]]
_files = weakref.WeakKeyDictionary()


def sent(spark: SparkSession, plan: Plan) -> Plan:
    """The plan with its large tables in files that every task finds; small tables travel with the plan."""

    def moved(stage: Stage) -> Stage:
        node = stage.node
        if not isinstance(node, EnrichFromTable) or node.table.is_small:
            return stage
        table = node.table.in_file(_file(spark.sparkContext, node.table))
        return replace(stage, node=replace(node, table=table))

    return replace(plan, routes=tuple(replace(route, stages=tuple(map(moved, route.stages))) for route in plan.routes))


def _file(context: SparkContext, table: LookupTable) -> Callable[[], str]:
    """A function that returns, in a task, the path of the table's file."""
    known = _files.setdefault(context, weakref.WeakKeyDictionary())
    local = is_local(str(context.master))
    if table not in known:
        known[table] = path = _written(table)
        if local:
            weakref.finalize(table, _remove, path)
        else:
            context.addFile(path)
    return partial(os.path.abspath, known[table]) if local else partial(SparkFiles.get, os.path.basename(known[table]))


def _written(table: LookupTable) -> str:
    path = os.path.join(kept_directory(), f"table-{uuid.uuid4().hex}.arrow")
    try:
        table.searchable.write(path)
    except OSError as error:
        _remove(path)
        raise BadMachine(f"cannot write the table {table} to {path}: {error}", None,
                         "set TMPDIR to a directory with room for it") from None  # fmt: skip
    return path


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
