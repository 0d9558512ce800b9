"""The messages as msgspec structs: those that are read hold only the fields that a step needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.bench.peers.fields import FLOATS, HEAD, MIDDLE, NUMBERS, ORDER, TAIL, TRANSLATION


class Identified(msgspec.Struct, gc=False):
    msgId: int


class Priced(msgspec.Struct, gc=False):
    OTOTALPRICE: float


class Rated(msgspec.Struct, gc=False):
    OTOTALPRICE: float
    OORDERPRIORITY: str
    OORDERDATE: str
    OORDERSTATUS: str


class Addressed(msgspec.Struct, gc=False):
    OORDERPRIORITY: str
    OORDERSTATUS: str


class Positioned(msgspec.Struct, gc=False):
    group: int
    position: int


class Order(msgspec.Struct, gc=False):
    msgId: int
    type: str
    OORDERKEY: int
    OCUSTKEY: int
    OORDERSTATUS: str
    OTOTALPRICE: float
    OORDERDATE: str
    OORDERPRIORITY: str
    OCLERK: str
    OSHIPPRIORITY: int
    OCOMMENT: str


class DeliveredOrder(Order, gc=False):
    delivered: bool = True


class EnrichedOrder(Order, gc=False):
    CNAME: str = ""
    CMKTSEGMENT: str = ""


class Customer(msgspec.Struct, gc=False):
    CNAME: str
    CMKTSEGMENT: str
    CNATIONKEY: int


class NestedOrder(Order, gc=False):
    customer: Customer | None = None


class CustomerRow(msgspec.Struct, gc=False):
    """A row of the table in memory, with all its columns."""

    msgId: int
    type: str
    CCUSTKEY: int
    CNAME: str
    CADDRESS: str
    CNATIONKEY: int
    CPHONE: str
    CACCTBAL: float
    CMKTSEGMENT: str
    CCOMMENT: str


class Kept(msgspec.Struct, gc=False):
    OORDERKEY: int
    OCUSTKEY: int
    OTOTALPRICE: float


class CustomerOfNation(msgspec.Struct, gc=False):
    CNATIONKEY: int
    CACCTBAL: float


class NationOfRegion(msgspec.Struct, gc=False):
    NNATIONKEY: int
    NREGIONKEY: int


class Multi(msgspec.Struct, gc=False):
    customer: CustomerOfNation
    nations: list[NationOfRegion]


class Orders(msgspec.Struct, gc=False):
    """Several orders, each the bytes that came."""

    orders: list[msgspec.Raw]


def _type(name: str) -> type:
    return int if name in NUMBERS else float if name in FLOATS else str


def _struct(name: str, fields: Sequence[str]) -> Any:
    return msgspec.defstruct(name, [(field, _type(field)) for field in fields], gc=False)


BARE_ORDER: Any = _struct("BareOrder", ORDER[2:])
SIX: Any = _struct("Six", tuple(TRANSLATION.values()))
TRANSLATED: Any = msgspec.defstruct("Translated", [(to, _type(of)) for to, of in TRANSLATION.items()], gc=False)
SINGLES: tuple[Any, ...] = tuple(_struct(f"Single{name}", [name]) for name in ORDER)
ENTRIES: tuple[Any, ...] = tuple(_struct(f"Entry{name}", [*HEAD, name, *TAIL]) for name in MIDDLE)
COPIED: Any = _struct("Copied", [*ORDER, *(f"{name}_copy" for name in ORDER)])


class TwoFormats(msgspec.Struct, gc=False):
    msgId: int
    type: str
    order: Any
    customer: Customer
