"""The workloads as lazy frames of Polars: each makes columns `body` and `channel` from the lines of some files.

What is not routed by a field carries `msgId` as a third column: else the engine would leave the decoding out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from polars import LazyFrame, col, lit

from penstock.bench.peers.fields import FLOATS, HEAD, KEPT, MIDDLE, NESTED, NUMBERS, ORDER, SIMPLE, TAIL, TRANSLATION
from penstock.bench.peers.protocol import Job, Missing

Frame = Callable[[], LazyFrame]
OUT = lit("out")


def frame_of(name: str, job: Job) -> Frame:
    """What makes the frame of a workload, or Missing."""
    if name in FRAMES:
        return lambda: FRAMES[name](lines_of(job))
    if name in ENRICHED:
        customers = pl.read_ndjson([*job.tables["customers"]])
        return lambda: enriched(lines_of(job), customers.lazy(), ENRICHED[name])
    if name.startswith("MDS-1-"):
        raise Missing("a query that fails fails as a whole: an expression cannot try one row again")
    for prefix, frame in SIZED.items():
        if name.startswith(prefix):
            return lambda: frame(lines_of(job), job.size)
    raise Missing(f"there is no query for {job.workload!r}")


def lines_of(job: Job) -> LazyFrame:
    return pl.scan_lines([*job.inputs], name="line")


def type_of(name: str) -> Any:
    if name in FLOATS:
        return pl.Float64
    return pl.Int64 if name in {*NUMBERS, "order", "group", "position"} else pl.String


def shape(names: Sequence[str]) -> pl.Struct:
    return pl.Struct({name: type_of(name) for name in names})


MULTI = pl.Struct(
    {
        "customer": pl.Struct({"CNATIONKEY": pl.Int64, "CACCTBAL": pl.Float64}),
        "nations": pl.List(pl.Struct({"NNATIONKEY": pl.Int64, "NREGIONKEY": pl.Int64})),
    }
)
COLLECTION = pl.Struct({"orders": pl.List(shape(ORDER))})
CHEAP = col("OTOTALPRICE") < 100_000
MEDIUM = col("OORDERPRIORITY") == "3-MEDIUM"
OLD = col("OORDERDATE") < "1995-01-01"
PENDING = col("OORDERSTATUS") == "P"
CHOSEN = (CHEAP & MEDIUM & OLD) | PENDING
_NATION = pl.struct(NNATIONKEY=col("customer").struct.field("CNATIONKEY"), NREGIONKEY=lit(3, pl.Int64))
EUROPE = col("nations").list.contains(_NATION) & (col("customer").struct.field("CACCTBAL") > 0)
PRIORITY = lit("priority-") + col("OORDERPRIORITY").str.head(1)
STATUS = lit("status-") + col("OORDERSTATUS")
CUSTOMER = pl.struct(*NESTED)


def decoded(lines: LazyFrame, *names: str) -> LazyFrame:
    """The lines with the fields of these names."""
    return shaped(lines, shape(names))


def shaped(lines: LazyFrame, fields: pl.Struct) -> LazyFrame:
    return lines.with_columns(col("line").str.json_decode(fields).alias("message")).unnest("message")


def routed(frame: LazyFrame, channel: Any, *more: str) -> LazyFrame:
    return frame.select(col("line").alias("body"), channel.alias("channel"), *more)


def branch(condition: Any, yes: str) -> Any:
    return pl.when(condition).then(lit(yes)).otherwise(lit("rest"))


def first_of_five(lines: LazyFrame) -> LazyFrame:
    channel = pl.when(CHEAP).then(lit("cheap")).when(MEDIUM).then(lit("medium")).when(OLD).then(lit("old"))
    return routed(rated(lines), channel.when(PENDING).then(lit("pending")).otherwise(lit("rest")))


def rated(lines: LazyFrame) -> LazyFrame:
    return decoded(lines, "OTOTALPRICE", "OORDERPRIORITY", "OORDERDATE", "OORDERSTATUS")


def changed(frame: LazyFrame, *values: Any, **named: Any) -> LazyFrame:
    return frame.select(pl.struct(*values, **named).struct.json_encode().alias("body"), OUT.alias("channel"))


def multicast(lines: LazyFrame, channels: int) -> LazyFrame:
    names = pl.LazyFrame({"channel": [f"out-{number + 1}" for number in range(channels)]})
    return decoded(lines, "msgId").select("msgId", col("line").alias("body")).join(names, how="cross")


def two_recipients(lines: LazyFrame) -> LazyFrame:
    frame = decoded(lines, "OORDERPRIORITY", "OORDERSTATUS")
    return routed(frame, pl.concat_list(PRIORITY, STATUS)).explode("channel")


def split_collection(lines: LazyFrame) -> LazyFrame:
    orders = col("line").str.json_decode(COLLECTION).struct.field("orders")
    return lines.select(orders.explode()).select(col("orders").struct.json_encode().alias("body"), channel=OUT)


def split(lines: LazyFrame, parts: Sequence[Sequence[str]]) -> LazyFrame:
    bodies = [pl.struct(*names).struct.json_encode().alias(str(number)) for number, names in enumerate(parts)]
    return decoded(lines, *ORDER).select(pl.concat_list(bodies).alias("body"), channel=OUT).explode("body")


def aggregated(lines: LazyFrame, size: int) -> LazyFrame:
    # The orders are JSON already: put together as text they are encoded as well as by a function, and sooner.
    groups = decoded(lines, "msgId").group_by(col("msgId") // size).agg(col("line").sort_by("msgId"))
    return groups.select((lit('{"orders":[') + col("line").list.join(",") + lit("]}")).alias("body"), channel=OUT)


def resequenced(lines: LazyFrame, size: int) -> LazyFrame:
    messages = decoded(lines, "group", "position").filter(pl.len().over("group") == size)
    return routed(messages.sort("group", "position"), OUT)


def once(lines: LazyFrame) -> LazyFrame:
    return routed(decoded(lines, "msgId").unique("msgId", keep="first"), OUT)


def united(parts: LazyFrame, keys: Sequence[str], names: Sequence[str]) -> LazyFrame:
    """The fields of all messages of a key in one."""
    fields = [col(name).first(ignore_nulls=True) for name in names if name not in keys]
    return changed(parts.group_by(keys).agg(fields), *names)


def fields(orders: LazyFrame) -> LazyFrame:
    """The messages of SP-A before they are encoded: the key, and one of eleven columns."""
    rows = [_row((), name, ()) for name in ORDER]
    return orders.select(col("msgId").alias("key"), pl.concat_list(rows).alias("part")).explode("part").unnest("part")


def entries(orders: LazyFrame, *keys: str) -> LazyFrame:
    """The messages of SP-B before they are encoded: one of the six columns in the middle, and the others."""
    rows = [_row(HEAD, name, TAIL) for name in MIDDLE]
    return orders.select(*keys, pl.concat_list(rows).alias("part")).explode("part").unnest("part")


def _row(head: Sequence[str], name: str, tail: Sequence[str]) -> Any:
    filled = {*head, name, *tail}
    values: dict[str, Any] = {field: col(field) if field in filled else lit(None, type_of(field)) for field in ORDER}
    return pl.struct(**values).alias(name)


def numbered(lines: LazyFrame, routes: int, *names: str) -> LazyFrame:
    return decoded(lines, *names).with_row_index("route").with_columns(col("route") % routes + 1)


def balanced(lines: LazyFrame, routes: int) -> LazyFrame:
    return routed(numbered(lines, routes, "msgId"), pl.format("route-{}", col("route")), "msgId")


def joined(lines: LazyFrame, routes: int) -> LazyFrame:
    return routed(decoded(lines, "msgId").with_columns(route=col("msgId") % routes), OUT, "route")


def balanced_entries(lines: LazyFrame, routes: int) -> LazyFrame:
    return united(entries(numbered(lines, routes, *ORDER), "route"), ("route", "msgId"), ORDER)


def enriched(lines: LazyFrame, customers: LazyFrame, values: Mapping[str, Any]) -> LazyFrame:
    table = customers.select("CCUSTKEY", *NESTED)
    orders = decoded(lines, *ORDER).join(table, left_on="OCUSTKEY", right_on="CCUSTKEY", how="left")
    return changed(orders, **values)


_ALL = {name: col(name) for name in ORDER}
_TEXTS = {name: col(name).cast(pl.Decimal(18, 2)) if name in FLOATS else col(name) for name in ORDER}
_COPIES = {f"{name}_copy": value.cast(pl.String) + "-copy" for name, value in _TEXTS.items()}
ENRICHED: dict[str, dict[str, Any]] = {
    "MT-3-A": {**_ALL, **{name: col(name) for name in SIMPLE}},
    "MT-3-B": {**_ALL, "customer": CUSTOMER},
    "MT-3-C": {"msgId": col("msgId"), "type": lit("MULTI"), "order": pl.struct(*ORDER[2:]), "customer": CUSTOMER},
}
SIZED: dict[str, Callable[[LazyFrame, int], LazyFrame]] = {
    "MDS-2-": resequenced, "LB-": balanced, "JR-": joined, "LBSpAggJR-": balanced_entries,
}  # fmt: skip
FRAMES: dict[str, Callable[[LazyFrame], LazyFrame]] = {
    "BL": lambda lines: routed(decoded(lines, "msgId"), OUT, "msgId"),
    "RT-1-A": lambda lines: routed(decoded(lines, "OTOTALPRICE"), branch(CHEAP, "cheap")),
    "RT-1-B": first_of_five,
    "RT-1-C": lambda lines: routed(rated(lines), branch(CHOSEN, "chosen")),
    "RT-1-A-filter": lambda lines: routed(decoded(lines, "OTOTALPRICE").filter(CHEAP), OUT),
    "RT-2-D": lambda lines: routed(shaped(lines, MULTI), branch(EUROPE, "europe")),
    "RT-2-D-filter": lambda lines: routed(shaped(lines, MULTI).filter(EUROPE), OUT),
    "RT-3-A": lambda lines: multicast(lines, 1),
    "RT-3-B": lambda lines: multicast(lines, 4),
    "RT-4-A": lambda lines: routed(decoded(lines, "OORDERPRIORITY"), PRIORITY),
    "RT-4-B": two_recipients,
    "RT-5-A": split_collection,
    "RT-5-B": lambda lines: split(lines, [[name] for name in ORDER]),
    "RT-5-C": lambda lines: split(lines, [[*HEAD, name, *TAIL] for name in MIDDLE]),
    "RT-6-A": lambda lines: aggregated(lines, 10),
    "RT-6-B": lambda lines: aggregated(lines, 100),
    "MT-1-A": lambda lines: changed(decoded(lines, *TRANSLATION.values()), **TRANSLATION),
    "MT-2-A": lambda lines: changed(decoded(lines, *KEPT), *KEPT),
    "MDS-3-A": once,
    "MDS-3-B": once,
    "AGG-A": lambda lines: united(decoded(lines, "order", *ORDER), ("order",), ("order", *ORDER)),
    "AGG-B": lambda lines: united(decoded(lines, *ORDER), ("msgId",), ORDER),
    "CE-A": lambda lines: changed(decoded(lines, *ORDER), **_ALL, **_COPIES),
    "SpAgg-A": lambda lines: united(fields(decoded(lines, *ORDER)), ("key",), ORDER),
    "SpAgg-B": lambda lines: united(entries(decoded(lines, *ORDER)), ("msgId",), ORDER),
}
