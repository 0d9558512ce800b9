"""The workloads in the SQL of DuckDB: each query makes rows (body, channel) from the view `messages` of lines.

What is not routed by a field carries `msgId` as a third column: else the engine would leave the decoding out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.bench.peers.fields import FLOATS, HEAD, KEPT, MIDDLE, NESTED, NUMBERS, ORDER, SIMPLE, TAIL, TRANSLATION
from penstock.bench.peers.protocol import Job, Missing

MULTI = {
    "customer": {"CNATIONKEY": "BIGINT", "CACCTBAL": "DOUBLE"},
    "nations": [{"NNATIONKEY": "BIGINT", "NREGIONKEY": "BIGINT"}],
}
CHEAP = "OTOTALPRICE < 100000"
CHOSEN = f"({CHEAP} AND OORDERPRIORITY = '3-MEDIUM' AND OORDERDATE < '1995-01-01') OR OORDERSTATUS = 'P'"
EUROPE = "len(list_filter(nations, lambda n: n.NNATIONKEY = customer.CNATIONKEY AND n.NREGIONKEY = 3)) > 0 \
AND customer.CACCTBAL > 0"
FIRST = f"""CASE WHEN {CHEAP} THEN 'cheap' WHEN OORDERPRIORITY = '3-MEDIUM' THEN 'medium'
WHEN OORDERDATE < '1995-01-01' THEN 'old' WHEN OORDERSTATUS = 'P' THEN 'pending' ELSE 'rest' END"""
PRIORITY, STATUS = "'priority-' || OORDERPRIORITY[1]", "'status-' || OORDERSTATUS"


def query_of(name: str, job: Job) -> str:
    """The query of a workload, or Missing."""
    if name in QUERIES:
        return QUERIES[name]
    if name.startswith("LB-"):
        return f"SELECT line AS body, 'route-' || (row_number() OVER () % {job.size} + 1) AS channel, msgId FROM {ID}"
    if name.startswith("JR-"):
        return f"SELECT line AS body, 'out' AS channel, msgId % {job.size} AS route FROM {ID}"
    if name.startswith("MDS-2-"):
        return f"""SELECT line AS body, 'out' AS channel FROM {decoded("group", "position")}
        QUALIFY count(*) OVER (PARTITION BY "group") = {job.size} ORDER BY "group", position"""
    if name.startswith("LBSpAggJR-"):
        routed = f"(SELECT *, row_number() OVER () % {job.size} AS route FROM {ORDERS})"
        return united(entries(routed, "route"), ("route", "msgId"), ORDER)
    if name.startswith("MDS-1-"):
        raise Missing("a query that fails fails as a whole: SQL cannot try one row again")
    raise Missing(f"there is no query for {job.workload!r}")


def decoded(*names: str) -> str:
    """The lines with the fields of these names."""
    return shaped({name: type_of(name) for name in names})


def shaped(shape: Mapping[str, Any]) -> str:
    return f"(SELECT line, unnest(from_json(line, '{json.dumps(shape)}')) FROM messages)"


def type_of(name: str) -> str:
    if name in FLOATS:
        return "DOUBLE"
    return "BIGINT" if name in {*NUMBERS, "order", "group", "position"} else "VARCHAR"


def text_of(name: str) -> str:
    return f"{name}::DECIMAL(18, 2)" if name in FLOATS else name


def routed(source: str, channel: str) -> str:
    return f"SELECT line AS body, {channel} AS channel FROM {source}"


def branch(condition: str, yes: str) -> str:
    return f"CASE WHEN {condition} THEN '{yes}' ELSE 'rest' END"


def struct(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {value}" for name, value in values.items()) + "}"


def encoded(values: Mapping[str, str]) -> str:
    return f"to_json({struct(values)})::VARCHAR"


def columns(names: Sequence[str]) -> dict[str, str]:
    return {name: f'"{name}"' for name in names}


def changed(source: str, values: Mapping[str, str]) -> str:
    return f"SELECT {encoded(values)} AS body, 'out' AS channel FROM {source}"


def split(parts: Sequence[Sequence[str]]) -> str:
    bodies = ", ".join(encoded(columns(names)) for names in parts)
    return f"SELECT unnest([{bodies}]) AS body, 'out' AS channel FROM {ORDERS}"


def multicast(channels: int) -> str:
    names = ", ".join(f"'out-{number + 1}'" for number in range(channels))
    return f"SELECT line AS body, unnest([{names}]) AS channel, msgId FROM {ID}"


def aggregated(size: int) -> str:
    # The orders are JSON already: put together as text they are encoded as well as by a function, and sooner.
    return f"""SELECT '{{"orders":[' || string_agg(line, ',' ORDER BY msgId) || ']}}' AS body, 'out' AS channel
    FROM {ID} GROUP BY msgId // {size}"""


