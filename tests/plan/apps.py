"""Apps that the tests of explain, diagram and YAML share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import (
    App,
    Console,
    Csv,
    Files,
    Json,
    Memory,
    Parquet,
    Postgres,
    Rate,
    Route,
    Table,
    Text,
    Void,
    Xml,
    body,
    collect,
    combine,
    count_of,
    default,
    fold,
    function,
    header,
    item,
    join,
    jsonpath,
    latest,
    lookup,
    lookup_table,
    max_of,
    meta,
    sum_of,
    union,
    when,
)  # fmt: skip
from penstock.schema import schema

CAR = "car STRING, kind STRING, speed DOUBLE, fuel DOUBLE, code BIGINT, owner STRUCT<name: STRING, city: STRING>"
ORDER = "id BIGINT, kind STRING, total DOUBLE, to STRING, lines ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"


def models(directory: Path) -> Path:
    path = directory / "models.csv"
    path.write_text("car,model,year\nx1,Audi,2014\nx2,BMW,2012\n")
    return path


def cars(table: Path | str) -> App:
    """Connected cars: errors and telemetry are told apart, filtered, joined, enriched and translated."""
    return App(
        "connected-cars",
        Route("intake", Files("data/cars.jsonl", format=Json(CAR))).choice(
            {"errors": body.kind == "error", "telemetry": body.kind == "telemetry"}, otherwise="unknown"
        ),
        Route("faults", "errors")
        .filter((body.code > 0) & (header["region"] == "EU"), missing="dead")
        .tap("audit")
        .to("urgent"),
        Route("positions", "telemetry")
        .filter("speed >= 1 and speed < 250", discard="parked", name="moving")
        .to("on-road"),
        Route("combined", join("urgent", "on-road"))
        .enrich_from(lookup_table(table, key="car"), on=body.car, fields=["model"], name="model")
        .translate({"car.id": body.car, "car.model": body.model, "kmh": body.speed * 1.609})
        .to("report", Parquet("out/report")),
        sinks={"unknown": Void(), "audit": Files("out/audit"), "parked": Console()},
    )


def unchanged(batch: Any) -> Any:
    return batch


def is_odd(fields: dict[str, Any]) -> bool:
    return bool(fields["id"] % 2)


def label(kind: str) -> str:
    return kind.upper()


def numbered(index: int) -> bytes:
    return b'{"id": %d}' % index


def every_step() -> App:
    """Every pattern, in a form that YAML can hold."""
    return App(
        "every-step",
        Route("a", Memory(format=Json(ORDER)))
        .tap("copies", name="see")
        .filter(is_odd)
        .headers({"total": body.total, "from": "web", "label": function(label, body.kind)}, remove=["the region"])
        .split(body.lines, into="line", head=["id"], tail=["kind"])
        .keep("id", "line.sku", "kind")
        .to("left"),
        Route("b", Rate(5, 20, numbered, Json("id BIGINT, kind STRING")))
        .enrich({"size": 1, "label": function(label, body.kind), "region": header["the region"], "text": "it's"})
        .drop("size")
        .script(unchanged, "id BIGINT, kind STRING")
        .to("right"),
        Route("c", join("left", "right")).balance("one", "two", "three"),
        Route("d", "copies").recipients(body.to, ["r1", "r2"], separator=";", stop_on_exception=True),
        Route("e", "r1").split(body.lines, error_budget=3).multicast("m1", "m2", stop_on_exception=True),
        Route("f", "r2")
        .split_fields(head=["id"], tail=["kind"], error_budget=0.05)
        .balance("w1", "w2", weights=[1, 3]),
        Route("g", "m1").filter(jsonpath("@.price > 5")).balance("s1", "s2", sticky=body.sku),
        Route("h", "m2").balance("q1", "q2", random_seed=7),
        Route("i", "w1").choice(
            [("x", body.lines.any(item.price > 10)), ("y", body.total.is_in(1.5, 2.5)), ("x", body.kind == "rush")],
            otherwise="z",
            missing="dead",
        ),
        Route("j", "w2")
        .translate({
            "a.b": default(body.kind, "none"),
            "a.c": when(body.total > 1, "big").otherwise("small"),
            "d": lookup(body.kind, {"P": "pending", "F": "final"}, "other"),
        })
        .to("k", Void()),
        sinks={name: Void() for name in ("one", "two", "three", "s1", "s2", "q1", "q2", "x", "y", "z")},
        dead_letters=Files("dead"),
    )  # fmt: skip


def every_memory() -> App:
    """Every pattern that remembers, with every strategy, in a form that YAML can hold."""
    price = function(label, body.kind)
    return App(
        "every-memory",
        Route("a", Memory(format=Json(ORDER)))
        .idempotent(body.id)
        .idempotent([body.id, body.kind], keep="1 hour", keep_last=1000, duplicates="twice", remember_failed=True)
        .resequence(body.id, by=body.kind, window=10, first=1, timeout="5 s", late="pass", on_stop="discard",
                    keep="1 day")
        .split(body.lines, into="line", head=["id"])
        .aggregate(collect("lines", of="line", head=["id"]), size="parts", timeout=1.5, on_timeout="discard")
        .on_error(3, "500 ms", cap="10 s", jitter=0.2, errors=["FunctionFailed"])
        .to("b"),
        Route("b", "b").aggregate(collect("orders"), by=True, size=100, interval="1 minute").multicast("c", "d", "e"),
        Route("c", "c").split(body.orders).aggregate(union(), when="id > 5", new_group=True, invalid="filter").to("x"),
        Route("d", "d")
        .split(body.orders)
        .idempotent()
        .aggregate(
            fold(total=sum_of(body.id), n=count_of(), most=max_of(body.id * 2)), by=meta("id"), batch_end=True,
            closed="dead", closed_for="2 days",
        )
        .on_error(message="current", backoff=1)
        .to("y"),
        Route("e", "e").aggregate(combine(unchanged, "id BIGINT"), by="size(orders)", size=2).to("z"),
        Route("f", "twice").filter(body.id > 0).enrich({"kind": price}).on_error(delay=0, message="original").to("g"),
        Route("g", "g").aggregate(latest(), by=[body.kind, header.region], size=2, on_stop="hold").to("w"),
        sinks={name: Void() for name in "wxyz"},
    )  # fmt: skip


def every_end() -> App:
    """Every endpoint and format that YAML can hold."""
    fields = "id BIGINT, `the name` STRING"
    sources = [
        Files("a.csv", format=Csv(fields, delimiter=";", quote="'", header=False)),
        Files("a.xml", format=Xml("id BIGINT", root="order"), record="order"),
        Files("plain.xml", format=Xml()),
        Files("a.txt"),
        Files("b.txt", format=Text()),
        Parquet("a.parquet", schema=fields),
        Table("orders", schema=schema(fields), warehouse="elsewhere"),
        Memory(format=Json(fields), partitions=3),
        Memory(),
        Rate(),
        Rate(2, 5, numbered, Json("id BIGINT")),
        Rate(3),
    ]
    sinks = [
        Files("out/a", mode="overwrite"), Files("out/b", format=Json(fields)), Parquet("out/c", mode="overwrite"),
        Table("done"), Table("more", mode="overwrite", warehouse="w"), Memory(), Console(), Console(5), Void(),
        Files("out/d", format=Text()), Memory(format=Json(fields)),
        Postgres("postgresql://${USER}@db/shop", "orders", "upsert", ["id"]),
    ]  # fmt: skip
    routes = [Route(f"r{index}", source).to(f"c{index}") for index, source in enumerate(sources)]
    bound = {f"c{index}": sink for index, sink in enumerate(sinks)}
    return App("every-end", *routes, sinks=bound, dead_letters=Memory())
