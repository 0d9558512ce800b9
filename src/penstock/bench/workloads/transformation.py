"""Message translator, content filter, content enricher."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App, Route, body, call
from penstock.bench.workloads.ends import Ends

MAPPING = {
    "order": body.OORDERKEY,
    "customer": body.OCUSTKEY,
    "price": body.OTOTALPRICE,
    "priority": body.OORDERPRIORITY,
    "date": body.OORDERDATE,
    "status": body.OORDERSTATUS,
}
ORDER_FIELDS = (
    "OORDERKEY", "OCUSTKEY", "OORDERSTATUS", "OTOTALPRICE", "OORDERDATE", "OORDERPRIORITY", "OCLERK", "OSHIPPRIORITY",
    "OCOMMENT",
)  # fmt: skip
NUMBERS = ("msgId", "OORDERKEY", "OCUSTKEY", "OSHIPPRIORITY")
CUSTOMER = ["CNAME", "CMKTSEGMENT", "CNATIONKEY"]


def translate(name: str) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("orders", ends.source()).translate(MAPPING).to("out"))


def content_filter(ends: Ends) -> App:
    return ends.app("MT-2-A", Route("orders", ends.source()).keep("OORDERKEY", "OCUSTKEY", "OTOTALPRICE").to("out"))


def enrich_fields(ends: Ends) -> App:
    customers = ends.table("customers", "CCUSTKEY", CUSTOMER[:2])
    return ends.app("MT-3-A", Route("orders", ends.source()).enrich_from(customers, on=body.OCUSTKEY).to("out"))


def enrich_nested(ends: Ends) -> App:
    customers = ends.table("customers", "CCUSTKEY", CUSTOMER)
    route = Route("orders", ends.source()).enrich_from(customers, on=body.OCUSTKEY, fields=CUSTOMER, into="customer")
    return ends.app("MT-3-B", route.to("out"))


def enrich_to_multi_format(ends: Ends) -> App:
    customers = ends.table("customers", "CCUSTKEY", CUSTOMER)
    order = {f"order.{name}": body[name] for name in ORDER_FIELDS}
    return ends.app(
        "MT-3-C",
        Route("orders", ends.source())
        .enrich_from(customers, on=body.OCUSTKEY, fields=CUSTOMER, into="customer")
        .translate({"msgId": body.msgId, "type": "MULTI", **order, "customer": body.customer})
        .to("out"),
    )


def copy_entries(ends: Ends) -> App:
    texts = {name: body[name] for name in ("type", *ORDER_FIELDS)}
    texts |= {name: call("to_string", body[name]) for name in NUMBERS}
    texts["OTOTALPRICE"] = call("to_string", body.OTOTALPRICE, 2)
    copies = {f"{name}_copy": call("concat", text, "-copy") for name, text in texts.items()}
    return ends.app("CE-A", Route("orders", ends.source()).enrich(copies).to("out"))


APPS: dict[str, Callable[[Ends], App]] = {
    "MT-1-A": translate("MT-1-A"),
    "MT-2-A": content_filter,
    "MT-3-A": enrich_fields,
    "MT-3-B": enrich_nested,
    "MT-3-C": enrich_to_multi_format,
    "MT-A": translate("MT-A"),
    "CE-A": copy_entries,
}