def united(source: str, keys: Sequence[str], names: Sequence[str]) -> str:
    """The fields of all messages of a key in one."""
    key = ", ".join(f'"{name}"' for name in keys)
    fields = ", ".join(f'any_value("{name}") AS "{name}"' for name in names if name not in keys)
    return changed(f"(SELECT {key}, {fields} FROM {source} GROUP BY {key})", columns(names))


def fields(source: str) -> str:
    """The messages of SP-A before they are encoded: the key, and one of eleven columns."""
    rows = [_row((), name, ()) for name in ORDER]
    return f'(SELECT msgId AS "key", unnest([{", ".join(rows)}], recursive := true) FROM {source})'


def entries(source: str, *keys: str) -> str:
    """The messages of SP-B before they are encoded: one of the six columns in the middle, and the others."""
    rows = [_row(HEAD, name, TAIL) for name in MIDDLE]
    return f"(SELECT {''.join(f'{key}, ' for key in keys)}unnest([{', '.join(rows)}], recursive := true) FROM {source})"


def _row(head: Sequence[str], name: str, tail: Sequence[str]) -> str:
    filled = {*head, name, *tail}
    return struct({field: field if field in filled else "NULL" for field in ORDER})


def enriched(values: Mapping[str, str]) -> str:
    table = f"(SELECT CCUSTKEY, {', '.join(NESTED)} FROM customers)"
    return changed(f"{ORDERS} LEFT JOIN {table} ON OCUSTKEY = CCUSTKEY", values)


ID = decoded("msgId")
ORDERS = decoded(*ORDER)
RATED = decoded("OTOTALPRICE", "OORDERPRIORITY", "OORDERDATE", "OORDERSTATUS")
CUSTOMER = struct(columns(NESTED))
ONCE = f"SELECT first(line) AS body, 'out' AS channel FROM {ID} GROUP BY msgId"
QUERIES = {
    "BL": f"SELECT line AS body, 'out' AS channel, msgId FROM {ID}",
    "RT-1-A": routed(decoded("OTOTALPRICE"), branch(CHEAP, "cheap")),
    "RT-1-B": routed(RATED, FIRST),
    "RT-1-C": routed(RATED, branch(CHOSEN, "chosen")),
    "RT-1-A-filter": routed(decoded("OTOTALPRICE"), "'out'") + f" WHERE {CHEAP}",
    "RT-2-D": routed(shaped(MULTI), branch(EUROPE, "europe")),
    "RT-2-D-filter": routed(shaped(MULTI), "'out'") + f" WHERE {EUROPE}",
    "RT-3-A": multicast(1),
    "RT-3-B": multicast(4),
    "RT-4-A": routed(decoded("OORDERPRIORITY"), PRIORITY),
    "RT-4-B": routed(decoded("OORDERPRIORITY", "OORDERSTATUS"), f"unnest([{PRIORITY}, {STATUS}])"),
    "RT-5-A": "SELECT unnest(json_extract(line, '$.orders[*]'))::VARCHAR AS body, 'out' AS channel FROM messages",
    "RT-5-B": split([[name] for name in ORDER]),
    "RT-5-C": split([[*HEAD, name, *TAIL] for name in MIDDLE]),
    "RT-6-A": aggregated(10),
    "RT-6-B": aggregated(100),
    "MT-1-A": changed(decoded(*TRANSLATION.values()), TRANSLATION),
    "MT-2-A": changed(decoded(*KEPT), columns(KEPT)),
    "MT-3-A": enriched(columns([*ORDER, *SIMPLE])),
    "MT-3-B": enriched({**columns(ORDER), "customer": CUSTOMER}),
    "MT-3-C": enriched(
        {"msgId": "msgId", "type": "'MULTI'", "order": struct(columns(ORDER[2:])), "customer": CUSTOMER}
    ),
    "MDS-3-A": ONCE,
    "MDS-3-B": ONCE,
    "AGG-A": united(decoded("order", *ORDER), ("order",), ("order", *ORDER)),
    "AGG-B": united(ORDERS, ("msgId",), ORDER),
    "CE-A": changed(ORDERS, {**columns(ORDER), **{f"{name}_copy": f"{text_of(name)} || '-copy'" for name in ORDER}}),
    "SpAgg-A": united(fields(ORDERS), ("key",), ORDER),
    "SpAgg-B": united(entries(ORDERS), ("msgId",), ORDER),
}
