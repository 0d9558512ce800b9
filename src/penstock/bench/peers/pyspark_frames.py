"""The workloads as DataFrames, as one writes them by hand: columns `value` and `channel` from the lines of some files.

What is not routed by a field carries `msgId` as a third column: else Spark would leave the decoding out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.bench.peers.fields import FLOATS, HEAD, KEPT, MIDDLE, NESTED, NUMBERS, ORDER, SIMPLE, TAIL, TRANSLATION
from penstock.bench.peers.protocol import Job, Missing

Frame = Callable[[DataFrame], DataFrame]


def frame_of(name: str, job: Job, customers: Callable[[], DataFrame]) -> Frame:
    """What makes the frame of a workload from the lines, or Missing."""
    if name in FRAMES:
        return FRAMES[name]
    if name in ENRICHED:
        table = customers()
        return lambda lines: enriched(lines, table, ENRICHED[name]())
    if name.startswith("MDS-1-"):
        raise Missing("Spark tries a task again, not a message; that would be a loop in a function of one's own")
    for prefix, frame in SIZED.items():
        if name.startswith(prefix):
            return lambda lines: frame(lines, job.size)
    raise Missing(f"there is no DataFrame for {job.workload!r}")


def channels_of(name: str) -> tuple[str, ...]:
    """The channels of a workload, for counting."""
    if name.startswith("LB-"):
        return tuple(f"route-{number + 1}" for number in range(int(name[3:])))
    return CHANNELS.get(name, ("out",))


def schema(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}` {type_of(name)}" for name in names)


def type_of(name: str) -> str:
    if name in FLOATS:
        return "DOUBLE"
    return "BIGINT" if name in {*NUMBERS, "order", "group", "position"} else "STRING"


def decoded(lines: DataFrame, *names: str) -> DataFrame:
    """The lines with the fields of these names."""
    return shaped(lines, schema(names))


def shaped(lines: DataFrame, fields: str) -> DataFrame:
    return lines.select("value", F.from_json("value", fields).alias("message")).select("value", "message.*")


def rated(lines: DataFrame) -> DataFrame:
    return decoded(lines, "OTOTALPRICE", "OORDERPRIORITY", "OORDERDATE", "OORDERSTATUS")


def multi(lines: DataFrame) -> DataFrame:
    customer = "customer STRUCT<CNATIONKEY: BIGINT, CACCTBAL: DOUBLE>"
    return shaped(lines, f"{customer}, nations ARRAY<STRUCT<NNATIONKEY: BIGINT, NREGIONKEY: BIGINT>>")


def routed(frame: DataFrame, channel: Column, *more: str) -> DataFrame:
    return frame.select("value", channel.alias("channel"), *more)


def changed(frame: DataFrame, value: Column) -> DataFrame:
    return frame.select(value.alias("value"), F.lit("out").alias("channel"))


def is_cheap() -> Column:
    return F.col("OTOTALPRICE") < 100_000


def is_medium() -> Column:
    return F.col("OORDERPRIORITY") == "3-MEDIUM"


def is_old() -> Column:
    return F.col("OORDERDATE") < "1995-01-01"


def is_pending() -> Column:
    return F.col("OORDERSTATUS") == "P"


def is_chosen() -> Column:
    return (is_cheap() & is_medium() & is_old()) | is_pending()


def is_european() -> Column:
    def fits(nation: Column) -> Column:
        return (nation["NNATIONKEY"] == F.col("customer.CNATIONKEY")) & (nation["NREGIONKEY"] == 3)

    return (F.col("customer.CACCTBAL") > 0) & F.exists("nations", fits)


def first_of_five() -> Column:
    tests = {"medium": is_medium(), "old": is_old(), "pending": is_pending()}
    channel = F.when(is_cheap(), "cheap")
    for name, test in tests.items():
        channel = channel.when(test, name)
    return channel.otherwise("rest")


def priority() -> Column:
    return F.concat(F.lit("priority-"), F.substring("OORDERPRIORITY", 1, 1))


def status() -> Column:
    return F.concat(F.lit("status-"), "OORDERSTATUS")


def multicast(lines: DataFrame, channels: int) -> DataFrame:
    names = F.array(*[F.lit(f"out-{number + 1}") for number in range(channels)])
    return routed(decoded(lines, "msgId"), F.explode(names), "msgId")


def split_collection(lines: DataFrame) -> DataFrame:
    # As text each order is taken over as it is; as a struct it would be decoded and encoded field by field.
    orders = F.from_json("value", "orders ARRAY<STRING>")["orders"]
    return changed(lines, F.explode(orders))


def split(lines: DataFrame, parts: Sequence[Sequence[str]]) -> DataFrame:
    bodies = [F.to_json(F.struct(*names)) for names in parts]
    return changed(decoded(lines, *ORDER), F.explode(F.array(*bodies)))


def aggregated(lines: DataFrame, size: int) -> DataFrame:
    messages = F.sort_array(F.collect_list(F.struct("msgId", "value"))).alias("messages")
    groups = decoded(lines, "msgId").groupBy(F.expr(f"msgId div {size}")).agg(messages)
    # The orders are JSON already: put together as text they need not be decoded to be encoded again.
    return changed(groups, F.concat(F.lit('{"orders":['), F.array_join("messages.value", ","), F.lit("]}")))


def resequenced(lines: DataFrame, size: int) -> DataFrame:
    sequence = Window.partitionBy("group").orderBy("position")
    whole = sequence.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    counted = decoded(lines, "group", "position").withColumn("size", F.count("*").over(whole))
    complete = counted.where(F.col("size") == size).sortWithinPartitions("group", "position")
    return routed(complete, F.lit("out"))


def once(lines: DataFrame) -> DataFrame:
    return routed(decoded(lines, "msgId").dropDuplicates(["msgId"]), F.lit("out"))


def united(parts: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """The fields of all messages of a key in one."""
    fields = [F.first(name, ignorenulls=True).alias(name) for name in names if name not in keys]
    return changed(parts.groupBy(*keys).agg(*fields), F.to_json(F.struct(*names)))


def fields(orders: DataFrame) -> DataFrame:
    """The messages of SP-A before they are encoded: the key, and one of eleven columns."""
    rows = [_row((), name, ()) for name in ORDER]
    return orders.select(F.col("msgId").alias("key"), F.inline(F.array(*rows)))


def entries(orders: DataFrame, *keys: str) -> DataFrame:
    """The messages of SP-B before they are encoded: one of the six columns in the middle, and the others."""
    rows = [_row(HEAD, name, TAIL) for name in MIDDLE]
    return orders.select(*keys, F.inline(F.array(*rows)))


def _row(head: Sequence[str], name: str, tail: Sequence[str]) -> Column:
    filled = {*head, name, *tail}
    values = [F.col(field) if field in filled else F.lit(None).cast(type_of(field)).alias(field) for field in ORDER]
    return F.struct(*values)


def round_robin(routes: int) -> Column:
    return F.monotonically_increasing_id() % routes + 1


def balanced(lines: DataFrame, routes: int) -> DataFrame:
    return routed(decoded(lines, "msgId"), F.concat(F.lit("route-"), round_robin(routes)), "msgId")


def joined(lines: DataFrame, routes: int) -> DataFrame:
    frame = decoded(lines, "msgId").withColumn("route", F.col("msgId") % routes)
    return routed(frame, F.lit("out"), "route")


def balanced_entries(lines: DataFrame, routes: int) -> DataFrame:
    orders = decoded(lines, *ORDER).withColumn("route", round_robin(routes))
    return united(entries(orders, "route"), ("route", "msgId"), ORDER)


def enriched(lines: DataFrame, customers: DataFrame, value: Column) -> DataFrame:
    table = F.broadcast(customers.select("CCUSTKEY", *NESTED))
    orders = decoded(lines, *ORDER)
    return changed(orders.join(table, orders["OCUSTKEY"] == table["CCUSTKEY"], "left"), F.to_json(value))


def two_formats() -> Column:
    order, customer = F.struct(*ORDER[2:]).alias("order"), F.struct(*NESTED).alias("customer")
    return F.struct("msgId", F.lit("MULTI").alias("type"), order, customer)


def translated(lines: DataFrame) -> DataFrame:
    values = [F.col(name).alias(target) for target, name in TRANSLATION.items()]
    return changed(decoded(lines, *TRANSLATION.values()), F.to_json(F.struct(*values)))


def copied(lines: DataFrame) -> DataFrame:
    texts = {name: F.col(name).cast("decimal(18, 2)") if name in FLOATS else F.col(name) for name in ORDER}
    copies = [F.concat(text.cast("string"), F.lit("-copy")).alias(f"{name}_copy") for name, text in texts.items()]
    return changed(decoded(lines, *ORDER), F.to_json(F.struct(*ORDER, *copies)))


def branch(test: Column, yes: str) -> Column:
    return F.when(test, yes).otherwise("rest")


ENRICHED: Mapping[str, Callable[[], Column]] = {
    "MT-3-A": lambda: F.struct(*ORDER, *SIMPLE),
    "MT-3-B": lambda: F.struct(*ORDER, F.struct(*NESTED).alias("customer")),
    "MT-3-C": two_formats,
}
SIZED: Mapping[str, Callable[[DataFrame, int], DataFrame]] = {
    "MDS-2-": resequenced, "LB-": balanced, "JR-": joined, "LBSpAggJR-": balanced_entries,
}  # fmt: skip
_PRIORITIES = tuple(f"priority-{number}" for number in range(1, 6))
CHANNELS: Mapping[str, tuple[str, ...]] = {
    "RT-1-A": ("cheap", "rest"),
    "RT-1-B": ("cheap", "medium", "old", "pending", "rest"),
    "RT-1-C": ("chosen", "rest"),
    "RT-2-D": ("europe", "rest"),
    "RT-3-A": ("out-1",),
    "RT-3-B": ("out-1", "out-2", "out-3", "out-4"),
    "RT-4-A": _PRIORITIES,
    "RT-4-B": (*_PRIORITIES, "status-F", "status-O", "status-P"),
}
FRAMES: Mapping[str, Frame] = {
    "BL": lambda lines: routed(decoded(lines, "msgId"), F.lit("out"), "msgId"),
    "RT-1-A": lambda lines: routed(decoded(lines, "OTOTALPRICE"), branch(is_cheap(), "cheap")),
    "RT-1-B": lambda lines: routed(rated(lines), first_of_five()),
    "RT-1-C": lambda lines: routed(rated(lines), branch(is_chosen(), "chosen")),
    "RT-1-A-filter": lambda lines: routed(decoded(lines, "OTOTALPRICE").where(is_cheap()), F.lit("out")),
    "RT-2-D": lambda lines: routed(multi(lines), branch(is_european(), "europe")),
    "RT-2-D-filter": lambda lines: routed(multi(lines).where(is_european()), F.lit("out")),
    "RT-3-A": lambda lines: multicast(lines, 1),
    "RT-3-B": lambda lines: multicast(lines, 4),
    "RT-4-A": lambda lines: routed(decoded(lines, "OORDERPRIORITY"), priority()),
    "RT-4-B": lambda lines: routed(
        decoded(lines, "OORDERPRIORITY", "OORDERSTATUS"), F.explode(F.array(priority(), status()))
    ),
    "RT-5-A": split_collection,
    "RT-5-B": lambda lines: split(lines, [[name] for name in ORDER]),
    "RT-5-C": lambda lines: split(lines, [[*HEAD, name, *TAIL] for name in MIDDLE]),
    "RT-6-A": lambda lines: aggregated(lines, 10),
    "RT-6-B": lambda lines: aggregated(lines, 100),
    "MT-1-A": translated,
    "MT-2-A": lambda lines: changed(decoded(lines, *KEPT), F.to_json(F.struct(*KEPT))),
    "MDS-3-A": once,
    "MDS-3-B": once,
    "AGG-A": lambda lines: united(decoded(lines, "order", *ORDER), ("order",), ("order", *ORDER)),
    "AGG-B": lambda lines: united(decoded(lines, *ORDER), ("msgId",), ORDER),
    "CE-A": copied,
    "SpAgg-A": lambda lines: united(fields(decoded(lines, *ORDER)), ("key",), ORDER),
    "SpAgg-B": lambda lines: united(entries(decoded(lines, *ORDER)), ("msgId",), ORDER),
}
