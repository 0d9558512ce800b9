"""An aggregator between two jobs: which one, and what the tasks of both must know of it.

The tasks that read write the bodies of its messages, in their order, to a file each; a task of the second job finds
the messages of its bucket of keys in all of them and makes the groups.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.endpoints.files import Files, find_files
from penstock.expr.nodes import Expr
from penstock.expr.values import value_type
from penstock.expr.variant import bind
from penstock.formats.written import NewBody
from penstock.patterns.aggregate import PARTS, REOPEN, Aggregate
from penstock.patterns.key import FLUSH
from penstock.patterns.strategy import Collect
from penstock.plan.plan import Plan, Stage
from penstock.plan.written import is_only_delivered, plain_fields
from penstock.schema import DOUBLE
from penstock.spark.master import is_local

LARGEST_GATHERED = 4 << 30
"""Bytes of the files: messages of one key are in one bucket, and a bucket is in memory."""


@dataclass(frozen=True)
class Gathering:
    """`before` and `after` are what stands around the bodies of a group, `size` is how many it has, or None for all."""

    stage: Stage
    keys: tuple[Expr, ...]
    size: int | None
    member: NewBody
    before: bytes
    after: bytes


def gathered(plan: Plan) -> Gathering | None:
    """The one step that remembers, if it only collects whole bodies by a simple key.

    In a run over files nothing was there before and nothing comes after it: time-outs do not matter, and what is not
    complete goes on at the end.
    """
    found = [stage for stage in plan.stages() if stage.node.stateful]
    if len(found) != 1 or not isinstance(node := found[0].node, Aggregate) or not _is_simple(node):
        return None
    body = found[0].scope.schema
    keys, names = tuple(bind(key, body) for key in node.by), plain_fields(body)
    known = bool(keys) and all(value_type(key, body) not in (None, DOUBLE) for key in keys)
    match node.strategy:
        case Collect(into, None, (), ()) if known and names and is_only_delivered(plan, found[0].after):
            before = b"{%s:[" % json.dumps(into, ensure_ascii=False).encode()
            size = node.size if isinstance(node.size, int) else None
            return Gathering(found[0], keys, size, NewBody(tuple((name, (name,)) for name in names)), before, b"]}")
    return None


def _is_simple(node: Aggregate) -> bool:
    complete = node.when is None and not node.new_group and node.size != PARTS
    return complete and node.closed == REOPEN and (node.batch_end or node.on_stop in (None, FLUSH))


def is_small(plan: Plan, spark: SparkSession) -> bool:
    """Whether all tasks see the same files, and a bucket fits into memory whatever the keys are."""
    sources = [entry.source.path for entry in plan.entries if isinstance(entry.source, Files)]
    if len(sources) < len(plan.entries) or not is_local(spark.sparkContext.master or ""):
        return False
    return sum(os.path.getsize(path) for source in sources for path in find_files(source)) <= LARGEST_GATHERED
