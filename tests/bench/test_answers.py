from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.bench.answers import WORKLOADS, expected
from penstock.bench.models import model_files

SCALE = 0.01
ORDER = {
    "msgId": 7, "type": "ORDERS", "OORDERKEY": 32, "OCUSTKEY": 2, "OORDERSTATUS": "O", "OTOTALPRICE": 172799.5,
    "OORDERDATE": "1995-07-16", "OORDERPRIORITY": "2-HIGH", "OCLERK": "Clerk#000000616", "OSHIPPRIORITY": 0,
    "OCOMMENT": "ully bold",
}  # fmt: skip
CUSTOMER = {
    "msgId": 1, "type": "CUSTOMER", "CCUSTKEY": 2, "CNAME": "Customer#000000002", "CADDRESS": "X", "CNATIONKEY": 13,
    "CPHONE": "23-768", "CACCTBAL": 121.65, "CMKTSEGMENT": "AUTOMOBILE", "CCOMMENT": "l accounts",
}  # fmt: skip


def order(number: int, **fields: Any) -> dict[str, Any]:
    return {**ORDER, "msgId": number, **fields}


def read(directory: Path, model: str, messages: int | None = None) -> list[dict[str, Any]]:
    files = model_files(directory, model, SCALE, messages)
    return [json.loads(line) for path in files.paths for line in path.read_bytes().splitlines()]


def numbers(workload: str, messages: list[dict[str, Any]]) -> dict[str, list[int]]:
    channels = expected(workload, messages)
    return {channel: [message["msgId"] for message in found] for channel, found in channels.items()}


def test_routers_take_the_first_case_that_is_true() -> None:
    messages = [
        order(0, OTOTALPRICE=99_999.99, OORDERSTATUS="P"),
        order(1, OTOTALPRICE=100_000.0),
        order(2, OORDERPRIORITY="3-MEDIUM", OORDERDATE="1994-12-31"),
        order(3, OORDERDATE="1994-12-31", OORDERSTATUS="P"),
        order(4, OORDERDATE="1995-01-01", OORDERSTATUS="P"),
        order(5, OTOTALPRICE=1.0, OORDERPRIORITY="3-MEDIUM", OORDERDATE="1994-12-31"),
        order(6, OTOTALPRICE=1.0, OORDERPRIORITY="3-MEDIUM", OORDERDATE="1995-01-01"),
    ]
    assert numbers("RT-1-A", messages) == {"cheap": [0, 5, 6], "rest": [1, 2, 3, 4]}
    assert numbers("RT-1-A-filter", messages) == {"out": [0, 5, 6]}
    assert numbers("RT-1-B", messages) == {"cheap": [0, 5, 6], "medium": [2], "old": [3], "pending": [4], "rest": [1]}
    assert numbers("RT-1-C", messages) == {"chosen": [0, 3, 4, 5], "rest": [1, 2, 6]}


def test_the_join_inside_a_message_is_the_join_of_the_tables(tables: Path) -> None:
    messages = read(tables, "multi", 1_500)
    found = numbers("RT-2-D", messages)
    query = """SELECT c_custkey - 1 FROM read_parquet('{0}/customer.parquet') JOIN read_parquet('{0}/nation.parquet')
               ON c_nationkey = n_nationkey WHERE n_regionkey = 3 AND c_acctbal > 0 ORDER BY 1"""
    europe = [row[0] for row in duckdb.sql(query.format(tables / "scale-0.01")).fetchall()]
    assert 100 < len(europe) < 400
    assert found == {"europe": europe, "rest": [number for number in range(1_500) if number not in set(europe)]}
    assert numbers("RT-2-D-filter", messages) == {"out": europe}


def test_copies_and_recipients() -> None:
    messages = [order(0), order(1, OORDERPRIORITY="5-LOW", OORDERSTATUS="F")]
    assert numbers("RT-3-A", messages) == {"out-1": [0, 1]}
    assert numbers("RT-3-B", messages) == {f"out-{number}": [0, 1] for number in range(1, 5)}
    assert numbers("RT-4-A", messages) == {"priority-2": [0], "priority-5": [1]}
    assert numbers("RT-4-B", messages) == {"priority-2": [0], "status-O": [0], "priority-5": [1], "status-F": [1]}


def test_a_collection_is_split_into_its_orders(tables: Path) -> None:
    assert expected("RT-5-A", read(tables, "collections-16", 100)) == {"out": read(tables, "orders", 100)}


