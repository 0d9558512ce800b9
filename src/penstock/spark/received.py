"""How many messages came in, counted where they came in and not by what became of them.

A source that is read or decoded by our own Python is counted by Spark anyway: by the scan, or by the operator around
the reader or the decoder. Reading these metrics after the job is free. An observation, which any other source needs, is
not: it ends the generated code in front of it and copies every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

_RECEIVED = "received"


@dataclass(frozen=True)
class Arrival:
    """The rows of one source; `label` names what counts them, if that is our own."""

    rows: DataFrame
    label: str | None = None


def observed(arrival: Arrival) -> tuple[DataFrame, Observation | str]:
    """The rows, and what will know their number once they were read."""
    if arrival.label is not None:
        return arrival.rows, arrival.label
    observation = Observation()
    return arrival.rows.observe(observation, F.count(F.lit(1)).alias(_RECEIVED)), observation


def received(counters: Iterable[Observation | str], executed: DataFrame) -> int:
    """The messages that came in, after the job of `executed` has ended.

    A label that is not in the plan counts nothing: Spark plans no scan for what it knows to be empty.
    """
    counters = list(counters)
    labelled = _labelled(executed) if any(isinstance(counter, str) for counter in counters) else {}
    return sum(labelled.get(counter, 0) if isinstance(counter, str) else counter.get[_RECEIVED] for counter in counters)


def _labelled(executed: DataFrame) -> dict[str, int]:
    """Rows by label, of all that is ours. What a DataFrame has in its cache was counted by another job."""
    found: dict[str, int] = {}
    for node in _nodes(executed._jdf.queryExecution().executedPlan()):
        kind = node.getClass().getSimpleName()
        if kind == "BatchScanExec":
            found[node.nodeName().split()[-1]] = _metric(node, "numOutputRows")
        elif kind == "MapInArrowExec":
            found[node.func().name()] = _metric(node, "pythonNumRowsReceived")
        elif kind == "ArrowEvalPythonExec":
            for function in _listed(node.udfs()):
                found[function.name()] = _metric(node, "pythonNumRowsReceived")
    return found


def _nodes(node: Any) -> Iterator[Any]:
    kind = node.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        inner = [node.executedPlan()]
    elif kind.endswith("QueryStageExec"):
        inner = [node.plan()]
    else:
        inner = _listed(node.children())
    yield node
    for child in inner:
        yield from _nodes(child)


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _metric(node: Any, name: str) -> int:
    return int(node.metrics().apply(name).value())
