"""The messages of EIPBench as JSON lines (section 4.1.2), made from the tables a block at a time.

Polars encodes the rows; messages that hold other objects are put together from those bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import msgspec
import polars as pl

from penstock.bench import tpch
from penstock.demo import cars, fleet

BLOCK = 20_000
CUSTOMERS_PER_NEST = 4
CUSTOMERS_PER_SCALE = 4
HEAD = ("msgId", "type", "OORDERKEY", "OCUSTKEY")
TAIL = "OCOMMENT"


class NotEnough(Exception):
    """The tables of this scale are too small for the model; the text says what they have."""


@dataclass(frozen=True)
class Tables:
    """The tables of one scale factor as frames."""

    directory: Path
    scale: float

    def frame(self, name: str, rows: int | None = None) -> pl.DataFrame:
        return pl.DataFrame(tpch.table(self.directory, name, self.scale, rows))

    def orders(self, messages: int | None) -> pl.DataFrame:
        """The first orders, as messages."""
        frame = self.frame("orders", messages)
        if messages is not None and messages > len(frame):
            raise NotEnough(f"scale {self.scale:g} has {len(frame):,} orders, {messages:,} were asked for")
        return _numbered(frame, "ORDERS")


@dataclass(frozen=True)
class Messages:
    """So many units, each of so many lines; `chunks(first, last)` are the bytes of the units in between."""

    units: int
    chunks: Callable[[int, int], Iterator[bytes]]
    lines_per_unit: int = 1


def _numbered(frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    head = (pl.int_range(pl.len(), dtype=pl.Int64).alias("msgId"), pl.lit(kind).alias("type"))
    return frame.select(*head, *frame.columns)


def _encoded(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ndjson(buffer)
    return buffer.getvalue()


def _blocks(frame: pl.DataFrame, first: int, last: int) -> Iterator[pl.DataFrame]:
    for start in range(first, last, BLOCK):
        yield frame.slice(start, min(BLOCK, last - start))


def _lines(frame: pl.DataFrame, first: int, last: int) -> Iterator[bytes]:
    for block in _blocks(frame, first, last):
        yield from _encoded(block).splitlines()


def _repeated(frame: pl.DataFrame, first: int, last: int) -> Iterator[bytes]:
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        yield from _encoded(frame[[row % len(frame) for row in range(start, stop)]]).splitlines()


def _plain(frame: pl.DataFrame) -> Messages:
    def chunks(first: int, last: int) -> Iterator[bytes]:
        return (_encoded(block) for block in _blocks(frame, first, last))

    return Messages(len(frame), chunks)


def _orders(tables: Tables, messages: int | None, _: int) -> Messages:
    return _plain(tables.orders(messages))


def _table(name: str, kind: str) -> Callable[[Tables, int | None, int], Messages]:
    return lambda tables, messages, _: _plain(_numbered(tables.frame(name, messages), kind))


def _multi(tables: Tables, messages: int | None, _: int) -> Messages:
    customers = tables.frame("customers")
    nations, regions = (b",".join(_encoded(tables.frame(name)).splitlines()) for name in ("nations", "regions"))
    form = b'{"msgId":%d,"type":"MULTI","customer":%s,"nations":[%s],"regions":[%s]}\n'

    def chunks(first: int, last: int) -> Iterator[bytes]:
        for number, customer in enumerate(_repeated(customers, first, last), first):
            yield form % (number, customer, nations, regions)

    return Messages(messages or len(customers), chunks)


def _nested(tables: Tables, messages: int | None, _: int) -> Messages:
    nations = tables.frame("nations")
    nation = pl.struct(name for name in nations.columns if name != "NNATIONKEY").alias("nation")
    by_key = nations.select(pl.col("NNATIONKEY").alias("CNATIONKEY"), nation)
    joined = tables.frame("customers").join(by_key, on="CNATIONKEY", how="left", maintain_order="left")
    customers = joined.drop("CNATIONKEY")
    count = CUSTOMERS_PER_NEST

    def chunks(first: int, last: int) -> Iterator[bytes]:
        lines = _repeated(customers, first * count, last * count)
        for number in range(first, last):
            yield b'{"msgId":%d,"type":"NESTED","customers":[%s]}\n' % (number, b",".join(islice(lines, count)))

    return Messages(messages or len(customers) // count, chunks)


def _scaled(tables: Tables, messages: int | None, eta: int) -> Messages:
    orders, customers = tables.orders(messages or 1), tables.frame("customers")
    count = CUSTOMERS_PER_SCALE * 2 ** (eta - 1)

    def chunks(first: int, last: int) -> Iterator[bytes]:
        lines = _repeated(customers, first * count, last * count)
        for order in _lines(orders, first, last):
            yield order[:-1] + b',"customers":['
            for start in range(0, count, BLOCK):  # a message of hundreds of MB never is in memory as a whole
                comma = b"," if start else b""
                yield comma + b",".join(islice(lines, min(BLOCK, count - start)))
            yield b"]}\n"

    return Messages(len(orders), chunks)


def _collections(tables: Tables, messages: int | None, size: int) -> Messages:
    orders = tables.orders(messages)

    def chunks(first: int, last: int) -> Iterator[bytes]:
        lines = _lines(orders, first * size, min(last * size, len(orders)))
        for number in range(first, last):
            yield b'{"msgId":%d,"type":"COLLECTION","orders":[%s]}\n' % (number, b",".join(islice(lines, size)))

    return Messages(-(-len(orders) // size), chunks)


def _parts(orders: pl.DataFrame, parts: list[pl.Expr]) -> Messages:
    """Several lines per order, each a struct of some of its fields."""
    together = pl.concat_str([part.struct.json_encode() for part in parts], separator="\n")

    def chunks(first: int, last: int) -> Iterator[bytes]:
        for block in _blocks(orders, first, last):
            yield "\n".join([*block.select(together).to_series().to_list(), ""]).encode()

    return Messages(len(orders), chunks, len(parts))


def _fields(tables: Tables, messages: int | None, _: int) -> Messages:
    orders = tables.orders(messages)
    return _parts(orders, [pl.struct(pl.col("msgId").alias("order"), name) for name in orders.columns])


def _entries(tables: Tables, messages: int | None, _: int) -> Messages:
    orders = tables.orders(messages)
    middle = [name for name in orders.columns if name not in (*HEAD, TAIL)]
    return _parts(orders, [pl.struct(*HEAD, name, TAIL) for name in middle])


def _sequences(tables: Tables, messages: int | None, size: int) -> Messages:
    orders = tables.orders(messages)
    if len(orders) < size:
        raise NotEnough(f"{len(orders):,} orders hold no sequence of {size:,}")
    orders = orders.head(len(orders) // size * size).with_columns((pl.col("msgId") // size).alias("group"))
    return _plain(orders.with_columns(pl.col("OTOTALPRICE").rank("ordinal").over("group").alias("position")))


def _duplicates(tables: Tables, messages: int | None, distance: int) -> Messages:
    orders = tables.orders(messages)

    def row(line: int) -> int:
        start = line // (2 * distance) * distance
        return start + line % (2 * distance) % min(distance, len(orders) - start)

    def chunks(first: int, last: int) -> Iterator[bytes]:
        for start in range(first, last, BLOCK):
            yield _encoded(orders[[row(line) for line in range(start, min(start + BLOCK, last))]])

    return Messages(2 * len(orders), chunks)


def _cars(tables: Tables, messages: int | None, _: int) -> Messages:
    """Connected cars of section 6.5 of HW-EIP; all of them can be delivered."""
    count = messages or cars.MESSAGES

    def chunks(first: int, last: int) -> Iterator[bytes]:
        for message in islice(cars.messages(count, shares=cars.Shares(broken=0)), first, last):
            yield message + b"\n"

    return Messages(count, chunks)


def _owners(tables: Tables, messages: int | None, _: int) -> Messages:
    """Whoever owns one of the cars: all of them, however many are asked for."""
    lines = [msgspec.json.encode(asdict(owner)) + b"\n" for owner in fleet.owners(cars.CARS, cars.SEED)]
    return Messages(len(lines), lambda first, last: iter(lines[first:last]))


FAMILIES: dict[str, Callable[[Tables, int | None, int], Messages]] = {
    "orders": _orders,
    "customers": _table("customers", "CUSTOMER"),
    "nations": _table("nations", "NATION"),
    "regions": _table("regions", "REGION"),
    "multi": _multi,
    "nested": _nested,
    "scaled": _scaled,
    "collections": _collections,
    "fields": _fields,
    "entries": _entries,
    "sequences": _sequences,
    "duplicates": _duplicates,
    "cars": _cars,
    "owners": _owners,
}
"""Every family of models: from the tables, the number asked for and the number in the model's name."""