def test_splitters_make_what_the_aggregators_get(tables: Path) -> None:
    orders, fields, entries = (read(tables, model, 50) for model in ("orders", "fields", "entries"))
    for workload in ("RT-5-B", "SP-A"):
        without_key = [{name: value for name, value in field.items() if name != "order"} for field in fields]
        assert expected(workload, orders)["out"] == without_key
    for workload in ("RT-5-C", "SP-B"):
        assert expected(workload, orders)["out"] == entries
    assert expected("AGG-A", fields)["out"] == [{"order": one["msgId"], **one} for one in orders]
    assert expected("AGG-B", entries)["out"] == orders


def test_orders_are_gathered_by_their_number_and_the_last_group_may_be_short() -> None:
    messages = [order(number) for number in range(25)]
    groups = expected("RT-6-A", messages[::-1])["out"]
    assert groups == [{"orders": messages[:10]}, {"orders": messages[10:20]}, {"orders": messages[20:]}]
    assert expected("RT-6-B", messages)["out"] == [{"orders": messages}]


def test_translations() -> None:
    (translated,) = expected("MT-1-A", [ORDER])["out"]
    assert translated == {
        "order": 32, "customer": 2, "price": 172799.5, "priority": "2-HIGH", "date": "1995-07-16", "status": "O",
    }  # fmt: skip
    assert expected("MT-A", [ORDER]) == {"out": [translated]}
    assert expected("MT-2-A", [ORDER]) == {"out": [{"OORDERKEY": 32, "OCUSTKEY": 2, "OTOTALPRICE": 172799.5}]}


def test_enrichments() -> None:
    others = [{**CUSTOMER, "CCUSTKEY": 1, "CNAME": "another"}, CUSTOMER]
    short = {"CNAME": "Customer#000000002", "CMKTSEGMENT": "AUTOMOBILE", "CNATIONKEY": 13}
    assert expected("MT-3-A", [ORDER], {"customers": others})["out"] == [
        {**ORDER, "CNAME": "Customer#000000002", "CMKTSEGMENT": "AUTOMOBILE"}
    ]
    assert expected("MT-3-B", [ORDER], {"customers": others})["out"] == [{**ORDER, "customer": short}]
    nine = {name: value for name, value in ORDER.items() if name.startswith("O")}
    assert len(nine) == 9
    assert expected("MT-3-C", [ORDER], {"customers": others})["out"] == [
        {"msgId": 7, "type": "MULTI", "order": nine, "customer": short}
    ]
    with pytest.raises(ValueError, match="the answer to MT-3-A needs the customers"):
        expected("MT-3-A", [ORDER])


def test_copies_of_fields_are_text() -> None:
    (copied,) = expected("CE-A", [ORDER])["out"]
    assert len(copied) == 22
    assert copied["OTOTALPRICE_copy"] == "172799.50-copy"
    assert copied["msgId_copy"] == "7-copy"
    assert copied["OCOMMENT_copy"] == "ully bold-copy"
    assert copied["OTOTALPRICE"] == 172799.5


def test_delivery(tables: Path) -> None:
    orders = read(tables, "orders", 100)
    assert expected("MDS-1-F", [ORDER]) == {"out": [{**ORDER, "delivered": True}]}
    in_sequence = expected("MDS-2-10", read(tables, "sequences-10", 100))["out"]
    assert [(one["group"], one["position"]) for one in in_sequence] == [(g, p) for g in range(10) for p in range(1, 11)]
    assert expected("MDS-3-A", orders) == {"out": orders}
    assert expected("MDS-3-B", read(tables, "duplicates-40", 100)) == {"out": orders}


def test_a_load_balancer_uses_all_routes() -> None:
    messages = [order(number) for number in range(7)]
    assert numbers("LB-3", messages) == {"route-1": [0, 3, 6], "route-2": [1, 4], "route-3": [2, 5]}


@pytest.mark.parametrize("workload", ["BL", "JR-2", "JR-4", "SpAgg-A", "SpAgg-B", "LBSpAggJR-3", "LBSpAggJR-4"])
def test_orders_that_come_out_as_they_went_in(workload: str) -> None:
    assert expected(workload, [ORDER]) == {"out": [ORDER]}


def test_every_workload_has_an_answer_and_others_are_refused() -> None:
    assert len(WORKLOADS) == len(set(WORKLOADS)) == 56
    with pytest.raises(ValueError, match="no answer is known to workload 'RT-9'"):
        expected("RT-9", [])


def test_no_answer_changes_its_messages() -> None:
    for workload in ("CE-A", "MDS-1-A", "AGG-B", "MT-3-A"):
        messages = [dict(ORDER)]
        expected(workload, messages, {"customers": [CUSTOMER]})
        assert messages == [ORDER]
