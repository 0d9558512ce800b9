"""The app that is killed: orders are split, deduplicated, priced and put together again, into three kinds of sinks.

    python -m tests.soak.orders DIRECTORY DATABASE MEMORY

runs it as a stream until somebody ends it. A receiver that is FORGETFUL does not keep the keys of lines that fail, so a
line may have to wait for a later batch.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock import App, Files, Json, Parquet, Postgres, Route, Table, body, count_of, first_of, fold, function, sum_of

UNLUCKY = 13
LINES = 3
ORDER = "customer BIGINT, number BIGINT, lines ARRAY<STRUCT<id: STRING, pieces: BIGINT>>"


def priced(pieces: int) -> int:
    if pieces == UNLUCKY:
        raise ValueError("nobody sells thirteen")
    return pieces * 7


FORGETFUL, KEEPING = "forgetful", "keeping"


def app(directory: Path, database: str, memory: str) -> App:
    """Every line goes to a log; every order is one message again once its three good lines have come."""
    out = directory / "out"
    lines = (
        Route("lines", Files(str(directory / "in"), Json(ORDER)))
        .split(body.lines, into="line", head=["number"])
        .idempotent(body.line.id, remember_failed=memory == KEEPING)
        .enrich({"price": function(priced, body.line.pieces, returns="BIGINT")})
        .tap("log")
        .aggregate(
            fold(number=first_of(body.number), total=sum_of(body.price), n=count_of()), by=body.number, size=LINES
        )
        .multicast("files", "rows", "table")
    )
    sinks = {
        "log": Parquet(str(out / "log")),
        "files": Files(str(out / "files"), Json("number BIGINT, total BIGINT, n BIGINT")),
        "rows": Postgres(database, "orders"),
        "table": Table("table", warehouse=str(out)),
    }
    return App("orders", lines, sinks=sinks, dead_letters=Files(str(out / "dead")))


def messages(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Orders from a number on. Every fifth has a fourth line that fails; every seventh comes twice."""
    for number in range(first, first + count):
        lines = [{"id": f"{number}-{line}", "pieces": 1 + (number + line) % 5} for line in range(LINES)]
        if number % 5 == 0:
            lines.insert(number % (LINES + 1), {"id": f"{number}-bad", "pieces": UNLUCKY})
        order = {"customer": number % 97, "number": number, "lines": lines}
        yield order
        if number % 7 == 0:
            yield order


def expected(count: int, memory: str) -> dict[str, Counter[str]]:
    """What every sink holds in the end, by plain counting."""
    log: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    for order in messages(0, count):
        for line in order["lines"]:
            if line["pieces"] == UNLUCKY:
                dead[line["id"]] = 1 if memory == KEEPING else dead[line["id"]] + 1
            else:
                log[line["id"]] = 1
        total = sum(line["pieces"] * 7 for line in order["lines"] if line["pieces"] != UNLUCKY)
        orders[json.dumps({"number": order["number"], "total": total, "n": LINES})] = 1
    return {"log": log, "files": orders, "rows": orders, "table": orders, "dead": dead}


def feed(directory: Path, first: int, count: int) -> None:
    """One more file of orders, complete when it appears."""
    target = directory / "in"
    target.mkdir(parents=True, exist_ok=True)
    part = directory / f"{first:09d}.part"
    part.write_text("".join(json.dumps(order) + "\n" for order in messages(first, count)))
    part.rename(target / f"{first:09d}.jsonl")


def main() -> None:
    from penstock.spark.stream import run_stream

    directory, chosen = Path(sys.argv[1]), app(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    print("started", flush=True)
    run_stream(chosen, str(directory / "checkpoint"))


if __name__ == "__main__":
    main()
