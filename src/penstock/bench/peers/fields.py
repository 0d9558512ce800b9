"""The fields of an order, and what the workloads do with them."""

from __future__ import annotations

HEAD = ("msgId", "type", "OORDERKEY", "OCUSTKEY")
MIDDLE = ("OORDERSTATUS", "OTOTALPRICE", "OORDERDATE", "OORDERPRIORITY", "OCLERK", "OSHIPPRIORITY")
TAIL = ("OCOMMENT",)
ORDER = (*HEAD, *MIDDLE, *TAIL)
NUMBERS = {"msgId", "OORDERKEY", "OCUSTKEY", "OSHIPPRIORITY", "CCUSTKEY", "CNATIONKEY"}
FLOATS = {"OTOTALPRICE", "CACCTBAL"}

TRANSLATION = {
    "order": "OORDERKEY", "customer": "OCUSTKEY", "price": "OTOTALPRICE",
    "priority": "OORDERPRIORITY", "date": "OORDERDATE", "status": "OORDERSTATUS",
}  # fmt: skip
KEPT = ("OORDERKEY", "OCUSTKEY", "OTOTALPRICE")
SIMPLE = ("CNAME", "CMKTSEGMENT")
NESTED = ("CNAME", "CMKTSEGMENT", "CNATIONKEY")

SYNONYMS = {"SP-A": "RT-5-B", "SP-B": "RT-5-C", "MT-A": "MT-1-A"}
